"""A form posted to an https address, bounded in size, time and how many at once. No redirect is followed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2

from kubeauthn._io.bounded_body import read_bounded
from kubeauthn.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from kubeauthn._secret import Secret


_AWAY = frozenset((429, 502, 503, 504))
"""With these it says itself that the next question would fare no better."""


class FormPoster:
    """Posts to one address and keeps its connections. It belongs to the event loop that first uses it.

    `on_away` is told why, when a failure is not about one question: not reached, not in time, or overloaded.
    """

    def __init__(
        self,
        url: str,
        context: ssl.SSLContext,
        *,
        seconds: float,
        most_bytes: int,
        at_once: int,
        on_away: Callable[[str], None],
    ) -> None:
        self._url = checked_https(url)
        self.place = f"https://{self._url.netloc.decode('ascii')}{self._url.path}"[:300]
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._on_away = on_away
        self._turns = asyncio.Semaphore(at_once)
        limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once, keepalive_expiry=30.0)
        # No limit for each piece: `post` has one for the whole.
        self._client = httpx2.AsyncClient(verify=context, timeout=None, trust_env=False, limits=limits)

    async def post(self, fields: Mapping[str, str], authorization: Secret) -> bytes:
        """The body of a 200. Raises EnvironmentFailure, which names the place and nothing that was sent or came."""
        failure = ""
        try:
            async with asyncio.timeout(self._seconds):
                async with self._turns:
                    return await self._exchange(fields, authorization)
        except TimeoutError:
            failure = f"{self.place} did not answer within {self._seconds:g} s"
        except (httpx2.HTTPError, OSError) as error:
            failure = f"{self.place} cannot be reached: {type(error).__name__}"
        # Out here the error is not its context: that one holds the request, and the request holds the token.
        self._on_away(failure)
        raise EnvironmentFailure(failure)

    async def _exchange(self, fields: Mapping[str, str], authorization: Secret) -> bytes:
        headers = {
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "Authorization": authorization.reveal(),
        }
        async with self._client.stream("POST", self._url, data=dict(fields), headers=headers) as response:
            if response.status_code != 200:
                failure = f"{self.place} answered {response.status_code}"
                if response.status_code in _AWAY:
                    self._on_away(failure)
                raise EnvironmentFailure(failure)
            return await read_bounded(response, self.place, self._most_bytes)

    async def close(self) -> None:
        await self._client.aclose()


def checked_https(url: str) -> httpx2.URL:
    """Raises UsageError. What goes there is a credential."""
    try:
        target = httpx2.URL(url)
        target.raw_host.decode("ascii")
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise UsageError("the address of the endpoint is not a URL") from None
    if target.scheme != "https" or not target.host or target.userinfo or target.fragment:
        raise UsageError("the address of the endpoint is not https, or has user information or a fragment in it")
    return target
