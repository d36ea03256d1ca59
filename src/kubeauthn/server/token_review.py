"""`POST /` and `/authenticate`: TokenReview, for kube-apiserver's webhook (KEP-3331 has the rest of the path)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kubeauthn._core.tokenreview import authenticated, common_audiences, read_review, refused
from kubeauthn.errors import NotAReview
from kubeauthn.server.failures import failure, wrong_method
from kubeauthn.server.http_message import JSON, Response
from kubeauthn.server.request_details import RequestIds, current_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from kubeauthn._core.tokenreview import Review
    from kubeauthn.server.context import Context
    from kubeauthn.server.decisions import Decision
    from kubeauthn.server.http_message import Handler, Request

_log = logging.getLogger("kubeauthn.server.decision")

_KEPT_BYTES = 4096
"""Answers to decisions that are handed out again and again, kept as bytes; larger ones are written anew."""
_KEPT_ANSWERS = 4
"""Of one decision: whoever asks for many sets of audiences must not fill the memory."""
_HEADERS = [JSON]
_NO_COMMON_AUDIENCE = "the token is not meant for this audience"


def routes(context: Context) -> Mapping[str, Handler]:
    webhook = TokenReviewWebhook(context)
    return {"/": webhook, "/authenticate": webhook}


class TokenReviewWebhook:
    """A handler. The answer never tells more than the decision's public part."""

    __slots__ = ("_api_audiences", "_decide", "_decide_now", "_ids", "_show_reasons")

    def __init__(self, context: Context) -> None:
        self._decide_now = context.decider.decide_now
        self._decide = context.decider.decide
        self._api_audiences = context.options.api_audiences
        self._show_reasons = context.options.show_reasons
        self._ids = RequestIds()

    def __call__(self, request: Request) -> Response | Awaitable[Response]:
        if request.method != "POST":
            return wrong_method("POST")
        kind = request.headers.get("content-type")
        if kind is not None and kind != "application/json" and not _is_json(kind):
            return failure(415, "expected content-type application/json")
        try:
            review = read_review(request.body)
        except NotAReview as error:
            return failure(400, str(error))
        audiences = common_audiences(self._api_audiences, review.audiences)
        if audiences is None:
            return self._refusal(review, "refused", _NO_COMMON_AUDIENCE, "no audience of the API was asked for")
        decision = self._decide_now(review.token)
        if decision is None:
            return self._later(review, audiences)
        return self._answer(review, audiences, decision)

    async def _later(self, review: Review, audiences: tuple[str, ...]) -> Response:
        return self._answer(review, audiences, await self._decide(review.token))

    def _answer(self, review: Review, audiences: tuple[str, ...], decision: Decision) -> Response:
        if decision.outcome != "authenticated" or decision.user is None:
            return self._refusal(review, decision.outcome, decision.public_message, decision.reason, decision)
        kept = decision.answers
        if kept is None:
            return Response(200, _HEADERS, authenticated(review.version, decision.user, audiences))
        key = review.version, audiences
        response: Response | None = kept.get(key)
        if response is None:
            response = Response(200, _HEADERS, authenticated(review.version, decision.user, audiences))
            if len(response.body) <= _KEPT_BYTES and len(kept) < _KEPT_ANSWERS:
                kept[key] = response
        return response

    def _refusal(
        self, review: Review, outcome: str, public: str, reason: str, decision: Decision | None = None
    ) -> Response:
        request_id = current_request.get().request_id or self._ids.next()
        # What is not ours comes by the thousand: every token that kube-apiserver knows in another way.
        level = logging.DEBUG if outcome == "not_mine" else logging.INFO
        if _log.isEnabledFor(level):
            fields = {
                "request_id": request_id,
                "outcome": outcome,
                "issuer": decision.issuer if decision else None,
                "rule": decision.rule if decision else None,
                "reason": reason,
            }
            _log.log(level, "token not authenticated", extra={"fields": fields})
        # What failed may work in a moment. kube-apiserver remembers a refusal for minutes, unless it has an error.
        error = public if self._show_reasons or outcome == "failed" else ""
        return Response(200, [JSON, ("x-request-id", request_id)], refused(review.version, error))


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"
