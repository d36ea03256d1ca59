"""For a view of Django, Flask or any other framework: the user of a request, in one call.

try:
    user = authenticate_request(request.headers, authenticator)
except Unauthenticated as refused:
    return HttpResponse(refused.public_message, status=refused.status, headers=refused.headers)
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from kubeauthn._core.authentication.verdict import may_change
from kubeauthn._core.bearer import bearer_of, challenge
from kubeauthn.errors import NotMine, TokenError, Unauthenticated

if TYPE_CHECKING:
    from kubeauthn._core.authentication.verdict import UserInfo


class AnyAuthenticator(Protocol):
    """An `Authenticator`, or a `CachedAuthenticator` around one."""

    def authenticate(self, token: str, now: float | None = None) -> UserInfo: ...

    async def authenticate_async(self, token: str, now: float | None = None) -> UserInfo: ...

    def keys_are_due(self) -> bool: ...

    async def refresh_keys(self) -> None: ...


def authenticate_request(
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    authenticator: AnyAuthenticator,
    *,
    realm: str = "kubeauthn",
) -> UserInfo:
    """The user of the bearer token in `Authorization`. Raises Unauthenticated, with the answer to give.

    What has to be fetched first (an issuer's keys) is fetched in this call, unless an event loop runs in this thread:
    there, use `authenticate_request_async`.
    """
    token = _token(headers, realm)
    if authenticator.keys_are_due() and not _a_loop_runs():
        asyncio.run(authenticator.refresh_keys())
    try:
        return authenticator.authenticate(token)
    except (NotMine, TokenError) as error:
        if isinstance(error, NotMine) or not may_change(error) or _a_loop_runs():
            raise _refusal(error, realm) from None
    try:
        return asyncio.run(authenticator.authenticate_async(token))
    except (NotMine, TokenError) as error:
        raise _refusal(error, realm) from None


async def authenticate_request_async(
    headers: Mapping[str, str] | Iterable[tuple[str, str]],
    authenticator: AnyAuthenticator,
    *,
    realm: str = "kubeauthn",
) -> UserInfo:
    """The same for asynchronous views."""
    token = _token(headers, realm)
    try:
        return await authenticator.authenticate_async(token)
    except (NotMine, TokenError) as error:
        raise _refusal(error, realm) from None


def _token(headers: Mapping[str, str] | Iterable[tuple[str, str]], realm: str) -> str:
    pairs = headers.items() if hasattr(headers, "items") else headers
    bearer = bearer_of([value for name, value in pairs if name.lower() == "authorization"])
    if bearer.fault:
        said = challenge(realm, "invalid_request", bearer.fault)
        raise Unauthenticated(bearer.fault, public_message=bearer.fault, www_authenticate=said)
    if not bearer.token:
        raise Unauthenticated("a bearer token is required", www_authenticate=challenge(realm))
    return bearer.token.reveal()


def _a_loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _refusal(error: NotMine | TokenError, realm: str) -> Unauthenticated:
    public = error.public_message if isinstance(error, TokenError) else "no issuer of the configuration made this token"
    if isinstance(error, TokenError) and may_change(error):
        return Unauthenticated(str(error), status=503, public_message=public, hint=error.hint)
    said = challenge(realm, "invalid_token", public)
    return Unauthenticated(str(error), public_message=public, www_authenticate=said, hint=error.hint)
