"""What nobody foresaw ends one attempt, and not the watch that makes the next ones."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kubeauthn.server import limits
from kubeauthn.server.certificates import CertificateFiles, Certificates
from kubeauthn.server.metrics import Registry
from kubeauthn.server.reload import Member, Reloads
from kubeauthn.server.supervisor import Supervisor
from kubeauthn.testing import CertificateAuthority

if TYPE_CHECKING:
    from kubeauthn.server.channel import Channel

NOBODY = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n"


QUOTED = "s3cret"


class BrokenChannel:
    def send(self, **message: Any) -> None:
        raise RuntimeError(message.get("text", QUOTED))


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
        reloads = Reloads(str(file), file.read_bytes(), set(), Registry())
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
