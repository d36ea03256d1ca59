"""requests, pointed at an API server and authenticated.

    from kubeauthn.client import requests as kube
    with kube.session(context="prod") as api:
        api.get("/api/v1/namespaces").json()

For a session of your own: `own.mount(access.server, Adapter(access))` and `own.trust_env = False`,
else an entry of ~/.netrc for that host is taken for an `Authorization` of yours, and wins.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubeauthn.client.access import Access, access_and_rest
from kubeauthn.errors import MissingExtra, UsageError

try:
    import requests
    from requests.adapters import HTTPAdapter
except ImportError:
    raise MissingExtra("requests", "requests") from None

from kubeauthn.client._urllib3_family import CredentialPool

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse

__all__ = ["Adapter", "Session", "session"]


class Session(requests.Session):
    """A `requests.Session` for one API server: a URL that begins with `/` is a path on it.

    It goes to no other server, whether by an absolute URL or by a redirect. Proxies and
    ~/.netrc of the environment do not reach it.
    """

    def __init__(self, access: Access, **options: Any) -> None:
        super().__init__()
        self.access = access
        self.trust_env = False
        self.adapters.clear()
        adapter = Adapter(access, **options)
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def prepare_request(self, request: requests.Request) -> requests.PreparedRequest:
        if isinstance(request.url, str) and request.url.startswith("/"):
            request = copy.copy(request)
            request.url = self.access.server + request.url
        return super().prepare_request(request)

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        verify = kwargs.get("verify", self.verify)
        if verify is not True or kwargs.get("cert", self.cert) or kwargs.get("proxies", self.proxies):
            raise UsageError("verify, cert and proxies are not taken here: the kubeconfig says what holds")
        return super().send(request, **kwargs)


class Adapter(HTTPAdapter):
    """Sends the requests of a session with the credential of an `Access`; token, certificate or both.

    TLS and proxy are those of the kubeconfig, whatever the session says. `options` are those of `HTTPAdapter`.
    """

    def __init__(self, access: Access, **options: Any) -> None:
        self._access = access
        super().__init__(**options)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool_kwargs: Any) -> None:
        self.poolmanager = CredentialPool(self._access, maxsize=maxsize, block=block, **pool_kwargs)

    def get_connection_with_tls_context(  # type: ignore[override]  # of a connection, send() uses urlopen alone
        self,
        request: requests.PreparedRequest,
        verify: bool | str | None,
        proxies: Mapping[str, str] | None = None,
        cert: object = None,
    ) -> _Route:
        if request.url is None:
            raise UsageError("the request has no URL")
        return _Route(self.poolmanager, request.url)

    def cert_verify(self, *args: Any, **kwargs: Any) -> None:
        """TLS is set up already."""


class _Route:
    """What stands in for a urllib3 connection: requests would give it the path alone, the pool wants the whole URL."""

    def __init__(self, pool: CredentialPool, url: str) -> None:
        self._pool = pool
        self._url = url

    def urlopen(self, method: str, url: str, assert_same_host: bool, **options: Any) -> BaseHTTPResponse:
        return self._pool.urlopen(method, self._url, **options)


def session(context: str | None = None, **options: Any) -> Session:
    """Options are those of `open_access`, `access=` for one that is open, and those of `requests.adapters.HTTPAdapter`.

    The kubeconfig is read here, the plugin runs at the first request.
    """
    access, rest = access_and_rest(context, options)
    return Session(access, **rest)
