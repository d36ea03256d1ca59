"""Where OpenSSL's `SSL_CTX*` and `SSL*` stand in Python's objects: found out at run time, for no layout is promised.

OpenSSL tells the pointers itself, through a callback for every new object. That the callback is heard at all proves
that `ssl` uses the library we found, and not another copy of the same version.
"""

from __future__ import annotations

import ctypes
import ssl
import threading
from collections.abc import Callable
from ctypes import c_int, c_long, c_void_p
from typing import Any

from kubeauthn._io.tls_signer.libcrypto import WAY_OUT, Library
from kubeauthn._io.tls_signer.structures import SSL_CLASS, SSL_CTX_CLASS, address_of, callback
from kubeauthn.errors import SigningUnsupported

_WORD = ctypes.sizeof(c_void_p)
_LOW_OPTIONS = 0xFFFFFFFF


class ContextPointer:
    def __init__(self, library: Library) -> None:
        import _ssl

        self._base: type[Any] = _ssl._SSLContext
        # Not `ssl.SSLContext`: some libraries put another in its place.
        probes = _probes(library, SSL_CTX_CLASS, lambda: self._base(int(ssl.PROTOCOL_TLS_CLIENT)))
        self._offset = _offset(probes, "context")
        for context, pointer in probes:
            if library.SSL_CTX_get_options(pointer) & _LOW_OPTIONS != int(context.options) & _LOW_OPTIONS:
                raise SigningUnsupported("the libssl found is not the one that ssl uses", hint=WAY_OUT)

    def of(self, context: ssl.SSLContext) -> int:
        if not isinstance(context, self._base):
            raise TypeError(f"wanted an ssl.SSLContext, got a {type(context).__name__}")
        return c_void_p.from_address(id(context) + self._offset).value or 0


class ConnectionPointer:
    def __init__(self, library: Library, contexts: ContextPointer) -> None:
        import _ssl

        context: Any = _ssl._SSLContext(int(ssl.PROTOCOL_TLS_CLIENT))
        context.check_hostname = False  # a probe has no name
        probes = _probes(library, SSL_CLASS, lambda: context._wrap_bio(_ssl.MemoryBIO(), _ssl.MemoryBIO(), False))
        self._type = type(probes[0][0])
        self._offset = _offset(probes, "connection")
        if any(library.SSL_get_SSL_CTX(pointer) != contexts.of(context) for _, pointer in probes):
            raise SigningUnsupported("a connection does not lead back to its context", hint=WAY_OUT)

    def of(self, connection: Any) -> int:
        """0 for one that is closed, or none of ours to look into."""
        inner = connection._sslobj
        return (c_void_p.from_address(id(inner) + self._offset).value or 0) if type(inner) is self._type else 0


def _probes(library: Library, kind: int, make: Callable[[], Any]) -> list[tuple[Any, int]]:
    """Two of Python's objects, each with the pointer that OpenSSL made for it."""
    seen: dict[int, list[int]] = {}

    def note(parent: int, *_: object, seen: dict[int, list[int]] = seen) -> None:
        seen.setdefault(threading.get_ident(), []).append(parent)

    heard_of = callback(note, None, c_void_p, c_void_p, c_void_p, c_int, c_long, c_void_p)
    index = library.CRYPTO_get_ex_new_index(kind, 0, None, address_of(heard_of), None, None)
    if index < 0:
        raise SigningUnsupported("OpenSSL takes no callback for new objects", hint=WAY_OUT)
    probes = []
    try:
        for _ in range(2):
            seen.pop(threading.get_ident(), None)
            made = make()
            heard = seen.pop(threading.get_ident(), [])
            if len(heard) != 1 or not heard[0]:
                raise SigningUnsupported("ssl uses another copy of OpenSSL than the one found", hint=WAY_OUT)
            probes.append((made, heard[0]))
    finally:
        library.CRYPTO_free_ex_index(kind, index)
    return probes


def _offset(probes: list[tuple[Any, int]], what: str) -> int:
    offsets = set.intersection(*(_places(made, pointer) for made, pointer in probes))
    if not offsets:
        raise SigningUnsupported(f"OpenSSL's {what} is not found in Python's", hint=WAY_OUT)
    return min(offsets)


def _places(made: Any, pointer: int) -> set[int]:
    """Where in the object, and nowhere beyond it, the pointer stands."""
    words = range(object.__basicsize__, type(made).__basicsize__ - _WORD + 1, _WORD)
    return {offset for offset in words if c_void_p.from_address(id(made) + offset).value == pointer}
