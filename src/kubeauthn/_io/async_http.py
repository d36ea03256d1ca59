"""Documents from issuers and claim sources, asynchronously: bounded in size and in total time, https only.

A redirect is followed within one scheme, host and port, a few times. Compressed bodies are not asked for and not taken:
a small piece of the body must not become a large one. The content type is told, not judged.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.request import getproxies, proxy_bypass

import httpx2

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._io.bounded_body import read_bounded
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure

_REDIRECTS = (301, 302, 303, 307, 308)

AddressGuard = Callable[[str, Sequence[str]], Awaitable[str]]
"""Given a host and the addresses it stands for, why it must not be connected to; "" if it may be."""


@dataclass(frozen=True, slots=True)
class Document:
    status: int
    content_type: str
    body: bytes


class AsyncDocuments:
    """Gets documents over https with the trust of `context`.

    With a `guard`, a host's addresses are looked up first, shown to it, and then connected to: the name is not looked
    up a second time, when it could stand for another address.
    """

    def __init__(self, context: Callable[[], ssl.SSLContext], *, guard: AddressGuard | None = None) -> None:
        self._make_context = context
        self._context: ssl.SSLContext | None = None
        self._guard = guard

    async def get(
        self,
        url: str,
        *,
        seconds: float,
        most_bytes: int = fetch_limits.DOCUMENT_BYTES,
        bearer: Secret | None = None,
    ) -> Document:
        """The answer, whatever its status. Errors name the place, never the bearer token or the body."""
        target = _checked(url)
        if bearer is not None and not _is_header_safe(bearer.reveal()):
            raise EnvironmentFailure(f"the access token for {_place(target)} holds characters that no token has")
        failure = ""
        try:
            async with asyncio.timeout(seconds):
                return await self._following(target, bearer, most_bytes)
        except TimeoutError:
            failure = f"{_place(target)} did not end its answer within {seconds:g} s"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failure = f"{_place(target)} cannot be reached: {_short(error)}"
        except UnicodeError:
            failure = f"{_place(target)} cannot be reached: its host is not a name that can be looked up"
        except (ImportError, ValueError):
            failure = f"{_place(target)} cannot be reached through the proxy that the environment names"
        # Out here the error is not its context: that one holds the request, and the request holds the token.
        raise EnvironmentFailure(failure)

    async def _following(self, target: httpx2.URL, bearer: Secret | None, most_bytes: int) -> Document:
        origin = _origin(target)
        for _ in range(fetch_limits.REDIRECTS + 1):
            document, location = await self._from_any_address(target, bearer, most_bytes)
            if not location:
                return document
            follow = _checked(str(target.join(location)))
            if _origin(follow) != origin:
                away = f"{_place(target)} redirects to {_shown(follow)}"
                raise EnvironmentFailure(f"{away}: only redirects within {_shown(target)} are followed")
            target = follow
        raise EnvironmentFailure(f"{_place(target)} redirects more than {fetch_limits.REDIRECTS} times")

    async def _from_any_address(
        self, target: httpx2.URL, bearer: Secret | None, most_bytes: int
    ) -> tuple[Document, str]:
        proxy = _proxy_for(target.host)
        if proxy:
            # The proxy looks the name up, and may run on this machine: what needs no look-up can be judged here.
            await self._admit(target, _known_addresses(target.raw_host.decode("ascii")))
        if proxy or self._guard is None:
            return await self._exchange(target, None, bearer, most_bytes, proxy)
        addresses = await look_up(target.raw_host.decode("ascii"))
        await self._admit(target, addresses)
        failure: Exception = OSError("the name stands for no address")
        for address in addresses[: fetch_limits.ADDRESSES_TRIED]:
            try:
                return await self._exchange(target, address, bearer, most_bytes)
            except httpx2.ConnectError as error:
                failure = error
        raise failure

    async def _admit(self, target: httpx2.URL, addresses: Sequence[str]) -> None:
        if self._guard is not None and (refusal := await self._guard(target.host, addresses)):
            raise EnvironmentFailure(f"{_place(target)} {refusal}")

    async def _exchange(
        self, target: httpx2.URL, address: str | None, bearer: Secret | None, most_bytes: int, proxy: str | None = None
    ) -> tuple[Document, str]:
        """One request, to `address` if it is given. The second part is where a redirect leads, or ""."""
        headers = {"Accept": "application/json, application/jwt, */*;q=0.1", "Accept-Encoding": "identity"}
        extensions: dict[str, str] = {}
        url = target
        if bearer is not None:
            headers["Authorization"] = f"Bearer {bearer.reveal()}"
        if address is not None:
            headers["Host"] = target.netloc.decode("ascii")
            # Also the name that the certificate must be for.
            extensions["sni_hostname"] = target.raw_host.decode("ascii")
            url = target.copy_with(host=address)
        if self._context is None:
            self._context = self._make_context()
        async with (
            # No limit for each piece: `get` has one for the whole.
            httpx2.AsyncClient(verify=self._context, timeout=None, trust_env=False, proxy=proxy) as client,
            client.stream("GET", url, headers=headers, extensions=extensions) as response,
        ):
            if response.status_code in _REDIRECTS and (location := response.headers.get("location", "")):
                return Document(response.status_code, "", b""), location
            body = await read_bounded(response, _place(target), most_bytes)
            return Document(response.status_code, response.headers.get("content-type", ""), body), ""


async def look_up(host: str) -> list[str]:
    """The addresses of a host, each once; an OSError if there are none."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _checked(url: str) -> httpx2.URL:
    """The one reading of the address: what is judged is what is connected to."""
    try:
        target = httpx2.URL(url)
        target.raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise EnvironmentFailure("an address is not a URL") from None
    if target.scheme != "https":
        raise EnvironmentFailure(f"{_shown(target)} is not https")
    if not target.host:
        raise EnvironmentFailure("an address names no host")
    if target.userinfo:
        raise EnvironmentFailure(f"{_shown(target)} has user information in its address")
    return target


def _origin(target: httpx2.URL) -> tuple[str, bytes, int]:
    return target.scheme, target.raw_host.lower(), target.port or 443


def _shown(target: httpx2.URL) -> str:
    return f"{target.scheme}://{target.netloc.decode('ascii', 'replace')}"[:300]


def _place(target: httpx2.URL) -> str:
    """Without the query, which may hold something private."""
    return (_shown(target) + target.path)[:300]


def _short(error: Exception) -> str:
    text = str(error)
    shown = "".join(c if c.isprintable() else "?" for c in text[:200])
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def _is_header_safe(token: str) -> bool:
    return bool(token) and all("!" <= c <= "~" for c in token)


def _known_addresses(host: str) -> list[str]:
    """Those of a host that is an address, however it is written (`127.1`, `0x7f000001`), or this machine's own name."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return ["127.0.0.1"]
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return []
    return [str(entry[4][0]) for entry in found]


def _proxy_for(host: str) -> str | None:
    """What the environment says, read here and nowhere else: what is judged and what is done must not differ."""
    proxies = getproxies()
    proxy = proxies.get("https") or proxies.get("all")
    if not proxy or proxy_bypass(host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"
