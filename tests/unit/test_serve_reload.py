"""What nobody foresaw ends one attempt, and not the watch that makes the next ones."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kubeauthn.server import limits
from kubeauthn.server.certificates import CertificateFiles, Certificates
from kubeauthn.server.channel import Channel, admitted, announce
from kubeauthn.server.metrics import Registry
from kubeauthn.server.reload import Member, Reloads
from kubeauthn.server.supervisor import Supervisor
from kubeauthn.testing import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NOBODY = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n"


QUOTED = "s3cret"


class BrokenChannel:
    def send(self, **message: Any) -> None:
        raise RuntimeError(message.get("text", QUOTED))


class Worker:
    """Does what it is told, unless `does` (by the order) is something else."""

    def __init__(self, members: set[Member], does: Mapping[str, Callable[[Worker], None]] | None = None) -> None:
        self._members = members
        self._does = does or {}
        self.member = Member(self)  # type: ignore[arg-type]  # what a member asks of its channel
        self.told: list[str] = []
        self.number = 0
        self.closed = False
        members.add(self.member)

    def send(self, **message: Any) -> None:
        order = message["op"]
        self.told.append(order)
        self.number = message["number"]
        if order in self._does:
            self._does[order](self)
        elif order != "abort":
            self.answer(message["number"], "")

    def answer(self, number: int, why: str) -> None:
        self.member.answers[number].set_result(why)

    def vanish(self) -> None:
        self._members.discard(self.member)
        self.member.gone()

    def stall(self) -> None:
        """Says nothing."""

    def close(self) -> None:
        self.closed = True


def changed(
    tmp_path: Path, *workers: dict[str, Callable[[Worker], None]], loads: int = 1
) -> tuple[list[bool], str, list[Worker]]:
    """What `reload` said, the end of the text that is in force, and the workers."""
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    async def run() -> tuple[list[bool], str, list[Worker]]:
        members: set[Member] = set()
        reloads = Reloads(str(file), NOBODY.encode(), members, Registry())
        made = [Worker(members, does) for does in workers]
        file.write_text(NOBODY + "# new\n")
        return [await reloads.reload() for _ in range(loads)], reloads.text.removeprefix(NOBODY), made

    return asyncio.run(run())


def test_a_worker_that_vanishes_before_the_others_are_prepared_holds_nothing_up(tmp_path: Path) -> None:
    """And is not waited for when the others are told to change."""
    began = time.monotonic()
    results, text, [gone, other] = changed(tmp_path, {"prepare": Worker.vanish}, {})
    assert (results, text) == ([True], "# new\n")
    assert (gone.told, other.told) == (["prepare"], ["prepare", "commit"])
    assert time.monotonic() - began < limits.COMMIT_SECONDS / 2


def test_what_no_worker_has_prepared_does_not_come_in_force(tmp_path: Path, caplog: Any) -> None:
    """Nobody has seen that its issuers are healthy: the one worker ended while it looked."""
    results, text, _ = changed(tmp_path, {"prepare": Worker.vanish})
    assert (results, text) == ([False], "")
    assert "no worker is left of those that prepared it" in str(caplog.records[-1].fields)


def test_nothing_is_kept_of_an_answer_that_does_not_come(tmp_path: Path) -> None:
    """A worker that still prepares what another one has refused; tried again each minute while an issuer is sick."""
    results, text, workers = changed(
        tmp_path, {"prepare": lambda worker: worker.answer(worker.number, "sick")}, {"prepare": Worker.stall}, loads=3
    )
    assert (results, text) == ([False] * 3, "")
    assert [(worker.told, worker.member.answers) for worker in workers] == [(["prepare", "abort"] * 3, {})] * 2


@pytest.mark.parametrize("failing", [Worker.stall, lambda worker: worker.answer(2, "not prepared")])
def test_a_worker_that_does_not_change_is_ended_and_the_others_are_not_held_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Callable[[Worker], None]
) -> None:
    """Else its answers would be by another configuration than theirs."""
    monkeypatch.setattr(limits, "COMMIT_SECONDS", 0.05)
    results, text, [failed, other] = changed(tmp_path, {"commit": failing}, {}, loads=2)
    assert (results, text) == ([True, False], "# new\n")  # the second time there is nothing to do
    assert (failed.closed, other.closed) == (True, False)


@pytest.mark.parametrize("hangs", [True, False])
def test_a_worker_that_hangs_is_ended_and_the_others_change_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    """It would keep the old configuration in force. One that only takes long is left alone."""
    monkeypatch.setattr(limits, "HEALTHY_SECONDS", -5.0)
    monkeypatch.setattr(limits, "HANGS_SECONDS", 0.01 if hangs else 60.0)
    monkeypatch.setattr(limits, "LOOK_SECONDS", 0.05)

    class Hung(Worker):
        def close(self) -> None:
            super().close()
            self.vanish()  # as the supervisor sees it then

    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])

    async def run() -> tuple[list[bool], str, bool, bool]:
        members: set[Member] = set()
        reloads = Reloads(str(file), NOBODY.encode(), members, Registry())
        hung, other = Hung(members, {"prepare": Worker.stall}), Worker(members)
        hung.member.pid = process.pid
        file.write_text(NOBODY + "# new\n")
        assert not reloads.files.changed()
        assert reloads.files.changed()
        results = [await reloads.reload() for _ in range(2)]
        return results, reloads.text.removeprefix(NOBODY), hung.closed, other.closed

    try:
        changed, text, ended, other_ended = asyncio.run(run())
        assert (changed, text) == (([False, True], "# new\n") if hangs else ([False, False], ""))
        assert (ended, other_ended) == (hangs, False)
        if hangs:
            assert process.wait(30) == -signal.SIGKILL, "it might hear of nothing, and answer requests all the same"
        assert hangs or process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_storm_of_signals_reads_the_file_once_more_and_keeps_no_worker_waiting(tmp_path: Path) -> None:
    """A configuration that workers take long to prepare, and a thousand signals meanwhile."""
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    async def run() -> list[str]:
        members: set[Member] = set()
        reloads = Reloads(str(file), NOBODY.encode(), members, Registry())
        slow = Worker(members, {"prepare": Worker.stall})
        file.write_text(NOBODY + "# slow\n")
        assert not reloads.files.changed()
        assert reloads.files.changed()
        watching = asyncio.create_task(reloads.watch())
        reloads.soon()
        async with asyncio.timeout(10):
            while not slow.told:
                await asyncio.sleep(0.01)
            for _ in range(1000):
                reloads.soon()
            async with reloads.lock:  # as a new worker does
                assert slow.told == ["prepare"]
            slow.answer(slow.number, "an issuer is unhealthy")
            while len(slow.told) < 3:
                await asyncio.sleep(0.01)
            slow.answer(slow.number, "an issuer is unhealthy")
            await asyncio.sleep(1.0)
        watching.cancel()
        return slow.told

    assert asyncio.run(run()) == ["prepare", "abort"] * 2


def test_a_worker_that_joins_while_others_prepare_prepares_too(tmp_path: Path) -> None:
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    async def run() -> tuple[bool, int, list[str], list[str]]:
        members: set[Member] = set()
        reloads = Reloads(str(file), NOBODY.encode(), members, Registry())
        slow = Worker(members, {"prepare": Worker.stall})
        file.write_text(NOBODY + "# new\n")
        reloading = asyncio.create_task(reloads.reload())
        while not slow.told:
            await asyncio.sleep(0)
        async with reloads.lock:
            assert (reloads.number, reloads.text) == (1, NOBODY)  # what it is given
            late = Worker(members)
        slow.answer(slow.number, "")
        return await reloading, reloads.number, slow.told, late.told

    assert asyncio.run(run()) == (True, 2, ["prepare", "commit"], ["prepare", "commit"])


def test_without_a_worker_the_file_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only one has died, and its successor is not there yet: who would look at the issuers?"""
    monkeypatch.setattr(limits, "LOOK_SECONDS", 0.01)
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    async def run() -> tuple[int, int]:
        members: set[Member] = set()
        reloads = Reloads(str(file), NOBODY.encode(), members, Registry())
        file.write_text(NOBODY + "# new\n")
        watching = asyncio.create_task(reloads.watch())
        reloads.soon()
        await asyncio.sleep(0.2)
        before = reloads.number
        worker = Worker(members)
        async with asyncio.timeout(10):
            while "commit" not in worker.told:
                await asyncio.sleep(0.01)
        watching.cancel()
        return before, reloads.number

    assert asyncio.run(run()) == (1, 2)


