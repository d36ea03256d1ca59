"""An issuer's keys, found by discovery and kept: the shell around `KeySetState`, with its lock, clock and network."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.keyset_state import Intervals, KeySetState, KeySetStatus
from kubeauthn._core.authentication.model import Issuer
from kubeauthn._core.jose.keys import KeySet
from kubeauthn.errors import KubeauthnError
from kubeauthn.server.discovery import Discovery, Documents, issuer_documents

_log = logging.getLogger("kubeauthn.server")

_INTERRUPTED = "the fetch was interrupted"


class DiscoveredKeys:
    """A `KeySource` that asks the issuer.

    One fetch at a time, which all who need it wait for. `run` keeps the keys fresh in the background and brings the
    first ones in when an issuer was down at start; without it they are fetched when the first token needs them, and
    whoever has tokens decided about asks `is_due` now and then, and calls `refresh`.
    """

    def __init__(
        self,
        issuer: Issuer,
        *,
        documents: Documents | None = None,
        intervals: Intervals | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.issuer_url = issuer.url
        self._discovery = Discovery(issuer, documents or issuer_documents(issuer))
        self._state: KeySetState[KeySet] = KeySetState(intervals)
        self._clock = clock
        self._lock = threading.Lock()
        self._flight: asyncio.Task[None] | None = None
        self._landing: Future[None] | None = None
        """Done when the fetch is: what can be waited for in other event loops than that which runs it."""
        self._callbacks: list[Callable[[], None]] = []

    @property
    def status(self) -> KeySetStatus:
        return self._state.status

    def keys_at_hand(self) -> KeySet | None:
        return self._state.keys

    def answers(self) -> int:
        return self._state.answers

    def on_change(self, callback: Callable[[], None]) -> None:
        self._callbacks.append(callback)

    async def newer_keys(self, than: KeySet | None) -> KeySet | None:
        if self._state.keys is than:
            flight, landing = self._flight_here(), None
            if flight is None:
                with self._lock:
                    landing = self._landing
                    allowed = self._state.may_ask(self._clock())
                    if allowed:
                        self._state.asked(self._clock())
                        landing = self._claim_locked()
                flight = self._start(landing) if allowed and landing is not None else None
            if flight is not None:
                # Shielded: one caller who gives up must not end what others wait for.
                await asyncio.shield(flight)
            elif landing is not None and not landing.done():
                await _landed(landing)
        return self._state.keys

    def is_due(self) -> bool:
        """Whether the keys at hand are so old that the issuer should be asked again, and nobody has done so."""
        return self._state.keys is not None and self._state.seconds_until_due(self._clock()) == 0

    async def refresh(self) -> None:
        """Ask the issuer again, and wait for its answer a while. Without one the last good keys stay."""
        patient = self._state.status.failure == _INTERRUPTED
        seconds = fetch_limits.REFRESH_PATIENCE_SECONDS if patient else fetch_limits.REFRESH_WAIT_SECONDS
        flight = self._flight_here() or self._begin()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(flight)

    async def run(self) -> None:
        """Fetch whenever it is due, until cancelled."""
        while True:
            wait = self._state.seconds_until_due(self._clock())
            if wait > 0:
                await asyncio.sleep(wait)
            else:
                await asyncio.shield(self._flight_here() or self._begin())

    def _flight_here(self) -> asyncio.Task[None] | None:
        """The fetch under way, if this event loop runs it: a task of another loop cannot be waited for here."""
        flight = self._flight
        if flight is None or flight.done() or flight.get_loop() is not asyncio.get_running_loop():
            return None
        return flight

    def _begin(self) -> asyncio.Task[None]:
        with self._lock:
            landing = self._claim_locked()
        return self._start(landing)

    def _claim_locked(self) -> Future[None]:
        self._state.begun(self._clock())
        self._landing = Future()
        return self._landing

    def _start(self, landing: Future[None]) -> asyncio.Task[None]:
        self._flight = asyncio.get_running_loop().create_task(self._fetch())
        self._flight.add_done_callback(lambda _: landing.set_result(None))
        return self._flight

    async def _fetch(self) -> None:
        """Never raises but when cancelled: what became of it is in the state."""
        failure = _INTERRUPTED
        try:
            found = await self._discovery.key_set()
            keys = KeySet.from_dict(found.document)
            if not keys:
                raise ValueError(f"{found.address}: no usable key in the key set")
            failure = ""
        except (KubeauthnError, ValueError) as error:
            failure = str(error)
        except Exception as error:
            # Whatever a library comes up with: it ends this attempt, and not the task that makes the next ones.
            failure = f"unexpected {type(error).__name__}"
            _log.exception("keys of issuer %s", self.issuer_url)
        finally:
            if failure:
                with self._lock:
                    self._state.failed(failure, self._clock())
        if failure:
            _log.warning("keys of issuer %s were not fetched: %s", self.issuer_url, failure)
            return
        with self._lock:
            changed = self._state.fetched(keys, found.fingerprint, self._clock())
        if changed:
            _log.info("keys of issuer %s: %s", self.issuer_url, found.fingerprint)
            for callback in self._callbacks:
                callback()


async def _landed(landing: Future[None]) -> None:
    """Waits for a fetch in another event loop, as another thread has one; not for ever, should that have stopped."""
    loop = asyncio.get_running_loop()
    woken = asyncio.Event()

    def wake(_: Future[None]) -> None:
        with contextlib.suppress(RuntimeError):  # who waited has given up, and this loop has ended
            loop.call_soon_threadsafe(woken.set)

    landing.add_done_callback(wake)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(2 * fetch_limits.ISSUER_SECONDS):
            await woken.wait()
