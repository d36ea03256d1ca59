"""A websocket of the official client whose server fails: the connection is closed, since nobody else closes it."""

from __future__ import annotations

import gc
import socket
import struct

import pytest

pytest.importorskip("kubernetes")

from kubeauthn.client.kubernetes_websocket import _ClosesItself

RESET = struct.pack("ii", 1, 0)


def pair() -> tuple[_ClosesItself, socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        mine = socket.create_connection(listening.getsockname(), 20)
        theirs, _ = listening.accept()
    websocket = _ClosesItself()
    websocket.sock, websocket.connected = mine, True
    return websocket, mine, theirs


@pytest.mark.parametrize("how", ["ends", "resets", "sends what is no frame"])
def test_a_connection_that_failed_is_closed(how: str):
    websocket, mine, theirs = pair()
    with mine:
        with theirs:
            if how == "resets":
                theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            elif how == "sends what is no frame":
                theirs.sendall(b"\xff\x00")
        with pytest.raises(Exception):  # noqa: B017, PT011  the library's, or the system's: the caller sees it as before
            websocket.recv_data_frame(True)
        assert mine.fileno() == -1
        assert not websocket.connected


def test_a_connection_that_is_only_slow_stays_open():
    websocket, mine, theirs = pair()
    with mine, theirs:
        mine.settimeout(0.05)
        with pytest.raises(Exception, match="timed out"):
            websocket.recv_data_frame(True)
        assert mine.fileno() != -1
        theirs.sendall(b"\x82\x02ok")
        assert websocket.recv_data_frame(True)[1].data == b"ok"


def test_one_that_is_let_go_of_is_closed():
    """As `stream` does it, which has read to the end. The socket alone would be closed too, with a warning."""
    websocket, mine, theirs = pair()
    with mine, theirs:
        del websocket
        gc.collect()  # the library has it refer to itself
        assert mine.fileno() == -1
