"""OpenSSL's functions, from the very libraries that Python's `ssl` is linked with; or a refusal that says why not."""

from __future__ import annotations

import ctypes
import os
import ssl
import sys
from ctypes import c_char_p, c_int, c_long, c_size_t, c_uint64, c_ulong, c_void_p
from importlib import import_module
from typing import Any

from kubeauthn.errors import SigningUnsupported

OLDEST = 0x30000010
"""OpenSSL 3.0.1: its predecessor does not look for the signature code in the key's own provider, and crashes."""

WAY_OUT = (
    "use a Python whose ssl links OpenSSL 3 dynamically, as a distribution's does (uv venv --python /usr/bin/python3),"
    " or let one of those run the local proxy: kubeauthn bridge run"
)

_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    # name: result, arguments
    "OpenSSL_version_num": (c_ulong,),
    "ERR_get_error": (c_ulong,),
    "ERR_clear_error": (None,),
    "ERR_set_mark": (c_int,),
    "ERR_pop_to_mark": (c_int,),
    "ERR_error_string_n": (None, c_ulong, c_char_p, c_size_t),
    "CRYPTO_get_ex_new_index": (c_int, c_int, c_long, c_void_p, c_void_p, c_void_p, c_void_p),
    "CRYPTO_free_ex_index": (c_int, c_int, c_int),
    "OSSL_LIB_CTX_new": (c_void_p,),
    "OSSL_PROVIDER_add_builtin": (c_int, c_void_p, c_char_p, c_void_p),
    "OSSL_PROVIDER_load": (c_void_p, c_void_p, c_char_p),
    "OPENSSL_sk_new_null": (c_void_p,),
    "OPENSSL_sk_push": (c_int, c_void_p, c_void_p),
    "OPENSSL_sk_free": (None, c_void_p),
    "OPENSSL_sk_value": (c_void_p, c_void_p, c_int),
    "OPENSSL_sk_dup": (c_void_p, c_void_p),
    "OPENSSL_sk_zero": (None, c_void_p),
    "OPENSSL_sk_set": (c_void_p, c_void_p, c_int, c_void_p),
    "OBJ_nid2sn": (c_void_p, c_int),
    "d2i_X509": (c_void_p, c_void_p, c_void_p, c_long),
    "X509_free": (None, c_void_p),
    "X509_get_pubkey": (c_void_p, c_void_p),
    "EVP_PKEY_free": (None, c_void_p),
    "EVP_PKEY_eq": (c_int, c_void_p, c_void_p),
    "EVP_PKEY_get_params": (c_int, c_void_p, c_void_p),
    "EVP_PKEY_export": (c_int, c_void_p, c_int, c_void_p, c_void_p),
    "EVP_PKEY_can_sign": (c_int, c_void_p),
    "EVP_PKEY_is_a": (c_int, c_void_p, c_char_p),
    "EVP_PKEY_get_size": (c_int, c_void_p),
    "EVP_PKEY_get_bits": (c_int, c_void_p),
    "EVP_PKEY_get_group_name": (c_int, c_void_p, c_char_p, c_size_t, c_void_p),
    "EVP_PKEY_CTX_new_from_name": (c_void_p, c_void_p, c_char_p, c_char_p),
    "EVP_PKEY_CTX_free": (None, c_void_p),
    "EVP_PKEY_CTX_set_params": (c_int, c_void_p, c_void_p),
    "EVP_PKEY_fromdata_init": (c_int, c_void_p),
    "EVP_PKEY_fromdata": (c_int, c_void_p, c_void_p, c_int, c_void_p),
    "EVP_PKEY_digestsign_supports_digest": (c_int, c_void_p, c_void_p, c_char_p, c_char_p),
    "EVP_MD_CTX_new": (c_void_p,),
    "EVP_MD_CTX_free": (None, c_void_p),
    "EVP_DigestVerifyInit_ex": (c_int, c_void_p, c_void_p, c_char_p, c_void_p, c_char_p, c_void_p, c_void_p),
    "EVP_DigestVerify": (c_int, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t),
    "SSL_CTX_use_cert_and_key": (c_int, c_void_p, c_void_p, c_void_p, c_void_p, c_int),
    "SSL_CTX_get_options": (c_uint64, c_void_p),
    "SSL_CTX_set_cert_cb": (None, c_void_p, c_void_p, c_void_p),
    "SSL_get_SSL_CTX": (c_void_p, c_void_p),
    "SSL_get1_session": (c_void_p, c_void_p),
    "SSL_set_session": (c_int, c_void_p, c_void_p),
    "SSL_SESSION_dup": (c_void_p, c_void_p),
    "SSL_SESSION_free": (None, c_void_p),
    "SSL_SESSION_is_resumable": (c_int, c_void_p),
}
_TELLING = ("OSSL_PROVIDER_add_builtin", "SSL_CTX_use_cert_and_key")
"""One of each library: if these are reached, so is the rest."""


