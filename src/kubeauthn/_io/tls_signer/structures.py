"""OpenSSL's structures and numbers, as `openssl/core.h` and `core_dispatch.h` have them; and what never dies."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, Structure, c_char_p, c_int, c_size_t, c_uint, c_void_p
from typing import Any, TypeVar

Kept = TypeVar("Kept")

PARAM_INTEGER, PARAM_UNSIGNED, PARAM_TEXT, PARAM_BYTES, PARAM_TEXT_POINTER = 1, 2, 4, 5, 6

OPERATION_KEYMGMT, OPERATION_SIGNATURE = 10, 12
PROVIDER_QUERY_OPERATION = 1027

KEYMGMT_NEW = 1
KEYMGMT_FREE = 10
KEYMGMT_GET_PARAMS = 11
KEYMGMT_GETTABLE_PARAMS = 12
KEYMGMT_QUERY_OPERATION_NAME = 20
KEYMGMT_HAS = 21
KEYMGMT_MATCH = 23
KEYMGMT_IMPORT = 40
KEYMGMT_IMPORT_TYPES = 41
KEYMGMT_EXPORT = 42
KEYMGMT_EXPORT_TYPES = 43

SIGNATURE_NEWCTX = 1
SIGNATURE_DIGEST_SIGN_INIT = 8
SIGNATURE_DIGEST_SIGN = 11
SIGNATURE_FREECTX = 16
SIGNATURE_DUPCTX = 17
SIGNATURE_SET_CTX_PARAMS = 20
SIGNATURE_SETTABLE_CTX_PARAMS = 21

KEYPAIR_SELECTION = 0x87
PKCS1_PADDING, PSS_PADDING = 1, 6
SSL_CLASS, SSL_CTX_CLASS = 0, 1
"""`CRYPTO_EX_INDEX_SSL` and `CRYPTO_EX_INDEX_SSL_CTX`."""


class Dispatch(Structure):
    _fields_ = (("function_id", c_int), ("function", c_void_p))


class Algorithm(Structure):
    _fields_ = (("names", c_char_p), ("properties", c_char_p), ("implementation", c_void_p), ("description", c_char_p))


class Param(Structure):
    _fields_ = (
        ("key", c_char_p),
        ("data_type", c_uint),
        ("data", c_void_p),
        ("data_size", c_size_t),
        ("return_size", c_size_t),
    )


_PARAM_SIZE = ctypes.sizeof(Param)
_kept: list[object] = []


def keep(thing: Kept) -> Kept:
    """Never let go of it, not even at the end of the interpreter: OpenSSL may still call it then."""
    _kept.append(thing)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    return thing


def callback(function: Callable[..., Any], result: Any, *arguments: Any) -> Any:
    """A Python function for OpenSSL to call, kept for ever."""
    return keep(CFUNCTYPE(result, *arguments)(function))


def dispatch_table(*entries: tuple[int, object]) -> int:
    """The address of an OSSL_DISPATCH array. An entry's function is an address, or a ctypes callback."""
    table = (Dispatch * (len(entries) + 1))()
    for slot, (number, function) in zip(table, entries, strict=False):
        slot.function_id = number
        slot.function = function if isinstance(function, int) else address_of(function)
    return ctypes.addressof(keep(table))


def algorithm_table(properties: bytes, *entries: tuple[bytes, int]) -> int:
    """The address of an OSSL_ALGORITHM array."""
    table = (Algorithm * (len(entries) + 1))()
    for slot, (names, implementation) in zip(table, entries, strict=False):
        slot.names, slot.properties = names, properties
        slot.implementation, slot.description = implementation, b"a key outside the process"
    return ctypes.addressof(keep(table))


def param_list(*entries: tuple[bytes, int]) -> int:
    """The address of an OSSL_PARAM array that only names what there is."""
    table = (Param * (len(entries) + 1))()
    for slot, (key, data_type) in zip(table, entries, strict=False):
        slot.key, slot.data_type, slot.return_size = key, data_type, c_size_t(-1).value
    return ctypes.addressof(keep(table))


def address_of(function: object) -> int:
    return ctypes.cast(function, c_void_p).value or 0  # type: ignore[arg-type]  # a ctypes callback


def read_params(address: int | None) -> dict[str, int | str | bytes | None]:
    """An OSSL_PARAM array that OpenSSL passed."""
    values: dict[str, int | str | bytes | None] = {}
    while address:
        entry = Param.from_address(address)
        if entry.key is None:
            break
        values[entry.key.decode()] = _value(entry)
        address += _PARAM_SIZE
    return values


def _value(entry: Param) -> int | str | bytes | None:
    if not entry.data:
        return None
    if entry.data_type == PARAM_TEXT_POINTER:
        return (c_char_p.from_address(entry.data).value or b"").decode()
    content = ctypes.string_at(entry.data, entry.data_size)
    if entry.data_type in (PARAM_INTEGER, PARAM_UNSIGNED):
        return int.from_bytes(content, sys.byteorder, signed=entry.data_type == PARAM_INTEGER)
    return content.split(b"\0")[0].decode() if entry.data_type == PARAM_TEXT else content
