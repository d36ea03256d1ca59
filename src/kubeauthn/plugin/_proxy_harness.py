"""The life of a proxy process: a private socket, the answer on standard output, and an end when the client is gone."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import ssl
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kubeauthn._core.execproxy import SOCKET_PATH_BYTES
from kubeauthn.errors import EnvironmentFailure, ExecInfoError

if TYPE_CHECKING:
    from kubeauthn._io.carrier.listener import Listener

SOCKET_NAME = "proxy.sock"
LAST_SECONDS = 0.5
"""How long an orderly end may take once the client is gone."""


@contextlib.contextmanager
def private_directory() -> Iterator[str]:
    """A new directory that only this user can enter, with a path short enough for a socket."""
    for base in (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"):  # noqa: S108  mkdtemp below
        if not base or not os.path.isabs(base):
            continue
        try:
            path = tempfile.mkdtemp(prefix="kubeauthn-", dir=base)
        except OSError:
            continue
        if len(os.fsencode(os.path.join(path, SOCKET_NAME))) <= SOCKET_PATH_BYTES and _is_private(path):
            break
        os.rmdir(path)
    else:
        raise EnvironmentFailure(
            f"no directory for the socket: its path may have {SOCKET_PATH_BYTES} bytes",
            hint="set XDG_RUNTIME_DIR or TMPDIR to a short path",
        )
    try:
        yield path
    finally:
        remove(path)


def remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(path, SOCKET_NAME))
    with contextlib.suppress(OSError):
        os.rmdir(path)


def watch_lock(path: str, gone: Callable[[], None]) -> None:
    """Call `gone`, in another thread, as soon as nobody holds the lock any more."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
    except OSError as error:
        raise ExecInfoError(f"spec.lockFilePath cannot be opened: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        os.close(descriptor)
        raise ExecInfoError("spec.lockFilePath is not a file of this user")

    def wait() -> None:
        with contextlib.suppress(OSError):  # a file system without locks: better to end than to stay for ever
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        gone()

    threading.Thread(target=wait, name="kubeauthn-lock", daemon=True).start()


def stop_at_signals() -> asyncio.Event:
    """Set when a signal asks for the end. Called before anybody can know of us, so that none ends us in the middle."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


async def stay(
    listener: Listener, stopping: asyncio.Event, lock_path: str, directory: str, idle_seconds: float | None
) -> None:
    """Until the client is gone, a signal comes, or nobody has been connected for `idle_seconds`."""
    loop = asyncio.get_running_loop()

    def client_gone() -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            loop.call_soon_threadsafe(stopping.set)
        time.sleep(LAST_SECONDS)
        # The author's function may be busy. Nobody is there to wait for it.
        remove(directory)
        os._exit(0)

    if lock_path:
        watch_lock(lock_path, client_gone)
    while not stopping.is_set():
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), None if idle_seconds is None else max(0.05, idle_seconds / 10))
        if idle_seconds is not None and listener.idle_seconds() >= idle_seconds:
            break
    listener.stop()


def checked_context(context: object, insecure: bool) -> ssl.SSLContext:
    """An author's context must verify the server, unless the kubeconfig itself says otherwise."""
    if not isinstance(context, ssl.SSLContext):
        raise EnvironmentFailure(f"tls gave a {type(context).__name__}, expected an ssl.SSLContext")
    if not insecure and (context.verify_mode != ssl.CERT_REQUIRED or not context.check_hostname):
        what = "name" if context.verify_mode == ssl.CERT_REQUIRED else "certificate"
        raise EnvironmentFailure(
            f"the ssl.SSLContext for the server does not verify its {what}",
            hint="begin with proxy.server_context(cluster) and load your certificate into it",
        )
    return context


def own_process_group() -> None:
    """So that Ctrl-C at the client's terminal is the client's to handle."""
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)


def _is_private(path: str) -> bool:
    status = os.lstat(path)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
