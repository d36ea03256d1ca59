"""Who does not read is waited for, at no cost in memory; and nobody waits for ever."""

from __future__ import annotations

import itertools
import random
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from tests.integration.proxy_parts import SECONDS, RoughServer, RunningProxy, read_head, read_response, running

NOTHING = """
from kubeauthn.plugin import proxy
proxy.run(lambda request: None)
"""
LARGE = 64 << 20
SPARE = 24 << 20
"""Of memory, or of bytes that the sockets on the way hold, beside what a proxy that waits has in hand."""


def memory(proxy: RunningProxy) -> int:
    for line in Path(f"/proc/{proxy.process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


def sources(connection: ssl.SSLSocket) -> None:
    """Answers `GET /SIZE` with so many bytes, one request after the other."""
    while head := read_head(connection):
        for each in head.split(b"\r\n\r\n")[:-1]:
            size = int(each.split(b" ")[1][1:])
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            while size:
                sent = min(size, 1 << 18)
                connection.sendall(bytes(sent))
                size -= sent


def asked_for(size: int) -> bytes:
    return b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % size


@pytest.mark.parametrize("sizes", [range(300, 900, 24)], ids=["300-900 KiB"])
def test_a_connection_whose_last_client_was_slow_serves_the_next(sizes: range, tmp_path: Path):
    """An answer that ends while the client does not read leaves the server's connection paused: nobody would have
    read the next answer on it. How much is on its way then hangs on the sockets, so some sizes are tried."""
    with RoughServer(sources) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        for size in sizes:
            with proxy.connect() as slow, proxy.connect() as next_one:
                slow.sendall(asked_for(size << 10))
                time.sleep(0.03)
                next_one.sendall(asked_for(10))
                assert len(read_response(next_one)[2]) == 10
                assert len(read_response(slow)[2]) == size << 10
                slow.sendall(asked_for(20))
                assert len(read_response(slow)[2]) == 20
    assert not rough.faults


def test_answers_that_nobody_reads_wait_at_the_server(tmp_path: Path):
    with RoughServer(sources) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        connections = [proxy.connect() for _ in range(300, 900, 60)]
        before = memory(proxy)
        for connection, size in zip(connections, range(300, 900, 60), strict=True):
            connection.sendall(asked_for(size << 10) + asked_for(LARGE))
        time.sleep(1)
        assert memory(proxy) - before < SPARE
        for connection in connections:
            connection.close()


@pytest.mark.parametrize("late", [0.0, 0.5], ids=["reached at once", "reached late"])
def test_a_body_that_nobody_reads_waits_at_the_client(late: float, tmp_path: Path):
    """Late: what came before the server was reached is sent at once, and fills the connection at its first write."""
    reading = threading.Event()

    def serve(connection: ssl.SSLSocket) -> None:
        got = len(read_head(connection).partition(b"\r\n\r\n")[2])
        reading.wait(SECONDS)
        while got < LARGE:
            got += len(connection.recv(1 << 18))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with LateServer(serve, late) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        before = memory(proxy)
        with proxy.connect() as connection:
            connection.sendall(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % LARGE)
            connection.settimeout(2)
            sent = send_until_nobody_takes_more(connection)
            assert sent < SPARE
            assert memory(proxy) - before < SPARE
            connection.settimeout(SECONDS)
            reading.set()
            # What a write that ran out of time had begun must be written again: OpenSSL insists on the same bytes.
            while sent < LARGE:
                sent += connection.send(bytes(min(1 << 14, LARGE - sent)))
            assert read_response(connection)[2] == b"ok"


def send_until_nobody_takes_more(connection: ssl.SSLSocket) -> int:
    sent = 0
    try:
        while sent < LARGE:
            sent += connection.send(bytes(1 << 14))
    except TimeoutError:
        pass
    return sent


class LateServer(RoughServer):
    """Accepts, and shakes hands a while later."""

    def __init__(self, serve, seconds: float) -> None:
        super().__init__(serve)
        self._seconds = seconds

    def _one(self, plain: socket.socket) -> None:
        time.sleep(self._seconds)
        super()._one(plain)


PIECE = bytes(1 << 16)
CHUNK = b"%x\r\n%s\r\n" % (len(PIECE), PIECE)
PIECES = 48


def answers_as_told(connection: ssl.SSLSocket) -> None:
    """The path says when the answer comes: before the body, in the middle of it, or behind it; and what then."""
    while head := read_head(connection):
        first, _, rest = head.partition(b"\r\n\r\n")
        when, then, expects = first.split(b" ")[1][1:].split(b"/")
        if expects == b"expects":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        whole = PIECES * len(CHUNK) + len(b"0\r\n\r\n") if b"chunked" in first else PIECES * len(PIECE)
        wanted = {b"before": 0, b"middle": whole // 2, b"behind": whole}[when]
        got = len(rest)
        while got < wanted:
            got += len(connection.recv(1 << 16))
        close = b"Connection: close\r\n" if then == b"close" else b""
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + close + b"Content-Length: 300000\r\n\r\n" + bytes(300000))
        if then == b"close":
            connection.shutdown(socket.SHUT_WR)
        if then == b"stop" and got < whole:
            time.sleep(0.2)
        # Read on to the end, as servers do: who closes before that takes its own answer back.
        while got < whole:
            more = len(connection.recv(1 << 16))
            if not more:
                return
            got += more
        if then == b"close":
            return


def upload(proxy: RunningProxy, path: str, chunked: bool) -> None:
    """Sends all of it if it may, then reads the answer."""
    with proxy.connect() as connection:
        framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {PIECES * len(PIECE)}"
        expect = "Expect: 100-continue\r\n" if path.endswith("expects") else ""
        connection.sendall(f"PUT {path} HTTP/1.1\r\nHost: a\r\n{expect}{framing}\r\n\r\n".encode())
        if expect:
            assert connection.recv(100).startswith(b"HTTP/1.1 100")
        try:
            for _ in range(PIECES):
                connection.sendall(CHUNK if chunked else PIECE)
            if chunked:
                connection.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            pass  # the answer came before the end of the body, and the connection was closed a while after it
        status, _, body = read_response(connection, "PUT")
        assert (status, len(body)) == (200, 300000)


def test_a_client_that_sends_on_slowly_is_waited_for(tmp_path: Path):
    """Its answer is there and its connection to be closed: done at once, that would take the answer away again."""
    with RoughServer(answers_as_told) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        with proxy.connect() as connection:
            length = PIECES * len(PIECE)
            connection.sendall(
                f"PUT /before/close/sends HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n".encode()
            )
            for _ in range(16):  # four seconds, twice what a silent client gets
                connection.sendall(PIECE)
                time.sleep(0.25)
            status, _, body = read_response(connection, "PUT")
            assert (status, len(body)) == (200, 300000)


def test_uploads_whose_answer_comes_at_any_time_end(tmp_path: Path):
    """Many at once, in a fixed order of dice: each is answered, and none hangs."""
    dice = random.Random(7)
    kinds = itertools.product(("before", "middle", "behind"), ("drain", "close", "stop"), ("expects", "sends"))
    work = [("/" + "/".join(kind), chunked) for kind in kinds for chunked in (False, True)] * 2
    dice.shuffle(work)
    faults: list[str] = []

    def one_after_the_other(proxy: RunningProxy) -> None:
        while work:
            path, chunked = work.pop()
            try:
                upload(proxy, path, chunked)
            except Exception as error:
                faults.append(f"{path} chunked={chunked}: {error!r}")

    with RoughServer(answers_as_told) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        threads = [threading.Thread(target=one_after_the_other, args=(proxy,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(6 * SECONDS)
        assert not any(thread.is_alive() for thread in threads)
        assert faults == []
        assert proxy.process.poll() is None
