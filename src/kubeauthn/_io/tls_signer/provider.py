"""The provider: tables of functions that OpenSSL calls, loaded into a library context of our own.

The default library context is not touched, so nothing else in the process can meet these algorithms. A key is an
ordinary public EVP_PKEY, the certificate's own, so nearly every entry is a function of libcrypto itself, and nothing
that frees needs the interpreter. Only signing calls into Python. Callbacks use no module globals and never raise.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from typing import Any

from kubeauthn._io.tls_signer import structures as openssl
from kubeauthn._io.tls_signer.libcrypto import WAY_OUT, Library
from kubeauthn._io.tls_signer.signature import HASH_NAMES, ExternalKey, make_signature
from kubeauthn._io.tls_signer.structures import callback
from kubeauthn.errors import SigningFailed, SigningUnsupported

NAME = b"kubeauthn-signer"
_PROPERTIES = b"provider=kubeauthn-signer"

KEY_TYPES = (b"RSA", b"RSA-PSS", b"EC", b"ED25519")
_KEY_NAMES = (
    b"RSA:rsaEncryption:1.2.840.113549.1.1.1",
    b"RSA-PSS:RSASSA-PSS:1.2.840.113549.1.1.10",
    b"EC:id-ecPublicKey:1.2.840.10045.2.1",
    b"ED25519:1.3.101.112",
)

# A signature context is an OPENSSL_STACK, made, copied and freed by libcrypto, with these places:
_KEY, _HASH, _PADDING, _SALT, _MGF1 = range(5)
_SALT_SHIFT = 16
"""Added to the salt's length, so that -1 is no negative pointer."""
_LONGEST_SALT = 4096

_HASH_NUMBERS = {
    spelling: number
    for number, name in enumerate(HASH_NAMES, 1)
    for spelling in (name.upper(), name.upper().replace("SHA", "SHA2-"), name.upper().replace("SHA", "SHA-"))
}


class PerThread(threading.local):
    """What passes between a callback and the call that led to it, on the same thread."""

    pending: int | None = None
    """The key to be handed out next."""
    answered: int | None = None
    """The key about which OpenSSL last asked."""
    asked = False
    """Whether the other end asked for a certificate."""
    signed = False
    """Whether a signature was asked for."""
    failed: BaseException | None = None


class Provider:
    def __init__(self, library: Library) -> None:
        self.keys: weakref.WeakValueDictionary[int, ExternalKey] = weakref.WeakValueDictionary()
        """By the address of the certificate's public key."""
        self.thread = PerThread()
        self.libctx = _load(library, _operations(library, self.keys, self.thread))
        self.when_asked = _when_asked(self.thread)
        """The address of what OpenSSL calls when the other end asks for a certificate."""


def _when_asked(thread: PerThread) -> int:
    def asked(_connection: int, _context: int | None, thread: PerThread = thread) -> int:
        try:
            thread.asked = True
            return 1
        except BaseException as error:  # an interrupt
            thread.failed = error
            return 0

    return openssl.address_of(callback(asked, c_int, c_void_p, c_void_p))


def _operations(library: Library, keys: weakref.WeakValueDictionary[int, ExternalKey], thread: PerThread) -> int:
    """The stack, indexed by operation, that is the provider's answer to "what can you do"."""
    keymgmt = _keymgmt_table(library, thread)
    signature = _signature_table(library, keys, thread)
    # What `OBJ_nid2sn` says for the number of the signature operation is the name of our signature: that makes it a
    # constant function in C for KEYMGMT's question. No provider of the default context has one of that name.
    signature_name = ctypes.string_at(library.OBJ_nid2sn(openssl.OPERATION_SIGNATURE))
    offered = {
        openssl.OPERATION_KEYMGMT: openssl.algorithm_table(_PROPERTIES, *((names, keymgmt) for names in _KEY_NAMES)),
        openssl.OPERATION_SIGNATURE: openssl.algorithm_table(_PROPERTIES, (signature_name, signature)),
    }
    stack: int = library.OPENSSL_sk_new_null()
    for operation in range(max(offered) + 1):
        if not library.OPENSSL_sk_push(stack, offered.get(operation)):
            raise MemoryError
    return stack


