"""One reload for all workers, in two phases.

1. The supervisor reads the file and checks it. Equal content does nothing; a fault, or another `anonymous`, changes
   nothing and is told.
2. Every worker prepares it: compiles it, and waits until each of its issuers has keys (at most a minute). One that
   cannot do so ends the attempt for all of them.
3. Only when all are prepared are they told to change, which is one assignment in each. The change is announced (log,
   metrics) after the last one has said that it is done: from then on nobody gets an old answer.

Between the first worker's change and the last one's lies as long as a message takes: answers of that moment may be of
either configuration, as they may be with one worker for a request that is under way. A worker that starts while others
prepare gets what is in force at once, and prepares too; only the change itself and its joining wait for each other. One
that vanishes does not count, and its successor gets what is in force; but if none is left that has prepared it, nobody
has seen that its issuers are healthy, and nothing changes. One that hangs, or was told to change and does not say that
it has, is ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.decode import TEXT_BYTES
from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._io.files import read_bounded
from kubeauthn.errors import AuthenticationConfigError, EnvironmentFailure, KubeauthnError
from kubeauthn.server import limits
from kubeauthn.server.decisions import place_only
from kubeauthn.server.measured import AUTHENTICATION, server_id_hash
from kubeauthn.server.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn.server.channel import Channel
    from kubeauthn.server.metrics import Registry

_log = logging.getLogger("kubeauthn.server")


class Member:
    """A worker, as the supervisor knows it."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.pid = 0
        """Its process, once it has joined."""
        self.heard_at = time.monotonic()
        self.answers: dict[int, asyncio.Future[str]] = {}
        self.numbers: list[Any] = []
        self.collected: dict[int, asyncio.Future[None]] = {}

    def expect(self, number: int) -> asyncio.Future[str]:
        """Its answer to the next order about that generation: "" or why not."""
        self.answers[number] = asyncio.get_running_loop().create_future()
        return self.answers[number]

    def end(self) -> None:
        """At once: one that hangs may still answer requests, by what it was told last, and does not hear of its end."""
        if self.pid > 1:
            with suppress(OSError):  # it has ended
                os.kill(self.pid, signal.SIGKILL)
        self.channel.close()

    def gone(self) -> None:
        """Nobody waits for it any more."""
        for answer in self.answers.values():
            if not answer.done():
                answer.set_result("")
        for collected in self.collected.values():
            if not collected.done():
                collected.set_result(None)


