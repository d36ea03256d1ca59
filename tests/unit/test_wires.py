"""A wire with TLS, without a socket below it."""

from __future__ import annotations

import asyncio

import pytest

from kubeauthn._core.signerwire import certificate_chain
from kubeauthn._io.carrier.wires import TlsWire, Wire
from kubeauthn._io.tls_signer.installation import install
from kubeauthn.testing.pki import CertificateAuthority


def never_asked(*arguments: object) -> bytes:
    raise AssertionError("the server wants no certificate, so nothing is to be signed")


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


def shaken(
    above: Above, *, client_above: Above | None = None, signer: bool = False
) -> tuple[TlsWire, Below, TlsWire, Below]:
    """A client's wire and a server's, the handshake behind them. `signer`: the client's is that of a signer's key."""
    ca = CertificateAuthority()
    context = ca.client_context()
    if signer:
        install(context, certificate_chain(ca.issue_client("jane").chain_pem), never_asked)
    client = TlsWire(client_above or Above(), context, "localhost")
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


@pytest.mark.parametrize("signer", [False, True], ids=["plain", "signer's key"])
@pytest.mark.parametrize("size", [100, 1400, 16384])
def test_every_record_that_came_at_once_is_given_out_at_once(signer: bool, size: int):
    """A signer's connection takes all that came into buffers of its own at the first read, so that the wire's own is
    empty while records are left. Nothing more would come to say so: the answer is here."""

    async def run() -> None:
        client_above = Above()
        _, _, server, below = shaken(Above(), client_above=client_above, signer=signer)
        records = [bytes([number]) * size for number in range(12)]
        for record in records:
            server.write(record)
        client_above.wire.came(below.take())
        assert b"".join(each for each in client_above.heard if isinstance(each, bytes)) == b"".join(records)

    asyncio.run(run())


@pytest.mark.parametrize("signer", [False, True], ids=["plain", "signer's key"])
def test_what_was_left_at_a_pause_is_given_out_after_it(signer: bool):
    async def run() -> None:
        client_above = Above(pause=True)
        _, _, server, below = shaken(Above(), client_above=client_above, signer=signer)
        for number in range(20):
            server.write(bytes([number]) * 16384)
        client_above.wire.came(below.take())
        first = len(client_above.heard)
        client_above.pause = False
        client_above.wire.resume_reading()
        await asyncio.sleep(0)
        assert first == 1
        assert b"".join(client_above.heard) == b"".join(bytes([number]) * 16384 for number in range(20))

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