def _keymgmt_table(library: Library, thread: PerThread) -> int:
    nothing = openssl.param_list()
    address = library.addresses

    def new(_provider: int | None, thread: PerThread = thread) -> int | None:
        # Only an installation has a key pending; any other attempt to import one fails.
        pending, thread.pending = thread.pending, None
        return pending

    def import_key(_key: int, _selection: int, _params: int) -> int:
        return 1

    def types(_selection: int, nothing: int = nothing) -> int:
        return nothing

    def gettable(_provider: int, nothing: int = nothing) -> int:
        return nothing

    return openssl.dispatch_table(
        (openssl.KEYMGMT_NEW, callback(new, c_void_p, c_void_p)),
        (openssl.KEYMGMT_IMPORT, callback(import_key, c_int, c_void_p, c_int, c_void_p)),
        (openssl.KEYMGMT_IMPORT_TYPES, callback(types, c_void_p, c_int)),
        (openssl.KEYMGMT_FREE, address["EVP_PKEY_free"]),
        (openssl.KEYMGMT_HAS, address["EVP_PKEY_can_sign"]),
        (openssl.KEYMGMT_MATCH, address["EVP_PKEY_eq"]),
        (openssl.KEYMGMT_GET_PARAMS, address["EVP_PKEY_get_params"]),
        (openssl.KEYMGMT_GETTABLE_PARAMS, callback(gettable, c_void_p, c_void_p)),
        (openssl.KEYMGMT_EXPORT, address["EVP_PKEY_export"]),
        (openssl.KEYMGMT_EXPORT_TYPES, callback(types, c_void_p, c_int)),
        (openssl.KEYMGMT_QUERY_OPERATION_NAME, address["OBJ_nid2sn"]),
    )


