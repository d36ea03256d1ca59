"""Where the server listens: an address or a unix socket, with or without TLS."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kubeauthn.errors import UsageError


@dataclass(frozen=True, slots=True)
class Listening:
    host: str = ""
    port: int = 0
    unix_path: str = ""
    certificate: str = ""
    key: str = ""
    client_ca: str = ""
    connections: int = 1024
    """At the same time, for each worker."""

    def with_tls(self, certificate: str, key: str, client_ca: str) -> Listening:
        return replace(self, certificate=certificate, key=key, client_ca=client_ca)

    def shown(self) -> str:
        return f"unix:{self.unix_path}" if self.unix_path else f"{self.host}:{self.port}"


def parse_listen(text: str) -> Listening:
    """`unix:PATH`, `HOST:PORT`, `[v6]:PORT` or `:PORT` (all addresses). Raises UsageError."""
    if text.startswith("unix:"):
        if not text[5:]:
            raise UsageError("--listen unix: needs a path")
        return Listening(unix_path=text[5:])
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or "0.0.0.0"  # noqa: S104  that is what it means
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise UsageError(f"--listen expects HOST:PORT or unix:PATH, not {text!r}")
    return Listening(host=host, port=int(port))
