"""The `externalSigner` auth-provider: a client certificate whose key is behind an executable.

One run answers one request. The certificate is fetched once and kept; every full TLS handshake is one run more.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from kubeauthn._core import signerwire
from kubeauthn._core.credential import Credential
from kubeauthn._core.interaction import IF_AVAILABLE, gets_the_terminal
from kubeauthn._core.kubeconfig.model import AuthProvider
from kubeauthn._core.policy import permitted_path
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._core.signing_identity import SigningIdentity, signing_identity
from kubeauthn._core.signing_pause import SigningPause
from kubeauthn._core.stored_pin import pin_descriptor, stores_pin
from kubeauthn._io.lookup import find_executable, why_not_found, why_not_started
from kubeauthn._io.process import run_plugin
from kubeauthn._io.terminal import stdin_is_terminal
from kubeauthn.client import metrics
from kubeauthn.client.exec_source import ExecOptions, with_chain
from kubeauthn.client.refreshed import Clock, RefreshedSource
from kubeauthn.errors import (
    AuthProviderError,
    CredentialError,
    PluginDenied,
    PluginFailed,
    PluginNotFound,
    PluginReplyError,
    PluginTimeout,
)

NAME = "externalSigner"
Answer = TypeVar("Answer")


class ExternalSigner:
    """One entry: what its executable is asked, and what it answered."""

    def __init__(
        self,
        entry: AuthProvider,
        options: ExecOptions = ExecOptions(),
        *,
        clock: Clock = time.time,
        is_terminal: Callable[[], bool] = stdin_is_terminal,
    ) -> None:
        self._configuration = dict(entry.config)
        self._options = options
        self._clock = clock
        self._is_terminal = is_terminal
        self._one_person = threading.Lock()
        self._last: Credential | None = None
        self._pause = SigningPause()
        self._stores_pin = stores_pin(self._configuration)
        self._on_trial = True
        self._trial = threading.Lock()
        self._failed_fetches = 0
        self._failed_fetch = ""
        self.source = RefreshedSource(self.make_credential, clock=clock)
        self.command = self._configuration.get(signerwire.PATH_KEY, "")
        if not self.command:
            raise AuthProviderError(f"the {NAME} auth-provider needs {signerwire.PATH_KEY}")

    def make_credential(self) -> Credential:
        identity = self.fetch_identity(refused=self._refused_by_alert, unfit=self._unfit)
        # Used until it ends, a server refuses it, or the signer has another key by now.
        metrics.set_certificate_expiry(self, identity.not_after)
        self._last = Credential(identity=identity, expires_at=identity.not_after)
        return self._last

    def fetch_identity(
        self,
        *,
        refused: Callable[[tuple[bytes, ...]], None],
        unfit: Callable[[tuple[bytes, ...], str], None],
    ) -> SigningIdentity:
        """The certificate, asked for anew. The two are told, with its chain, when it is of no more use."""
        from kubeauthn._io.tls_signer import check_support

        # 1. Can this interpreter use such a certificate at all? Else nobody is asked for anything.
        check_support()
        # 2. The certificate, checked before anybody sees it. Some signers log in for that already.
        chain = self._fetch_chain()
        return signing_identity(
            chain,
            self.sign,
            self._clock(),
            refused=lambda: refused(chain),
            unfit=lambda reason: unfit(chain, reason),
        )

    def _fetch_chain(self) -> tuple[bytes, ...]:
        failed_before = self._failed_fetches
        with self._turn():
            if (refusal := self._pause.refusal()) is not None:
                raise refusal
            if self._failed_fetches != failed_before:  # while this one waited for its turn
                raise PluginFailed(self._failed_fetch)
            try:
                reply = self._ask(signerwire.encode_certificate_request(self._configuration))
                return self._understood(signerwire.decode_certificate_reply, reply)
            except CredentialError as error:
                self._failed_fetches, self._failed_fetch = self._failed_fetches + 1, str(error)
                self._note_pin(error)
                raise

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        """One signature, which the TLS bridge verifies before it is used."""
        request = signerwire.encode_sign_request(self._configuration, digest, algorithm)
        with self._turn():
            if (standing := self._pause.standing(self._clock())) is not None:
                raise standing
            try:
                signature = self._understood(signerwire.decode_sign_reply, self._ask(request))
            except CredentialError as error:
                self._on_trial = True
                if not self._note_pin(error):
                    self._pause.failed(str(error), self._clock(), person=self._has_person())
                raise
            self._pause.succeeded()
            self._on_trial = False
        return signature

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One request at a time until a signature was made, and after each that failed; always where a person is asked.

        Handshakes that begin together would each bring a wrong PIN, and so would the exec plugins of several clusters
        that name one signer. Those that waited share the failure of the first.
        """
        with ExitStack() as stack:
            if self._on_trial or self._has_person():
                stack.enter_context(self._trial)
            if not self._on_trial and not self._has_person():
                stack.close()
            yield

    def _note_pin(self, error: CredentialError) -> bool:
        """Whether nothing is asked for again, because the PIN was wrong, or is stored and may have been.

        Ours say so by their exit code. Other people's have one for everything, or print what is no answer. A signer
        that had to be ended was waiting for something: it had not been refused.
        """
        code = error.exit_code if isinstance(error, PluginFailed) else None
        ran = isinstance(error, PluginFailed | PluginReplyError) and not isinstance(error, PluginTimeout)
        if code == signerwire.PIN_REFUSED_EXIT and (self._stores_pin or not self._has_person()):
            self._pause.refused(str(error))
            return True
        if ran and self._stores_pin and code != signerwire.NOT_THE_PIN_EXIT:
            self._pause.perhaps_refused(str(error))
            return True
        return False

    def _ask(self, request: str) -> bytes:
        if not self._has_person():
            return self._run(request, interactive=False)
        with self._one_person:  # two prompts at once on one terminal help nobody
            return self._run(request, interactive=True)

    def _has_person(self) -> bool:
        return gets_the_terminal(
            IF_AVAILABLE, stdin_is_terminal=self._is_terminal(), stdin_taken=self._options.stdin_taken
        )

    def _run(self, request: str, *, interactive: bool) -> bytes:
        try:
            path = permitted_path(self._options.policy, self.command, find_executable)
        except PluginDenied:
            metrics.listener().policy_decided(metrics.DENIED)
            raise
        metrics.listener().policy_decided(metrics.ALLOWED)
        if path is None:
            reason, remedy = why_not_found(self.command)
            raise PluginNotFound(f"external signer: {reason}", hint=remedy)
        environment = {**os.environ, signerwire.VARIABLE: request}
        count = metrics.listener().plugin_called
        try:
            code, output = run_plugin(
                path,
                [self.command],
                environment,
                interactive=interactive,
                seconds=self._options.seconds,
                descriptors=self._descriptors(),
            )
        except (OSError, ValueError) as error:
            count(1, metrics.PLUGIN_NOT_FOUND_ERROR)
            reason, remedy = why_not_started(path, error)
            raise PluginNotFound(f"external signer {self.command} cannot be started: {reason}", hint=remedy) from None
        except PluginFailed:
            count(1, metrics.PLUGIN_EXECUTION_ERROR)
            raise
        if code != 0:
            count(max(code, -1), metrics.PLUGIN_EXECUTION_ERROR)
            ending = f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"
            raise PluginFailed(f"external signer {self.command} {ending}", exit_code=code)
        count(0, metrics.NO_ERROR)
        return output

    def _descriptors(self) -> tuple[int, ...]:
        """The one that `pinSource` names, if this program's own parent meant it to be inherited.

        No other: a kubeconfig from anywhere must not have a signer read from our files and connections.
        """
        number = pin_descriptor(self._configuration)
        try:
            return (number,) if number is not None and number > 2 and os.get_inheritable(number) else ()
        except OSError:
            return ()  # there is none: the signer says so

    def _understood(self, decode: Callable[[bytes], Answer], reply: bytes) -> Answer:
        try:
            return decode(reply)
        except PluginReplyError as error:
            raise PluginReplyError(f"external signer {self.command}: {error}", hint=error.hint) from None

    def _refused_by_alert(self, chain: tuple[bytes, ...]) -> None:
        if (credential := with_chain(self._last, chain)) is not None:
            self.source.refused(credential)

    def _unfit(self, chain: tuple[bytes, ...], reason: str) -> None:
        """The token may have been given another key, and a certificate for it, since this one was fetched."""
        if (credential := with_chain(self._last, chain)) is not None:
            self.source.lost(credential, reason)

    def _after_fork(self) -> None:
        self._one_person = threading.Lock()
        self._trial = threading.Lock()


