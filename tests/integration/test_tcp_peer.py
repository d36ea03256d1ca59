"""Whose the other end of a connection is."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from kubeauthn._io.tcp_peer import is_this_users

OTHER_USER = 65534
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
CONNECT = """
import encodings.idna, os, socket, sys  # while it can still be read
os.setgid({user}); os.setuid({user})
held = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20)
sys.stdin.read()
"""


def accepted(server: socket.socket) -> tuple[socket.socket, bool | None]:
    server.settimeout(30)
    connection, peer = server.accept()
    return connection, is_this_users(peer, connection.getsockname())


def test_our_own_and_one_that_was_closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            connection, ours = accepted(server)
            assert ours is True
            peer = client.getsockname()
        with connection:
            assert connection.recv(1) == b""
            assert is_this_users(peer, connection.getsockname()) is not True


@root_only
def test_another_users():
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-c", CONNECT.format(user=OTHER_USER), str(server.getsockname()[1])]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as other:
            connection, ours = accepted(server)
            with connection:
                assert ours is False
            other.communicate(b"", timeout=20)


@pytest.mark.parametrize(
    ("peer", "here"),
    [("", "/run/socket"), (None, None), (("::1", 1, 0, 0), ("::1", 2, 0, 0)), (("127.0.0.1", 1), ("127.0.0.1", 2))],
    ids=["unix", "none", "IPv6", "no such connection"],
)
def test_where_the_kernel_does_not_say(peer: object, here: object):
    assert is_this_users(peer, here) is None
