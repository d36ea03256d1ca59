"""The way through a SOCKS5 proxy (RFC 1928, passwords RFC 1929). The name is the proxy's to resolve, as in Go."""

from __future__ import annotations

from ipaddress import ip_address

from kubeauthn.errors import UpstreamError

_VERSION, _CONNECT = 5, 1
_NO_PASSWORD, _PASSWORD = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSALS = {
    1: "general failure",
    2: "not allowed by its rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "time to live expired",
    7: "command not supported",
    8: "address type not supported",
}


class Socks5:
    """What is said to the proxy, step by step: `feed` its bytes and send what comes back."""

    def __init__(self, host: str, port: int, user: str | None, password: str) -> None:
        self._request = bytes([_VERSION, _CONNECT, 0]) + _address(host) + port.to_bytes(2, "big")
        self._login = b""
        if user is not None:
            name, word = user.encode(), password.encode()
            if not (1 <= len(name) <= 255 and 1 <= len(word) <= 255):
                raise UpstreamError("a SOCKS5 proxy takes a user and a password of 1 to 255 bytes each")
            self._login = bytes([1, len(name)]) + name + bytes([len(word)]) + word
        self._received = b""
        self._steps = [self._chosen]
        self.done = False

    def greeting(self) -> bytes:
        methods = bytes([_NO_PASSWORD, _PASSWORD]) if self._login else bytes([_NO_PASSWORD])
        return bytes([_VERSION, len(methods)]) + methods

    def feed(self, data: bytes) -> bytes:
        """What to send next; empty while more must come. `UpstreamError` where the proxy refuses."""
        self._received += data
        out = b""
        while self._steps:
            answer = self._steps[0]()
            if answer is None:
                return out
            self._steps.pop(0)
            out += answer
        if self._received:
            raise UpstreamError("the proxy sent more than its answer")
        self.done = True
        return out

    def _take(self, size: int) -> bytes | None:
        if len(self._received) < size:
            return None
        taken, self._received = self._received[:size], self._received[size:]
        return taken

    def _chosen(self) -> bytes | None:
        reply = self._take(2)
        if reply is None:
            return None
        version, method = reply
        if version != _VERSION:
            raise UpstreamError("the proxy does not speak SOCKS5")
        if method == _PASSWORD and self._login:
            self._steps += [self._let_in, self._connected]
            return self._login
        if method != _NO_PASSWORD:
            raise UpstreamError(
                "the proxy demands authentication", hint="put user and password into proxy-url or HTTPS_PROXY"
            )
        self._steps.append(self._connected)
        return self._request

    def _let_in(self) -> bytes | None:
        reply = self._take(2)
        if reply is None:
            return None
        if reply[1] != 0:
            raise UpstreamError("the proxy does not accept the user and password")
        return self._request

    def _connected(self) -> bytes | None:
        if len(self._received) >= 2 and self._received[0] == _VERSION and self._received[1] != 0:
            why = _REFUSALS.get(self._received[1], "unknown reason")
            raise UpstreamError(f"the proxy refused the way to the server ({why})")
        if len(self._received) < 5:
            return None
        if self._received[0] != _VERSION:
            raise UpstreamError("the proxy does not speak SOCKS5")
        sizes = {_IPV4: 4, _IPV6: 16, _NAME: 1 + self._received[4]}
        size = sizes.get(self._received[3])
        if size is None:
            raise UpstreamError("the proxy's answer is not SOCKS5")
        return None if self._take(4 + size + 2) is None else b""


def _address(host: str) -> bytes:
    try:
        address = ip_address(host)
    except ValueError:
        name = host.encode("idna")
        if not 1 <= len(name) <= 255:
            raise UpstreamError("the server's name is too long for SOCKS5") from None
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed
