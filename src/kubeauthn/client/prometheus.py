"""The metrics of exec plugins for Prometheus, under the names that Kubernetes' own client uses.

from kubeauthn.client import prometheus
prometheus.install()
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from kubeauthn.client import metrics
from kubeauthn.errors import MissingExtra

try:
    from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram
except ImportError:
    raise MissingExtra("prometheus-client", "prometheus") from None

ROTATION_AGE_BUCKETS = (
    600,
    1_800,
    3_600,
    14_400,
    86_400,
    604_800,
    2_592_000,
    7_776_000,
    15_552_000,
    31_104_000,
    124_416_000,
)
"""Ten minutes to an hour: too often. Four hours to a month: as it should be. Three months to four years: too rarely."""


class PrometheusExecMetrics:
    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._expires_at: float | None = None
        ttl = Gauge(
            "rest_client_exec_plugin_ttl_seconds",
            "Shortest time to the expiry of a client certificate that an exec plugin returned, in seconds; "
            "negative once expired, +Inf where there is none.",
            registry=registry,
        )
        ttl.set_function(self._seconds_left)
        self._rotation_age = Histogram(
            "rest_client_exec_plugin_certificate_rotation_age",
            "Age in seconds of a client certificate of an exec plugin when it was replaced.",
            buckets=ROTATION_AGE_BUCKETS,
            registry=registry,
        )
        self._calls = Counter(
            "rest_client_exec_plugin_call_total",
            "Runs of exec plugins by exit code and outcome; the code is 0 only on success.",
            ["code", "call_status"],
            registry=registry,
        )
        self._proxy_calls = Counter(
            "rest_client_exec_plugin_with_proxy_call_total",
            "Runs of exec plugins that may be proxies, by exit code and outcome; the code is 0 only on success.",
            ["code", "call_status"],
            registry=registry,
        )
        self._policy = Counter(
            "rest_client_exec_plugin_policy_call_total",
            "Decisions of the credential plugin policy.",
            ["result"],
            registry=registry,
        )

    def certificate_expires(self, at: float | None) -> None:
        self._expires_at = at

    def certificate_rotated(self, age: float) -> None:
        self._rotation_age.observe(age)

    def plugin_called(self, code: int, status: str) -> None:
        self._calls.labels(code=str(code), call_status=status).inc()

    def proxy_plugin_called(self, code: int, status: str) -> None:
        self._proxy_calls.labels(code=str(code), call_status=status).inc()

    def policy_decided(self, result: str) -> None:
        self._policy.labels(result=result).inc()

    def _seconds_left(self) -> float:
        return math.inf if self._expires_at is None else self._expires_at - self._clock()


def install(registry: CollectorRegistry = REGISTRY) -> None:
    """Count in `registry` from now on."""
    metrics.install(PrometheusExecMetrics(registry))
