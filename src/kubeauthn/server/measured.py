"""Every decision counted and timed, with Kubernetes' own names where there are any."""

from __future__ import annotations

import socket
import time
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubeauthn.server.decisions import Decider, Decision
    from kubeauthn.server.metrics import Cell, Distribution, Registry
    from kubeauthn.server.runtime import Runtime

AUTHENTICATION = "apiserver_authentication"
KUBERNETES_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def hashed(text: str) -> str:
    """As Kubernetes shows issuers and servers in metrics."""
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def server_id_hash() -> str:
    return hashed(socket.gethostname())


class MeasuredDecider:
    """A decider around a decider."""

    __slots__ = ("_cells", "_decisions", "_inner", "_inner_now", "_latency", "_seconds")

    def __init__(self, inner: Decider, metrics: Registry) -> None:
        self._inner = inner
        self._inner_now = inner.decide_now
        self._decisions = metrics.counter(
            "kubeauthn_decisions_total",
            "Tokens decided about, by outcome, by the issuer that the token named, and by whether it was remembered.",
            ("outcome", "jwt_issuer_hash", "cached"),
        )
        self._seconds = metrics.histogram(
            "kubeauthn_decision_duration_seconds", "Time that a decision took, by outcome.", ("outcome",)
        )
        self._latency = metrics.histogram(
            f"{AUTHENTICATION}_jwt_authenticator_latency_seconds",
            "Latency of jwt authentication operations in seconds. This is the time spent authenticating a token for "
            "cache misses only (i.e. when the token is not found in the cache).",
            ("result", "jwt_issuer_hash"),
            KUBERNETES_BUCKETS,
        )
        self._cells: dict[tuple[str, str | None, bool], tuple[Cell, Distribution, Distribution | None]] = {}

    def decide_now(self, token: str) -> Decision | None:
        begun = time.perf_counter()
        decision = self._inner_now(token)
        if decision is not None:
            self._count(decision, time.perf_counter() - begun)
        return decision

    async def decide(self, token: str) -> Decision:
        begun = time.perf_counter()
        decision = await self._inner.decide(token)
        self._count(decision, time.perf_counter() - begun)
        return decision

    def _count(self, decision: Decision, seconds: float) -> None:
        key = decision.outcome, decision.issuer, decision.cached
        cells = self._cells.get(key)
        if cells is None:
            cells = self._new_cells(decision)
            self._cells[key] = cells
        cells[0].value += 1
        cells[1].observe(seconds)
        if cells[2] is not None:
            cells[2].observe(seconds)

    def _new_cells(self, decision: Decision) -> tuple[Cell, Distribution, Distribution | None]:
        # Only issuers of the configuration get here: nobody can make new series by naming one.
        issuer = hashed(decision.issuer) if decision.issuer else ""
        count = self._decisions.cell(decision.outcome, issuer, str(decision.cached).lower())
        latency = None
        if issuer and not decision.cached:
            result = "success" if decision.outcome == "authenticated" else "failure"
            latency = self._latency.distribution(result, issuer)
        return count, self._seconds.distribution(decision.outcome), latency


class StateGauges:
    """What is in force in this worker: set anew whenever somebody asks."""

    def __init__(self, metrics: Registry, runtime: Runtime) -> None:
        self._runtime = runtime
        self._server = server_id_hash()
        self._config = metrics.gauge(
            f"{AUTHENTICATION}_config_controller_last_config_info",
            "Information about the last applied authentication configuration with hash as label.",
            ("apiserver_id_hash", "hash"),
        )
        self._fetched = metrics.gauge(
            f"{AUTHENTICATION}_jwt_authenticator_jwks_fetch_last_timestamp_seconds",
            "Timestamp of the last successful or failed JWKS fetch split by result and jwt issuer.",
            ("result", "jwt_issuer_hash", "apiserver_id_hash"),
        )
        self._key_set = metrics.gauge(
            f"{AUTHENTICATION}_jwt_authenticator_jwks_fetch_last_key_set_info",
            "Information about the last JWKS fetched, its hash as label.",
            ("jwt_issuer_hash", "apiserver_id_hash", "hash"),
        )
        self._provider = metrics.gauge(
            f"{AUTHENTICATION}_jwt_authenticator_provider_status_timestamp_seconds",
            "When the issuer was last found healthy or unhealthy.",
            ("jwt_issuer_hash", "status"),
        )

    def update(self) -> None:
        for family in (self._config, self._fetched, self._key_set, self._provider):
            family.forget()
        generation = self._runtime.current
        if generation is None:
            return
        self._config.cell(self._server, generation.configuration.source).value = 1
        for url, keys in generation.keys.items():
            issuer, status = hashed(url), keys.status
            if status.fetched_at is not None:
                self._fetched.cell("success", issuer, self._server).value = status.fetched_at
                self._provider.cell(issuer, "healthy").value = status.fetched_at
                self._key_set.cell(issuer, self._server, status.fingerprint).value = 1
            if status.failed_at is not None:
                self._fetched.cell("failure", issuer, self._server).value = status.failed_at
                self._provider.cell(issuer, "unhealthy").value = status.failed_at
