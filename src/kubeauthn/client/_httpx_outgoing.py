"""A request of httpx or httpx2 on its way out: checked, with its headers, and never changed itself."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from kubeauthn._core.credential import Credential
from kubeauthn._secret import Secret
from kubeauthn.client.access import Access, is_idempotent

# The library is a parameter, so its types cannot be named here.
Request = Any
RawHeaders = list[tuple[bytes, bytes]]


class Carried:
    """What a library transport reads of a request, with the credential on it.

    The caller's own request is not touched: whoever logs `response.request` finds no token there.
    """

    __slots__ = ("extensions", "method", "raw", "stream", "url")

    def __init__(self, request: Request, raw: RawHeaders) -> None:
        self.method = request.method
        self.url = request.url
        self.stream = request.stream
        self.extensions = request.extensions
        self.raw = raw

    @property
    def headers(self) -> Carried:
        """The transports read `headers.raw` and nothing else of the headers."""
        return self


class Outgoing:
    """The parts of sending that do no I/O, for the transports of both colours."""

    def __init__(self, library: ModuleType, access: Access) -> None:
        self._library = library
        self._access = access
        self._fixed: RawHeaders = [(name.encode(), value.encode()) for name, value in access.headers]
        self._fixed_names = {name.lower() for name, _ in self._fixed}
        self._known_destinations: set[tuple[bytes, bytes, int | None]] = set()
        self._header: tuple[Secret, tuple[bytes, bytes]] | None = None

    def prepare(self, request: Request) -> tuple[RawHeaders, bool]:
        """Check where it goes. Its headers with the fixed ones, and whether it brings its own `Authorization`."""
        url = request.url
        destination = (url.raw_scheme, url.raw_host, url.port)
        if destination not in self._known_destinations:
            # A websocket is opened by a GET: wss is https, ws is http.
            text = str(url)
            self._access.check_destination("http" + text[2:] if text.startswith("ws") else text)
            self._known_destinations.add(destination)
        raw: RawHeaders = request.headers.raw
        if self._fixed:
            raw = [header for header in raw if header[0].lower() not in self._fixed_names] + self._fixed
        # Not `"authorization" in request.headers`: that decodes every header, to find out in which charset they are.
        return raw, b"authorization" in [name.lower() for name, _ in raw]

    def carried(self, request: Request, raw: RawHeaders, credential: Credential) -> Carried:
        """The request with the credential on it."""
        authorization = credential.authorization
        if authorization is None:
            return Carried(request, raw)
        last = self._header
        if last is None or last[0] is not authorization:
            value = authorization.reveal().encode("ascii")
            last = self._header = (authorization, (b"Authorization", value))
        return Carried(request, [*raw, last[1]])

    def may_repeat(self, request: Request) -> bool:
        """After a 401: idempotent, and its body is at hand rather than streamed away."""
        return self._access.may_repeat(request.method) and isinstance(request.stream, self._library.ByteStream)

    def is_repeatable(self, request: Request) -> bool:
        """After a connection that broke."""
        return is_idempotent(request.method) and isinstance(request.stream, self._library.ByteStream)
