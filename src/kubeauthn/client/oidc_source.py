"""The `oidc` auth-provider: an id-token from the kubeconfig, refreshed in memory with its refresh token.

The kubeconfig is never rewritten. A rotated refresh token therefore lives as long as the process.
"""

from __future__ import annotations

import os
import ssl
import threading
import time
from base64 import b64decode
from typing import Any

from kubeauthn._core import limits
from kubeauthn._core.credential import Credential
from kubeauthn._core.execwire import fits_in_a_header
from kubeauthn._core.jwt_peek import untrusted_expiry
from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster
from kubeauthn._secret import Secret
from kubeauthn.client.refreshed import Clock, RefreshedSource
from kubeauthn.errors import AuthProviderError, EnvironmentFailure

_EARLY_SECONDS = 10.0
"""A token about to end is not sent any more: it would be refused on arrival."""


class OidcProvider:
    def __init__(self, entry: AuthProvider, *, clock: Clock = time.time) -> None:
        config = dict(entry.config)
        self._issuer = config.get("idp-issuer-url", "")
        self._client_id = config.get("client-id", "")
        self._client_secret = Secret(config.get("client-secret", ""))
        self._id_token = Secret(config.get("id-token", ""))
        self._refresh_token = Secret(config.get("refresh-token", ""))
        self._ca_data = config.get("idp-certificate-authority-data", "")
        self._ca_file = config.get("idp-certificate-authority", "")
        self._clock = clock
        self._tried_configured = False
        for name, value in (("idp-issuer-url", self._issuer), ("client-id", self._client_id)):
            if not value:
                raise AuthProviderError(f"the oidc auth-provider needs {name}")

    def make_credential(self) -> Credential:
        # The configured id-token is used once; when it has ended or was refused, only a refresh helps.
        if not self._tried_configured and self._id_token:
            self._tried_configured = True
            if (credential := self._usable(self._id_token)) is not None:
                return credential
        if not self._refresh_token:
            raise AuthProviderError(
                "no valid id-token, and cannot refresh without refresh-token",
                hint="log in again with the tool that wrote this kubeconfig entry",
            )
        return self._refreshed()

    def _usable(self, token: Secret) -> Credential | None:
        text = token.reveal()
        expiry = untrusted_expiry(text)
        if expiry is None or not fits_in_a_header(text) or self._clock() + _EARLY_SECONDS >= expiry:
            return None
        return Credential(token=token, expires_at=expiry - _EARLY_SECONDS)

    def _refreshed(self) -> Credential:
        from kubeauthn._io.http import get_json, post_form

        context = self._tls_context()
        try:
            discovery = get_json(self._issuer.rstrip("/") + "/.well-known/openid-configuration", context)
            endpoint = discovery.get("token_endpoint")
            if not isinstance(endpoint, str) or not endpoint:
                raise AuthProviderError("oidc: the discovery document names no token_endpoint")
            reply = post_form(endpoint, context, self._refresh_form())
        except EnvironmentFailure as error:
            raise AuthProviderError(f"oidc: {error}", hint=error.hint) from None
        return self._from_reply(reply)

    def _refresh_form(self) -> dict[str, str]:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": self._refresh_token.reveal(),
            "client_id": self._client_id,
        }
        if self._client_secret:
            form["client_secret"] = self._client_secret.reveal()
        return form

    def _from_reply(self, reply: dict[str, Any]) -> Credential:
        token = reply.get("id_token")
        if not isinstance(token, str) or not token:
            raise AuthProviderError("oidc: the token response has no id_token", hint="was the scope openid asked for?")
        if isinstance(rotated := reply.get("refresh_token"), str) and rotated:
            self._refresh_token = Secret(rotated)
        credential = self._usable(Secret(token))
        if credential is None:
            raise AuthProviderError("oidc: the provider returned an id_token that has ended or cannot be read")
        return credential

    def _tls_context(self) -> ssl.SSLContext:
        from kubeauthn._io.tls import server_context

        return server_context(Cluster(server=self._issuer, certificate_authority_data=self._certificate_authority()))

    def _certificate_authority(self) -> bytes:
        if self._ca_data:
            try:
                return b64decode(self._ca_data, validate=True)
            except ValueError:
                raise AuthProviderError("oidc: idp-certificate-authority-data is not base64") from None
        if self._ca_file:
            from kubeauthn._io.files import read_bounded

            try:
                return read_bounded(self._ca_file, limits.CREDENTIAL_FILE_BYTES)
            except EnvironmentFailure as error:
                raise AuthProviderError(f"oidc: idp-certificate-authority: {error}") from None
        return b""


_shared: dict[AuthProvider, RefreshedSource] = {}
_shared_lock = threading.Lock()


def shared_oidc_source(entry: AuthProvider) -> RefreshedSource:
    """One source for all clients of the process with the same entry: a refresh token is often good for one use."""
    with _shared_lock:
        source = _shared.get(entry)
        if source is None:
            source = _shared[entry] = RefreshedSource(OidcProvider(entry).make_credential)
        return source


def _after_fork_in_child() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
