"""exec, attach and port-forward: the connection stops being HTTP and carries channels, by SPDY/3.1 or WebSocket.

A forwarded port answers with what is sent to it. Port 1 has nobody who listens.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kubeauthn.testing._container import Program
from kubeauthn.testing._http import TRUE_WORDS
from kubeauthn.testing._spdy import Session
from kubeauthn.testing._status import ApiError
from kubeauthn.testing._websocket import Tunnel, WebSocket, accept_key

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.testing._http import HttpConnection, Request
    from kubeauthn.testing._spdy import Bytes, Stream

DEAD_PORT = 1
_COMMAND_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_FORWARD_PROTOCOL = "portforward.k8s.io"
_TUNNEL_PROTOCOL = "SPDY/3.1+portforward.k8s.io"
_CHANNELS = {"stdin": 0, "stdout": 1, "stderr": 2, "error": 3, "resize": 4}
_NAMES = {number: name for name, number in _CHANNELS.items()}
_CLOSE_CHANNEL = 255


class Upgrade:
    """What a request for a subresource that streams becomes. `kind` is exec, attach or portforward."""

    def __init__(self, kind: str, request: Request) -> None:
        self._kind = kind
        self._request = request
        upgrade = (request.header("upgrade") or "").lower()
        if upgrade not in ("spdy/3.1", "websocket"):
            raise ApiError(400, "Upgrade request required")
        self._websocket = upgrade == "websocket"
        self._protocol = self._chosen_protocol()

    def serve(self, connection: Bytes, http: HttpConnection) -> None:
        if self._websocket:
            key = accept_key(self._request.header("sec-websocket-key") or "")
            headers = [("Upgrade", "websocket"), ("Sec-WebSocket-Accept", key)]
            if self._protocol:
                headers.append(("Sec-WebSocket-Protocol", self._protocol))
            early = http.switch_protocols(*headers)
            self._serve_websocket(WebSocket(connection, early))
        else:
            early = http.switch_protocols(("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", self._protocol))
            self._serve_spdy(connection, early)

    def _chosen_protocol(self) -> str:
        header = "sec-websocket-protocol" if self._websocket else "x-stream-protocol-version"
        offered = [
            name.strip() for value in self._request.header_values(header) for name in value.split(",") if name.strip()
        ]
        if self._kind != "portforward":
            known: tuple[str, ...] = _COMMAND_PROTOCOLS if self._websocket else _COMMAND_PROTOCOLS[1:]
        else:
            known = (_TUNNEL_PROTOCOL, "v4.channel.k8s.io") if self._websocket else (_FORWARD_PROTOCOL,)
        for name in known:
            if name in offered:
                return name
        if self._websocket and not offered:
            return ""
        raise ApiError(403, f"unable to negotiate protocol: client supports {offered}, server supports {list(known)}")

    # SPDY, plain or in a tunnel

    def _serve_spdy(self, connection: Bytes, early: bytes = b"") -> None:
        if self._kind == "portforward":
            Session(connection, ForwardedPorts().add, early).run()
        else:
            SpdyCommand(self._request).run(connection, early)

    # WebSocket

    def _serve_websocket(self, websocket: WebSocket) -> None:
        if self._protocol == _TUNNEL_PROTOCOL:
            self._serve_spdy(Tunnel(websocket))
        elif self._kind == "portforward":
            forward_channels(websocket, self._request)
        else:
            run_on_channels(websocket, self._request)


class SpdyCommand:
    """A program whose channels are streams. It starts when every channel that was asked for is there."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._tty = _asked(request, "tty")
        wanted = {name for name in ("stdin", "stdout", "stderr") if _asked(request, name)}
        self._wanted = wanted | {"error"} | ({"resize"} if self._tty else set())
        self._streams: dict[str, Stream] = {}
        self._session: Session | None = None
        self._program = _program(request, self._write, self._end)

    def run(self, connection: Bytes, early: bytes) -> None:
        self._session = Session(connection, self._add, early)
        self._session.run()

    def _add(self, stream: Stream) -> None:
        kind = stream.headers.get("streamtype", "")
        self._streams[kind] = stream
        if kind == "stdin":
            stream.on_data, stream.on_end = self._program.stdin, self._program.stdin_end
        elif kind == "resize":
            stream.on_data = self._program.resize
        if self._wanted <= self._streams.keys():
            self._wanted = {"never again"}
            self._program.start()

    def _write(self, channel: str, data: bytes) -> None:
        if channel in self._streams:
            self._streams[channel].write(data)

    def _end(self, status: bytes) -> None:
        self._streams["error"].write(status)
        for stream in self._streams.values():
            stream.close()


class ForwardedPorts:
    """Pairs of streams, one for data and one for errors, each with the number of the port."""

    def __init__(self) -> None:
        self._errors: dict[str, Stream] = {}

    def add(self, stream: Stream) -> None:
        request, port = stream.headers.get("requestid", ""), stream.headers.get("port", "")
        if stream.headers.get("streamtype") == "error":
            self._errors[request] = stream
            return
        error = self._errors.pop(request, None)

        def end() -> None:
            stream.close()
            if error is not None:
                error.close()

        if port == str(DEAD_PORT):
            if error is not None:
                error.write(f"an error occurred forwarding {port}: connection refused".encode())
            end()
            return
        stream.on_data, stream.on_end = stream.write, end


def run_on_channels(websocket: WebSocket, request: Request) -> None:
    ended = False

    def write(channel: str, data: bytes) -> None:
        websocket.send(bytes([_CHANNELS[channel]]) + data)

    def end(status: bytes) -> None:
        nonlocal ended
        ended = True
        write("error", status)
        websocket.close()

    program = _program(request, write, end)
    program.start()
    while not ended:
        message = websocket.receive()
        if message is None:
            return
        channel = message[0] if message else None
        if channel == _CLOSE_CHANNEL and message[1:] == b"\0":
            program.stdin_end()
        elif channel is not None and _NAMES.get(channel) == "stdin":
            program.stdin(message[1:])
        elif channel is not None and _NAMES.get(channel) == "resize":
            program.resize(message[1:])
    websocket.receive()  # the client's own goodbye


def forward_channels(websocket: WebSocket, request: Request) -> None:
    """Two channels for each port, data and error; each begins with the number of its port."""
    ports = [int(port) for name, value in request.pairs if name == "ports" for port in value.split(",")]
    for index, port in enumerate(ports):
        for channel in (2 * index, 2 * index + 1):
            websocket.send(bytes([channel]) + struct.pack("<H", port))
    while (message := websocket.receive()) is not None:
        if not message or message[0] % 2 or message[0] // 2 >= len(ports):
            continue
        if ports[message[0] // 2] == DEAD_PORT:
            websocket.send(bytes([message[0] + 1]) + b"connection refused")
        else:
            websocket.send(message)


def _program(request: Request, write: Callable[[str, bytes], object], end: Callable[[bytes], object]) -> Program:
    argv = [value for name, value in request.pairs if name == "command"]
    return Program(argv, tty=_asked(request, "tty"), write=write, end=end)


def _asked(request: Request, name: str) -> bool:
    return request.query.get(name, "") in TRUE_WORDS
