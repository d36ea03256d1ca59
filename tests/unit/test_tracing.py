"""Spans: one for each decision, with what may be told and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from kubeauthn._core.authentication.verdict import UserInfo
from kubeauthn.server.decisions import Decision
from kubeauthn.server.request_details import RequestDetails, current_request

pytest.importorskip("opentelemetry.sdk")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kubeauthn.server.tracing import TracingDecider

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl"
GOOD = Decision("authenticated", UserInfo("jane@corp.test"), "", "", "https://i.test", None, 9e9, True)
FAILED = Decision("failed", None, "x", f"reason with {TOKEN}", "https://i.test", "KeysUnavailable", None, False)
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class Fixed:
    def __init__(self, now: Decision | None, later: Decision | Exception) -> None:
        self.now, self.later = now, later

    def decide_now(self, token: str) -> Decision | None:
        return self.now

    async def decide(self, token: str) -> Decision:
        if isinstance(self.later, Exception):
            raise self.later
        return self.later


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: InMemorySpanExporter) -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(exporter))
    return made


def test_a_decision_is_a_span(exporter, provider):
    assert TracingDecider(Fixed(GOOD, GOOD), provider).decide_now(TOKEN) is GOOD
    (span,) = exporter.get_finished_spans()
    assert span.name == "kubeauthn.decide"
    assert dict(span.attributes) == {
        "kubeauthn.outcome": "authenticated",
        "kubeauthn.cached": True,
        "kubeauthn.issuer": "https://i.test",
    }


def test_one_span_also_where_something_has_to_be_fetched(exporter, provider):
    decider = TracingDecider(Fixed(None, FAILED), provider)
    assert decider.decide_now(TOKEN) is None
    assert asyncio.run(decider.decide(TOKEN)) is FAILED
    (span,) = exporter.get_finished_spans()
    assert span.status.status_code.name == "ERROR"
    assert span.attributes["kubeauthn.rule"] == "KeysUnavailable"


def test_it_hangs_below_the_callers_span(exporter, provider):
    token = current_request.set(RequestDetails("r-1", path="/auth", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01"))
    try:
        TracingDecider(Fixed(GOOD, GOOD), provider).decide_now(TOKEN)
        current_request.set(RequestDetails(traceparent="garbage" * 1000))
        TracingDecider(Fixed(GOOD, GOOD), provider).decide_now(TOKEN)
    finally:
        current_request.reset(token)
    below, own = exporter.get_finished_spans()
    assert f"{below.context.trace_id:032x}" == TRACE
    assert below.attributes["kubeauthn.request_id"] == "r-1"
    assert own.parent is None


def test_neither_token_nor_name_nor_reason_is_in_a_span(exporter, provider):
    asyncio.run(TracingDecider(Fixed(None, FAILED), provider).decide(TOKEN))
    TracingDecider(Fixed(GOOD, GOOD), provider).decide_now(TOKEN)
    with pytest.raises(ValueError, match="holds"):
        asyncio.run(TracingDecider(Fixed(None, ValueError(f"holds {TOKEN}")), provider).decide(TOKEN))
    spans = exporter.get_finished_spans()
    assert len(spans) == 3
    told = "".join(span.to_json() for span in spans)
    assert not [part for part in (TOKEN, *TOKEN.split("."), "jane", "reason with") if part in told]