def test_a_worker_that_never_joins_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JOIN_SECONDS", 2.0)

    async def run() -> list[str]:
        supervisor = Supervisor(str(tmp_path / "authn.yaml"), NOBODY.encode())
        hangs, joins = announce(supervisor.doorbell), announce(supervisor.doorbell)
        attending = []
        for _ in (hangs, joins):
            connection = admitted(supervisor._doorbell)
            assert connection is not None
            attending.append(asyncio.create_task(supervisor._attend(connection)))
        channel, silent = await Channel.over(joins), await Channel.over(hangs)
        async with asyncio.timeout(30):
            orders = [(await channel.receive())["op"], (await silent.receive())["op"]]
            channel.send(op="joined", number=1, pid=0)
            with pytest.raises(ConnectionError):
                await silent.receive()
            while not supervisor._members:
                await asyncio.sleep(0.01)
        channel.close()
        silent.close()
        await asyncio.wait(attending)
        supervisor._loop.close()
        for end in (supervisor._doorbell, supervisor.doorbell):
            end.close()
        return orders

    assert asyncio.run(run()) == ["configure", "configure"]


def test_a_fault_of_ours_changes_nothing_and_is_told(tmp_path: Path, caplog: Any) -> None:
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)
    members: set[Member] = set()
    broken: Channel = BrokenChannel()  # type: ignore[assignment]

    async def changes() -> tuple[bool, bool]:
        reloads = Reloads(str(file), NOBODY.encode(), members, Registry())
        file.write_text(NOBODY + "# new\n")
        members.add(Member(broken))
        first = await reloads.reload()
        members.clear()
        return first, await reloads.reload()

    assert asyncio.run(changes()) == (False, True)
    assert "the configuration was not reloaded" in caplog.text
    assert QUOTED not in caplog.text
    assert "jwt: []" not in caplog.text