class Reloads:
    """`text` and `number` are of the configuration in force."""

    def __init__(self, path: str, content: bytes, members: set[Member], metrics: Registry) -> None:
        self.path = path
        self.configuration = read_checked(content, path)
        _tell_without_effect(self.configuration)
        self.text = content.decode("utf-8-sig")
        self.number = 1
        self._last_number = 1
        self.lock = asyncio.Lock()
        """Held while a worker joins, and while all change."""
        self._reloading = asyncio.Lock()
        self.files = WatchedFiles([path])
        self._members = members
        self._asked = asyncio.Event()
        self._refused = False
        """Whether the last word in the log is that a file was refused."""
        self._server = server_id_hash()
        self._count = metrics.counter(
            f"{AUTHENTICATION}_config_controller_automatic_reloads_total",
            "Total number of automatic reloads of authentication configuration split by status.",
            ("status", "apiserver_id_hash"),
        )
        self._last = metrics.gauge(
            f"{AUTHENTICATION}_config_controller_automatic_reload_last_timestamp_seconds",
            "Timestamp of the last automatic reload of authentication configuration split by status.",
            ("status", "apiserver_id_hash"),
        )
        for status in ("success", "failure"):
            self._count.cell(status, self._server)

    def soon(self) -> None:
        """Have `watch` read it at once. However often that is asked for meanwhile, it is read once more."""
        self._asked.set()

    async def watch(self) -> None:
        """On change, every minute and when asked for, until cancelled. Not while there is no worker to prepare it, nor,
        unless asked for, while somebody is still writing."""
        read_at = time.monotonic()
        due = False
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.LOOK_SECONDS):
                    await self._asked.wait()
            changed = self.files.changed()  # it looks, whatever else is due
            due = due or changed or self._asked.is_set()
            self._asked.clear()
            long_ago = time.monotonic() - read_at >= limits.REREAD_SECONDS
            if self._members and (due or (long_ago and self.files.at_rest)):
                due, read_at = False, time.monotonic()
                await self.reload()

    async def reload(self) -> bool:
        """True if another configuration is in force now. Never raises: what went wrong is told in the log."""
        fields: dict[str, Any]
        async with self._reloading:
            try:
                changed = await self._reload_alone()
            except KubeauthnError as error:
                self._refused = True
                self._tell("failure")
                fields = {"file": self.path, "reason": str(error), "in_force": self.configuration.source}
                _log.error("the configuration was not reloaded", extra={"fields": fields})
                return False
            except Exception as error:
                # Whatever it is: it ends this attempt, and not the watch that makes the next ones.
                self._tell("failure")
                fields = {"file": self.path, "reason": f"unexpected {type(error).__name__}"}
                _log.error("the configuration was not reloaded", exc_info=place_only(error), extra={"fields": fields})
                return False
            if changed:
                self._refused = False
                self._tell("success")
                fields = {"file": self.path, "hash": self.configuration.source, "workers": len(self._members)}
                _log.info("configuration reloaded", extra={"fields": fields})
            return changed

    async def _reload_alone(self) -> bool:
        content = read_bounded(self.path, TEXT_BYTES, pipes=False)
        if content == self.text.encode() or content.removeprefix(b"\xef\xbb\xbf") == self.text.encode():
            if self._refused:
                self._refused = False
                fields = {"file": self.path, "hash": self.configuration.source}
                _log.info("the file holds the configuration in force again", extra={"fields": fields})
            return False
        configuration = read_checked(content, self.path)
        if configuration.anonymous != self.configuration.anonymous:
            raise EnvironmentFailure("anonymous may not change while the server runs: start it again for that")
        self._last_number += 1  # a number that failed is not used again
        number, text = self._last_number, content.decode("utf-8-sig")
        told: set[Member] = set()
        decided = False
        try:
            while not decided:
                fresh = self._members - told
                told |= fresh
                if not await self._prepared(fresh, number, text):
                    return False  # the file changed again meanwhile, and is read again in a moment
                async with self.lock:
                    if self._members - told:
                        continue  # a worker has joined meanwhile
                    left = told & self._members
                    if told and not left:
                        raise EnvironmentFailure("no worker is left of those that prepared it")
                    # It is decided: whoever joins from here on gets it.
                    decided, self.number, self.configuration, self.text = True, number, configuration, text
                    await self._commit(left, number)
        finally:
            if not decided:
                for member in told & self._members:
                    member.channel.send(op="abort", number=number)
                    member.answers.pop(number, None)  # whoever gives up in the middle of it does not answer
        _tell_without_effect(configuration)
        return True

    async def _prepared(self, members: Iterable[Member], number: int, text: str) -> bool:
        """False if there is a newer file before all have prepared. Raises EnvironmentFailure with their reasons."""
        waiting = _told(members, op="prepare", number=number, text=text)
        pending = set(waiting.values())
        ends = time.monotonic() + limits.HEALTHY_SECONDS + 5
        while pending:
            _, pending = await asyncio.wait(pending, timeout=limits.LOOK_SECONDS)
            refusals = {answer.result() for answer in waiting.values() if answer.done()} - {""}
            if refusals:
                raise EnvironmentFailure("; ".join(sorted(refusals)))
            if pending and self.files.moved_on():
                return False
            if pending and time.monotonic() > ends:
                self._end_hanging(member for member, answer in waiting.items() if answer in pending)
                raise EnvironmentFailure("a worker did not prepare in time")
        return True

    def _end_hanging(self, silent: Iterable[Member]) -> None:
        """The others try again without them. Not those that only take long, and tell of their numbers meanwhile."""
        for member in silent:
            if time.monotonic() - member.heard_at >= limits.HANGS_SECONDS:
                _log.error("a worker hangs and is ended")
                member.end()
                self.soon()

    async def _commit(self, members: Iterable[Member], number: int) -> None:
        """Returns when every worker has changed, or is no more."""
        waiting = _told(members, op="commit", number=number)
        if waiting:
            await asyncio.wait(waiting.values(), timeout=limits.COMMIT_SECONDS)
        for member, answer in waiting.items():
            why = answer.result() if answer.done() else "no answer in time"
            if why:
                _log.error(
                    "a worker did not change to the new configuration and ends", extra={"fields": {"reason": why}}
                )
                if answer.done():
                    member.channel.close()
                else:
                    member.end()

    def _tell(self, status: str) -> None:
        self._count.cell(status, self._server).value += 1
        self._last.cell(status, self._server).value = time.time()


def _told(members: Iterable[Member], **order: Any) -> dict[Member, asyncio.Future[str]]:
    """Their answers to it, to be waited for."""
    waiting = {}
    for member in members:
        waiting[member] = member.expect(order["number"])
        member.channel.send(**order)
    return waiting


def _tell_without_effect(configuration: AuthenticationConfiguration) -> None:
    for index, entry in enumerate(configuration.jwt):
        if entry.issuer.egress_selector_type:
            _log.warning("jwt[%d].issuer.egressSelectorType has no effect outside kube-apiserver", index)


def read_checked(content: bytes, path: str) -> AuthenticationConfiguration:
    """Raises EnvironmentFailure with the first fault and its place, and how many more there are."""
    try:
        return load_configuration(content)
    except AuthenticationConfigError as error:
        first = error.errors[0]
        more = f", and {len(error.errors) - 1} more" if len(error.errors) > 1 else ""
        place = f":{first.line}:{first.column}" if first.line else ""
        text = first.text
        if text.startswith("Object '"):
            text = text.partition(" in '")[0]  # the rest is the whole file, and what it is nobody knows
        raise EnvironmentFailure(
            f"{path}{place}: {text}{more}", hint=f"kubeauthn check {path} says all of it"
        ) from None
