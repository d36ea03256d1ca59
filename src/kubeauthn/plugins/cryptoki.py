"""A PKCS#11 module, called by ctypes: slots, tokens, sessions, objects and signatures, and nothing beyond.

A signer is started for every handshake that is not resumed, and this starts in a tenth of the time that a complete
binding takes to be imported: docs/adr/0016. Every call that the module does not answer with "OK" is a `CryptokiError`.
"""

from __future__ import annotations

import atexit
import ctypes
from _thread import RLock, allocate_lock  # `threading` is not needed, and would have to be imported
from ctypes import byref, c_ubyte, c_ulong, c_void_p, sizeof

from kubeauthn.errors import KeyStoreError
from kubeauthn.plugins import cryptoki_table as ck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MOST_SLOTS = 1024
_SLOT_ATTEMPTS = 5
"""To list them: readers may come between the question for their number and the one for the list."""
MOST_OBJECTS = 1024
LARGEST_VALUE = 64 * 1024
LARGEST_SIGNATURE = 2048
"""Of an RSA key of 16384 bits."""
_WAIT_SECONDS = 30.0


class CryptokiError(KeyStoreError):
    """What a module answered, by the standard's name."""

    def __init__(self, code: int) -> None:
        self.name = ck.RESULTS.get(code, f"{code:#x}")
        self.at_login = False
        """Whether it answered a PIN."""
        super().__init__(f"CKR_{self.name}")


class Module:
    """One module, loaded and initialised; one of them per file and process, because its logins are the process's."""

    def __init__(self, path: str) -> None:
        """`OSError` for a file that cannot be loaded or is no such module."""
        library = ctypes.CDLL(path)
        try:
            entry = library.C_GetFunctionList
        except AttributeError:
            raise OSError("it has no C_GetFunctionList: not a PKCS#11 module") from None
        entry.restype, entry.argtypes = c_ulong, (c_void_p,)
        place = c_void_p()
        _check(entry(byref(place)))
        if not place.value:
            raise OSError("its C_GetFunctionList gives nothing")
        addresses = ck.FunctionList.from_address(place.value).functions
        self._functions: dict[str, Callable[..., int]] = {
            name: ctypes.CFUNCTYPE(c_ulong)(address)
            for name, address in zip(ck.FUNCTIONS, addresses, strict=True)
            if address
        }
        missing = [name for name in ("C_Initialize", "C_Finalize") if name not in self._functions]
        if missing:
            raise OSError(f"it has no {missing[0]}")
        self.in_use = RLock()
        """Held by one key at a time: what one does to a login or to the module would hit another in the middle."""
        self.generation = 0
        """How often it was begun anew: handles of an earlier time may since be those of somebody else's session."""
        self.logins: dict[int, set[Session]] = {}
        """By slot, who asked for its login; the login itself is the process's."""
        self._gate = allocate_lock()
        self._under_way: list[None] = []
        self._initialized = False
        self.initialize()
        atexit.register(self._finalize_at_exit)

    def call(self, name: str, *arguments: Any) -> None:
        """Numbers are passed as `c_ulong`, everything else by address. Other threads run meanwhile."""
        with self._gate:
            function = self._functions.get(name)
            if function is None:
                raise CryptokiError(0x54)
            self._under_way.append(None)
        try:
            code = function(*arguments)
        finally:
            self._under_way.pop()
        _check(code)

    def initialize(self) -> None:
        """Nothing happens where it is already."""
        with self._gate:
            if not self._initialized:
                self._initialize()

    def reinitialize(self) -> None:
        """All sessions end. The standard allows it only while no other thread is in a call, so that is waited for."""
        from time import monotonic, sleep

        until = monotonic() + _WAIT_SECONDS
        with self._gate:
            while self._under_way:
                if monotonic() > until:
                    raise KeyStoreError("another key of the same module is in use: its token does not answer")
                sleep(0.01)
            self.generation += 1
            self.logins.clear()
            self._finalize()
            self._initialize()

    def description(self) -> str:
        info = ck.Info()
        self.call("C_GetInfo", byref(info))
        return _text(info, "description")

    def slots(self) -> list[int]:
        count = c_ulong()
        for left in reversed(range(_SLOT_ATTEMPTS)):
            # The question for their number is also the one at which a module looks for readers that have come or gone.
            self.call("C_GetSlotList", c_ubyte(0), None, byref(count))
            if count.value > MOST_SLOTS:
                raise KeyStoreError(f"the module says that it has {count.value} slots")
            found = (c_ulong * (count.value + 1))()
            count.value += 1
            try:
                self.call("C_GetSlotList", c_ubyte(0), found, byref(count))
                break
            except CryptokiError as error:
                if error.name != "BUFFER_TOO_SMALL" or not left:
                    raise
        return list(found[: count.value])

    def token(self, slot: int) -> Token:
        """What the token in that slot says of itself, now."""
        info = ck.TokenInfo()
        self.call("C_GetTokenInfo", c_ulong(slot), byref(info))
        return Token(slot, _text(info, "label"), _text(info, "serial"), int(info.flags))

    def open(self, slot: int, *, writing: bool = False) -> Session:
        handle = c_ulong()
        flags = ck.SERIAL_SESSION | (ck.RW_SESSION if writing else 0)
        self.call("C_OpenSession", c_ulong(slot), c_ulong(flags), None, None, byref(handle))
        return Session(self, slot, handle)

    def _initialize(self) -> None:
        # Threads may call: an agent has one per connection. A module that knows no threads is still of use without.
        arguments = ck.InitializeArgs(flags=ck.OS_LOCKING_OK)
        code = self._functions["C_Initialize"](byref(arguments))
        if ck.RESULTS.get(code) in ("CANT_LOCK", "ARGUMENTS_BAD"):
            code = self._functions["C_Initialize"](None)
        if ck.RESULTS.get(code) != "CRYPTOKI_ALREADY_INITIALIZED":
            _check(code)
        self._initialized = True

    def _finalize_at_exit(self) -> None:
        # Not while a thread is in a call, as one of an agent's may be: the standard leaves open what happens then.
        if not self._under_way:
            self._finalize()

    def _finalize(self) -> None:
        self._initialized = False
        self._functions["C_Finalize"](None)


