"""Load a PKCS#11 module, and say in words what python-pkcs11 and the token say in codes."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager

from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, MissingExtra, PinRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_ELF_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le", 22: "s390x"}
_OURS = {"amd64": "x86_64", "arm64": "aarch64", "i686": "x86", "i386": "x86"}
_GONE = (
    "DeviceRemoved",
    "TokenNotPresent",
    "TokenNotRecognised",
    "SessionHandleInvalid",
    "SessionClosed",
    "SlotIDInvalid",
    "ObjectHandleInvalid",
    "KeyHandleInvalid",
    "DeviceError",
    "NoSuchToken",
)
"""What modules answer when the token was pulled out, each in its own way."""
_WRONG_PIN = ("PinIncorrect", "PinInvalid", "PinLenRange")


def load_module(path: str) -> Any:
    """The module, loaded and initialised. The errors name `pathLib`."""
    if not os.path.isabs(path):
        raise KeyStoreError("pathLib must be an absolute path: a library is never looked for")
    _check_file(path)
    pkcs11 = import_library()
    try:
        return pkcs11.lib(os.path.realpath(path))  # what was looked at, whatever becomes of a link to it
    except (pkcs11.PKCS11Error, OSError) as error:
        raise KeyStoreError(f"pathLib: {path} cannot be loaded: {_text(error)}") from None


def import_library() -> Any:
    """python-pkcs11, without its encodings of keys and certificates: nothing here uses them, and their imports take
    longer than all the rest of an answer. They are there for whoever does."""
    finder = _LaterOn()
    sys.meta_path.insert(0, finder)
    try:
        import pkcs11
    except ImportError:
        raise MissingExtra("python-pkcs11", "pkcs11") from None
    finally:
        sys.meta_path.remove(finder)
    return pkcs11


class _LaterOn:
    """Finds the modules of `pkcs11.util`, to be carried out when something of them is first asked for."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if not name.startswith("pkcs11.util."):
            return None
        from importlib.machinery import PathFinder
        from importlib.util import LazyLoader

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


def _check_file(path: str) -> None:
    """A module is code that runs in this process: nobody but its owner, root or us, may be able to change it."""
    try:
        status = os.stat(path)
        on_the_way = {place: os.lstat(place) for place in _folders(path) + _folders(os.path.realpath(path))}
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise KeyStoreError(
            f"pathLib: {path}: {reason}", hint="kubeauthn signer doctor lists the modules that are installed"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        raise KeyStoreError(f"pathLib: {path} is not a file")
    for place, found in ((path, status), *on_the_way.items()):
        # In a directory like /tmp others may make things and not change ours, which its sticky bit says.
        shared = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX and place != os.path.dirname(path)
        writable = found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode) and not shared
        if found.st_uid not in (0, os.getuid()) or writable:
            raise KeyStoreError(f"pathLib: {place} can be changed by other users, so nothing is loaded from there")
    _check_architecture(path)


def _folders(path: str) -> list[str]:
    """Every directory on the way to a file: who can change one of them decides what is found there."""
    found = []
    while (above := os.path.dirname(path)) != path:
        found.append(above)
        path = above
    return found


def _check_architecture(path: str) -> None:
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError as error:
        raise KeyStoreError(f"pathLib: {path}: {(error.strerror or 'cannot be read').lower()}") from None
    if sys.platform != "linux":
        return
    if not head.startswith(b"\x7fELF") or len(head) < 20:
        raise KeyStoreError(f"pathLib: {path} is not a shared library")
    number = int.from_bytes(head[18:20], "little" if head[5] == 1 else "big")
    machine = os.uname().machine
    ours = _OURS.get(machine, machine)
    theirs = _ELF_MACHINES.get(number, f"machine {number}")
    if theirs != ours and ours in _ELF_MACHINES.values():
        raise KeyStoreError(f"pathLib: {path} is for another architecture: {theirs}, and this is {ours}")


@contextmanager
def in_words(what: str, where: str = "the token") -> Iterator[None]:
    """Turns the library's errors into ours. Never with a value: not the PIN, not the digest."""
    import pkcs11

    try:
        yield
    except pkcs11.PKCS11Error as error:
        name = type(error).__name__
        if name in _WRONG_PIN:
            raise PinRefused(
                f"the PIN of {where} is wrong", hint="it was tried once, and is not tried again: tokens lock"
            ) from None
        if name == "PinLocked":
            raise KeyStoreError(
                f"the PIN of {where} is locked", hint="unblock it with the PUK or the security officer's PIN"
            ) from None
        if name == "PinExpired":
            raise KeyStoreError(f"the PIN of {where} has expired: set a new one") from None
        if name == "UserPinNotInitialized":
            raise KeyStoreError(f"{where} has no PIN yet: initialise it") from None
        if name in _GONE:
            raise KeyStoreAbsent(f"{where} was pulled out, or is not there: {what} ({name})") from None
        if name == "MechanismInvalid":
            raise KeyStoreError(f"{where} does not offer the mechanism for {what}") from None
        raise KeyStoreError(f"{where}: {what} failed: {_text(error)}") from None


def _text(error: BaseException) -> str:
    text = str(error).replace("\n", " ").strip()
    return f"{text[:300]} ({type(error).__name__})" if text else type(error).__name__
