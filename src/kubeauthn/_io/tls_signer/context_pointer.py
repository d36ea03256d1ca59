"""Where OpenSSL's `SSL_CTX*` stands in a Python context: found out at run time, for no layout is promised.

OpenSSL tells the pointer itself, through a callback for every new SSL_CTX. That the callback is heard at all proves
that `ssl` uses the library we found, and not another copy of the same version.
"""

from __future__ import annotations

import ctypes
import ssl
import threading
from ctypes import c_int, c_long, c_void_p
from typing import Any

from kubeauthn._io.tls_signer.libcrypto import WAY_OUT, Library
from kubeauthn._io.tls_signer.structures import SSL_CTX_CLASS, address_of, callback
from kubeauthn.errors import SigningUnsupported

_WORD = ctypes.sizeof(c_void_p)
_LOW_OPTIONS = 0xFFFFFFFF


class ContextPointer:
    def __init__(self, library: Library) -> None:
        import _ssl

        self._base: type[Any] = _ssl._SSLContext
        probes = self._probes(library)
        offsets = set.intersection(*(_places(context, pointer) for context, pointer in probes))
        if not offsets:
            raise SigningUnsupported("OpenSSL's context is not found in Python's", hint=WAY_OUT)
        self._offset = min(offsets)
        for context, pointer in probes:
            if library.SSL_CTX_get_options(pointer) & _LOW_OPTIONS != int(context.options) & _LOW_OPTIONS:
                raise SigningUnsupported("the libssl found is not the one that ssl uses", hint=WAY_OUT)

    def of(self, context: ssl.SSLContext) -> int:
        if not isinstance(context, self._base):
            raise TypeError(f"wanted an ssl.SSLContext, got a {type(context).__name__}")
        return c_void_p.from_address(id(context) + self._offset).value or 0

    def _probes(self, library: Library) -> list[tuple[Any, int]]:
        seen: dict[int, list[int]] = {}

        def note(parent: int, *_: object, seen: dict[int, list[int]] = seen) -> None:
            seen.setdefault(threading.get_ident(), []).append(parent)

        heard_of = callback(note, None, c_void_p, c_void_p, c_void_p, c_int, c_long, c_void_p)
        index = library.CRYPTO_get_ex_new_index(SSL_CTX_CLASS, 0, None, address_of(heard_of), None, None)
        if index < 0:
            raise SigningUnsupported("OpenSSL takes no callback for new contexts", hint=WAY_OUT)
        probes = []
        try:
            for _ in range(2):
                seen.pop(threading.get_ident(), None)
                # Not `ssl.SSLContext`: some libraries put another in its place.
                context = self._base(int(ssl.PROTOCOL_TLS_CLIENT))
                heard = seen.pop(threading.get_ident(), [])
                if len(heard) != 1 or not heard[0]:
                    raise SigningUnsupported("ssl uses another copy of OpenSSL than the one found", hint=WAY_OUT)
                probes.append((context, heard[0]))
        finally:
            library.CRYPTO_free_ex_index(SSL_CTX_CLASS, index)
        return probes


def _places(context: Any, pointer: int) -> set[int]:
    """Where in the object, and nowhere beyond it, the pointer stands."""
    words = range(object.__basicsize__, type(context).__basicsize__ - _WORD + 1, _WORD)
    return {offset for offset in words if c_void_p.from_address(id(context) + offset).value == pointer}
