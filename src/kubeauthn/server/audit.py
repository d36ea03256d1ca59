"""An audit log of decisions: who, by which issuer, with what outcome, by which rule. Never the token. Off by default.

One JSON object on one line for each decision. All of it is ASCII: whatever a name holds is an escape in a JSON text,
and cannot end the line or begin another one.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from typing import TYPE_CHECKING

from kubeauthn._core import rfc3339
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server.decisions import Decision
from kubeauthn.server.request_details import current_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.server.audit_file import AuditFile
    from kubeauthn.server.decisions import Decider
    from kubeauthn.server.request_details import RequestDetails

_log = logging.getLogger("kubeauthn.server.audit")

VERSION = 1
TEXT_CHARACTERS = 1024
"""Of one field. A name or a reason that is longer is cut, and ends with an ellipsis."""
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


class AuditDecider:
    """A decider around all others, which tells each decision once.

    Without `required` a line that cannot be written is lost and counted, and authentication goes on. With it the
    answer waits until its line is written, and where that fails the token is not authenticated.
    """

    def __init__(
        self, inner: Decider, sink: AuditFile, *, required: bool = False, clock: Callable[[], float] = time.time
    ) -> None:
        self._inner = inner
        self._sink = sink
        self._required = required
        self._clock = clock

    def decide_now(self, token: str) -> Decision | None:
        if self._required:
            return None
        decision = self._inner.decide_now(token)
        if decision is not None:
            self._sink.tell(self._line(token, decision))
        return decision

    async def decide(self, token: str) -> Decision:
        decision = await self._inner.decide(token)
        line = self._line(token, decision)
        if not self._required:
            self._sink.tell(line)
            return decision
        try:
            await self._sink.write(line)
        except EnvironmentFailure as error:
            _log.error("a decision could not be recorded: %s", error)
            public = "the decision could not be recorded"
            return Decision("failed", None, public, str(error), decision.issuer, "audit", None, cached=False)
        return decision

    def _line(self, token: str, decision: Decision) -> bytes:
        return audit_line(decision, current_request.get(), self._clock(), token)


def audit_line(decision: Decision, request: RequestDetails, now: float, token: str) -> bytes:
    """`token` only so that it can be kept out, should a text quote it."""
    user = decision.user
    fields = {
        "kind": "Decision",
        "version": VERSION,
        "time": f"{rfc3339.format(now)[:-1]}.{int(now % 1 * 1e6):06d}Z",
        "id": secrets.token_hex(8),
        "requestID": request.request_id,
        "client": request.client,
        "path": request.path,
        "outcome": decision.outcome,
        "issuer": decision.issuer or "",
        "rule": decision.rule or "",
        "reason": decision.reason,
        "username": user.username if user is not None else "",
        "uid": user.uid if user is not None else "",
        "credentialID": ",".join(user.extra.get(CREDENTIAL_ID, ())) if user is not None else "",
        "cached": decision.cached,
    }
    told = {name: _bounded(value, token) for name, value in fields.items() if value != ""}
    return json.dumps(told, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n"


def _bounded(value: object, token: str) -> object:
    if type(value) is not str:
        return value
    if token and token in value:
        value = value.replace(token, "<token>")
    return value if len(value) <= TEXT_CHARACTERS else value[: TEXT_CHARACTERS - 1] + "…"
