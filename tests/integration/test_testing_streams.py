"""exec, attach and port-forward of the test server, on the wire: both protocols, and what is refused."""

from __future__ import annotations

import json
import ssl
import struct
import zlib
from collections.abc import Iterator

import pytest

from kubeauthn.client import connect
from kubeauthn.testing import ApiServer
from kubeauthn.testing._spdy import dictionary
from kubeauthn.testing._websocket import accept_key

EXEC = "/api/v1/namespaces/default/pods/web/exec"
FORWARD = "/api/v1/namespaces/default/pods/web/portforward"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"good": "jane"}) as running:
        running.add_pod("web")
        yield running


class Wire:
    """One connection to the server, spoken by hand."""

    def __init__(self, server: ApiServer) -> None:
        import socket

        context = ssl.create_default_context(cadata=server.ca.certificate_pem.decode())
        plain = socket.create_connection(("127.0.0.1", server.port), 10)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        self.buffer = b""
        self.deflate = zlib.compressobj(zdict=dictionary())

    def upgrade(self, target: str, *headers: str) -> str:
        lines = [
            "GET " + target + " HTTP/1.1",
            "Host: x",
            "Authorization: Bearer good",
            "Connection: Upgrade",
            *headers,
        ]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.socket.recv(65536)
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        return head.decode()

    def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self.buffer += data
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    # WebSocket

    def send_message(self, data: bytes) -> None:
        mask = b"\1\2\3\4"
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self.socket.sendall(bytes([0x82, 0x80 | len(data)]) + mask + masked)

    def message(self) -> bytes:
        kind, length = self.take(2)
        if length == 126:
            (length,) = struct.unpack(">H", self.take(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.take(8))
        data = self.take(length)
        if kind & 0x0F == 8:
            raise EOFError
        return data

    # SPDY

    def open_stream(self, number: int, **headers: str) -> None:
        words = [part.encode() for pair in headers.items() for part in pair]
        block = struct.pack(">I", len(headers)) + b"".join(struct.pack(">I", len(word)) + word for word in words)
        packed = self.deflate.compress(block) + self.deflate.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", number, 0, 0) + packed
        self.socket.sendall(struct.pack(">HHI", 0x8003, 1, len(body)) + body)

    def send_data(self, number: int, data: bytes, *, last: bool = False) -> None:
        self.socket.sendall(struct.pack(">II", number, int(last) << 24 | len(data)) + data)

    def frames(self) -> Iterator[tuple[int | str, bool, bytes]]:
        while True:
            first, second = struct.unpack(">II", self.take(8))
            body = self.take(second & 0xFFFFFF)
            yield f"control {first & 0xFFFF}" if first >> 31 else first, bool(second >> 24 & 1), body


def test_the_dictionary_is_the_protocols():
    assert (len(dictionary()), zlib.adler32(dictionary())) == (1423, 0xE3C6A7C2)


def test_the_key_of_the_rfc():
    assert accept_key("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
def test_exec_over_a_websocket(server: ApiServer, protocol: str):
    wire = Wire(server)
    head = wire.upgrade(
        f"{EXEC}?command=cat&stdin=true&stdout=true",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        f"Sec-WebSocket-Protocol: {protocol}",
    )
    assert head.startswith("HTTP/1.1 101")
    assert f"Sec-WebSocket-Protocol: {protocol}" in head
    wire.send_message(b"\0hello")
    assert wire.message() == b"\1hello"
    wire.send_message(b"\xff\0")  # of v5: standard input ends
    status = wire.message()
    assert status[:1] == b"\3"
    assert json.loads(status[1:])["status"] == "Success"
    with pytest.raises(EOFError):
        wire.message()
    wire.socket.close()
    assert server.requests[-1].user == "jane"


def test_the_exit_code_is_told(server: ApiServer):
    wire = Wire(server)
    wire.upgrade(
        f"{EXEC}?command=fail&command=7&stderr=true",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        "Sec-WebSocket-Protocol: v4.channel.k8s.io",
    )
    assert wire.message() == b"\2told to fail\n"
    status = json.loads(wire.message()[1:])
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "7"}]
    wire.socket.close()


