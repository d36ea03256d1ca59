"""`/auth`: the verdict about a request that a proxy holds back until it has the answer.

nginx `auth_request`, Traefik ForwardAuth, Caddy `forward_auth` and Envoy `ext_authz` all ask with the client's own
headers. The token in `Authorization` is all that is looked at; headers that name a user are ours to write, and one that
the client sent is never read.

200  the token is good: headers with the user, every configured name at least once
401  no token, or one that does not hold: `WWW-Authenticate` says so
403  the proxy asked for an audience that is not one of the configured ones, or for headers that we do not have
405  a method that no request has that could be let through
503  the verdict cannot be had now (an issuer's keys are missing): the same token may be good in a moment
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qs

from kubeauthn._core.anonymous import ANONYMOUS_USER, is_anonymous_uri
from kubeauthn._core.bearer import NO_TOKEN, Bearer, bearer_of, challenge
from kubeauthn._core.identity_headers import DEFAULT_NAMES, HeaderNames, identity_headers
from kubeauthn._secret import Secret
from kubeauthn.errors import UsageError
from kubeauthn.server import assertion
from kubeauthn.server.forward_auth_options import add_arguments, check_arguments
from kubeauthn.server.http_message import Response
from kubeauthn.server.request_details import RequestIds, current_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from kubeauthn._core.authentication.model import Anonymous
    from kubeauthn._core.authentication.verdict import UserInfo
    from kubeauthn.server.assertion import AssertionSigner
    from kubeauthn.server.context import Context
    from kubeauthn.server.decisions import Decider, Decision
    from kubeauthn.server.http_message import Handler, Headers, Request

__all__ = ["ForwardAuth", "add_arguments", "check_arguments", "routes"]

_log = logging.getLogger("kubeauthn.server")

PATH = "/auth"
REALM = "kubeauthn"
HEADER_BYTES = 48 << 10
"""Of all identity headers together. A proxy would drop or cut what is larger, and then somebody has fewer groups."""
_KEPT_BYTES = 4096
"""Of headers that are kept for the next request with the same token."""
_NEVER_LET_THROUGH = ("CONNECT", "TRACE")
_NO_STORE = ("cache-control", "no-store")
_SINGLE = "single"
_RETRY_AFTER = ("retry-after", "5")


class ForwardAuth:
    """The handler. `original_uri_header` is where the proxy says what was asked for; "" is: believe none.

    Only with it is the `anonymous` section honoured: else whoever may be let in without a token is not known.
    """

    def __init__(
        self,
        decider: Decider,
        *,
        names: HeaderNames = DEFAULT_NAMES,
        signer: AssertionSigner | None = None,
        assertion_header: str = assertion.HEADER,
        anonymous: Callable[[], Anonymous | None] = lambda: None,
        original_uri_header: str = "",
        realm: str = REALM,
    ) -> None:
        self._decider = decider
        self._names = names.checked()
        self._signer = signer
        self._assertion_header = assertion_header
        self._anonymous = anonymous
        self._original_uri_header = original_uri_header.lower()
        self._realm = realm
        self._ids = RequestIds()
        if assertion_header.lower() in {name.lower() for name in names.single()}:
            raise UsageError(f"the assertion needs a header of its own, not {assertion_header}")

    def __call__(self, request: Request) -> Response | Awaitable[Response]:
        if request.method in _NEVER_LET_THROUGH:
            return Response(405, [_NO_STORE, ("allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")])
        try:
            asked = self._asked(request)
        except _NotOffered as error:
            return _plain(403, str(error))
        bearer = _bearer(request.headers)
        if bearer.fault:
            return self._unauthorized("invalid_request", bearer.fault)
        if not bearer.token:
            if self._is_anonymous(request):
                return self._let_in(ANONYMOUS_USER, None, asked)
            return self._unauthorized()
        token = bearer.token.reveal()
        decision = self._decider.decide_now(token)
        return self._decided_later(token, asked) if decision is None else self._answer(decision, asked)

    async def _decided_later(self, token: str, asked: _Asked) -> Response:
        return self._answer(await self._decider.decide(token), asked)

    def _answer(self, decision: Decision, asked: _Asked) -> Response:
        if decision.outcome == "authenticated" and decision.user is not None:
            return self._let_in_again(decision, decision.user, asked)
        request_id = current_request.get().request_id or self._ids.next()
        fields = {
            "request_id": request_id,
            "outcome": decision.outcome,
            "issuer": decision.issuer,
            "rule": decision.rule,
            "reason": decision.reason,
        }
        _log.info("request not let in", extra={"fields": fields})
        response = self._refusal(decision)
        return response._replace(headers=[*response.headers, ("x-request-id", request_id)])

    def _refusal(self, decision: Decision) -> Response:
        if decision.outcome == "failed":
            return _plain(503, decision.public_message, _RETRY_AFTER)
        return self._unauthorized("invalid_token", decision.public_message)

    def _let_in_again(self, decision: Decision, user: UserInfo, asked: _Asked) -> Response:
        """Signed once for a decision that is handed out again and again, while that assertion is fresh."""
        kept = decision.answers
        if kept is None:
            return self._let_in(user, decision.expires_at, asked)
        found = kept.get((PATH, asked))
        if found is not None and (self._signer is None or self._signer.is_fresh(found[0])):
            answer: Response = found[1]
            return answer
        stamp = None if self._signer is None else self._signer.stamp()
        answer = self._let_in(user, decision.expires_at, asked)
        if answer.status == 200 and sum(len(value) for _, value in answer.headers) <= _KEPT_BYTES:
            kept[PATH, asked] = stamp, answer
        return answer

    def _let_in(self, user: UserInfo, token_ends: float | None, asked: _Asked) -> Response:
        headers = identity_headers(user, self._names, repeated=asked.repeated)
        if self._signer is not None:
            headers.append((self._assertion_header, self._signer.sign(user, token_ends, asked.audience)))
        size = sum(len(name) + len(value) + 4 for name, value in headers)
        if size > HEADER_BYTES:
            _log.error("forward-auth: the headers of a user have %d bytes, at most %d are sent", size, HEADER_BYTES)
            return _plain(500, f"the user needs more than {HEADER_BYTES} bytes of headers")
        # Lower case: HTTP/2 knows no other, and over HTTP/1.1 it makes no difference.
        return Response(200, [_NO_STORE, *((name.lower(), value) for name, value in headers)])

    def _unauthorized(self, error: str = "", description: str = "") -> Response:
        return Response(401, [_NO_STORE, ("www-authenticate", challenge(self._realm, error, description))])

    def _is_anonymous(self, request: Request) -> bool:
        if not self._original_uri_header:
            return False
        said = request.headers.get_all(self._original_uri_header)
        # Said twice, one of them may be the client's; also where the first cannot be read.
        if len(said) != 1 or request.headers.get(self._original_uri_header) is None:
            return False
        return is_anonymous_uri(self._anonymous(), said[0])

    def _asked(self, request: Request) -> _Asked:
        """What the proxy asks for in the query. Raises _NotOffered."""
        if not request.query:
            return _WHATEVER
        try:
            query = parse_qs(request.query, keep_blank_values=True, max_num_fields=20)
        except ValueError:
            raise _NotOffered("the query cannot be read") from None
        audience, headers = query.get("audience", [""]), query.get("headers", [""])
        known = self._signer.audiences if self._signer is not None else ()
        if "audience" in query and (len(audience) != 1 or audience[0] not in known):
            raise _NotOffered("the audience is not one of those that this server makes assertions for")
        if "headers" in query and headers != [_SINGLE]:
            raise _NotOffered(f"of headers only {_SINGLE} can be asked for")
        return _Asked(audience[0], repeated="headers" not in query)


class _Asked(NamedTuple):
    audience: str = ""
    repeated: bool = True
    """Whether the headers that come once for each group and each extra value are wanted too."""


_WHATEVER = _Asked()


class _NotOffered(Exception):
    """Its text is for whoever configured the proxy."""


def routes(context: Context) -> Mapping[str, Handler]:
    """`/auth`, and the keys of the assertion, as the options in `context.options.parts` say."""

    def anonymous() -> Anonymous | None:
        current = context.runtime.current
        return None if current is None else current.configuration.anonymous

    return routes_of(context.decider, context.options.parts, anonymous)


def routes_of(
    decider: Decider, parts: Mapping[str, Any], anonymous: Callable[[], Anonymous | None] = lambda: None
) -> Mapping[str, Handler]:
    """From the values of the options; what is absent has its default, and without a key nothing is signed."""
    signer = signer_of(parts)
    forward_auth = ForwardAuth(
        decider,
        names=names_of(parts),
        signer=signer,
        anonymous=anonymous,
        original_uri_header=parts.get("forward_auth_original_uri") or "",
    )
    if signer is None:
        return {PATH: forward_auth}
    return {PATH: forward_auth, assertion.KEYS_PATH: signer.keys_response}


def names_of(parts: Mapping[str, Any]) -> HeaderNames:
    return HeaderNames.with_prefix(parts.get("forward_auth_header_prefix") or "X-Remote-")


def signer_of(parts: Mapping[str, Any]) -> AssertionSigner | None:
    path, made = parts.get("assertion_key"), parts.get("assertion_made_key")
    if parts.get("no_assertion"):
        return None
    if path:
        keys: Callable[[], assertion.AssertionKeys] = assertion.KeyFile(path)
    elif made is not None:
        keys = assertion.given_keys(made.reveal())
    else:
        return None
    return assertion.AssertionSigner(
        keys,
        issuer=parts.get("assertion_issuer") or assertion.ISSUER,
        audiences=tuple(parts.get("assertion_audience") or ()) or (assertion.AUDIENCE,),
        seconds=parts.get("assertion_seconds", assertion.SECONDS),
    )


def _bearer(headers: Headers) -> Bearer:
    if headers.get("authorization") is None:
        # There, and not to be read, it is no less wrong than any other text that is no token.
        return (
            Bearer(Secret(""), "expected one token of visible characters") if "authorization" in headers else NO_TOKEN
        )
    return bearer_of(headers.get_all("authorization"))


def _plain(status: int, text: str, *headers: tuple[str, str]) -> Response:
    return Response(status, [_NO_STORE, ("content-type", "text/plain; charset=utf-8"), *headers], text.encode())