class Library:
    """The functions above as attributes, and their addresses for OpenSSL to call them itself."""

    def __init__(self) -> None:
        _check_interpreter()
        _check_version()
        libraries = _open_libraries()
        self.addresses: dict[str, int] = {}
        self._functions: dict[str, Any] = {}
        for name, (result, *arguments) in _PROTOTYPES.items():
            function = next((getattr(library, name) for library in libraries if hasattr(library, name)), None)
            if function is None:
                raise SigningUnsupported(f"{ssl.OPENSSL_VERSION} has no function {name}", hint=WAY_OUT)
            function.restype, function.argtypes = result, arguments
            self._functions[name] = function
            self.addresses[name] = ctypes.cast(function, c_void_p).value or 0
        found = self.OpenSSL_version_num()
        if found != ssl.OPENSSL_VERSION_NUMBER:
            raise SigningUnsupported(
                f"the libcrypto found is {found:#x}, and ssl uses {ssl.OPENSSL_VERSION_NUMBER:#x}", hint=WAY_OUT
            )

    def __getattr__(self, name: str) -> Any:
        try:
            return self._functions[name]
        except KeyError:
            raise AttributeError(name) from None

    def errors(self) -> str:
        """OpenSSL's own words for what just failed. Empties its queue."""
        texts = []
        buffer = ctypes.create_string_buffer(256)
        while code := self.ERR_get_error():
            self.ERR_error_string_n(code, buffer, len(buffer))
            texts.append(buffer.value.decode(errors="replace"))
        return "; ".join(texts) or "no reason given"


def _check_interpreter() -> None:
    name = sys.implementation.name
    if name != "cpython":
        raise SigningUnsupported(f"external keys need CPython, and this is {name}", hint=WAY_OUT)
    if not _is_main_interpreter():
        raise SigningUnsupported("external keys work in the main interpreter, and this is a sub-interpreter")


def _is_main_interpreter() -> bool:
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            module = import_module(name)
            current, main = module.get_current(), module.get_main()
        except (ImportError, AttributeError):
            continue
        # Since 3.13 a pair, of which the second says who owns it.
        return bool((current[0] == main[0]) if isinstance(current, tuple) else (current == main))
    return True


def _check_version() -> None:
    version = ssl.OPENSSL_VERSION
    if not version.startswith("OpenSSL ") or ssl.OPENSSL_VERSION_NUMBER < OLDEST:
        raise SigningUnsupported(
            f"external keys need OpenSSL 3.0.1 or later, and this Python's ssl uses {version}", hint=WAY_OUT
        )


def _open_libraries() -> list[ctypes.PyDLL]:
    """`PyDLL`: these calls take microseconds, and getting the interpreter's lock back can take milliseconds."""
    import _ssl

    path: str | None = getattr(_ssl, "__file__", None)
    if os.name == "nt":
        candidates: list[list[str | None]] = [[f"libssl-3{end}", f"libcrypto-3{end}"] for end in ("", "-x64", "-arm64")]
    else:
        # An extension module resolves through what it is linked with; one built in, through the program.
        candidates = [[path]] if path else []
        candidates.append([None])
    for names in candidates:
        try:
            libraries = [ctypes.PyDLL(name) for name in names]
        except OSError:
            continue
        if all(any(hasattr(library, name) for library in libraries) for name in _TELLING):
            return libraries
    how = "which is built into the interpreter" if path is None else "which keeps its functions to itself"
    raise SigningUnsupported(
        f"external keys need OpenSSL's functions, and this Python has {ssl.OPENSSL_VERSION} linked into its ssl, {how}",
        hint=WAY_OUT,
    )
