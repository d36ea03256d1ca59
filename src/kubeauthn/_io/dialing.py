"""The way to a local proxy: is the socket ours, does somebody listen there.

`ProxyUnreachable` says that nothing was sent, so that the plugin may be run again and the request repeated.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Iterator

from kubeauthn._core.execproxy import LOOPBACK, SOCKET_PATH_BYTES, ProxyRoute
from kubeauthn.errors import ProxyRefused, ProxyUnreachable


@contextlib.contextmanager
def socket_address(path: str) -> Iterator[str]:
    """A path to connect to at once. Raises where it is another user's, or could be made so."""
    try:
        directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ProxyUnreachable(f"nobody listens at unix://{path}: the directory is gone") from None
    except OSError as error:
        raise ProxyRefused(f"the directory of unix://{path} cannot be looked at: {error.strerror}") from None
    try:
        name = os.path.basename(path)
        _refuse_others(os.fstat(directory), f"the directory of unix://{path}")
        try:
            found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            raise ProxyUnreachable(f"nobody listens at unix://{path}: there is no socket") from None
        if not stat.S_ISSOCK(found.st_mode):
            raise ProxyRefused(f"unix://{path} is not a socket")
        _refuse_others(found, f"the socket unix://{path}")
        if len(os.fsencode(path)) <= SOCKET_PATH_BYTES:
            yield path
        elif os.path.isdir("/proc/self/fd"):
            yield f"/proc/self/fd/{directory}/{name}"  # a longer path fits into no socket address
        else:
            raise ProxyRefused(f"the path of unix://{path} is longer than {SOCKET_PATH_BYTES} bytes")
    finally:
        os.close(directory)


def connect(route: ProxyRoute, timeout: float | None) -> socket.socket:
    """A connection to where the proxy listens, before TLS."""
    if not route.socket_path:
        try:
            connection = socket.create_connection((LOOPBACK, route.port), timeout)
        except TimeoutError:
            raise
        except OSError as error:
            raise nobody_listens(route, error) from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        with socket_address(route.socket_path) as path:
            connection.connect(path)
    except TimeoutError:
        connection.close()
        raise
    except OSError as error:
        connection.close()
        raise nobody_listens(route, error) from None
    except BaseException:
        connection.close()
        raise
    return connection


def nobody_listens(route: ProxyRoute, error: BaseException) -> ProxyUnreachable:
    return ProxyUnreachable(f"nobody listens at {route.url}: {getattr(error, 'strerror', None) or error}")


def not_the_proxy(route: ProxyRoute, error: BaseException) -> ProxyUnreachable:
    """TLS did not come about: the proxy died meanwhile, or somebody else listens where it did."""
    reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
    return ProxyUnreachable(f"what listens at {route.url} is not the proxy that the plugin started: {reason}")


def _refuse_others(found: os.stat_result, what: str) -> None:
    if found.st_uid != os.geteuid():
        raise ProxyRefused(f"{what} belongs to user {found.st_uid}, and this is user {os.geteuid()}")
    if found.st_mode & 0o022:
        raise ProxyRefused(
            f"{what} can be written by other users (mode {stat.S_IMODE(found.st_mode):04o})", hint="it should be 0700"
        )
