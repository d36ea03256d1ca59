"""Change kubeconfig files safely: kubectl's lock, each entry in its own file, and no half-written file."""

from __future__ import annotations

import os
import time

from kubeauthn._core import limits
from kubeauthn._core.kubeconfig.decode import decode_with_faults
from kubeauthn._core.kubeconfig.editing import EditableKubeconfig
from kubeauthn._core.kubeconfig.faults import Fault, raise_faults
from kubeauthn._core.kubeconfig.model import Origin
from kubeauthn._io.files import Problem, read_text_or_problem, write_atomically
from kubeauthn.errors import EnvironmentFailure, KubeconfigError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

LOCK_SECONDS = 10.0
"""How long to wait for somebody else's edit. kubectl itself holds the lock for milliseconds."""
_LOCK_POLL_SECONDS = 0.02


class KubeconfigEdit:
    """A context manager. Changes are written when it ends without an exception, and not at all otherwise.

    `fields` are written as in the file (`{"certificate-authority": "ca.crt"}`); those not
    named stay as they are, and None takes a field away.
    """

    def __init__(self, paths: Sequence[str], *, lock_seconds: float = LOCK_SECONDS) -> None:
        self._paths = tuple(paths)
        self._lock_seconds = lock_seconds
        self._locks: list[str] = []
        self._files: dict[str, EditableKubeconfig] = {}

    def set_cluster(self, name: str, fields: Mapping[str, object]) -> None:
        self._set("clusters", name, fields)

    def set_user(self, name: str, fields: Mapping[str, object]) -> None:
        self._set("users", name, fields)

    def set_context(self, name: str, fields: Mapping[str, object]) -> None:
        self._set("contexts", name, fields)

    def set_current_context(self, name: str) -> None:
        """In the file that sets it now: there it is in force. The empty name stands for none, in every file."""
        files = self._opened()
        setting = [path for path, file in files.items() if file.current_context]
        for path in setting if not name else setting[:1] or [self._default_path()]:
            files[path].set_current_context(name)

    def remove_cluster(self, name: str) -> bool:
        """False if there was none. A later file's cluster of that name, hidden until now, comes into force."""
        return self._remove("clusters", name)

    def remove_user(self, name: str) -> bool:
        return self._remove("users", name)

    def remove_context(self, name: str) -> bool:
        return self._remove("contexts", name)

    def __enter__(self) -> KubeconfigEdit:
        if self._files:
            raise UsageError("this edit is under way already")
        # 1. Which files: those that exist, and the one that new entries go to. All locked in one order.
        paths = [path for path in self._paths if os.path.lexists(path)]
        if self._default_path() not in paths:
            paths.append(self._default_path())
            _make_directory(os.path.dirname(self._default_path()))
        try:
            for lockable in sorted({*paths, *map(_real_path, paths)}):
                self._lock(lockable)
            # 2. Read under the lock. What cannot be read without faults is not edited.
            faults: list[Fault] = []
            for path in self._paths:
                if path in paths:
                    faults += self._open(path)
            raise_faults(faults)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write()
        finally:
            self._close()

    def _write(self) -> None:
        """Every file is checked before the first is written: nobody is left with a kubeconfig that does not load."""
        texts = {path: file.text for path, file in self._files.items() if file.changed}
        faults = [fault for path, text in texts.items() for fault in decode_with_faults(text, path)[1]]
        raise_faults(faults)
        for path, text in texts.items():
            write_atomically(path, text.encode())

    def _set(self, section: str, name: str, fields: Mapping[str, object]) -> None:
        files = self._opened()
        owner = next((path for path, file in files.items() if file.has(section, name)), self._default_path())
        files[owner].set(section, name, fields)

    def _remove(self, section: str, name: str) -> bool:
        return next((True for file in self._opened().values() if file.remove(section, name)), False)

    def _opened(self) -> dict[str, EditableKubeconfig]:
        if not self._files:
            raise UsageError("use edit() in a with statement")
        return self._files

    def _default_path(self) -> str:
        """Where new entries go, as in kubectl: the first file that exists, else the last one named."""
        return next((path for path in self._paths if os.path.lexists(path)), self._paths[-1])

    def _open(self, path: str) -> list[Fault]:
        text = read_text_or_problem(path, limits.KUBECONFIG_BYTES)
        if isinstance(text, Problem):
            if not text.missing or os.path.lexists(path):
                return [Fault(Origin(path), (), text.reason)]
            text = ""
        faults = decode_with_faults(text, path)[1]
        if not faults:
            try:
                self._files[path] = EditableKubeconfig(text)
            except KubeconfigError as error:
                return [Fault(Origin(path), (), str(error))]
        return faults

    def _lock(self, path: str) -> None:
        lock = f"{path}.lock"
        deadline = time.monotonic() + self._lock_seconds
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                self._locks.append(lock)
                return
            except FileExistsError:
                if time.monotonic() >= deadline:
                    raise EnvironmentFailure(
                        f"{lock} exists: another program is changing {path}",
                        hint="if none is, one ended in the middle: remove the lock file",
                    ) from None
                time.sleep(_LOCK_POLL_SECONDS)
            except OSError as error:
                raise EnvironmentFailure(f"{lock}: {(error.strerror or 'cannot be made').lower()}") from None

    def _close(self) -> None:
        self._files = {}
        while self._locks:
            try:
                os.unlink(self._locks.pop())
            except FileNotFoundError:
                pass


def _real_path(path: str) -> str:
    try:
        return os.path.realpath(path, strict=True)
    except OSError:  # not there yet, or a loop that reading it will report
        return path


def _make_directory(directory: str) -> None:
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailure(f"{directory}: {(error.strerror or 'cannot be made').lower()}") from None
