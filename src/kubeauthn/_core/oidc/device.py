"""The device authorization grant: RFC 8628."""

from __future__ import annotations

from typing import Any

from kubeauthn._core.oidc import limits
from kubeauthn._core.oidc.provider import is_safe_address
from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret
from kubeauthn.errors import LoginFailed

GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@record(frozen=True, slots=True)
class DeviceLogin:
    """What the person is told, and what is asked with meanwhile."""

    device_code: Secret = field(repr=False)
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    seconds: float
    interval: float


def read_device_login(document: dict[str, Any]) -> DeviceLogin:
    """RFC 8628, 3.2. What a terminal shows is printable and no longer than it must be. Raises LoginFailed."""
    device_code, user_code = document.get("device_code"), document.get("user_code")
    # Google and older drafts say verification_url.
    address = document.get("verification_uri") or document.get("verification_url")
    complete = document.get("verification_uri_complete")
    if not isinstance(device_code, str) or not 0 < len(device_code) <= limits.CODE_CHARACTERS:
        raise LoginFailed("the issuer began no device login: it gave no device code")
    if (
        not isinstance(user_code, str)
        or not 0 < len(user_code) <= limits.USER_CODE_CHARACTERS
        or not (user_code.isascii() and user_code.isprintable())
    ):
        raise LoginFailed("the issuer began no device login: it gave no code that a person could type")
    if not is_safe_address(address):
        raise LoginFailed("the issuer began no device login: the address for the person is not https")
    seconds = _number(document.get("expires_in"), limits.LOGIN_SECONDS)
    interval = _number(document.get("interval"), limits.DEVICE_INTERVAL_SECONDS)
    return DeviceLogin(
        device_code=Secret(device_code),
        user_code=user_code,
        verification_uri=str(address),
        verification_uri_complete=str(complete) if is_safe_address(complete) else "",
        seconds=seconds,
        interval=min(interval, limits.LONGEST_INTERVAL_SECONDS),
    )


def next_interval(answer: dict[str, Any], interval: float) -> float | None:
    """How long to wait before asking again; None where the answer is a final one (RFC 8628, 3.5)."""
    error = answer.get("error")
    if error == "authorization_pending":
        return interval
    if error == "slow_down":
        return min(interval + limits.DEVICE_INTERVAL_SECONDS, limits.LONGEST_INTERVAL_SECONDS)
    return None


def _number(value: object, otherwise: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    return otherwise