_shared: dict[tuple[AuthProvider, ExecOptions], ExternalSigner] = {}
_shared_lock = threading.Lock()


def signed_credential(
    credential: Credential,
    options: ExecOptions,
    *,
    refused: Callable[[tuple[bytes, ...]], None],
    unfit: Callable[[tuple[bytes, ...], str], None],
) -> Credential:
    """What an exec plugin returned, with the certificate of the signer that it named.

    Both come anew, and whoever ran the plugin is told when they are of no more use: it may name another signer then.
    """
    identity = shared_signer(AuthProvider(NAME, credential.signer), options).fetch_identity(
        refused=refused, unfit=unfit
    )
    ends = [at for at in (credential.expires_at, identity.not_after) if at is not None]
    return Credential(token=credential.token, identity=identity, expires_at=min(ends))


def shared_signer_source(entry: AuthProvider, options: ExecOptions) -> RefreshedSource:
    """One source for all clients of the process with the same entry: one certificate, one person asked at a time."""
    return shared_signer(entry, options).source


def shared_signer(entry: AuthProvider, options: ExecOptions) -> ExternalSigner:
    key = (entry, options)
    with _shared_lock:
        signer = _shared.get(key)
        if signer is None:
            signer = _shared[key] = ExternalSigner(entry, options)
        return signer


def _after_fork_in_child() -> None:
    global _shared_lock
    _shared_lock = threading.Lock()
    for signer in _shared.values():
        signer._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
