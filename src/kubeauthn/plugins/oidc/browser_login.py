"""A login in the browser of this machine: the authorization code flow, with the answer sent to a loopback address."""

from __future__ import annotations

import os
from contextlib import contextmanager

from kubeauthn._core.oidc.authorization import authorization_address, code_of, new_attempt
from kubeauthn.errors import LoginFailed
from kubeauthn.plugins.oidc.browser import open_browser
from kubeauthn.plugins.oidc.progress import Countdown, say
from kubeauthn.plugins.oidc.redirect_server import RedirectServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubeauthn._core.oidc.tokens import TokenReply
    from kubeauthn.plugins.oidc.issuer import Issuer
    from kubeauthn.plugins.oidc.settings import Settings


@contextmanager
def browser_login(settings: Settings, issuer: Issuer) -> Iterator[tuple[TokenReply, str]]:
    """The tokens, and the nonce that the id token must hold. How the block ends is what the browser's page says."""
    attempt = new_attempt(os.urandom(96))
    provider = issuer.provider
    with RedirectServer(settings.listen, settings.redirect_url, attempt.state) as server:
        server.lead_to(
            authorization_address(
                provider,
                attempt,
                client_id=settings.client_id,
                redirect_uri=server.redirect_uri,
                scopes=settings.scopes,
                audience=settings.audience,
                parameters=settings.parameters,
            )
        )
        opened = settings.open_browser and open_browser(server.start_address, settings.browser_command)
        say(f"log in at {server.start_address}{' (opened in your browser)' if opened else ''}")
        redirect = _await_redirect(server, settings.seconds)
        code = code_of(redirect, provider)
        fields = {
            "grant_type": "authorization_code",
            "code": code.reveal(),
            "redirect_uri": server.redirect_uri,
            "code_verifier": attempt.verifier.reveal(),
        }
        yield issuer.tokens(fields), attempt.nonce
        server.succeeded = True


def _await_redirect(server: RedirectServer, seconds: float) -> dict[str, str]:
    countdown = Countdown(seconds)
    try:
        while countdown.left > 0:
            redirect = server.wait(min(1.0, countdown.left))
            if redirect is not None:
                return redirect
            countdown.tick()
    finally:
        countdown.clear()
    raise LoginFailed(
        f"nobody logged in within {seconds:.0f} s",
        hint="try again; where the browser is on another machine, use --grant device-code",
    )
