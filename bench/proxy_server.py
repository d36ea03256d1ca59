"""The server behind the proxies that are measured: TLS, HTTP/1.1, and an answer as soon as the request is there."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from kubeauthn._io.carrier.wires import TlsWire, Wire
from kubeauthn.testing.pki import CertificateAuthority

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n{"gitVersion":"v1.9"}'
DONE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECE = bytes(1 << 18)


class Served:
    """One connection."""

    wire: Wire

    def __init__(self) -> None:
        self.buffer = b""
        self.sink = self.source = 0
        self.held = False

    def connected(self, wire: Wire) -> None:
        self.wire = wire

    def received(self, data: bytes) -> None:
        if self.sink:
            self.sink -= len(data)
            if not self.sink:
                self.wire.write(DONE)
            return
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            self.answer(head)

    def answer(self, head: bytes) -> None:
        path = head.split(b" ", 2)[1]
        if path.startswith(b"/bytes/"):
            self.source = int(path[7:])
            self.wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.source)
            self.pour()
        elif path == b"/sink":
            self.sink = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]) - len(self.buffer)
            self.buffer = b""
        elif path == b"/idle":
            self.wire.write(STREAM)
        elif path == b"/ticks":
            self.wire.write(STREAM)
            self.tick(20)
        else:
            self.wire.write(ANSWER)

    def pour(self) -> None:
        while self.source and not self.held and not self.wire.closed:
            size = min(self.source, len(PIECE))
            self.source -= size
            self.wire.write(PIECE[:size])

    def tick(self, left: int) -> None:
        if left and not self.wire.closed:
            stamp = b"%f\n" % time.time()
            self.wire.write(b"%x\r\n%s\r\n" % (len(stamp), stamp))
            asyncio.get_running_loop().call_later(0.02, self.tick, left - 1)

    def hold(self) -> None:
        self.held = True

    def go_on(self) -> None:
        self.held = False
        self.pour()

    def ended(self, clean: bool) -> None:
        self.wire.close()

    def lost(self, error: Exception | None) -> None: ...


async def serve() -> None:
    authority = CertificateAuthority()
    context = authority.server_context()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: TlsWire(Served(), context, None), "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"url": f"https://127.0.0.1:{port}", "ca": authority.certificate_pem.decode()}), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve())
