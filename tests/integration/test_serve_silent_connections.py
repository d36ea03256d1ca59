"""Connections that nobody speaks on: found by what the kernel knows of them, and only those of our own listener."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from kubeauthn.server.silent_connections import end_silent
from tests.integration.serve_process import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' struct tcp_info")


def test_the_silent_one_is_ended_and_the_one_that_speaks_is_not():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        silent, speaking = (socket.create_connection(listener.getsockname(), timeout=10) for _ in range(2))
        accepted = [listener.accept()[0] for _ in range(2)]
        with silent, speaking, accepted[0], accepted[1]:

            def ended() -> bool:
                speaking.sendall(b"x")
                return end_silent(1.0) >= 1

            until(ended, "the silent one was ended")
            assert silent.recv(1) == b""
            assert accepted[1].recv(1) == b"x"


def test_many_are_ended_where_descriptors_are_few():
    """Two are left: one for the look itself, and one for the connection that is looked at."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        silent = [socket.create_connection(listener.getsockname(), timeout=10) for _ in range(40)]
        accepted = [listener.accept()[0] for _ in silent]
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        spares = [os.dup(0) for _ in range(highest + 1 - len(os.listdir("/proc/self/fd")) + 1)]  # no gaps below it
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
        try:
            ended: list[int] = []

            def all_ended() -> bool:
                ended.append(end_silent(0.1))
                return sum(ended) == 40

            until(all_ended, "all are ended")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for descriptor in spares:
                os.close(descriptor)
            for one in (*silent, *accepted):
                one.close()


def test_what_this_process_opened_itself_is_left_alone():
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        outgoing = socket.create_connection(elsewhere.getsockname(), timeout=10)
        peer, _ = elsewhere.accept()
        elsewhere.close()  # nothing listens in this process: neither end is one of its clients
        with outgoing, peer:
            end_silent(0.0)
            outgoing.sendall(b"still")
            assert peer.recv(5) == b"still"