def test_a_file_that_is_put_back_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Who reads that it was not reloaded waits for a word that all is well again."""
    caplog.set_level("INFO", "kubeauthn.server")
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    async def changes() -> None:
        reloads = Reloads(str(file), NOBODY.encode(), set(), Registry())
        for text in (NOBODY, "jwt: [", NOBODY, NOBODY):
            file.write_text(text)
            assert not await reloads.reload()

    asyncio.run(changes())
    told = [record.message for record in caplog.records]
    assert told == ["the configuration was not reloaded", "the file holds the configuration in force again"]


def test_a_change_that_the_file_system_does_not_tell_is_found_at_the_next_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read every minute, here four times a second; the same inode, size and time throughout."""
    monkeypatch.setattr(limits, "REREAD_SECONDS", 0.25)
    monkeypatch.setattr(limits, "LOOK_SECONDS", 0.01)
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY + "# 1\n")
    state = file.stat()

    async def found() -> str:
        members: set[Member] = set()
        reloads = Reloads(str(file), file.read_bytes(), members, Registry())
        Worker(members)
        file.write_text(NOBODY + "# 2\n")
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        assert not reloads.files.changed()
        assert not reloads.files.changed()
        watching = asyncio.create_task(reloads.watch())
        for _ in range(500):
            await asyncio.sleep(0.01)
            if reloads.number == 2:
                break
        watching.cancel()
        return reloads.text

    assert asyncio.run(found()).endswith("# 2\n")


def test_what_somebody_is_still_writing_is_not_read_because_a_minute_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beginning may be a configuration too, without the rules that stand at the end."""
    monkeypatch.setattr(limits, "REREAD_SECONDS", 0.1)
    monkeypatch.setattr(limits, "LOOK_SECONDS", 0.05)
    file = tmp_path / "authn.yaml"
    file.write_text(NOBODY)

    async def written_slowly() -> str:
        members: set[Member] = set()
        reloads = Reloads(str(file), file.read_bytes(), members, Registry())
        Worker(members)
        watching = asyncio.create_task(reloads.watch())
        longest, before = 0.0, time.monotonic()
        with file.open("a") as slow:
            for _ in range(100):
                slow.write("# more\n")
                slow.flush()
                await asyncio.sleep(0.005)
                longest, before = max(longest, time.monotonic() - before), time.monotonic()
            meanwhile = reloads.text
        async with asyncio.timeout(10):
            while reloads.text != file.read_text():
                await asyncio.sleep(0.01)
        watching.cancel()
        # A pause in writing is what an end looks like.
        return meanwhile if longest < limits.LOOK_SECONDS else NOBODY

    assert asyncio.run(written_slowly()) == NOBODY


class NoDescriptorAtFirst(CertificateFiles):
    reads = 0

    def read(self, *, pipes: bool = True) -> Certificates:
        type(self).reads += 1
        if self.reads == 1:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return super().read(pipes=pipes)


def test_a_certificate_that_could_not_be_tried_is_tried_again(tmp_path: Path) -> None:
    file, chain, key = tmp_path / "authn.yaml", tmp_path / "tls.crt", tmp_path / "tls.key"
    file.write_text(NOBODY)
    ca = CertificateAuthority()

    def write() -> bytes:
        pair = ca.issue_server()
        chain.write_bytes(pair.chain_pem)
        key.write_bytes(pair.key_pem)
        return pair.chain_pem

    async def found() -> Certificates:
        write()
        files = NoDescriptorAtFirst(str(chain), str(key))
        told: asyncio.Future[Certificates] = asyncio.get_running_loop().create_future()
        supervisor = Supervisor(str(file), NOBODY.encode())
        watching = asyncio.create_task(supervisor._watch_certificates(files, told.set_result))
        await asyncio.sleep(0)
        expected = write()
        async with asyncio.timeout(30):
            done, _ = await asyncio.wait({told, watching}, return_when=asyncio.FIRST_COMPLETED)
        assert told in done
        watching.cancel()
        supervisor._loop.close()
        for end in (supervisor._doorbell, supervisor.doorbell):
            end.close()
        assert told.result().chain == expected
        return told.result()

    asyncio.run(found())
