"""Where the server listens: an address or a unix socket."""

from __future__ import annotations

import os
import socket
import stat
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import EnvironmentFailure, UsageError
from kubeauthn.server import limits

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Listening:
    host: str = ""
    port: int = 0
    unix_path: str = ""

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
    if not colon or not port.isascii() or not port.isdigit() or len(port) > 5 or int(port) > 65535:
        raise UsageError(f"--listen expects HOST:PORT or unix:PATH, not {text[:100]!r}")
    return Listening(host=host, port=int(port))


HOST_HINT = "HOST is an address of this machine, such as 127.0.0.1 or [::1], and no name; :PORT is every address"


def bound_alone(listening: Listening) -> socket.socket:
    """A TCP socket that shares its port with no other process. Raises OSError, or ValueError for what is no address."""
    try:
        family, _, _, _, address = socket.getaddrinfo(
            listening.host, listening.port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
        )[0]
    except (socket.gaierror, UnicodeError):
        raise ValueError("not an IP address") from None
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # for connections of the one before that linger
        # Connections have it from here. Without it a part of an answer may wait for the client to acknowledge the one
        # before, which clients put off for 40 ms.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bound.setblocking(False)
        bound.bind(address)
        # Two may bind until one listens; so this one does, here, where the other's failure can be told.
        bound.listen()
    except BaseException:
        bound.close()
        raise
    return bound


@contextmanager
def alone_at(path: str) -> Iterator[None]:
    """While a unix socket is made there. One that a server left behind which was killed is taken away; raises OSError.

    A container that is started again finds it on its volume, and would never come up.
    """
    try:
        import fcntl
    except ImportError:  # no unix sockets either
        yield
        return
    folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
    try:
        # Two that start at once: the second must not take away what the first has bound and not listened on yet.
        ends = time.monotonic() + limits.LOCK_SECONDS
        while not _locked(fcntl, folder):
            if time.monotonic() > ends:  # whoever may read the directory may lock it, and that for ever
                raise EnvironmentFailure(f"cannot listen on unix:{path}: another process keeps its directory locked")
            time.sleep(0.02)
        if _is_left_behind(path):
            with suppress(FileNotFoundError):
                os.unlink(path)
        yield
    finally:
        os.close(folder)


def _locked(fcntl: Any, folder: int) -> bool:
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_left_behind(path: str) -> bool:
    """A socket, and nobody listens on it. What cannot be told is left alone."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            probe.connect(path)
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def why_not(error: Exception) -> str:
    """The reason alone. Rust's errors carry a number, and a backtrace where RUST_BACKTRACE is set."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno).lower()
    reason = (str(error).splitlines() or [type(error).__name__])[0].partition(" (os error ")[0]
    return reason[:1].lower() + reason[1:]