class Token:
    __slots__ = ("flags", "label", "serial", "slot")

    def __init__(self, slot: int, label: str, serial: str, flags: int) -> None:
        self.slot, self.label, self.serial, self.flags = slot, label, serial, flags


class Session:
    """An open session. Objects are handles of it."""

    def __init__(self, module: Module, slot: int, handle: c_ulong) -> None:
        self._module = module
        self._slot = slot
        self._handle = handle
        self._generation = module.generation

    @property
    def stands(self) -> bool:
        """Not so once the module was begun anew."""
        return self._generation == self._module.generation

    @property
    def logged_in(self) -> bool:
        return self in self._module.logins.get(self._slot, ())

    def log_in(self, pin: str | None) -> None:
        """One attempt. None for a PIN that is typed on the reader's own keys."""
        others: set[Session] = set()
        try:
            self._log_in(ck.USER, pin)
        except CryptokiError as error:
            if error.name != "USER_ALREADY_LOGGED_IN":
                raise
            # By another key of this process. The PIN at hand is to prove itself all the same.
            others = self._module.logins.pop(self._slot, others)
            self._call("C_Logout")
            self._log_in(ck.USER, pin)
        self._module.logins[self._slot] = others | {self}

    def close(self) -> None:
        if not self.stands:
            return
        logins = self._module.logins.get(self._slot, set())
        last = logins == {self}
        logins.discard(self)
        try:
            if last:
                self._call("C_Logout")
        finally:
            self._call("C_CloseSession")

    def find(self, wanted: Mapping[int, int | str | bytes]) -> list[int]:
        """The objects with these attributes."""
        template, kept = _template(wanted)
        self._call("C_FindObjectsInit", template, c_ulong(len(wanted)))
        found: list[int] = []
        try:
            some, count = (c_ulong * 64)(), c_ulong(1)
            while count.value and len(found) < MOST_OBJECTS:
                self._call("C_FindObjects", some, c_ulong(len(some)), byref(count))
                found += some[: count.value]
        finally:
            self._call("C_FindObjectsFinal")
        del kept
        return found

    def value(self, item: int, attribute: int) -> bytes | None:
        """None where the module does not know it, or does not give it out."""
        entry = ck.Attribute(attribute, None, 0)
        try:
            self._call("C_GetAttributeValue", c_ulong(item), byref(entry), c_ulong(1))
            if entry.length == ck.UNAVAILABLE:
                return None
            if entry.length > LARGEST_VALUE:
                raise KeyStoreError(f"the token has an attribute of {entry.length} bytes")
            room = ctypes.create_string_buffer(entry.length or 1)
            entry.value = ctypes.addressof(room)
            self._call("C_GetAttributeValue", c_ulong(item), byref(entry), c_ulong(1))
        except CryptokiError as error:
            if error.name in ("ATTRIBUTE_TYPE_INVALID", "ATTRIBUTE_SENSITIVE"):
                return None
            raise
        return room.raw[: entry.length] if entry.length <= len(room) else None

    def number(self, item: int, attribute: int) -> int | None:
        """A CK_ULONG, or a CK_BBOOL of one byte. None, too, for what is longer than either."""
        content = self.value(item, attribute)
        return int.from_bytes(content, _byte_order()) if content and len(content) <= sizeof(c_ulong) else None

    def text(self, item: int, attribute: int) -> str:
        return (self.value(item, attribute) or b"").decode(errors="replace")

    def sign(
        self,
        key: int,
        data: bytes,
        mechanism: int,
        parameter: ck.PssParameters | None = None,
        *,
        again: tuple[str | None] | None = None,
    ) -> bytes:
        """`again` is the PIN, for keys that want one with every signature; (None,) where it is typed on the reader."""
        how = ck.Mechanism(mechanism, None, 0)
        if parameter is not None:
            how.parameter, how.length = ctypes.addressof(parameter), sizeof(parameter)
        self._call("C_SignInit", byref(how), c_ulong(key))
        if again is not None:
            self._log_in(ck.CONTEXT_SPECIFIC, *again)
        room, size = ctypes.create_string_buffer(LARGEST_SIGNATURE), c_ulong(LARGEST_SIGNATURE)
        self._call("C_Sign", data, c_ulong(len(data)), room, byref(size))
        if size.value > LARGEST_SIGNATURE:
            raise KeyStoreError(f"the module says that it made a signature of {size.value} bytes")
        return room.raw[: size.value]

    def create(self, attributes: Mapping[int, int | str | bytes]) -> None:
        template, kept = _template(attributes)
        self._call("C_CreateObject", template, c_ulong(len(attributes)), byref(c_ulong()))
        del kept

    def destroy(self, item: int) -> None:
        self._call("C_DestroyObject", c_ulong(item))

    def _call(self, name: str, *arguments: Any) -> None:
        if not self.stands:
            raise CryptokiError(0xB3)  # SESSION_HANDLE_INVALID: the number may be another's by now
        self._module.call(name, self._handle, *arguments)

    def _log_in(self, user: int, pin: str | None) -> None:
        content = pin.encode("utf-8", "surrogateescape") if pin is not None else None
        try:
            self._call("C_Login", c_ulong(user), content, c_ulong(len(content or b"")))
        except CryptokiError as error:
            error.at_login = True
            raise


def _check(code: int) -> None:
    if code != ck.OK:
        raise CryptokiError(code)


def _template(attributes: Mapping[int, int | str | bytes]) -> tuple[Any, list[Any]]:
    """The array, and what must live as long as it: the values that it points to."""
    kept: list[Any] = []
    array = (ck.Attribute * len(attributes))()
    for slot, (name, value) in zip(array, attributes.items(), strict=True):
        if isinstance(value, bool):
            content = bytes([value])  # CK_BBOOL
        elif isinstance(value, int):
            content = bytes(c_ulong(value))
        else:
            content = value.encode() if isinstance(value, str) else value
        kept.append(ctypes.create_string_buffer(content, len(content) or 1))
        slot.type, slot.value, slot.length = name, ctypes.addressof(kept[-1]), len(content)
    return array, kept


def _text(info: ctypes.Structure, name: str) -> str:
    """A field that is filled up with blanks. By its place: ctypes ends such a field at a NUL."""
    field = getattr(type(info), name)
    content = ctypes.string_at(ctypes.addressof(info) + field.offset, field.size)
    return content.rstrip(b" \0").decode(errors="replace")


def _byte_order() -> Any:
    import sys

    return sys.byteorder
