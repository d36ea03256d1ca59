"""The connections of a context with an external key: the signer's errors come out, and sessions are resumed.

`SSLContext.sslsocket_class` and `sslobject_class` are documented hooks. A callback of OpenSSL cannot raise, so it
leaves the signer's exception with the thread, and the connection's methods raise it in place of OpenSSL's.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import cache
from typing import Any

from kubeauthn._io.tls_signer.loop_steps import (
    LoopSteps,
    handshake_of_a_loop,
    handshake_of_uvloop,
    on_a_foreign_loop,
    on_uvloop,
)
from kubeauthn._io.tls_signer.provider import PerThread
from kubeauthn._io.tls_signer.sessions import Sessions
from kubeauthn.errors import CredentialError, SigningFailed

_SESSIONS = "_kubeauthn_sessions"
_REFUSED = "_kubeauthn_refused"
_UNSHOWN = "the server asked for a certificate and takes no signature that this key can make: none was shown"


class _SigningFailedInLoop(SigningFailed, ssl.SSLError):
    """The same where asyncio is in between: of all that a handshake raises it passes on nothing but an SSLError."""

    def __str__(self) -> str:
        return str(self.args[0])  # an SSLError's own would show the tuple


_ALERTS = tuple(
    f"ALERT_{name}"
    for name in (
        "BAD_CERTIFICATE",
        "CERTIFICATE_EXPIRED",
        "CERTIFICATE_REVOKED",
        "CERTIFICATE_UNKNOWN",
        "CERTIFICATE_REQUIRED",
        "UNSUPPORTED_CERTIFICATE",
        "UNKNOWN_CA",
        "ACCESS_DENIED",
    )
)
"""What a server says of a certificate that it does not take; with TLS 1.3 after the handshake, at the first read."""


def prepare_connections(
    context: ssl.SSLContext, thread: PerThread, sessions: Sessions, refused: Callable[[], None] | None = None
) -> None:
    """Make every connection of `context` one that tells the signer's errors and resumes sessions."""
    setattr(context, _SESSIONS, sessions)
    setattr(context, _REFUSED, refused)
    context.sslsocket_class = _socket_class(context.sslsocket_class, thread)  # type: ignore[arg-type]  # a class has a hash
    context.sslobject_class = _object_class(context.sslobject_class, thread)  # type: ignore[arg-type]


def signing_failure(error: BaseException, kind: type[SigningFailed] = SigningFailed) -> SigningFailed:
    """Ours, from whatever the signer raised."""
    # An error that is not ours may quote anything; its kind alone is told, and it is there as the cause.
    text = str(error) if isinstance(error, CredentialError) else f"the external signer failed: {type(error).__name__}"
    failure = kind(text)
    failure.hint = getattr(error, "hint", None)
    failure.__cause__ = error
    return failure


def _guarded(
    thread: PerThread, connection: Any, method: Any, arguments: tuple[Any, ...], kind: type[SigningFailed]
) -> Any:
    thread.failed = None
    try:
        result = method(*arguments)
    except ssl.SSLError as error:
        _raise_failure(thread, kind)
        if (error.reason or "").endswith(_ALERTS) and (refused := getattr(connection.context, _REFUSED)):
            refused()
        raise
    else:
        # OpenSSL takes some failures for "this key does not fit", shows no certificate and goes on.
        _raise_failure(thread, kind)
        return result
    finally:
        # No exception stays on a thread: its traceback would hold the context in a cycle that the collector,
        # which cannot look into OpenSSL's objects, never sees.
        thread.failed = None


def _raise_failure(thread: PerThread, kind: type[SigningFailed]) -> None:
    failed, thread.failed = thread.failed, None
    try:
        if failed is None:
            return
        if not isinstance(failed, Exception):  # an interrupt, or the end of the program
            raise failed from None
        raise signing_failure(failed, kind) from failed
    finally:
        del failed


