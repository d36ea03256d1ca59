"""Proxies for tests: HTTP CONNECT and SOCKS5, on 127.0.0.1. They record what they tunnelled.

A request a proxy does not let through is recorded in `refused`, so that a test can see
both that a client came by and that it came without the password.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import selectors
import socket
import struct
from abc import ABC, abstractmethod
from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING

from kubeauthn.errors import UsageError
from kubeauthn.testing._listener import Listener, shut_down

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

HEAD_BYTES = 1 << 16
CONNECT_SECONDS = 10.0


class _Refused(Exception):
    """The client asked for something else than a tunnel, or may not have one. `reply` is what it is told."""

    def __init__(self, reason: str, reply: bytes = b"") -> None:
        super().__init__(reason)
        self.reply = reply


@dataclass(frozen=True)
class Tunnel:
    """A tunnel that was opened: its target, and the user who asked for it."""

    host: str
    port: int
    username: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class _Proxy(ABC):
    """What both have: the listener, the record, and the bytes that go to and fro."""

    scheme = ""
    _connected = b""
    _unreachable = b""

    def __init__(self, *, username: str | None = None, password: str | None = None) -> None:
        if (username is None) != (password is None):
            raise UsageError("a proxy takes a user name and a password, or neither")
        self._username = username
        self._password = password
        self._listener: Listener | None = None
        self.tunnels: list[Tunnel] = []
        """Every tunnel so far, oldest first."""
        self.refused: list[str] = []
        """Why clients were turned away."""

    def __enter__(self) -> Self:
        if self._listener is not None:
            raise UsageError("a proxy is started once")
        self._listener = Listener(self._serve, name=f"kubeauthn test {self.scheme} proxy")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.stop()

    @property
    def port(self) -> int:
        if self._listener is None:
            raise UsageError("the proxy is not started: use it in a with statement")
        return self._listener.port

    @property
    def url(self) -> str:
        """Its address, without the password."""
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def url_with_password(self) -> str:
        if self._username is None:
            raise UsageError("this proxy asks for no password")
        return f"{self.scheme}://{self._username}:{self._password}@127.0.0.1:{self.port}"

    def _serve(self, client: socket.socket) -> None:
        try:
            tunnel, early = self._negotiate(client)
            with self._connect(tunnel) as target:
                self.tunnels.append(tunnel)  # before the client hears of it, so that a test finds it
                client.sendall(self._connected)
                target.sendall(early)
                _pump(client, target)
        except _Refused as refusal:
            self.refused.append(str(refusal))
            with contextlib.suppress(OSError):
                client.sendall(refusal.reply)
        except OSError:
            pass  # one of the two ends is gone, which ends a tunnel

    def _connect(self, tunnel: Tunnel) -> socket.socket:
        try:
            target = socket.create_connection((tunnel.host, tunnel.port), CONNECT_SECONDS)
        except OSError as error:
            raise _Refused(f"{tunnel} cannot be reached: {error}", self._unreachable) from error
        target.settimeout(None)
        return target

    def _may_pass(self, username: str, password: str) -> bool:
        # Both are compared whole, so that the time says nothing about which was wrong.
        same_name = compare_digest(username.encode(), (self._username or "").encode())
        same_password = compare_digest(password.encode(), (self._password or "").encode())
        return same_name and same_password

    @abstractmethod
    def _negotiate(self, client: socket.socket) -> tuple[Tunnel, bytes]:
        """Whereto, and what the client has sent already behind its question."""


class ConnectProxy(_Proxy):
    """An HTTP proxy that knows CONNECT only. With a password, basic authentication is required."""

    scheme = "http"
    _connected = b"HTTP/1.1 200 Connection established\r\n\r\n"
    _unreachable = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"

    def _negotiate(self, client: socket.socket) -> tuple[Tunnel, bytes]:
        received = b""
        while b"\r\n\r\n" not in received:
            data = client.recv(HEAD_BYTES)
            if not data or len(received) > HEAD_BYTES:
                raise _Refused("no request came")
            received += data
        head, _, early = received.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        if method != "CONNECT":
            raise _Refused(f"{method} is not CONNECT", _http_reply("405 Method Not Allowed", "Allow: CONNECT"))
        username = self._authenticate(lines)
        host, _, port = rest.split(" ")[0].rpartition(":")
        if not host or not port.isdecimal():
            raise _Refused("the target is not host:port", _http_reply("400 Bad Request"))
        return Tunnel(host.strip("[]"), int(port), username), early

    def _authenticate(self, lines: list[str]) -> str | None:
        if self._username is None:
            return None
        for line in lines:
            name, _, value = line.partition(":")
            scheme, _, encoded = value.strip().partition(" ")
            if name.lower() == "proxy-authorization" and scheme.lower() == "basic":
                try:
                    username, _, password = base64.b64decode(encoded).decode("utf-8", "replace").partition(":")
                except binascii.Error:
                    continue
                if self._may_pass(username, password):
                    return username
        ask = _http_reply("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="test"')
        raise _Refused("no user name and password that hold", ask)


class Socks5Proxy(_Proxy):
    """A SOCKS5 proxy (RFC 1928), with the user name and password of RFC 1929 if one is set."""

    scheme = "socks5"
    _connected = bytes((5, 0, 0, 1, 0, 0, 0, 0, 0, 0))
    _unreachable = bytes((5, 5, 0, 1, 0, 0, 0, 0, 0, 0))

    def _negotiate(self, client: socket.socket) -> tuple[Tunnel, bytes]:
        version, methods = _exactly(client, 2)
        offered = _exactly(client, methods)
        if version != 5:
            raise _Refused(f"SOCKS version {version} is not 5")
        username = self._authenticate(client, offered)
        version, command, _, kind = _exactly(client, 4)
        if (version, command) != (5, 1):
            raise _Refused(f"command {command} is not CONNECT", _socks_reply(7))
        if kind == 1:
            host = socket.inet_ntop(socket.AF_INET, _exactly(client, 4))
        elif kind == 3:
            host = _exactly(client, _exactly(client, 1)[0]).decode("ascii", "replace")
        elif kind == 4:
            host = socket.inet_ntop(socket.AF_INET6, _exactly(client, 16))
        else:
            raise _Refused(f"address type {kind} is not known", _socks_reply(8))
        (port,) = struct.unpack("!H", _exactly(client, 2))
        return Tunnel(host, port, username), b""

    def _authenticate(self, client: socket.socket, offered: bytes) -> str | None:
        wanted = 0 if self._username is None else 2
        if wanted not in offered:
            reason = "no user name and password came" if wanted else "the client insists on authentication"
            raise _Refused(reason, b"\x05\xff")
        client.sendall(bytes((5, wanted)))
        if self._username is None:
            return None
        _, length = _exactly(client, 2)
        username = _exactly(client, length).decode("utf-8", "replace")
        password = _exactly(client, _exactly(client, 1)[0]).decode("utf-8", "replace")
        if not self._may_pass(username, password):
            raise _Refused("no user name and password that hold", b"\x01\x01")
        client.sendall(b"\x01\x00")
        return username


def _http_reply(status: str, *headers: str) -> bytes:
    return "\r\n".join((f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "", "")).encode()


def _socks_reply(code: int) -> bytes:
    return bytes((5, code, 0, 1, 0, 0, 0, 0, 0, 0))


def _exactly(client: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        part = client.recv(length - len(data))
        if not part:
            raise _Refused("the client closed inside its request")
        data += part
    return data


def _pump(client: socket.socket, target: socket.socket) -> None:
    """Copy both ways until both have said their last byte."""
    other = {client: target, target: client}
    try:
        with selectors.DefaultSelector() as selector:
            for end in other:
                selector.register(end, selectors.EVENT_READ, end)
            while selector.get_map():
                for key, _ in selector.select():
                    end = key.data
                    data = end.recv(1 << 16)
                    if data:
                        other[end].sendall(data)
                        continue
                    selector.unregister(end)
                    with contextlib.suppress(OSError):
                        other[end].shutdown(socket.SHUT_WR)
    finally:
        shut_down(target)
