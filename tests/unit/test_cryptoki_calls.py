"""What modules do that SoftHSM2 does not: calls into a module of a few Python functions."""

from __future__ import annotations

import ctypes
from _thread import RLock, allocate_lock
from ctypes import addressof, c_ulong, c_void_p
from typing import Any

import pytest

from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._secret import Secret
from kubeauthn.errors import KeyStoreError
from kubeauthn.plugins import cryptoki, pkcs11_token
from kubeauthn.plugins import cryptoki_table as ck
from kubeauthn.plugins.cryptoki import CryptokiError, Module, Session

P256 = bytes.fromhex("06082a8648ce3d030107")
SHA256, SHA512 = SigningAlgorithm("ec", hash="sha256"), SigningAlgorithm("ec", hash="sha512")
TOO_SMALL, CANCEL, OPERATION_ACTIVE = 0x150, 0x01, 0x90


class Token:
    """One token with one EC key. What it was told is in `told`."""

    def __init__(self, flags: int = ck.LOGIN_REQUIRED, *, always: bool = False) -> None:
        self.flags = flags
        self.told: list[Any] = []
        self.slots = [[7]]
        """The last stays; those before are what it has at one question each."""
        self.values = {
            ck.KEY_TYPE: bytes(c_ulong(ck.EC)),
            ck.EC_PARAMS: P256,
            ck.ALWAYS_AUTHENTICATE: bytes([always]),
        }
        self.gone: set[int] = set()
        """Attributes that are there when their size is asked for, and then are not."""
        self.signing = False
        self.answers: dict[str, list[int]] = {}

    def module(self) -> Module:
        made = object.__new__(Module)
        made._functions = {name: self._function(name) for name in ck.FUNCTIONS if hasattr(self, name)}
        made._gate, made.in_use, made._under_way = allocate_lock(), RLock(), []
        made._initialized, made.generation, made.logins = True, 0, {}
        return made

    def _function(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            planned = self.answers.get(name, [])
            return getattr(self, name)(*arguments) or (planned.pop(0) if planned else 0)

        return call

    def C_GetSlotList(self, present: Any, room: Any, count: Any) -> int:
        slots = self.slots[0] if len(self.slots) == 1 else self.slots.pop(0)
        if room is not None and count._obj.value < len(slots):
            return TOO_SMALL
        if room is not None:
            room[: len(slots)] = slots
        count._obj.value = len(slots)
        return 0

    def C_GetTokenInfo(self, slot: c_ulong, info: Any) -> int:
        info._obj.label, info._obj.flags = b"desk".ljust(32), self.flags
        return 0

    def C_OpenSession(self, slot: Any, flags: Any, _: Any, __: Any, handle: Any) -> int:
        handle._obj.value, self.signing = 1, False
        return 0

    def C_CloseSession(self, handle: Any) -> int:
        self.told.append("closed")
        return 0

    def C_Logout(self, handle: Any) -> int:
        return 0

    def C_Login(self, handle: Any, user: c_ulong, pin: bytes | None, size: c_ulong) -> int:
        self.told.append((user.value, pin))
        return 0

    def C_FindObjectsInit(self, handle: Any, template: Any, size: Any) -> int:
        self.left = [5]
        return 0

    def C_FindObjects(self, handle: Any, room: Any, most: Any, count: Any) -> int:
        room[: len(self.left)], count._obj.value = self.left, len(self.left)
        self.left = []
        return 0

    def C_FindObjectsFinal(self, handle: Any) -> int:
        return 0

    def C_GetAttributeValue(self, handle: Any, item: Any, entry: Any, size: Any) -> int:
        content, entry = self.values[entry._obj.type], entry._obj
        if entry.value is None:
            entry.length = len(content)
        elif entry.type in self.gone:
            entry.length = ck.UNAVAILABLE
        else:
            ctypes.memmove(entry.value, content, len(content))
        return 0

    def C_SignInit(self, handle: Any, mechanism: Any, key: Any) -> int:
        if self.signing:
            return OPERATION_ACTIVE
        self.signing = True
        return 0

    def C_Sign(self, handle: Any, data: bytes, size: c_ulong, room: Any, length: Any) -> int:
        self.told.append(("sign", size.value))
        length._obj.value, self.signing = 64, False
        room[:64] = b"\1" * 64
        return 0


def key_of(token: Token, monkeypatch: pytest.MonkeyPatch, asked: list[str] | None = None) -> pkcs11_token.TokenKey:
    module = token.module()
    monkeypatch.setattr(pkcs11_token, "load_module", lambda path: module)
    place = pkcs11_token.place_of({"pathLib": "/m.so", "slotId": "7", "objectId": "5"})

    def pins(question: str) -> Secret:
        (asked if asked is not None else []).append(question)
        return Secret("1234")

    return pkcs11_token.TokenKey(place, pins)


def test_readers_that_come_while_they_are_listed():
    token = Token()
    token.slots = [[7], [7, 8, 9], [7, 8, 9]]
    assert token.module().slots() == [7, 8, 9]


def test_readers_that_never_stop_coming():
    token = Token()
    token.slots = [list(range(count)) for count in range(1, 200, 2)]
    with pytest.raises(CryptokiError, match="CKR_BUFFER_TOO_SMALL"):
        token.module().slots()


def test_an_attribute_that_goes_between_its_size_and_its_value_is_not_there():
    token = Token()
    token.gone.add(ck.EC_PARAMS)
    assert token.module().open(7).value(5, ck.EC_PARAMS) is None


def test_a_pin_that_is_typed_on_the_reader_is_typed_there_for_each_signature_too(monkeypatch: pytest.MonkeyPatch):
    token, asked = Token(ck.LOGIN_REQUIRED | ck.PROTECTED_AUTHENTICATION_PATH, always=True), []
    key_of(token, monkeypatch, asked).sign(bytes(32), SHA256)
    assert [each for each in token.told if each != "closed"] == [
        (ck.USER, None),
        (ck.CONTEXT_SPECIFIC, None),
        ("sign", 32),
    ]
    assert asked == []


def test_a_key_that_wants_a_pin_on_a_token_that_wants_none(monkeypatch: pytest.MonkeyPatch):
    token, asked = Token(0, always=True), []
    key = key_of(token, monkeypatch, asked)
    key.sign(bytes(32), SHA256)
    key.sign(bytes(32), SHA256)
    assert token.told == [(ck.CONTEXT_SPECIFIC, b"1234"), ("sign", 32)] * 2
    assert asked == ["PIN of the token 'desk'"]


def test_a_touch_is_told_of_when_no_pin_is_asked_for_any_more(monkeypatch: pytest.MonkeyPatch):
    token, asked = Token(always=True), []
    key_of(token, monkeypatch, asked).sign(bytes(32), SHA256, lambda: asked.append("touch"))
    assert asked == ["PIN of the token 'desk'", "touch"]


def test_a_signature_that_was_not_allowed_is_not_in_the_way_of_the_next(monkeypatch: pytest.MonkeyPatch):
    token = Token(ck.LOGIN_REQUIRED | ck.PROTECTED_AUTHENTICATION_PATH, always=True)
    token.answers["C_Login"] = [0, CANCEL]
    key = key_of(token, monkeypatch)
    with pytest.raises(KeyStoreError, match="was not allowed, or not touched in time"):
        key.sign(bytes(32), SHA256)
    assert token.told[-1] == "closed"
    assert key.sign(bytes(32), SHA256)


def test_of_a_hash_longer_than_the_curve_the_first_bytes_are_signed(monkeypatch: pytest.MonkeyPatch):
    token = Token()
    key_of(token, monkeypatch).sign(bytes(64), SHA512)
    assert token.told[-1] == ("sign", 32)


def test_a_handle_of_before_the_module_was_begun_anew_is_nobodys():
    """The module counts from one again, so its number may be that of another key's session."""
    token = Token()
    module = token.module()
    old = module.open(7)
    module.generation += 1
    new = module.open(7)
    with pytest.raises(CryptokiError, match="CKR_SESSION_HANDLE_INVALID"):
        old.find({})
    old.close()
    assert token.told == []
    assert new.find({}) == [5]


def test_a_login_ends_with_the_last_of_those_who_asked_for_it():
    token = Token()
    token.answers["C_Login"] = [0, 0x100, 0]  # the second key's first attempt: already logged in
    module = token.module()
    first, second = module.open(7), module.open(7)
    first.log_in("1234")
    second.log_in("1234")
    first.close()
    assert second.logged_in
    assert not first.logged_in
    second.close()
    assert not second.logged_in


def test_a_wrong_pin_ends_the_others_login_and_they_know():
    token = Token()
    token.answers["C_Login"] = [0, 0x100, 0xA0]
    module = token.module()
    first, second = module.open(7), module.open(7)
    first.log_in("1234")
    with pytest.raises(CryptokiError, match="CKR_PIN_INCORRECT"):
        second.log_in("0000")
    assert not first.logged_in


@pytest.mark.parametrize("size", [65, 97])
def test_a_point_that_a_module_leaves_bare(size: int):
    """Its second byte may be what the length of a wrapped one would be: of one key in 256."""
    bare = bytes([4, size - 2]) + bytes(size - 2)
    assert pkcs11_token._octets(bare) == bare
    assert pkcs11_token._octets(bytes([4, size]) + bare) == bare


def test_a_point_of_the_largest_curve():
    bare = b"\4" + bytes(132)
    assert pkcs11_token._octets(bytes([4, 0x81, 133]) + bare) == bare


def test_another_edwards_curve_is_not_taken_for_ed25519():
    token = Token()
    token.values |= {ck.KEY_TYPE: bytes(c_ulong(ck.EC_EDWARDS)), ck.EC_POINT: bytes([4, 57]) + bytes(57)}
    session: Session = token.module().open(7)
    with pytest.raises(KeyStoreError, match="Ed25519 alone"):
        pkcs11_token._public_key_info(session, 5)


@pytest.mark.parametrize("around", ["", "0420", "032100"], ids=["bare", "octet string", "bit string"])
def test_every_way_in_which_modules_write_an_ed25519_key(around: str):
    """Version 3.0 of the standard was read in two ways, and version 3.1 has a third."""
    token, point = Token(), bytes(range(32))
    token.values |= {ck.KEY_TYPE: bytes(c_ulong(ck.EC_EDWARDS)), ck.EC_POINT: bytes.fromhex(around) + point}
    info = pkcs11_token._public_key_info(token.module().open(7), 5)
    assert info == bytes.fromhex("302a300506032b6570032100") + point


def test_numbers_and_signatures_longer_than_any():
    token = Token()
    token.values[ck.KEY_TYPE] = b"\xff" * 4096
    session: Session = token.module().open(7)
    assert session.number(5, ck.KEY_TYPE) is None
    token.C_Sign = lambda *given: setattr(given[4]._obj, "value", ck.UNAVAILABLE) or 0  # type: ignore[method-assign]
    with pytest.raises(KeyStoreError, match="the module says that it made a signature of"):
        session.sign(5, bytes(32), ck.ECDSA)


def test_a_module_without_a_beginning_is_refused(monkeypatch: pytest.MonkeyPatch):
    table = ck.FunctionList()

    @ctypes.CFUNCTYPE(c_ulong, c_void_p)
    def give(place: int) -> int:
        c_void_p.from_address(place).value = addressof(table)
        return 0

    class Library:
        C_GetFunctionList = give

    monkeypatch.setattr(cryptoki.ctypes, "CDLL", lambda path: Library)
    with pytest.raises(OSError, match="it has no C_Initialize"):
        Module("/m.so")
