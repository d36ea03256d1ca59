"""What `serve` needs of the system, and what it says where that is missing."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from typing import TYPE_CHECKING

import pytest

from kubeauthn._core.authentication.decode import TEXT_BYTES
from kubeauthn._io.descriptors import path_of
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server.channel import Channel, doorbells

if TYPE_CHECKING:
    from pathlib import Path


def test_a_system_without_sockets_that_keep_messages_whole_is_named() -> None:
    with pytest.raises(EnvironmentFailure, match="SOCK_SEQPACKET") as caught:
        doorbells(socket.SOCK_RDM)  # a kind that Linux refuses, as macOS refuses the usual one
    assert "docs/platforms.md" in (caught.value.hint or "")


def test_messages_stay_whole() -> None:
    here, there = doorbells()
    with here, there:
        there.send(b"one")
        there.send(b"two")
        assert [here.recv(16), here.recv(16)] == [b"one", b"two"]


def test_the_largest_configuration_fits_into_a_message() -> None:
    """JSON makes more of it: most of letters beyond ASCII, of two bytes each."""
    text = "é" * (TEXT_BYTES // 2)

    async def received() -> str:
        here, there = [await Channel.over(end) for end in socket.socketpair()]
        here.send(op="configure", number=1, text=text)
        message = await there.receive()
        here.close()
        there.close()
        return str(message["text"])

    assert asyncio.run(received()) == text


def test_other_faults_of_the_system_stay_what_they_are() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)) as caught:
        doorbells(0x7FFF)
    assert not isinstance(caught.value, EnvironmentFailure)


def test_a_descriptor_is_found_in_the_first_folder_that_is_there(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert path_of(7, (missing, str(tmp_path))) == f"{tmp_path}/7"
    with pytest.raises(EnvironmentFailure, match=f"neither {missing} nor {missing}"):
        path_of(7, (missing, missing))
