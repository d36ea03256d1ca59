"""On the way to a server: what is given up is closed, what ends at once is told, what comes early is not hoarded."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kubeauthn._io.carrier import dialling
from kubeauthn._io.carrier.dialling import Address, dial
from kubeauthn._io.carrier.pool import Pool
from kubeauthn._io.carrier.upstream import Upstream
from kubeauthn.errors import UpstreamError
from kubeauthn.testing.pki import CertificateAuthority

SECONDS = 20
FLOOD = 64 << 20


class OneConnection:
    """A server for one connection, served in a thread."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(SECONDS)
        self.port: int = self._listening.getsockname()[1]
        self._serve = serve
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._listening, self._listening.accept()[0] as connection:
                connection.settimeout(SECONDS)
                self._serve(connection)
        except BaseException as error:
            self.failure = error

    def over(self) -> None:
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure


def new_upstream(address: Address) -> Upstream:
    return Upstream(Pool(address))


class Silent:
    """Takes what it is sent and says nothing. `asked` when something came, `left` when the other side is gone."""

    def __init__(self) -> None:
        self.asked, self.left = threading.Event(), threading.Event()

    def __call__(self, connection: socket.socket) -> None:
        assert connection.recv(1000)
        self.asked.set()
        try:
            assert connection.recv(1000) == b""
        except ConnectionResetError:
            pass
        self.left.set()


@pytest.mark.parametrize("host", ["api.zürich", "zürich.example"])
def test_a_proxy_is_told_a_name_that_is_not_ascii_as_dns_has_it(host: str):
    said: list[bytes] = []

    def refuse(connection: socket.socket) -> None:
        said.append(connection.recv(1000))
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    proxy = OneConnection(refuse)
    address = Address(host, 6443, None, proxy_url=f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(UpstreamError, match="status 403"):
        asyncio.run(dial(address, new_upstream(address)))
    proxy.over()
    named = host.replace("zürich", "xn--zrich-kva").encode()
    assert said == [b"CONNECT %s:6443 HTTP/1.1\r\nHost: %s:6443\r\n\r\n" % (named, named)]


WAYS: dict[str, Callable[[int], Address]] = {
    "an http proxy": lambda port: Address("a.test", 443, None, proxy_url=f"http://127.0.0.1:{port}"),
    "a socks5 proxy": lambda port: Address("a.test", 443, None, proxy_url=f"socks5://127.0.0.1:{port}"),
    "an https proxy": lambda port: Address("a.test", 443, None, proxy_url=f"https://127.0.0.1:{port}"),
    "a server": lambda port: Address("127.0.0.1", port, ssl.create_default_context()),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_who_never_answers_is_left_when_the_client_is_gone(way: Callable[[int], Address]):
    silent = Silent()
    server = OneConnection(silent)
    address = way(server.port)

    async def run() -> None:
        dialled = asyncio.ensure_future(dial(address, new_upstream(address)))
        await asyncio.to_thread(silent.asked.wait, SECONDS)
        dialled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dialled
        # Sooner than the limit of a handshake, after which it would be closed anyway.
        assert await asyncio.to_thread(silent.left.wait, 10)

    asyncio.run(run())
    server.over()


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_who_never_answers_is_left_when_time_is_up(way: Callable[[int], Address], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dialling, "CONNECT_SECONDS", 0.3)
    silent = Silent()
    server = OneConnection(silent)
    address = way(server.port)

    async def run() -> None:
        with pytest.raises(UpstreamError) as told:
            await dial(address, new_upstream(address))
        assert told.value.status == 504
        assert await asyncio.to_thread(silent.left.wait, 10)

    asyncio.run(run())
    server.over()


def test_a_server_that_ends_with_its_last_word_of_the_handshake():
    """The connection is over before the request is sent. A client that is not told waits for ever."""
    authority = CertificateAuthority()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = authority.server_context().wrap_bio(incoming, outgoing, server_side=True)

    def serve(connection: socket.socket) -> None:
        incoming.write(connection.recv(10_000))
        with pytest.raises(ssl.SSLWantReadError):
            tls.do_handshake()
        no_record = b"\x17\x03\x03\x00\x20" + bytes(32)
        connection.sendall(outgoing.read() + no_record)
        while connection.recv(10_000):
            pass

    server = OneConnection(serve)
    address = Address("127.0.0.1", server.port, authority.client_context())

    async def run() -> None:
        with pytest.raises(UpstreamError, match="ended the connection at once"):
            await dial(address, new_upstream(address))

    asyncio.run(run())
    server.over()


def test_what_comes_while_a_key_is_touched_waits_with_its_sender():
    """The handshake is in a thread and nobody reads. Whoever sits on the way could fill our memory."""
    touched = threading.Event()
    taken = 0

    class SlowObject(ssl.SSLObject):
        def do_handshake(self, *arguments: Any, **named: Any) -> None:
            touched.wait(SECONDS)
            super().do_handshake(*arguments, **named)

    class SlowContext(ssl.SSLContext):
        sslobject_class = SlowObject

    def serve(connection: socket.socket) -> None:
        nonlocal taken
        connection.settimeout(0.5)
        piece = bytes(1 << 20)
        try:
            while taken < FLOOD:
                taken += connection.send(piece)
        except TimeoutError:
            pass  # it is full
        touched.set()

    server = OneConnection(serve)
    address = Address("127.0.0.1", server.port, SlowContext(ssl.PROTOCOL_TLS_CLIENT), signs_slowly=True)

    async def run() -> None:
        with pytest.raises(UpstreamError):
            await dial(address, new_upstream(address))

    asyncio.run(run())
    server.over()
    assert taken < FLOOD / 2  # what the system's own buffers hold


class Heard:
    """Keeps what comes, as the end of a wire."""

    def __init__(self) -> None:
        self.data = b""
        self.is_lost = asyncio.Event()

    def connected(self, wire: Any) -> None: ...
    def received(self, data: bytes | memoryview) -> None:
        self.data += data

    def ended(self, clean: bool) -> None: ...
    def hold(self) -> None: ...
    def go_on(self) -> None: ...
    def lost(self, error: Exception | None) -> None:
        self.is_lost.set()


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_what_a_server_said_before_it_broke_off_is_heard(encrypted: bool):
    """A reason, and an end in the middle of the upload. The next write fails before anybody has read it."""
    authority = CertificateAuthority()

    def serve(connection: socket.socket) -> None:
        if encrypted:
            connection = authority.server_context().wrap_socket(connection, server_side=True)
        assert connection.recv(1) == b"u"
        connection.sendall(b"too large")
        linger = struct.pack("ii", 1, 0)
        time.sleep(0.2)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.close()

    server = OneConnection(serve)
    address = Address("127.0.0.1", server.port, authority.client_context() if encrypted else None)

    async def run() -> bytes:
        heard = Heard()
        wire = await dial(address, heard)
        wire.write(b"upload")
        server.over()  # nobody reads meanwhile: this keeps the loop
        wire.write(b"more of it")
        async with asyncio.timeout(SECONDS):
            await heard.is_lost.wait()
        return heard.data

    assert asyncio.run(run()) == b"too large"