def _signature_table(library: Library, keys: weakref.WeakValueDictionary[int, ExternalKey], thread: PerThread) -> int:
    settable_list = openssl.param_list(
        (b"digest", openssl.PARAM_TEXT),
        (b"pad-mode", openssl.PARAM_TEXT),
        (b"pad-mode", openssl.PARAM_INTEGER),
        (b"saltlen", openssl.PARAM_TEXT),
        (b"saltlen", openssl.PARAM_INTEGER),
        (b"mgf1-digest", openssl.PARAM_TEXT),
    )
    push, zero, get, put = (
        library.OPENSSL_sk_push,
        library.OPENSSL_sk_zero,
        library.OPENSSL_sk_value,
        library.OPENSSL_sk_set,
    )
    numbers, read_params, apply, sign = _HASH_NUMBERS, openssl.read_params, _apply, make_signature
    string_at, memmove, size_at = ctypes.string_at, ctypes.memmove, c_size_t.from_address
    fresh = (0, openssl.PKCS1_PADDING, _SALT_SHIFT - 1, 0)

    def digest_sign_init(context: int, digest: bytes | None, public_key: int | None, params: int | None) -> int:
        try:
            if public_key:
                thread.answered = public_key
                zero(context)
                if not all([push(context, value) for value in (public_key, *fresh)]):
                    return 0
            key = keys[get(context, _KEY)]
            # "No" here is how OpenSSL learns that a scheme is not for this key.
            if bool(digest) == (key.kind == "ed25519"):
                return 0
            if digest:
                number = numbers.get(digest.decode().upper())
                if number is None:
                    return 0
                put(context, _HASH, number)
            if key.kind == "rsa-pss":
                put(context, _PADDING, openssl.PSS_PADDING)
            return apply(put, context, read_params(params))
        except BaseException as error:
            thread.failed = error
            return 0

    def set_params(context: int, params: int | None) -> int:
        try:
            return apply(put, context, read_params(params))
        except BaseException as error:
            thread.failed = error
            return 0

    def settable(_context: int, _provider: int) -> int:
        return settable_list

    def digest_sign(context: int, out: int | None, size: int, room: int, message: int, length: int) -> int:
        try:
            public_key = get(context, _KEY)
            key = keys[public_key]
            if not out:
                size_at(size).value = key.largest
                return 1
            thread.signed = True
            number, mgf1 = get(context, _HASH) or 0, get(context, _MGF1) or 0
            if mgf1 not in (0, number):
                raise SigningFailed(
                    "a signer is not asked for PSS with one hash for the message and another for its mask"
                )
            algorithm = key.algorithm(number, get(context, _PADDING), (get(context, _SALT) or 0) - _SALT_SHIFT)
            signature = sign(library, key, public_key, algorithm, string_at(message, length))
            if len(signature) > room:
                raise ValueError(f"a signature of {len(signature)} bytes where there is room for {room}")
            memmove(out, signature, len(signature))
            size_at(size).value = len(signature)
            return 1
        except BaseException as error:
            thread.failed = error
            return 0

    return openssl.dispatch_table(
        (openssl.SIGNATURE_NEWCTX, library.addresses["OPENSSL_sk_new_null"]),
        (openssl.SIGNATURE_FREECTX, library.addresses["OPENSSL_sk_free"]),
        (openssl.SIGNATURE_DUPCTX, library.addresses["OPENSSL_sk_dup"]),
        (openssl.SIGNATURE_DIGEST_SIGN_INIT, callback(digest_sign_init, c_int, c_void_p, c_char_p, c_void_p, c_void_p)),
        (
            openssl.SIGNATURE_DIGEST_SIGN,
            callback(digest_sign, c_int, c_void_p, c_void_p, c_void_p, c_size_t, c_void_p, c_size_t),
        ),
        (openssl.SIGNATURE_SET_CTX_PARAMS, callback(set_params, c_int, c_void_p, c_void_p)),
        (openssl.SIGNATURE_SETTABLE_CTX_PARAMS, callback(settable, c_void_p, c_void_p, c_void_p)),
    )


def _apply(put: Any, context: int, params: dict[str, int | str | bytes | None]) -> int:
    """OpenSSL spells the same thing as a text here and as a number there; what is not known is passed over."""
    for name, value in params.items():
        if name in ("digest", "mgf1-digest") and value:
            number = _HASH_NUMBERS.get(str(value).upper())
            if number is None:
                return 0
            put(context, _HASH if name == "digest" else _MGF1, number)
        elif name == "pad-mode":
            padding = {"pkcs1": openssl.PKCS1_PADDING, "pss": openssl.PSS_PADDING}.get(str(value), value)
            if padding not in (openssl.PKCS1_PADDING, openssl.PSS_PADDING):
                return 0
            put(context, _PADDING, padding)
        elif name == "saltlen":
            text = str(value)
            salt = -1 if text == "digest" else int(text) if text.lstrip("-").isdecimal() else -2
            if not -1 <= salt <= _LONGEST_SALT:
                return 0
            put(context, _SALT, salt + _SALT_SHIFT)
    return 1


def _load(library: Library, operations: int) -> int:
    # No teardown on purpose: the provider is never unloaded.
    table = openssl.dispatch_table((openssl.PROVIDER_QUERY_OPERATION, library.addresses["OPENSSL_sk_value"]))

    def initialize(_handle: int, _core: int, out: Any, context: Any) -> int:
        out[0] = table
        context[0] = operations
        return 1

    entry = callback(initialize, c_int, c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p))
    libctx: int = library.OSSL_LIB_CTX_new()
    if not (
        libctx
        and library.OSSL_PROVIDER_add_builtin(libctx, NAME, openssl.address_of(entry))
        and library.OSSL_PROVIDER_load(libctx, NAME)
    ):
        raise SigningUnsupported(f"OpenSSL does not take the provider: {library.errors()}", hint=WAY_OUT)
    return libctx
