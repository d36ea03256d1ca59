"""A handshake that an event loop drives, step by step on threads, so that a slow signer does not stop the loop.

asyncio calls `do_handshake` on the loop whenever something came in. Here that call starts the step on a thread and
answers "nothing yet"; when the thread is done, the loop is told as if something had come in, and asks again.
"""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable
from typing import Any


class LoopSteps:
    """Two pairs of buffers: the loop's, which only the loop touches, and the inner ones, which OpenSSL works on.

    OpenSSL's buffers bear no two threads at once. Between a step's start and its end nobody but its thread touches
    the inner ones.
    """

    def __init__(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self.inner_incoming = ssl.MemoryBIO()
        self.inner_outgoing = ssl.MemoryBIO()
        self.signed = False
        """Whether the handshake's one signature is made, after which nothing takes long."""
        self._under_way = False
        self._outcome: list[BaseException | None] = []

    def take_in(self) -> None:
        self._refuse_while_under_way()
        if self._incoming.pending:
            self.inner_incoming.write(self._incoming.read())
        if self._incoming.eof:
            self.inner_incoming.write_eof()

    def give_out(self) -> None:
        if not self._under_way and self.inner_outgoing.pending:
            self._outgoing.write(self.inner_outgoing.read())

    def advance(self, step: Callable[[], None], find_poke: Callable[[], Callable[[], None] | None]) -> None:
        """Start a step, or hand on the outcome of the last one. Returns when the handshake is complete.

        `find_poke` finds what makes the loop ask again. It may cost something, so it is called for a thread alone.
        """
        self._refuse_while_under_way()
        if self._outcome:
            outcome = self._outcome.pop()
            self.give_out()
            if outcome is None:
                return
            # It wants more, and more has come meanwhile: go on at once.
            if not (isinstance(outcome, ssl.SSLWantReadError) and self._incoming.pending):
                raise outcome
        self.take_in()
        # Nothing takes long in the first step either, which only greets.
        brief = self.signed or not (self.inner_incoming.pending or self.inner_incoming.eof)
        poke = None if brief else find_poke()
        if poke is None:
            try:
                step()
            finally:
                self.give_out()
            return
        self._under_way = True
        threading.Thread(
            target=self._carry_out, args=(step, _told_to_the_loop(poke)), name="kubeauthn-handshake", daemon=True
        ).start()
        raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the handshake goes on on a thread")

    def _refuse_while_under_way(self) -> None:
        # The thread's last act, after it has left its outcome, is to say that it is done.
        if self._under_way:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "the handshake is under way on a thread")

    def _carry_out(self, step: Callable[[], None], tell: Callable[[], None]) -> None:
        try:
            step()
        except BaseException as error:
            self._outcome.append(error.with_traceback(None))
        else:
            self._outcome.append(None)
        self._under_way = False
        tell()


def handshake_of_a_loop() -> Callable[[], None] | None:
    """If asyncio is driving the handshake that calls this: what makes it ask again. None for everybody else.

    There is no other way to the protocol than the caller's frame. uvloop's are not visible there: see below.
    """
    module: Any = sys.modules.get("asyncio.sslproto")
    if module is None:
        return None
    caller = sys._getframe(2).f_locals.get("self")
    if not isinstance(caller, module.SSLProtocol):
        return None
    return lambda: caller.buffer_updated(0)


def on_uvloop() -> bool:
    module: Any = sys.modules.get("uvloop.loop")
    return module is not None and isinstance(_running_loop(), module.Loop)


def handshake_of_uvloop(connection: ssl.SSLObject) -> Callable[[], None] | None:
    """The same for uvloop, whose functions have no frames: its protocol is the one object that holds `connection`.

    It was made a moment ago, so the collector has it among the young ones, which are few.
    """
    import gc

    kind: Any = getattr(sys.modules.get("uvloop.loop"), "SSLProtocol", None)
    for holders in (gc.get_objects(generation=0), gc.get_objects(generation=1), gc.get_referrers(connection)):
        for holder in holders:
            if type(holder) is kind and any(held is connection for held in gc.get_referents(holder)):
                return lambda protocol=holder: protocol.buffer_updated(0)  # type: ignore[misc]
    return None  # somebody else's way of making TLS on this loop


def on_a_foreign_loop() -> bool:
    """Whether a loop that is not asyncio's own calls, uvloop's: it too passes on nothing but an SSLError."""
    loop = _running_loop()
    return loop is not None and not type(loop).__module__.startswith("asyncio.")


def _running_loop() -> Any:
    module: Any = sys.modules.get("asyncio")
    return module._get_running_loop() if module is not None else None


def _told_to_the_loop(poke: Callable[[], None]) -> Callable[[], None]:
    import asyncio

    loop = asyncio.get_running_loop()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(poke)
        except RuntimeError:
            return  # the loop was closed meanwhile: nobody waits there any more

    return tell
