"""The one process that all workers belong to: admits them, reloads them in step, adds up their numbers.

It runs in a thread of the process that Granian watches its workers from, with an event loop of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits
from kubeauthn.server.channel import Channel, admitted, doorbells
from kubeauthn.server.granian_tls import try_out
from kubeauthn.server.metrics import Registry
from kubeauthn.server.reload import Member, Reloads
from kubeauthn.server.watched_files import WatchedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn.server.certificates import CertificateFiles, Certificates

_log = logging.getLogger("kubeauthn.server")


class Supervisor:
    """When the files of the certificate change, and what they hold can be used, `respawn` is called with it."""

    def __init__(
        self,
        path: str,
        content: bytes,
        certificates: CertificateFiles | None = None,
        respawn: Callable[[Certificates], None] | None = None,
        *,
        in_use: Certificates | None = None,
    ) -> None:
        self._doorbell, self.doorbell = doorbells()
        self._doorbell.setblocking(False)
        self._certificates = certificates
        self._respawn = respawn
        self._metrics = Registry()
        self._gone = Registry()
        self._members: set[Member] = set()
        self._ids = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._reloads = Reloads(path, content, self._members, self._metrics)
        if in_use is not None:
            self._tell_end(in_use)
            if in_use.ends() <= time.time():
                _log.warning("the certificate has expired")

    def start(self) -> None:
        threading.Thread(target=self._run, name="supervisor", daemon=True).start()

    def reload_soon(self) -> None:
        """From any thread, and from a signal handler."""
        self._loop.call_soon_threadsafe(self._hang_up)

    def _hang_up(self) -> None:
        for member in self._members:
            member.channel.send(op="hangup")
        self._reloads.soon()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.add_reader(self._doorbell, self._admit)
        self._begin(self._reloads.watch())
        if self._certificates is not None and self._respawn is not None:
            self._begin(self._watch_certificates(self._certificates, self._respawn))
        self._loop.run_forever()

    def _begin(self, work: Any) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Workers

    def _admit(self) -> None:
        connection = admitted(self._doorbell)
        if connection is not None:
            self._begin(self._attend(connection))

    async def _attend(self, connection: socket.socket) -> None:
        member = Member(await Channel.over(connection))
        async with self._reloads.lock:
            member.channel.send(op="configure", number=self._reloads.number, text=self._reloads.text)
            try:
                async with asyncio.timeout(limits.JOIN_SECONDS):
                    member.pid = int((await member.channel.receive())["pid"])
            except (ConnectionError, ValueError):
                member.channel.close()
                return  # Granian tells that it ended, and starts another
            except TimeoutError:
                _log.error("a worker did not join in time and ends")
                member.channel.close()
                return
            self._members.add(member)
        try:
            async for message in member.channel.messages():
                self._hear(member, message)
        finally:
            self._members.discard(member)
            self._gone.add(member.numbers, gone=True)
            member.gone()
            member.channel.close()

    def _hear(self, member: Member, message: Mapping[str, Any]) -> None:
        member.heard_at = time.monotonic()
        kind = message["op"]
        if kind == "done":
            answer = member.answers.pop(message["number"], None)
            if answer is not None and not answer.done():
                answer.set_result(message["why"])
        elif kind == "numbers":
            member.numbers = message["numbers"]
            collected = member.collected.pop(message["asked"], None)
            if collected is not None and not collected.done():
                collected.set_result(None)
        elif kind == "page":
            self._begin(self._page(member, message["asked"]))

    # Numbers

    async def _page(self, member: Member, asked: int) -> None:
        number, waits = next(self._ids), []
        for each in list(self._members):
            each.collected[number] = self._loop.create_future()
            waits.append(each.collected[number])
            each.channel.send(op="collect", asked=number)
        if waits:
            # One that does not answer in time is shown as it was a second ago.
            await asyncio.wait(waits, timeout=limits.COLLECT_SECONDS)
        total = Registry()
        for snapshot in (self._metrics.snapshot(), self._gone.snapshot()):
            total.add(snapshot)
        for each in list(self._members):
            each.collected.pop(number, None)
            total.add(each.numbers)
        workers = total.gauge("kubeauthn_workers", "Worker processes that answer.")
        workers.cell().value = len(self._members)
        member.channel.send(op="page", asked=asked, text=total.text())

    # Certificates

    async def _watch_certificates(self, files: CertificateFiles, respawn: Callable[[Certificates], None]) -> None:
        watched = WatchedFiles(files.paths())
        undecided = False
        while True:
            await asyncio.sleep(limits.LOOK_SECONDS)
            if watched.changed() or undecided:
                undecided = False
                try:
                    found = files.read(pipes=False)
                    if found.ends() <= time.time():
                        raise EnvironmentFailure(f"{files.shown()}: has expired")
                    await asyncio.to_thread(try_out, files, found)
                except TimeoutError:
                    undecided = True  # nothing is known of them: a busy machine must not keep the old ones for good
                    _log.warning("the new certificate could not be tried in time: it is tried again")
                    continue
                except EnvironmentFailure as error:
                    reason = {"reason": str(error)}
                    _log.error("the new certificate is not used", extra={"fields": reason})
                    continue
                except Exception as error:  # no process or descriptor to be had, for one
                    undecided = True
                    _log.error("the new certificate could not be tried: unexpected %s", type(error).__name__)
                    await asyncio.sleep(limits.RESPAWN_SECONDS)
                    continue
                _log.info("the certificate changed: workers are replaced, one after the other")
                respawn(found)
                self._tell_end(found)

    def _tell_end(self, certificates: Certificates) -> None:
        gauge = self._metrics.gauge(
            "kubeauthn_certificate_expiry_timestamp_seconds", "When the server's certificate is over."
        )
        ends = certificates.ends()
        if math.isfinite(ends):
            gauge.cell().value = ends
