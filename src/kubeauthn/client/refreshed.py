"""One credential, made when it is needed, by one caller for all: threads, asyncio tasks, or both at once."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable

from kubeauthn._core.credential import Credential
from kubeauthn._core.refresh import RefreshState
from kubeauthn.client.attempt import Attempt
from kubeauthn.errors import CredentialError

Clock = Callable[[], float]

_all: weakref.WeakSet[RefreshedSource] = weakref.WeakSet()


class RefreshedSource:
    """A credential source around `make`, which does whatever it takes and may block.

    The first caller who finds no usable credential makes one; those who come meanwhile wait for
    that same attempt and share its outcome, good or bad.
    """

    def __init__(self, make: Callable[[], Credential], *, clock: Clock = time.time) -> None:
        self._make = make
        self._clock = clock
        self._state = RefreshState()
        self._lock = threading.Lock()
        self._under_way: Attempt | None = None
        self._maker: int | None = None
        """The thread that carries out what is under way."""
        _all.add(self)

    def at_hand(self) -> Credential | None:
        """The credential if it is made and still usable. Written out, because every request asks."""
        credential = self._state.current
        if credential is not None and (credential.expires_at is None or self._clock() <= credential.expires_at):
            return credential
        return None

    def get(self) -> Credential:
        if (credential := self.at_hand()) is not None:
            return credential
        found, attempt, mine = self._join()
        if found is not None:
            return found
        if mine:
            self._carry_out(attempt)
        return attempt.wait()

    async def get_async(self) -> Credential:
        if (credential := self.at_hand()) is not None:
            return credential
        found, attempt, mine = self._join()
        if found is not None:
            return found
        if mine:
            # A thread of its own, not the loop's executor: the loop must be able to close while a plugin still runs.
            thread = threading.Thread(target=self._carry_out, args=(attempt,), name="kubeauthn-credential", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # there are too many, or the interpreter ends
                self._nobody_carries_out(attempt, error)
        return await attempt.wait_async()

    def refused(self, credential: Credential) -> None:
        """A server answered 401 to `credential`: it is not used again. Nothing happens if it was already replaced."""
        with self._lock:
            self._state.refused(credential, self._clock())

    def lost(self, credential: Credential, message: str) -> None:
        """The proxy or the key of `credential` is gone: it is not used again. Nothing happens if it was replaced."""
        with self._lock:
            self._state.lost(credential, message, self._clock())

    def accepted(self, credential: Credential) -> None:
        """A server took `credential`."""
        with self._lock:
            self._state.accepted(credential)

    def _join(self) -> tuple[Credential | None, Attempt, bool]:
        """A credential if there is one by now; else the attempt to wait for, and whether it is the caller's to make."""
        with self._lock:
            if self._under_way is not None:
                if self._maker == threading.get_ident():
                    # A signal handler, or the plugin's own making, asks again: waiting would be for ever.
                    raise CredentialError("this thread is already getting the credential")
                return None, self._under_way, False
            now = self._clock()
            attempt = Attempt()
            if (credential := self._state.usable(now)) is not None:
                return credential, attempt, False
            if (waiting := self._state.must_wait(now)) is not None:
                raise waiting
            self._under_way = attempt
            return None, attempt, True

    def _carry_out(self, attempt: Attempt) -> None:
        self._maker = threading.get_ident()
        try:
            credential = self._make()
        except Exception as error:
            with self._lock:
                self._state.failed(str(error), self._clock())
                self._under_way = self._maker = None
            attempt.fail(error)
            return
        except BaseException:
            # An interrupt is this caller's own; the others learn that nothing came of it.
            with self._lock:
                self._under_way = self._maker = None
            attempt.fail(CredentialError("getting the credential was interrupted"))
            raise
        with self._lock:
            self._state.made(credential)
            self._under_way = self._maker = None
        attempt.succeed(credential)

    def _nobody_carries_out(self, attempt: Attempt, error: Exception) -> None:
        """Not a failure of the plugin: whoever comes next tries at once."""
        with self._lock:
            self._under_way = None
        attempt.fail(CredentialError(f"no thread to get the credential in: {error}"))

    def _after_fork(self) -> None:
        self._lock = threading.Lock()
        self._under_way = self._maker = None
        self._state.after_fork()


def _after_fork_in_child() -> None:
    # The threads that held locks or carried out attempts do not exist in the child.
    for source in list(_all):
        source._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