def test_port_forward_over_a_websocket(server: ApiServer):
    wire = Wire(server)
    wire.upgrade(
        f"{FORWARD}?ports=8080&ports=1",
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        "Sec-WebSocket-Protocol: v4.channel.k8s.io",
    )
    numbers = [wire.message() for _ in range(4)]
    assert numbers == [b"\0\x90\x1f", b"\1\x90\x1f", b"\2\1\0", b"\3\1\0"]
    wire.send_message(b"\0round trip")
    assert wire.message() == b"\0round trip"
    wire.send_message(b"\2to nobody")
    assert wire.message() == b"\3connection refused"
    wire.socket.close()


def test_exec_over_spdy(server: ApiServer):
    wire = Wire(server)
    head = wire.upgrade(
        f"{EXEC}?command=cat&stdin=true&stdout=true",
        "Upgrade: SPDY/3.1",
        "X-Stream-Protocol-Version: v4.channel.k8s.io",
    )
    assert "X-Stream-Protocol-Version: v4.channel.k8s.io" in head
    for number, kind in ((1, "error"), (3, "stdin"), (5, "stdout")):
        wire.open_stream(number, streamtype=kind)
    wire.send_data(3, b"hello")
    wire.send_data(3, b"", last=True)
    seen: dict[int | str, bytes] = {}
    ended = set()
    for number, last, body in wire.frames():
        seen[number] = seen.get(number, b"") + body
        if last:
            ended.add(number)
        if {1, 5} <= ended:
            break
    assert seen[5] == b"hello"
    assert json.loads(seen[1])["status"] == "Success"
    wire.socket.close()


def test_a_ping_is_answered(server: ApiServer):
    wire = Wire(server)
    wire.upgrade(FORWARD, "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: portforward.k8s.io")
    wire.socket.sendall(struct.pack(">HHII", 0x8003, 6, 4, 7))
    assert next(wire.frames()) == ("control 6", False, struct.pack(">I", 7))
    wire.socket.close()


def test_port_forward_over_spdy_in_a_websocket(server: ApiServer):
    wire = Wire(server)
    wire.upgrade(
        FORWARD,
        "Upgrade: websocket",
        "Sec-WebSocket-Key: eA==",
        "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io",
    )
    wire.send_message(struct.pack(">HHII", 0x8003, 6, 4, 7))
    assert wire.message() == struct.pack(">HHII", 0x8003, 6, 4, 7)
    wire.socket.close()


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        (EXEC, (), "400"),
        (EXEC, ("Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v9.channel.k8s.io"), "403"),
        (EXEC.replace("web", "gone"), ("Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"), "404"),
    ],
)
def test_what_is_refused(server: ApiServer, target: str, headers: tuple[str, ...], status: str):
    wire = Wire(server)
    assert wire.upgrade(target, *headers).startswith(f"HTTP/1.1 {status}")
    wire.socket.close()


@pytest.mark.parametrize(
    "garbage", [b"\x80\x03\x00\x01\x00\x00\x00\x0fgarbage-garbage", b"\xff" * 64], ids=["block", "length"]
)
def test_garbage_ends_the_connection_and_not_the_server(server: ApiServer, garbage: bytes):
    wire = Wire(server)
    wire.upgrade(FORWARD, "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: portforward.k8s.io")
    wire.socket.sendall(garbage)
    wire.socket.close()
    server.wait_for(lambda: all(not each.is_open for each in server.connections))
    again = Wire(server)
    assert again.upgrade(EXEC).startswith("HTTP/1.1 400")
    again.socket.close()


def test_openapi_names_the_kinds(server: ApiServer, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", {"token": "good"})))
    with connect() as api:
        assert api.get("/openapi/v3").json() == {"paths": {}}
        assert "test.core.v1.Pod" in api.get("/openapi/v2").json()["definitions"]
        assert b"test.core.v1.Pod" in api.get("/openapi/v2", headers={"Accept": "application/protobuf"}).content
