"""A wire with TLS, without a socket below it."""

from __future__ import annotations

import asyncio

import pytest

from kubeauthn._io.carrier.wires import TlsWire, Wire
from kubeauthn.testing.pki import CertificateAuthority


class Below:
    """Keeps what is written to it."""

    def __init__(self) -> None:
        self.written = b""
        self.calls: list[str] = []

    def write(self, data: bytes) -> None:
        self.written += data

    def take(self) -> bytes:
        written, self.written = self.written, b""
        return written

    def __getattr__(self, name: str):
        return lambda: self.calls.append(name)


class Above:
    def __init__(self, *, pause: bool = False) -> None:
        self.pause = pause
        self.heard: list[bytes | str] = []

    def connected(self, wire: Wire) -> None:
        self.wire = wire

    def received(self, data: bytes | memoryview) -> None:
        self.heard.append(bytes(data))
        if self.pause:
            self.wire.pause_reading()

    def ended(self, clean: bool) -> None:
        self.heard.append("ended" if clean else "cut off")

    def lost(self, error: Exception | None) -> None:
        self.heard.append("lost")

    def hold(self) -> None: ...
    def go_on(self) -> None: ...


def shaken(above: Above) -> tuple[TlsWire, Below, TlsWire, Below]:
    """A client's wire and a server's, the handshake behind them."""
    ca = CertificateAuthority()
    client = TlsWire(Above(), ca.client_context(), "localhost")
    server = TlsWire(above, ca.server_context(), None)
    below_client, below_server = Below(), Below()
    server.opened(below_server)
    client.opened(below_client)
    for _ in range(4):
        if data := below_client.take():
            server.came(data)
        if data := below_server.take():
            client.came(data)
    return client, below_client, server, below_server


@pytest.mark.parametrize("size", [1, 16384, 16385, 400_000])
def test_bytes_arrive_whole_however_they_are_cut(size: int):
    async def run() -> None:
        above = Above()
        client, below, server, _ = shaken(above)
        text = bytes(range(256)) * (size // 256 + 1)
        client.write(text[:size])
        sent = below.take()
        for at in range(0, len(sent), 70_001):
            server.came(sent[at : at + 70_001])
        assert b"".join(each for each in above.heard if isinstance(each, bytes)) == text[:size]

    asyncio.run(run())


def test_an_end_that_comes_while_nobody_reads_is_told_when_they_do():
    """Else an answer that ends with its connection would never end for a client that is slow."""

    async def run() -> None:
        above = Above(pause=True)
        client, below, server, _ = shaken(above)
        client.write(b"last words")
        client.write_eof()
        server.came(below.take())
        assert above.heard == [b"last words"]
        above.pause = False
        server.resume_reading()
        await asyncio.sleep(0)
        assert above.heard == [b"last words", "ended"]
        server.resume_reading()
        server.cut_off()
        await asyncio.sleep(0)
        assert above.heard == [b"last words", "ended"]

    asyncio.run(run())


def test_a_record_that_was_changed_ends_the_wire():
    async def run() -> None:
        above = Above()
        client, below, server, below_server = shaken(above)
        client.write(b"pay 1")
        data = bytearray(below.take())
        data[-1] ^= 1
        server.came(bytes(data))
        assert above.heard == ["lost"]
        assert below_server.calls == ["close"]

    asyncio.run(run())
