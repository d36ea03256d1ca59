"""One signature: what TLS asks for, given to the signer, and verified before OpenSSL gets it."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from ctypes import byref, c_int, c_void_p

from kubeauthn._core.signerwire import HASH_BYTES, SigningAlgorithm
from kubeauthn._io.tls_signer.libcrypto import Library
from kubeauthn._io.tls_signer.structures import PARAM_INTEGER, PARAM_TEXT, PSS_PADDING, Param
from kubeauthn.errors import SigningFailed

Sign = Callable[[bytes, SigningAlgorithm], bytes]
"""From a digest (Ed25519: the whole message) to the signature, ECDSA in DER. Called from any thread."""

HASH_NAMES = tuple(HASH_BYTES)
"""By their place in this list, from 1, hashes are known to the provider. No SHA-1: nobody should sign with it."""


class ExternalKey:
    """Python's side of one key. The context holds the only lasting reference to it."""

    __slots__ = ("__weakref__", "bits", "kind", "largest", "sign", "unfit")

    def __init__(self, sign: Sign, kind: str, *, largest: int, bits: int) -> None:
        self.sign = sign
        self.kind = kind
        """`rsa`, `rsa-pss` (a key for PSS alone), `ec` or `ed25519`."""
        self.largest = largest
        """The size of its largest signature."""
        self.bits = bits
        self.unfit: Callable[[str], None] | None = None
        """To be told of a signature that is not by this key."""

    def algorithm(self, hash_number: int, padding: int, salt: int) -> SigningAlgorithm:
        """`salt` is -1 where it is to be as long as the hash."""
        if self.kind == "ed25519":
            return SigningAlgorithm("ed25519")
        name = HASH_NAMES[hash_number - 1]
        if self.kind == "ec":
            return SigningAlgorithm("ec", hash=name)
        if padding == PSS_PADDING:
            return SigningAlgorithm("rsa", padding="pss", hash=name, salt=HASH_BYTES[name] if salt < 0 else salt)
        return SigningAlgorithm("rsa", padding="pkcs1", hash=name)


def make_signature(
    library: Library, key: ExternalKey, public_key: int, algorithm: SigningAlgorithm, message: bytes
) -> bytes:
    """Raises whatever the signer raises, or SigningFailed for what it returned."""
    digest = hashlib.new(algorithm.hash, message).digest() if algorithm.hash else message
    # What the signer leaves in this thread's queue of OpenSSL errors would be read as the handshake's failure.
    library.ERR_set_mark()
    try:
        signature = key.sign(digest, algorithm)
        if not isinstance(signature, bytes | bytearray):
            raise SigningFailed(f"the signer returned a {type(signature).__name__}, not bytes")
        signature = bytes(signature)
        fault = _form_fault(key, signature)
        if fault is None and not _verifies(library, public_key, algorithm, message, signature):
            fault = "a signature that does not verify with the certificate's public key: another key, or another digest"
        if fault is not None:
            if key.unfit is not None:
                key.unfit(f"the signer returned {fault}")
            raise SigningFailed(f"the signer returned {fault}", hint=f"asked for: {algorithm}")
        return signature
    finally:
        library.ERR_pop_to_mark()


def _form_fault(key: ExternalKey, signature: bytes) -> str | None:
    size = len(signature)
    if not signature:
        return "an empty signature"
    if key.kind == "ec":
        if size == 2 * ((key.bits + 7) // 8) and not _is_der_sequence(signature):
            return "the signature in the raw form r || s, and TLS wants it in DER"
        return (
            None if size <= key.largest else f"a signature of {size} bytes, and this key's have {key.largest} at most"
        )
    return None if size == key.largest else f"a signature of {size} bytes, and this key's have {key.largest}"


def _is_der_sequence(signature: bytes) -> bool:
    content = signature[2:] if signature[1] < 0x80 else signature[3:]
    return signature[0] == 0x30 and content[:1] == b"\x02" and signature[-len(content) - 1] == len(content)


def _verifies(library: Library, public_key: int, algorithm: SigningAlgorithm, message: bytes, signature: bytes) -> bool:
    """By the certificate's own key in the default provider. A faulty RSA signature would give the key away."""
    context = library.EVP_MD_CTX_new()
    try:
        settings = c_void_p()
        name = algorithm.hash.upper().encode() or None
        if library.EVP_DigestVerifyInit_ex(context, byref(settings), name, None, None, public_key, None) != 1:
            return False
        if algorithm.padding == "pss" and not _set_pss(library, settings, algorithm.salt):
            return False
        verdict: int = library.EVP_DigestVerify(context, signature, len(signature), message, len(message))
        return verdict == 1
    finally:
        library.EVP_MD_CTX_free(context)


def _set_pss(library: Library, settings: c_void_p, salt_bytes: int) -> bool:
    mode, salt = ctypes.create_string_buffer(b"pss"), c_int(salt_bytes)
    params = (Param * 3)()
    params[0] = Param(b"pad-mode", PARAM_TEXT, ctypes.addressof(mode), 3, 0)
    params[1] = Param(b"saltlen", PARAM_INTEGER, ctypes.addressof(salt), ctypes.sizeof(salt), 0)
    result: int = library.EVP_PKEY_CTX_set_params(settings, ctypes.addressof(params))
    return result == 1
