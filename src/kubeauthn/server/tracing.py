"""OpenTelemetry: one span for each decision. An extension of ours, off by default.

A span says outcome, issuer and rule. It never holds the token, a claim, a reason or a user's name: traces go to
places that audit logs do not. The tracer provider is the process's own: whoever runs it sets that up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubeauthn.errors import MissingExtra
from kubeauthn.server.request_details import current_request

try:
    from opentelemetry import trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ModuleNotFoundError as error:
    raise MissingExtra("opentelemetry-api", "otel") from error

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

    from kubeauthn.server.decisions import Decider, Decision

SPAN = "kubeauthn.decide"
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
