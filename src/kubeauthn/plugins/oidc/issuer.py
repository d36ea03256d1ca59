"""The issuer, asked: its discovery document, its keys, its token endpoint."""

from __future__ import annotations

import os
import time
from urllib.parse import quote_plus

from kubeauthn._core.oidc.authorization import told
from kubeauthn._core.oidc.provider import Provider, discovery_address, read_provider
from kubeauthn._core.oidc.tokens import TokenReply, VerifiedIdToken, read_reply, verify_id_token
from kubeauthn._io.issuer_http import ask, trusting
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure, LoginFailed, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kubeauthn.plugins.oidc.settings import Settings

_OK = 200
_SECRET_BYTES = 4096


class Issuer:
    """One issuer in one run of the plugin: its discovery document is fetched once, when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._secret = client_secret(settings)
        self._context = trusting(settings.issuer_url, settings.certificate_authority)
        self._provider: Provider | None = None

    @property
    def provider(self) -> Provider:
        if self._provider is None:
            url = self._settings.issuer_url
            status, document = ask("GET", discovery_address(url), self._context)
            if status != _OK or not document:
                raise LoginFailed(
                    f"{discovery_address(url)} answered {status} and no discovery document",
                    hint="is --issuer-url right?",
                )
            self._provider = read_provider(document, url)
        return self._provider

    def exchange(self, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        """The token endpoint's answer, whatever it is."""
        return self._post(self.provider.token_endpoint, fields)

    def tokens(self, fields: Mapping[str, str]) -> TokenReply:
        """The same, where anything but tokens is an error."""
        status, answer = self.exchange(fields)
        if status != _OK:
            raise refusal(status, answer)
        return read_reply(answer)

    def refresh(self, token: Secret) -> TokenReply | None:
        """None where the issuer does not take the refresh token any more: somebody must log in."""
        fields = {"grant_type": "refresh_token", "refresh_token": token.reveal()}
        status, answer = self.exchange(fields)
        if status != _OK and answer.get("error") in ("invalid_grant", "invalid_scope", "unsupported_grant_type"):
            return None
        if status != _OK:
            raise refusal(status, answer)
        return read_reply(answer)

    def begin_device_login(self, fields: Mapping[str, str]) -> dict[str, Any]:
        endpoint = self.provider.device_authorization_endpoint
        if not endpoint:
            raise LoginFailed(
                "the issuer has no device authorization endpoint",
                hint="leave out --grant device-code, or ask whoever runs the issuer to allow it",
            )
        status, answer = self._post(endpoint, fields)
        if status != _OK:
            raise refusal(status, answer)
        return answer

    def verify(self, reply: TokenReply, *, nonce: str | None, subject: str | None) -> VerifiedIdToken:
        from kubeauthn._core.jose.keys import KeySet
        from kubeauthn.errors import KeySetError

        status, document = ask("GET", self.provider.jwks_uri, self._context)
        if status != _OK:
            raise LoginFailed(f"the issuer's keys cannot be had ({status}), so its token cannot be verified")
        try:
            keys = KeySet.from_dict(document)
        except KeySetError as error:
            raise LoginFailed(f"the issuer's keys cannot be read, so its token cannot be verified: {error}") from None
        return verify_id_token(
            reply.id_token,
            keys,
            issuer_url=self._settings.issuer_url,
            client_id=self._settings.client_id,
            now=time.time(),
            nonce=nonce,
            access_token=reply.access_token,
            subject=subject,
        )

    def revoke(self, token: Secret) -> bool:
        """RFC 7009. Whether the issuer was told; one without such an endpoint cannot be."""
        if not self.provider.revocation_endpoint:
            return False
        fields = {"token": token.reveal(), "token_type_hint": "refresh_token"}
        status, _ = self._post(self.provider.revocation_endpoint, fields)
        return status == _OK

    def _post(self, url: str, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        client_id = self._settings.client_id
        if not self._secret:
            return ask("POST", url, self._context, fields={**fields, "client_id": client_id})
        if self.provider.secret_in_form:
            form = {**fields, "client_id": client_id, "client_secret": self._secret.reveal()}
            return ask("POST", url, self._context, fields=form)
        # RFC 6749, 2.3.1: both are encoded as in a form first
        basic = (quote_plus(client_id), quote_plus(self._secret.reveal()))
        return ask("POST", url, self._context, fields=fields, basic=basic)


def refusal(status: int, answer: dict[str, Any]) -> LoginFailed:
    """What an error of the token endpoint means, and for whom."""
    error = answer.get("error")
    hints = {
        "invalid_client": "is --client-id right, and does the client need a secret (--client-secret-file)?",
        "unauthorized_client": "whoever runs the issuer must allow this client this grant",
        "unsupported_grant_type": "whoever runs the issuer must allow this client this grant",
        "invalid_grant": "the code was used twice or too late: try again",
        "invalid_scope": "the issuer does not know a --scope",
        "access_denied": "the login was refused or cancelled",
        "expired_token": "the code was not entered in time: try again",
    }
    if not isinstance(error, str):
        return LoginFailed(f"the issuer answered {status} and no token: whoever runs it must look at its log")
    return LoginFailed(f"the issuer gave no token: {told(answer)}", hint=hints.get(error))


def client_secret(settings: Settings) -> Secret:
    """From a file or a variable of the environment; a public client has none."""
    if settings.secret_variable:
        value = os.environ.get(settings.secret_variable, "")
        if not value:
            raise UsageError(f"--client-secret-env: the variable {settings.secret_variable} is not set")
        return Secret(value)
    if not settings.secret_file:
        return Secret("")
    from kubeauthn._io.files import read_bounded

    text = read_bounded(settings.secret_file, _SECRET_BYTES).decode("utf-8", "replace").strip()
    if not text:
        raise EnvironmentFailure(f"{settings.secret_file}: holds no client secret")
    return Secret(text)
