"""Load a PKCS#11 module, and say in words what the token says in codes."""

from __future__ import annotations

import os
import stat
import sys
from _thread import allocate_lock
from contextlib import contextmanager

from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, NotSigned, PinRefused
from kubeauthn.plugins.cryptoki import CryptokiError, Module
from kubeauthn.plugins.module_turn import module_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ELF_MACHINES = {3: "x86", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64", 21: "ppc64le", 22: "s390x"}
_OURS = {"amd64": "x86_64", "arm64": "aarch64", "i686": "x86", "i386": "x86"}
_GONE = (
    "DEVICE_REMOVED",
    "TOKEN_NOT_PRESENT",
    "TOKEN_NOT_RECOGNIZED",
    "SESSION_HANDLE_INVALID",
    "SESSION_CLOSED",
    "SLOT_ID_INVALID",
    "OBJECT_HANDLE_INVALID",
    "KEY_HANDLE_INVALID",
    "DEVICE_ERROR",
    "CRYPTOKI_NOT_INITIALIZED",
)
"""What modules answer when the token was pulled out, each in its own way."""
_UNCLEAR = ("DEVICE_ERROR", "FUNCTION_FAILED", "GENERAL_ERROR")
"""They say nothing. At a login some modules answer a wrong PIN so: it must not be brought again because of them."""
_WRONG_PIN = ("PIN_INCORRECT", "PIN_INVALID", "PIN_LEN_RANGE")
_loaded: dict[str, Module] = {}
_loading = allocate_lock()


def load_module(path: str) -> Module:
    """The module, loaded and initialised, once per process. The errors name `pathLib`."""
    if not os.path.isabs(path):
        raise KeyStoreError("pathLib must be an absolute path: a library is never looked for")
    _check_file(path)
    real = os.path.realpath(path)  # what was looked at, whatever becomes of a link to it
    with _loading:
        if real not in _loaded:
            try:
                with module_turn(real):
                    _loaded[real] = Module(real)
            except (CryptokiError, OSError) as error:
                text = str(error).replace("\n", " ").strip()[:300]
                raise KeyStoreError(f"pathLib: {path} cannot be loaded: {text}") from None
        return _loaded[real]


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
        by_group = found.st_mode & stat.S_IWGRP and not _is_our_group(found.st_gid)
        writable = (found.st_mode & stat.S_IWOTH or by_group) and not stat.S_ISLNK(found.st_mode) and not shared
        if found.st_uid not in (0, os.getuid()) or writable:
            raise KeyStoreError(f"pathLib: {place} can be changed by other users, so nothing is loaded from there")
    _check_architecture(path)


def _is_our_group(number: int) -> bool:
    """Root's, or one with nobody else in it: a user's own, or an administrators' group that has no members.

    Whose first group it is stands elsewhere, and is not looked for: so one's own first group counts only if it is
    called as its user is. Else everybody may be in it, as in `users`.
    """
    if number == 0:
        return True
    import grp
    import pwd

    try:
        group, us = grp.getgrgid(number), pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    if number == us.pw_gid and group.gr_name != us.pw_name:
        return False
    return set(group.gr_mem) <= {us.pw_name, "root"}


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
def in_words(
    what: str, where: str = "the token", *, before_login: bool = False, open_to_us: bool = False
) -> Iterator[None]:
    """Turns the module's codes into errors that say who must act. Never with a value: not the PIN, not the digest.

    What is unclear `before_login` cannot have been the PIN, and may pass. Nor can it be the PIN where the key is
    `open_to_us`, whatever the module says, unless it says it to a PIN.
    """
    try:
        yield
    except CryptokiError as error:
        if error.at_login and error.name in _UNCLEAR:
            raise PinRefused(
                f"{where}: {what} failed ({error}), and whether the PIN was wrong is not said",
                hint="it was tried once, and is not tried again: tokens lock",
            ) from None
        if error.name in _WRONG_PIN:
            raise PinRefused(
                f"the PIN of {where} is wrong", hint="it was tried once, and is not tried again: tokens lock"
            ) from None
        if error.name == "PIN_LOCKED":
            raise KeyStoreError(
                f"the PIN of {where} is locked", hint="unblock it with the PUK or the security officer's PIN"
            ) from None
        if error.name == "PIN_EXPIRED":
            raise KeyStoreError(f"the PIN of {where} has expired: set a new one") from None
        if error.name == "USER_PIN_NOT_INITIALIZED":
            raise KeyStoreError(f"{where} has no PIN yet: initialise it") from None
        if error.name in _GONE:
            raise KeyStoreAbsent(f"{where} was pulled out, or is not there: {what} ({error})") from None
        kind = NotSigned if open_to_us and not error.at_login else KeyStoreError
        if error.name == "MECHANISM_INVALID":
            raise kind(f"{where} does not offer the mechanism for {what}") from None
        if error.name in ("FUNCTION_REJECTED", "FUNCTION_CANCELED", "CANCEL"):
            raise kind(f"{where}: {what} was not allowed, or not touched in time ({error})") from None
        if before_login and error.name in _UNCLEAR:
            kind = KeyStoreAbsent
        raise kind(f"{where}: {what} failed: {error}") from None
