"""A directory of secrets that only this user can read or write: mode 0700, files of mode 0600, replaced in one step.

What does not look like ours (another owner, a link, a mode that lets others in) is an error for the directory, and as
good as absent for a file: it is never read, and the next write puts a new file in its place. Every access goes through
the directory's descriptor, so that nobody can exchange a part of the path in between.
"""

from __future__ import annotations

import os
import stat

from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE_BYTES = 1 << 20
"""The largest file that is read: what a plugin may print, and that is far more than a credential needs."""

_TAG_NAME = "CACHEDIR.TAG"
_TAG = b"Signature: 8a477f597d28d172789f06886806bc55\n# Credentials of kubeauthn: not to be backed up.\n"
"""bford.info/cachedir: tools that make backups leave such a directory out."""

_OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
_OPEN_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC


def cache_home(environ: Mapping[str, str]) -> str:
    """Where this user's programs keep what can be made again. A relative XDG_CACHE_HOME counts as none."""
    named = environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(named):
        return named
    home = environ.get("HOME", "") or os.path.expanduser("~")
    if not os.path.isabs(home):
        raise EnvironmentFailure(
            "there is no home directory to keep credentials in", hint="set HOME or XDG_CACHE_HOME to an absolute path"
        )
    return os.path.join(home, ".cache")


class PrivateStore:
    """One directory below `base`: `base/name/name…`. Nothing is made before the first write or lock."""

    def __init__(self, base: str, names: Sequence[str]) -> None:
        self._base = base
        self._names = tuple(names)
        self.path = os.path.join(base, *names)
        self._descriptor: int | None = None

    def read(self, name: str) -> bytes | None:
        """The content, or None where there is none that is ours."""
        directory = self._open(make=False)
        if directory is None:
            return None
        try:
            descriptor = os.open(name, _OPEN_FILE, dir_fd=directory)
        except OSError:
            return None  # absent, or a link
        try:
            return _content(descriptor)
        finally:
            os.close(descriptor)

    def write(self, name: str, content: bytes) -> None:
        """Replace the file in one step: whoever reads meanwhile has the old content or the new."""
        directory = self.directory()
        temporary = f".{name[:64]}.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            descriptor = os.open(
                temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory
            )
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)
            os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            _unlink(temporary, directory)
            raise EnvironmentFailure(f"{self.path}: cannot be written to: {_reason(error)}") from None
        except BaseException:
            _unlink(temporary, directory)
            raise

    def remove(self, name: str) -> bool:
        """Whether there was one."""
        directory = self._open(make=False)
        return directory is not None and _unlink(name, directory)

    def names(self) -> list[str]:
        directory = self._open(make=False)
        return [] if directory is None else sorted(name for name in os.listdir(directory) if name != _TAG_NAME)

    def directory(self) -> int:
        """A descriptor of the directory, which is made if it is not there."""
        descriptor = self._open(make=True)
        assert descriptor is not None  # noqa: S101  make=True either makes it or raises
        return descriptor

    def _open(self, *, make: bool) -> int | None:
        if self._descriptor is not None:
            return self._descriptor
        current = self._open_base(make=make)
        if current is None:
            return None
        path = self._base
        for name in self._names:
            path = os.path.join(path, name)
            try:
                following = _open_part(name, current, path, make=make)
            finally:
                os.close(current)
            if following is None:
                return None
            current = following
        self._descriptor = current
        return current

    def _open_base(self, *, make: bool) -> int | None:
        """The base is the person's own choice, and may be a link; but nobody else may be able to change it."""
        try:
            if make:
                os.makedirs(self._base, mode=0o700, exist_ok=True)
            descriptor = os.open(self._base, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC)
        except FileNotFoundError:
            if not make:
                return None
            raise EnvironmentFailure(f"{self._base}: is not there and cannot be made") from None
        except OSError as error:
            raise EnvironmentFailure(f"{self._base}: credentials cannot be kept there: {_reason(error)}") from None
        found = os.fstat(descriptor)
        if found.st_uid not in (os.geteuid(), 0) or (found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX):
            os.close(descriptor)
            raise EnvironmentFailure(
                f"{self._base}: other users may write to it, so credentials are not kept there",
                hint="chmod go-w, or another XDG_CACHE_HOME",
            )
        return descriptor


def _open_part(name: str, parent: int, path: str, *, make: bool) -> int | None:
    made = False
    if make:
        try:
            os.mkdir(name, 0o700, dir_fd=parent)
            made = True
        except FileExistsError:
            pass
        except OSError as error:
            raise EnvironmentFailure(f"{path}: cannot be made: {_reason(error)}") from None
    try:
        descriptor = os.open(name, _OPEN_DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError:
        raise EnvironmentFailure(
            f"{path}: is a link or no directory, so credentials are not kept there", hint=f"look at it: ls -ld {path}"
        ) from None
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        os.close(descriptor)
        raise EnvironmentFailure(
            f"{path}: others may read or change what is in it, so credentials are not kept there",
            hint=f"if it is yours: chmod 700 {path}",
        )
    if made:
        _tag(descriptor)
    return descriptor


def _tag(directory: int) -> None:
    try:
        descriptor = os.open(_TAG_NAME, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
    except OSError:
        return  # the directory is right without it
    try:
        os.write(descriptor, _TAG)
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _content(descriptor: int) -> bytes | None:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077 or found.st_nlink != 1:
        return None
    if found.st_size > FILE_BYTES:
        return None
    content = bytearray()
    try:
        while chunk := os.read(descriptor, 1 << 16):
            content += chunk
            if len(content) > FILE_BYTES:
                return None
    except OSError:
        return None
    return bytes(content)


def _unlink(name: str, directory: int) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError:
        return False
    return True


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
