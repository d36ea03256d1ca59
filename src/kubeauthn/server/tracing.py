"""OpenTelemetry: one span for each decision. An extension of ours, off by default.

A span says outcome, issuer and rule. It never holds the token, a claim, a reason or a user's name: traces go to
places that audit logs do not. The tracer provider is the process's own. A worker of `kubeauthn serve` sets one up where
the SDK is installed and the environment says where traces go (`OTEL_TRACES_EXPORTER`, `OTEL_EXPORTER_OTLP_…`).
"""

from __future__ import annotations

import os
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import EnvironmentFailure, MissingExtra
from kubeauthn.server.request_details import current_request

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise MissingExtra("opentelemetry-api", "otel") from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

    from kubeauthn.server.decisions import Decider, Decision

SPAN = "kubeauthn.decide"
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""Protocols, and the exporters that speak them."""
_PROPAGATOR = TraceContextTextMapPropagator()
_LONGEST_TRACEPARENT = 512


class TracingDecider:
    """A decider whose decisions are spans, below the caller's where the request brought a `traceparent`."""

    def __init__(self, inner: Decider, provider: TracerProvider | None = None) -> None:
        self._inner = inner
        self._tracer = trace.get_tracer("kubeauthn", tracer_provider=provider)

    def decide_now(self, token: str) -> Decision | None:
        span = self._begun()
        decision = None
        try:
            decision = self._inner.decide_now(token)
        finally:
            # A span that is not ended is not exported: `decide` makes another one for the whole of it.
            if decision is not None:
                _tell(span, decision)
                span.end()
        return decision

    async def decide(self, token: str) -> Decision:
        span = self._begun()
        # Neither is recorded, because the text and the variables of an error may hold the token.
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            decision = await self._inner.decide(token)
            _tell(span, decision)
        return decision

    def _begun(self) -> Span:
        return self._tracer.start_span(SPAN, context=_parent(), kind=SpanKind.INTERNAL)


def exporters_of_environment() -> list[Callable[[], Any]]:
    """What the `OTEL_…` variables say about where traces go; empty if they say nothing. Raises EnvironmentFailure."""
    named = os.environ.get("OTEL_TRACES_EXPORTER", "")
    if not named and any(os.environ.get(f"OTEL_EXPORTER_OTLP_{name}ENDPOINT") for name in ("", "TRACES_")):
        named = "otlp"
    found = []
    for name in (part.strip() for part in named.split(",")):
        if name and name != "none":
            found.append(_exporter(_OTLP.get(_protocol(), name) if name == "otlp" else name))
    return found


def provider_of_environment() -> Any:
    """A provider of the SDK that sends spans there, set up for this process. None if there is nowhere to send them."""
    exporters = exporters_of_environment()
    if not exporters or type(trace.get_tracer_provider()) is not trace.ProxyTracerProvider:
        return None
    try:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as error:
        raise MissingExtra("opentelemetry-sdk", "otel") from error
    provider = TracerProvider()
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter()))
    trace.set_tracer_provider(provider)
    return provider


def _exporter(name: str) -> Callable[[], Any]:
    for entry in entry_points(group="opentelemetry_traces_exporter", name=name):
        made: Callable[[], Any] = entry.load()
        return made
    raise EnvironmentFailure(
        f"the environment asks for the OpenTelemetry exporter {name!r}, which is not installed",
        hint="pip install opentelemetry-exporter-otlp-proto-http",
    )


def _protocol() -> str:
    general = os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    return os.environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") or general


def _parent() -> Context | None:
    header = current_request.get().traceparent
    if not header or len(header) > _LONGEST_TRACEPARENT:
        return None
    return _PROPAGATOR.extract({"traceparent": header})


def _tell(span: Span, decision: Decision) -> None:
    request = current_request.get()
    span.set_attribute("kubeauthn.outcome", decision.outcome)
    span.set_attribute("kubeauthn.cached", decision.cached)
    if decision.issuer:
        span.set_attribute("kubeauthn.issuer", decision.issuer)
    if decision.rule:
        span.set_attribute("kubeauthn.rule", decision.rule)
    if request.request_id:
        span.set_attribute("kubeauthn.request_id", request.request_id)
    if request.path:
        span.set_attribute("url.path", request.path)
    if decision.outcome == "failed":
        span.set_status(Status(StatusCode.ERROR))
