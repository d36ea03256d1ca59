"""kr8s, authenticated by kubeauthn.

    from kubeauthn.client import kr8s as kube
    api = kube.api(context="prod")
    for namespace in api.get("namespaces"): ...

and in an event loop `api = await kube.async_api(context="prod")`. kr8s finds a client again that was made
in the same thread, so `kr8s.get(…)` without `api=` uses this one where it was the first.

kr8s's own reading of kubeconfigs, its exec code, its temporary key files and its repeating of refused requests
are not used. Watches, exec and port-forwards go through the same session as everything else.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import MissingExtra, UsageError

try:
    import httpx
    import kr8s
    from kr8s._api import Api as AsyncApi
    from kr8s._async_utils import as_sync_func
    from kr8s._auth import KubeAuth
except ImportError:
    raise MissingExtra("kr8s", "kr8s") from None

from kubeauthn.client.httpx import AsyncTransport

__all__ = ["api", "async_api"]


def api(context: str | None = None, **options: Any) -> kr8s.Api:
    """Options are those of `open_access`, and `access=` for one that is open. Nothing is sent yet."""

    async def make() -> kr8s.Api:
        return _SyncApi(_access(context, options))

    # Made in the thread that kr8s runs its synchronous clients in, where it will look for them.
    return as_sync_func(make)()


async def async_api(context: str | None = None, **options: Any) -> AsyncApi:
    """The same for an event loop."""
    return _AsyncApi(_access(context, options))


def _access(context: str | None, options: dict[str, Any]) -> Access:
    access, rest = access_and_rest(context, options)
    if rest:
        raise UsageError(f"kr8s takes no option {', '.join(sorted(rest))}")
    return access


class _Auth(KubeAuth):
    """Tells kr8s where the server is. There is nothing to load and nothing to load again."""

    def __init__(self, access: Access) -> None:
        super().__init__(url=access.server, serviceaccount="", namespace=access.namespace)
        self.server = access.server
        self.active_context = access.target.context_name if access.target else ""

    async def reauthenticate(self) -> None:
        """The transport does it, and only where a new credential is called for."""


class _Authenticated(AsyncApi):
    """What the two colours share."""

    _access: Access

    def __init__(self, access: Access) -> None:
        # The access is in the key under which kr8s remembers its clients: it is never taken for another one.
        super().__init__(bypass_factory=True, access=access)
        self._access = access
        self.auth = _Auth(access)

    async def _create_session(self) -> None:
        self._session = httpx.AsyncClient(
            transport=AsyncTransport(self._access),
            base_url=self._access.server,
            headers={"User-Agent": self.__version__, "content-type": "application/json"},
            timeout=self._timeout,
            follow_redirects=True,
            trust_env=False,
        )

    @contextlib.asynccontextmanager
    async def call_api(
        self,
        method: str = "GET",
        version: str = "v1",
        base: str = "",
        namespace: str | None = None,
        url: str = "",
        raise_for_status: bool = True,
        stream: bool = False,
        **kwargs: Any,
    ) -> AsyncGenerator[httpx.Response]:
        # kr8s sends a request again, up to three times and whatever its method, when 401 or 403 is raised inside
        # its own loop. Raised outside of it, it is not.
        callers_error: httpx.HTTPStatusError | None = None
        async with super().call_api(method, version, base, namespace, url, False, stream, **kwargs) as response:
            if raise_for_status and not response.is_success:
                await response.aread()
                raise _server_error(response)
            try:
                yield response
            except httpx.HTTPStatusError as error:
                callers_error = error
        if callers_error is not None:
            raise callers_error

    async def async_whoami(self) -> Any:
        """kr8s looks into its own token or certificate, and there is none: the server is asked instead."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        async with self.call_api(
            "POST", version="authentication.k8s.io/v1", url="selfsubjectreviews", json=review
        ) as response:
            return response.json()["status"]["userInfo"]["username"]


class _AsyncApi(_Authenticated):
    pass


class _SyncApi(_Authenticated, kr8s.Api):
    pass


def _server_error(response: httpx.Response) -> Exception:
    """As kr8s makes it."""
    try:
        response.raise_for_status()
    except httpx.HTTPStatusError as error:
        cause = error
    if response.status_code >= 500:
        message, status = str(cause), str(response.status_code)
    else:
        try:
            status = response.json()
            message = status["message"]
        except (ValueError, KeyError, TypeError):
            message, status = str(cause), response.text
    refusal = kr8s.ServerError(message, status=status, response=response)
    refusal.__cause__ = cause
    return refusal
