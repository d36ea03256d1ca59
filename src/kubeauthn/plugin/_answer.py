"""What an author's function returns, and how it becomes the reply.

On the path of every plugin's start: nothing heavy is imported, and certificates are not parsed
(the client does that; `try_out` and `kubeauthn plugin check` do too).
"""

from __future__ import annotations

from kubeauthn._core import execwire
from kubeauthn._secret import Secret
from kubeauthn.errors import KubeauthnError, PluginReplyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime
    from typing import TypeGuard

    from kubeauthn.plugin._request import Request

    Function = Callable[[Request], "Credential | Awaitable[Credential]"]

_YEAR_10000 = 253402300800.0
"""RFC 3339 has four digits for the year."""


class Refuse(KubeauthnError):
    """Raise it to say that there is no credential, and why: one line on standard error, exit code 1, no traceback."""


class Credential:
    """A token, a client certificate with its key, or both; and how long a client may keep it.

    `expires_at` is an aware datetime or unix seconds, `expires_in` seconds from now; without either
    a client keeps the credential as long as it runs.
    """

    __slots__ = ("certificate", "expires_at", "key", "token")

    def __init__(
        self,
        *,
        token: str | Secret | None = None,
        certificate: str | bytes | None = None,
        key: str | bytes | Secret | None = None,
        expires_at: datetime | float | None = None,
        expires_in: float | None = None,
    ) -> None:
        if token is None and certificate is None and key is None:
            raise UsageError("a credential needs a token, or a certificate with its key, or all three")
        if (certificate is None) != (key is None):
            raise UsageError("a credential has only the certificate or only the key: give both")
        self.token = None if token is None else _token(token)
        self.certificate = None if certificate is None else _pem("certificate", certificate, "CERTIFICATE-----")
        self.key = None if key is None else Secret(_pem("key", key, "PRIVATE KEY-----"))
        self.expires_at = _expiry(expires_at, expires_in)

    def __repr__(self) -> str:
        parts = [name for name in ("token", "certificate", "key") if getattr(self, name) is not None]
        return f"{type(self).__name__}({', '.join(f'{name}=…' for name in parts)}, expires_at={self.expires_at})"


class Token(Credential):
    """A bearer token."""

    __slots__ = ()

    def __init__(
        self, token: str | Secret, *, expires_at: datetime | float | None = None, expires_in: float | None = None
    ) -> None:
        super().__init__(token=token, expires_at=expires_at, expires_in=expires_in)


class Certificate(Credential):
    """A client certificate, intermediates included, and its private key; both PEM."""

    __slots__ = ()

    def __init__(
        self,
        certificate: str | bytes,
        key: str | bytes | Secret,
        *,
        expires_at: datetime | float | None = None,
        expires_in: float | None = None,
    ) -> None:
        super().__init__(certificate=certificate, key=key, expires_at=expires_at, expires_in=expires_in)


def answer_to(request: Request, function: Function) -> Credential:
    """Call the author's function, be it plain or async, and see that it returned a credential."""
    answer: object = function(request)
    if hasattr(answer, "__await__"):
        answer = _awaited(answer)
    if isinstance(answer, Credential):
        return answer
    name = getattr(function, "__name__", "the function")
    came = "None" if answer is None else f"a value of type {type(answer).__name__}"
    raise PluginReplyError(
        f"{name} returned {came}, expected a Token, Certificate or Credential of kubeauthn.plugin.credential",
        hint="is there a way through the function without a return?" if answer is None else None,
    )


def reply_document(credential: Credential, api_version: str, now: float) -> str:
    """The document that goes to standard output."""
    # Whole seconds, because that is what is sent.
    if credential.expires_at is not None and (late := now - int(credential.expires_at)) >= 0:
        raise PluginReplyError(
            f"the credential is of no use: it expired {late:.0f} s ago", hint="was it taken from a cache unchecked?"
        )
    return execwire.encode_reply(
        api_version,
        token=credential.token.reveal() if credential.token is not None else "",
        certificate=credential.certificate or "",
        key=credential.key.reveal() if credential.key is not None else "",
        expires_at=credential.expires_at,
    )


def _awaited(awaitable: object) -> object:
    import asyncio

    async def result() -> object:
        return await awaitable  # type: ignore[misc]  # the caller saw its __await__

    return asyncio.run(result())


def _token(value: str | Secret) -> Secret:
    text = value.reveal() if isinstance(value, Secret) else value
    if not isinstance(text, str):
        raise UsageError(f"the token must be a str, not {type(text).__name__}")
    if not text:
        raise UsageError("the token is empty")
    if not execwire.fits_in_a_header(text):
        raise UsageError(
            "the token has characters that no header may carry",
            hint="a line end from a file? strip() takes it off" if text != text.strip() else None,
        )
    return Secret(text)


def _pem(name: str, value: str | bytes | Secret, wanted: str) -> str:
    """PEM text of the right kind. The two are easily swapped, and then the key would be where it is not guarded."""
    text = value.reveal() if isinstance(value, Secret) else value
    if isinstance(text, bytes):
        try:
            text = text.decode("ascii")
        except UnicodeDecodeError:
            text = ""
    if not isinstance(text, str):
        raise UsageError(f"the {name} must be PEM, as str or bytes, not {type(text).__name__}")
    if "-----BEGIN " not in text or wanted not in text:
        raise UsageError(f"the {name} is not PEM: it has no line -----BEGIN … {wanted}")
    return text


def _expiry(at: datetime | float | None, within: float | None) -> float | None:
    if within is not None:
        if at is not None:
            raise UsageError("give expires_at or expires_in, not both")
        if not _is_number(within) or not within > 0:
            raise UsageError(f"expires_in must be a number of seconds above 0, not {_shown(within)}")
        import time

        at = time.time() + within
    if at is None:
        return None
    seconds = at if _is_number(at) else _from_datetime(at)
    if not 0 <= seconds < _YEAR_10000:
        raise UsageError(
            f"expires_at must be unix seconds before the year 10000, not {seconds}", hint="are these milliseconds?"
        )
    return float(seconds)


def _from_datetime(moment: object) -> float:
    from datetime import datetime

    if not isinstance(moment, datetime):
        raise UsageError(f"expires_at must be a datetime or unix seconds, not {_shown(moment)}")
    if moment.utcoffset() is None:
        raise UsageError(
            "expires_at is a datetime without a time zone: nobody can say when that is",
            hint="datetime.now(timezone.utc), or moment.replace(tzinfo=timezone.utc) if it is in UTC",
        )
    return moment.timestamp()


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _shown(value: object) -> str:
    return str(value) if _is_number(value) else f"a {type(value).__name__}"
