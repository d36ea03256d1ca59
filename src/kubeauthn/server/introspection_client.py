"""The introspection endpoint itself: its address, who we are to it, and what one question may cost."""

from __future__ import annotations

import base64
import time
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from kubeauthn._core.limits import CREDENTIAL_FILE_BYTES
from kubeauthn._io.files import read_bounded
from kubeauthn._io.form_post import FormPoster
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

SECONDS = 3.0
ANSWER_BYTES = 256 << 10
AT_ONCE = 32
COOLDOWN_SECONDS = 1.0
"""After a failure to connect or to answer in time nobody asks for this long. Not after an answer that is none: whoever
has a token that the endpoint chokes on would keep all others out with it."""


class IntrospectionEndpoint:
    """Asks. `credentials` is called for each question, so that a rotated secret counts at once."""

    def __init__(
        self,
        url: str,
        credentials: Callable[[], Secret],
        context: ssl.SSLContext,
        *,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._poster = FormPoster(
            url, context, seconds=seconds, most_bytes=ANSWER_BYTES, at_once=AT_ONCE, on_away=self._leave_alone
        )
        self._credentials = credentials
        self._clock = clock
        self._closed_until = 0.0
        self._failure = ""

    @property
    def place(self) -> str:
        return self._poster.place

    async def ask(self, token: str) -> bytes:
        """The answer's body. Raises EnvironmentFailure."""
        if self._clock() < self._closed_until:
            raise EnvironmentFailure(self._failure)
        authorization = self._credentials()
        return await self._poster.post({"token": token, "token_type_hint": "access_token"}, authorization)

    def _leave_alone(self, failure: str) -> None:
        self._failure = failure
        self._closed_until = self._clock() + COOLDOWN_SECONDS

    async def close(self) -> None:
        await self._poster.close()


def basic_from_file(client_id: str, path: str) -> Callable[[], Secret]:
    """The client's id, and its secret in a file (RFC 6749 2.3.1: both form-encoded first)."""

    def credentials() -> Secret:
        pair = f"{quote_plus(client_id)}:{quote_plus(_read(path))}"
        return Secret(f"Basic {base64.b64encode(pair.encode()).decode()}")

    return credentials


def bearer_from_file(path: str) -> Callable[[], Secret]:
    def credentials() -> Secret:
        token = _read(path)
        if not all("!" <= c <= "~" for c in token):
            raise EnvironmentFailure(f"{path}: holds characters that no bearer token has")
        return Secret(f"Bearer {token}")

    return credentials


def _read(path: str) -> str:
    try:
        text = read_bounded(path, CREDENTIAL_FILE_BYTES, pipes=False).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise EnvironmentFailure(f"{path}: is not UTF-8") from None
    if not text:
        raise EnvironmentFailure(f"{path}: is empty")
    return text
