"""The loopback address that the browser is sent back to (RFC 8252, 7.3), for one login.

Anybody on this machine can connect to it. So other users are turned away, by the kernel's word on who they are; an
answer with another state is not ours and changes nothing; and the address that leads to the issuer, which holds the
state, is in no process's arguments: the browser is started with the address of this server, and is led on from here.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from hmac import compare_digest
from urllib.parse import parse_qsl, urlsplit

from kubeauthn._core.limits import PLUGIN_SECONDS
from kubeauthn.errors import EnvironmentFailure, UsageError
from kubeauthn.plugins.oidc import pages
from kubeauthn.plugins.oidc.peer_user import is_ours
from kubeauthn.plugins.oidc.settings import DEFAULT_PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_HEAD_BYTES = 16 << 10
_HEAD_SECONDS = 10.0
_CONNECTIONS = 32
"""At once. More than a browser opens, and few enough to hold a thread each."""
_LAST_PAGE_SECONDS = 2.0
_HOSTS = ("127.0.0.1", "localhost", "::1")


class RedirectServer:
    """Listens on the first address of `listen` that is free. `succeeded` is what the last page says."""

    def __init__(self, listen: Sequence[str], redirect_url: str, state: str) -> None:
        self._state = state
        self._target = ""
        self._redirect: dict[str, str] | None = None
        self._arrived, self._done = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._answering: threading.Thread | None = None
        self.succeeded = False
        self._socket = _listening(listen)
        host, port = self._socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        self.start_address = f"http://{shown}:{port}/"
        self.redirect_uri = redirect_url or f"http://{shown}:{port}{DEFAULT_PATH}"
        self._path = urlsplit(self.redirect_uri).path or "/"
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> RedirectServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._answering is not None:
            self._answering.join(_LAST_PAGE_SECONDS)  # the browser gets its page before the program ends
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def lead_to(self, address: str) -> None:
        self._target = address

    def wait(self, seconds: float) -> dict[str, str] | None:
        """The parameters of the answer, once one with our state has come."""
        return self._redirect if self._arrived.wait(seconds) else None

    def _accept(self) -> None:
        while not self._done.is_set():
            try:
                connection, peer = self._socket.accept()
            except OSError:
                return
            if not is_ours(peer[:2], self._socket.getsockname()[:2]):
                connection.close()  # another user's, and no concern of theirs why
                continue
            with self._lock:
                full = len(self._open) >= _CONNECTIONS
                if not full:
                    self._open.add(connection)
            if full:
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            head = _read_head(connection)
            reply = self._answer(head) if head is not None else pages.refusal()
            connection.settimeout(_HEAD_SECONDS)
            connection.sendall(reply)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the browser went away
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _answer(self, head: list[str]) -> bytes:
        method, _, rest = head[0].partition(" ")
        target, _, version = rest.partition(" ")
        if method != "GET" or not target.startswith("/") or not version.startswith("HTTP/1."):
            return pages.refusal()
        if not _host_is_loopback(head[1:]):
            return pages.refusal()
        path, _, query = target.partition("?")
        fields = _fields(query)
        if path == self._path and fields is not None and "state" in fields:
            return self._arrive(fields)
        if path == "/" and not query and self._target:
            return pages.moved(self._target)
        return pages.refusal(404)

    def _arrive(self, fields: dict[str, str]) -> bytes:
        if not compare_digest(fields["state"].encode("utf-8", "replace"), self._state.encode()):
            return pages.refusal()  # somebody's, but not the answer to our question: we go on waiting
        with self._lock:
            if self._redirect is not None:
                return pages.refusal()  # the answer has come already
            self._redirect = fields
            self._answering = threading.current_thread()
        self._arrived.set()
        self._done.wait(PLUGIN_SECONDS)
        return pages.success() if self.succeeded else pages.failure()


def checked_listen(text: str) -> tuple[str, int]:
    """`127.0.0.1:8000`, `[::1]:8000`, `localhost:8000`. Raises UsageError for what others could reach."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or host not in _HOSTS or not port.isascii() or not port.isdecimal() or int(port[:6]) > 65535:
        raise UsageError("--listen takes loopback addresses: 127.0.0.1:PORT or [::1]:PORT, with commas between")
    return "127.0.0.1" if host == "localhost" else host, int(port)


def check_redirect_url(url: str) -> str:
    """Raises UsageError for an address that would send the code elsewhere."""
    try:
        parts = urlsplit(url)
        good = parts.scheme == "http" and parts.hostname in _HOSTS and not parts.query and not parts.fragment
        good = good and "@" not in parts.netloc and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UsageError("--redirect-url takes an http address of this machine, such as http://localhost:8000")
    return url


def _listening(listen: Sequence[str]) -> socket.socket:
    reasons = []
    for text in listen:
        host, port = checked_listen(text)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            return socket.create_server((host, port), family=family, backlog=64)
        except OSError as error:
            # The system's own words: `create_server` adds the address to them, which is said already.
            reason = os.strerror(error.errno).lower() if error.errno else "cannot be had"
            reasons.append(f"{text}: {reason}")
    raise EnvironmentFailure(
        f"no address to listen on for the login ({'; '.join(reasons)})",
        hint="free one of them, or name others with --listen (the issuer must know them as redirect addresses)",
    )


def _read_head(connection: socket.socket) -> list[str] | None:
    """The lines of a request's head; None for what is none, is too long or takes too long."""
    deadline = time.monotonic() + _HEAD_SECONDS
    content = b""
    while b"\r\n\r\n" not in content:
        left = deadline - time.monotonic()
        if left <= 0 or len(content) > _HEAD_BYTES:
            return None
        connection.settimeout(left)
        piece = connection.recv(4096)
        if not piece:
            return None
        content += piece
    return content.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


def _host_is_loopback(lines: list[str]) -> bool:
    """A page of another origin that found a name for this machine (DNS rebinding) is not our browser."""
    hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
    return len(hosts) == 1 and hosts[0].rpartition(":")[0].strip("[]") in _HOSTS


def _fields(query: str) -> dict[str, str] | None:
    """None where a name comes twice: two codes are not one."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=32, errors="strict")
    except (ValueError, UnicodeDecodeError):
        return None
    return dict(pairs) if len(dict(pairs)) == len(pairs) else None
