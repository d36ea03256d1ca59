"""Files: bounded reading, and writing that leaves either the old file or the new one."""

from __future__ import annotations

import errno
import os
import stat
import time

from kubeauthn._core.record import record
from kubeauthn.errors import EnvironmentFailure

PIPE_SECONDS = 60.0
"""How long a pipe given as a file, as in `--kubeconfig <(command)`, may keep us waiting."""

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_CHUNK = 1 << 16
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_OPEN_FLAGS = os.O_RDONLY | _NONBLOCK | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


@record(frozen=True, slots=True)
class Problem:
    """Why a file cannot be read, as a text that goes after its path."""

    reason: str
    missing: bool = False


class _Unreadable(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def read_bounded(path: str, limit: int, *, pipes: bool = True) -> bytes:
    """The whole content, or `EnvironmentFailure`. Never more than `limit` bytes, never a wait without end.

    Regular files and pipes are read, /dev/null is empty, and everything else is refused. Without `pipes` they are
    refused too: what is read while others wait, or again and again, must not come from one.
    """
    content = read_or_problem(path, limit, pipes=pipes)
    if isinstance(content, Problem):
        raise EnvironmentFailure(f"{_shown(path)}: {content.reason}")
    return content


def read_text_or_problem(path: str, limit: int, *, pipes: bool = True) -> str | Problem:
    """A text file in UTF-8, with or without a byte order mark."""
    content = read_or_problem(path, limit, pipes=pipes)
    if isinstance(content, Problem):
        return content
    if content.startswith(_UTF16_MARKS):
        return Problem("is UTF-16, not UTF-8: save it again as UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Problem(f"is not UTF-8 (line {line})")


def read_or_problem(path: str, limit: int, *, pipes: bool = True) -> bytes | Problem:
    """`read_bounded` for those who gather faults."""
    try:
        # Not blocking, because opening a pipe that nobody writes would wait for ever.
        descriptor = os.open(path, _OPEN_FLAGS)
    except (OSError, ValueError) as error:
        return _problem(error)
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            return _read(descriptor, limit, deadline=None)
        if stat.S_ISFIFO(status.st_mode):
            if not pipes:
                return Problem("is a pipe, and not a file that can be read again")
            return _read(descriptor, limit, deadline=time.monotonic() + PIPE_SECONDS)
        if stat.S_ISCHR(status.st_mode) and os.path.samestat(status, os.stat(os.devnull)):
            return b""
        return Problem("is a directory" if stat.S_ISDIR(status.st_mode) else "is neither a regular file nor a pipe")
    except (OSError, _Unreadable) as error:
        return _problem(error)
    finally:
        os.close(descriptor)


def _read(descriptor: int, limit: int, deadline: float | None) -> bytes:
    content = bytearray()
    while len(content) <= limit:
        if deadline is not None:
            _wait_readable(descriptor, deadline)
        chunk = os.read(descriptor, min(_CHUNK, limit + 1 - len(content)))
        if not chunk:
            return bytes(content)
        content += chunk
    raise _Unreadable(f"is larger than {limit} bytes")


def _wait_readable(descriptor: int, deadline: float) -> None:
    import select

    left = deadline - time.monotonic()
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if left <= 0 or not poll.poll(left * 1000):
        raise _Unreadable(f"is a pipe that was silent for {PIPE_SECONDS:.0f} seconds")


def _problem(error: OSError | ValueError | _Unreadable) -> Problem:
    if isinstance(error, _Unreadable):
        return Problem(str(error))
    if isinstance(error, ValueError):
        return Problem("is not a possible path")
    if error.errno == errno.ELOOP:
        return Problem("is a loop of symbolic links")
    reason = (error.strerror or type(error).__name__).lower()
    return Problem(reason, missing=isinstance(error, FileNotFoundError))


def _shown(path: str) -> str:
    return path.replace("\0", "\ufffd")


def write_atomically(path: str, content: bytes) -> None:
    """Replace a file, or make it with mode 0600. Through symbolic links: the file they lead to is replaced.

    A file that exists keeps its mode and, where we may set them, its owner and group.
    """
    import tempfile

    try:
        target = os.path.realpath(path, strict=os.path.lexists(path))
        before = os.stat(target) if os.path.exists(target) else None
        if before is not None and not stat.S_ISREG(before.st_mode):
            raise EnvironmentFailure(f"{path}: is not a regular file")
        directory = os.path.dirname(target)
        descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=directory)
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {_problem(error).reason}") from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            _keep_owner_and_mode(stream.fileno(), before)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        os.unlink(temporary)
        if isinstance(error, OSError):
            raise EnvironmentFailure(f"{path}: {_problem(error).reason}") from None
        raise
    _sync_directory(directory)


def _keep_owner_and_mode(descriptor: int, before: os.stat_result | None) -> None:
    if before is None or not hasattr(os, "fchown"):
        return
    ours = os.fstat(descriptor)
    same_group = ours.st_gid == before.st_gid
    if (ours.st_uid, ours.st_gid) != (before.st_uid, before.st_gid):
        try:
            os.fchown(descriptor, before.st_uid, before.st_gid)
            same_group = True
        except PermissionError:
            pass
    mode = stat.S_IMODE(before.st_mode) & 0o777
    # What the old group could read, another group must not get.
    os.fchmod(descriptor, mode if same_group else mode & 0o707)


def _sync_directory(directory: str) -> None:
    """So that the new name survives a power cut. Not every file system can; the content is safe already."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
