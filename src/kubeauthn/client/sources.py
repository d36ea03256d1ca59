"""Where a user's credential comes from: the small port that every adapter sees, and the kinds without a plugin."""

from __future__ import annotations

import os
import threading
import time
import weakref
from base64 import b64encode

from kubeauthn._core import limits
from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._core.execwire import fits_in_a_header
from kubeauthn._core.kubeconfig.model import AuthProvider, Cluster, User
from kubeauthn._io.files import Problem, read_or_problem
from kubeauthn._secret import Secret
from kubeauthn.client.exec_source import ExecOptions, shared_exec_source
from kubeauthn.client.refreshed import Clock
from kubeauthn.errors import AuthProviderError, KubeconfigError, StaticCredentialError

REMOVED_PROVIDERS = {
    "gcp": "use the exec plugin gke-gcloud-auth-plugin: gcloud container clusters get-credentials writes the entry",
    "azure": "use the exec plugin kubelogin: kubelogin convert-kubeconfig rewrites the entry",
}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # typing is not loaded for the name of it: start-up is a feature


class CredentialSource(Protocol):
    def at_hand(self) -> Credential | None:
        """What `get` would return, if it need not do anything for it."""

    def get(self) -> Credential:
        """The credential for a request that goes out now. Raises CredentialError; never returns a lesser one."""

    async def get_async(self) -> Credential:
        """The same without blocking the event loop."""

    def refused(self, credential: Credential) -> None:
        """A server answered 401 to it."""

    def accepted(self, credential: Credential) -> None:
        """A server took it."""


class FixedSource:
    """What stands in the kubeconfig itself, or nothing where nothing is configured."""

    def __init__(self, credential: Credential) -> None:
        credential.proven = True
        self._credential = credential

    def at_hand(self) -> Credential:
        return self._credential

    def get(self) -> Credential:
        return self._credential

    async def get_async(self) -> Credential:
        return self._credential

    def refused(self, credential: Credential) -> None:
        """A fixed credential has no other to be replaced by."""

    def accepted(self, credential: Credential) -> None:
        """It was not in doubt."""


_token_files: weakref.WeakSet[TokenFileSource] = weakref.WeakSet()


class TokenFileSource:
    """A token that somebody else keeps fresh in a file (a pod's service account): read again every minute.

    When the file cannot be read, the last good token is used on: the kubelet replaces the file
    by moving links, and a moment without it must not stop a controller.
    """

    def __init__(
        self, path: str, *, fallback: Secret, identity: ClientIdentity | None = None, clock: Clock = time.time
    ) -> None:
        self._path = path
        self._fallback = fallback
        self._identity = identity
        self._clock = clock
        self._lock = threading.Lock()
        self._current: Credential | None = None
        self._read_again_at = 0.0
        _token_files.add(self)

    def at_hand(self) -> Credential | None:
        credential = self._current
        return credential if credential is not None and self._clock() < self._read_again_at else None

    def get(self) -> Credential:
        if (credential := self.at_hand()) is not None:
            return credential
        with self._lock:
            return self._reread_locked()

    async def get_async(self) -> Credential:
        return self.get()  # a file of a kilobyte, once a minute

    def refused(self, credential: Credential) -> None:
        """The file may already hold a newer one: look at once next time."""
        with self._lock:
            if credential is self._current:
                self._read_again_at = 0.0

    def accepted(self, credential: Credential) -> None:
        credential.proven = True

    def _reread_locked(self) -> Credential:
        try:
            token = self._read()
        except StaticCredentialError:
            if self._current is not None:
                return self._current
            if not self._fallback:
                raise
            token = self._fallback
        self._read_again_at = self._clock() + limits.TOKEN_FILE_SECONDS
        if self._current is None or self._current.token != token:
            self._current = Credential(token=token, identity=self._identity)
        return self._current

    def _read(self) -> Secret:
        content = read_or_problem(self._path, limits.CREDENTIAL_FILE_BYTES)
        if isinstance(content, Problem):
            raise StaticCredentialError(f"tokenFile {self._path}: {content.reason}")
        # Replaced, what is not text is refused below; an error of decoding would carry the token along.
        token = content.decode(errors="replace").strip()
        if not token or not fits_in_a_header(token):
            raise StaticCredentialError(f"tokenFile {self._path} holds no usable token")
        return Secret(token)

    def _after_fork(self) -> None:
        self._lock = threading.Lock()


def _after_fork_in_child() -> None:
    # The thread that held a lock does not exist in the child.
    for source in list(_token_files):
        source._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def source_for(user: User, cluster: Cluster, options: ExecOptions) -> CredentialSource:
    """The rule of precedence: what is static in the entry wins over a plugin, which is then not run at all."""
    if user != User(impersonation=user.impersonation) and not cluster.server.lower().startswith("https://"):
        # kubectl would go on without them. Neither that nor sending them readable is what the entry asks for.
        raise KubeconfigError(
            f"server of the cluster entry: {cluster.server} is not https, so the user's credentials are not sent there",
            hint="use https, or a context without a user for a local `kubectl proxy`",
        )
    identity = _static_identity(user)
    if user.token_file:
        return TokenFileSource(user.token_file, fallback=user.token, identity=identity)
    if user.token:
        if not fits_in_a_header(user.token.reveal()):
            raise StaticCredentialError("the token of the user entry has characters that no header may carry")
        return FixedSource(Credential(token=user.token, identity=identity))
    if user.username or user.password:
        pair = f"{user.username}:{user.password.reveal()}".encode()
        basic = Secret("Basic " + b64encode(pair).decode())
        return FixedSource(Credential(authorization=basic, identity=identity))
    if identity is not None:
        return FixedSource(Credential(identity=identity))
    if user.exec is not None:
        return shared_exec_source(user.exec, cluster, options)
    if user.auth_provider is not None:
        return _auth_provider_source(user.auth_provider, options)
    return FixedSource(Credential())


def _static_identity(user: User) -> ClientIdentity | None:
    if not user.client_certificate and not user.client_key:
        return None
    from kubeauthn._core.certificates import matching_pair

    return matching_pair(user.client_certificate, user.client_key)


def _auth_provider_source(entry: AuthProvider, options: ExecOptions) -> CredentialSource:
    if entry.name == "oidc":
        from kubeauthn.client.oidc_source import shared_oidc_source

        return shared_oidc_source(entry)
    if entry.name == "externalSigner":
        from kubeauthn.client.signer_source import shared_signer_source

        return shared_signer_source(entry, options)
    if hint := REMOVED_PROVIDERS.get(entry.name):
        raise AuthProviderError(f"the {entry.name} auth-provider was removed from Kubernetes", hint=hint)
    raise AuthProviderError(f'no auth-provider named "{entry.name}" is known')