def _shake_hands(thread: PerThread, connection: Any, method: Any, arguments: Any, kind: type[SigningFailed]) -> None:
    """A step of it. At the end a certificate that was asked for must have been shown: nothing is sent without.

    A server of TLS 1.2 that wants one ends the handshake itself, and its alert says nothing of the reason.
    """
    thread.asked = thread.signed = False
    ended: ssl.SSLError | None = None
    try:
        try:
            _guarded(thread, connection, method, arguments, kind)
        finally:
            connection._asked |= thread.asked
            connection._signed |= thread.signed
    except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
        raise
    except ssl.SSLError as error:
        if isinstance(error, SigningFailed) or not _unshown(connection):
            raise
        ended = error
    try:
        if _unshown(connection):
            raise kind(_UNSHOWN) from ended
    finally:
        del ended


def _unshown(connection: Any) -> bool:
    return bool(connection._asked and not connection._signed and not connection.server_side)


@cache
def _socket_class(base: type[ssl.SSLSocket], thread: PerThread) -> type[ssl.SSLSocket]:
    class SigningSocket(base):  # type: ignore[misc,valid-type]
        _looks = 0
        _greeted = _asked = _signed = False

        def do_handshake(self, block: bool = False) -> None:
            _offer_session(self)
            try:
                _shake_hands(thread, self, super().do_handshake, (block,), SigningFailed)
            except BaseException as error:
                if not isinstance(error, OSError):  # `ssl` closes it after its own errors only
                    self.close()
                raise
            self._looks = Sessions.looks()
            if self.version() != "TLSv1.3":
                self._look()

        # Reading and writing can bring a question for the certificate too.

        def read(self, *arguments: Any) -> Any:
            content = _guarded(thread, self, super().read, arguments, SigningFailed)
            if self._looks:
                self._look()
            return content

        def write(self, data: Any) -> int:
            written: int = _guarded(thread, self, super().write, (data,), SigningFailed)
            return written

        def _look(self) -> None:
            self._looks = getattr(self.context, _SESSIONS).note(self, self._looks)

    return SigningSocket


@cache
def _object_class(base: type[ssl.SSLObject], thread: PerThread) -> type[ssl.SSLObject]:
    class SigningObject(base):  # type: ignore[misc,valid-type]
        """Has buffers of its own behind the caller's, so that a thread can carry out a step of the handshake
        while the loop goes on putting into the caller's what comes in."""

        _looks = 0
        _greeted = _asked = _signed = False
        _steps: LoopSteps

        @classmethod
        def _create(cls, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, **options: Any) -> Any:
            steps = LoopSteps(incoming, outgoing)
            made = super()._create(steps.inner_incoming, steps.inner_outgoing, **options)
            made._steps = steps
            made._session = options.get("session")  # as a socket has it
            return made

        def do_handshake(self) -> None:
            _offer_session(self)
            poke = handshake_of_a_loop()
            if poke is None and not on_uvloop():
                self._steps.take_in()
                try:
                    self._handshake_step(_SigningFailedInLoop if on_a_foreign_loop() else SigningFailed)
                finally:
                    self._steps.give_out()
            else:
                self._steps.advance(
                    lambda: self._handshake_step(_SigningFailedInLoop), lambda: poke or handshake_of_uvloop(self)
                )
            self._looks = Sessions.looks()
            if self.version() != "TLSv1.3":
                self._look()

        def read(self, *arguments: Any) -> Any:
            content = self._through(super().read, arguments)
            if self._looks:
                self._look()
            return content

        def write(self, data: Any) -> int:
            written: int = self._through(super().write, (data,))
            return written

        def unwrap(self) -> None:
            self._through(super().unwrap, ())

        def _handshake_step(self, kind: type[SigningFailed]) -> None:
            try:
                _shake_hands(thread, self, super().do_handshake, (), kind)
            finally:
                self._steps.signed |= self._signed

        def _through(self, method: Any, arguments: tuple[Any, ...]) -> Any:
            self._steps.take_in()
            try:
                return _guarded(thread, self, method, arguments, _SigningFailedInLoop)
            finally:
                self._steps.give_out()

        def _look(self) -> None:
            self._looks = getattr(self.context, _SESSIONS).note(self, self._looks)

    return SigningObject


def _offer_session(connection: Any) -> None:
    """Once, before the first step of the handshake; unless the caller brought a session of their own."""
    if not connection._greeted:
        connection._greeted = True
        if not connection.server_side and getattr(connection, "_session", None) is None:
            getattr(connection.context, _SESSIONS).offer(connection)
