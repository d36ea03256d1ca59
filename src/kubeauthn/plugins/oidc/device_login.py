"""A login on another device: the person is told an address and a code, and the issuer is asked until it is done."""

from __future__ import annotations

import time

from kubeauthn._core.oidc.device import GRANT, next_interval, read_device_login
from kubeauthn._core.oidc.limits import LONGEST_INTERVAL_SECONDS
from kubeauthn._core.oidc.tokens import read_reply
from kubeauthn.errors import EnvironmentFailure, LoginFailed
from kubeauthn.plugins.oidc.issuer import refusal
from kubeauthn.plugins.oidc.progress import Countdown, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.oidc.tokens import TokenReply
    from kubeauthn.plugins.oidc.issuer import Issuer
    from kubeauthn.plugins.oidc.settings import Settings

_OK = 200
_TICK_SECONDS = 0.25


def log_in_with_device(settings: Settings, issuer: Issuer) -> TokenReply:
    fields = {"scope": " ".join(settings.scopes), **dict(settings.parameters)}
    if settings.audience:
        fields["audience"] = settings.audience
    login = read_device_login(issuer.begin_device_login(fields))
    say(f"open {login.verification_uri} in a browser, on any device, and enter the code {login.user_code}")
    if login.verification_uri_complete:
        say(f"or open {login.verification_uri_complete} and compare the code")
    poll = {"grant_type": GRANT, "device_code": login.device_code.reveal()}
    countdown = Countdown(min(settings.seconds, login.seconds))
    interval: float | None = login.interval
    try:
        while interval is not None:
            if not _wait(interval, countdown):
                raise LoginFailed("nobody logged in with the code in time", hint="try again, or give more --timeout")
            try:
                status, answer = issuer.exchange(poll)
            except EnvironmentFailure:
                # RFC 8628, 3.5: a connection that fails is no answer; ask less often.
                interval = min(interval * 2, LONGEST_INTERVAL_SECONDS)
                continue
            if status == _OK:
                return read_reply(answer)
            interval = next_interval(answer, interval)
    finally:
        countdown.clear()
    raise refusal(status, answer)


def _wait(seconds: float, countdown: Countdown) -> bool:
    """Whether there was time for it."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if countdown.left <= 0:
            return False
        countdown.tick()
        time.sleep(min(_TICK_SECONDS, left))
    return countdown.left > 0
