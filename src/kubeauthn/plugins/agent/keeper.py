"""The agent's keys: each with its open token, its PIN for some minutes, and its way back after the token's removal."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Protocol, TypeVar

from kubeauthn._secret import Secret
from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, PinRefused
from kubeauthn.plugin.signer import Configuration, SigningAlgorithm
from kubeauthn.plugins.agent.wire import identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.plugins.pin import Pins

T = TypeVar("T")


class LastingSigner(Protocol):
    """What the agent needs of a signer beside certificate() and sign()."""

    def certificate(self) -> bytes: ...
    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes: ...
    def identity(self) -> bytes: ...
    def reopen(self) -> None: ...
    def close(self) -> None: ...


class _PinNeeded(KeyStoreError):
    """No PIN is held: the signer at the other end asks the person."""


class KeptKey:
    """One key. `clock` is monotonic; a PIN is dropped `seconds` after it was typed, and the token logged out."""

    def __init__(
        self,
        kind: str,
        configuration: Configuration,
        make: Callable[[Configuration, Pins], LastingSigner],
        *,
        seconds: float,
        clock: Callable[[], float],
        allow: Callable[[str], bool] | None = None,
    ) -> None:
        self.kind = kind
        self._identity = identity(configuration)
        self._make = make
        self._seconds = seconds
        self._clock = clock
        self._allow = allow
        self._lock = RLock()  # one signature at a time: a token has one session and one person
        self._signer: LastingSigner | None = None
        self._serial: bytes | None = None
        self._pin: Secret | None = None
        self._typed_at = 0.0
        self._allowed_at: float | None = None
        # What the agent's own entry says about the PIN is not used: the person who signs types it.
        self._configuration = Configuration(self._identity)

    def is_for(self, kind: str, wanted: object) -> bool:
        return kind == self.kind and wanted == self._identity

    def certificate(self) -> bytes:
        with self._lock:
            return self._lasting(lambda signer: signer.certificate())

    def sign(self, digest: bytes, algorithm: SigningAlgorithm, pin: Secret | None) -> bytes:
        with self._lock:
            self.expire()
            self._ask_leave()
            if pin is not None:
                self._drop()  # a session that was opened without it
                self._pin, self._typed_at = pin, self._clock()
            try:
                return self._lasting(lambda signer: signer.sign(digest, algorithm))
            except (PinRefused, _PinNeeded):
                self._drop()  # the token at hand may be another one: the next PIN is for that
                raise

    def expire(self) -> None:
        """Called now and then, so that a PIN does not outlive its time in an idle agent.

        One that is signing is left for the next time: it may wait for a touch, and the others' PINs must not.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            if self._pin is not None and self._clock() - self._typed_at >= self._seconds:
                self._drop()
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _ask_leave(self) -> None:
        if self._allow is None:
            return
        if self._allowed_at is not None and self._clock() - self._allowed_at < self._seconds:
            return
        if not self._allow(f"sign with the {self.kind} key {self._identity.get('objectId', '')}?".replace(" ?", "?")):
            raise KeyStoreError("the person at the agent's terminal said no")
        self._allowed_at = self._clock()

    def _lasting(self, work: Callable[[LastingSigner], T]) -> T:
        """Once; and once more if the token had been pulled out and is back."""
        try:
            signer = self._opened()
            return work(signer)
        except KeyStoreAbsent:
            if self._signer is None:
                raise
        self._signer.reopen()
        self._serial = self._serial or self._signer.identity()
        return work(self._signer)

    def _opened(self) -> LastingSigner:
        if self._signer is None:
            self._signer = self._make(self._configuration, self._held_pin)
        if self._serial is None:
            self._serial = self._signer.identity()
        return self._signer

    def _held_pin(self, question: str) -> Secret:
        """Asked for whenever the token has to be logged in to: only the token it was typed for gets it."""
        if self._pin is not None and self._signer is not None and self._signer.identity() == self._serial:
            return self._pin
        self._pin = None
        raise _PinNeeded(question)

    def _drop(self) -> None:
        signer, self._signer, self._pin, self._serial = self._signer, None, None, None
        if signer is not None:
            signer.close()
