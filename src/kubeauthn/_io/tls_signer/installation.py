"""Certificate chain and external key into a context."""

from __future__ import annotations

import ctypes
import os
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from ctypes import byref, c_void_p

from kubeauthn._io.tls_signer.context_pointer import ConnectionPointer, ContextPointer
from kubeauthn._io.tls_signer.handshake import prepare_connections
from kubeauthn._io.tls_signer.libcrypto import WAY_OUT, Library
from kubeauthn._io.tls_signer.provider import KEY_TYPES, Provider
from kubeauthn._io.tls_signer.sessions import Sessions
from kubeauthn._io.tls_signer.signature import ExternalKey, Sign
from kubeauthn._io.tls_signer.structures import KEYPAIR_SELECTION, Param
from kubeauthn.errors import SigningUnsupported, StaticCredentialError

_KEPT_AS = "_kubeauthn_key"
_CURVES = (b"prime256v1", b"secp384r1", b"secp521r1")


class Bridge:
    """The parts, once per process."""

    def __init__(self) -> None:
        self.library = Library()
        self.pointer = ContextPointer(self.library)
        self.connections = ConnectionPointer(self.library, self.pointer)
        self.provider = Provider(self.library)


_bridge: Bridge | None = None
_refusal: SigningUnsupported | None = None
_lock = threading.Lock()


def install(
    context: ssl.SSLContext,
    chain: Sequence[bytes],
    sign: Sign,
    *,
    refused: Callable[[], None] | None = None,
    unfit: Callable[[str], None] | None = None,
) -> None:
    """Give `context` the client certificate `chain` (DER, leaf first), for which `sign` makes the signatures.

    `refused` is called when a server answers with an alert that is about the certificate, `unfit` when the signer
    returned what is no signature by the certificate's key. Neither may raise.
    Before any connection uses the context. For another certificate make another context.
    """
    bridge = _the_bridge()
    # truststore's context only wraps the real one: on the outer one the certificate would silently not be sent.
    inner = vars(context).get("_ctx") if hasattr(context, "__dict__") else None
    context = inner if isinstance(inner, ssl.SSLContext) else context
    key = _install(bridge, bridge.pointer.of(context), chain, sign)
    key.unfit = unfit
    # The only strong reference: key and signer live as long as the context.
    setattr(context, _KEPT_AS, key)
    prepare_connections(context, bridge.provider.thread, Sessions(bridge.library, bridge.connections), refused)


def check_support() -> None:
    """Raises SigningUnsupported where this interpreter cannot do it."""
    _the_bridge()


def _the_bridge() -> Bridge:
    global _bridge, _refusal
    if _bridge is not None:
        return _bridge
    with _lock:
        if _refusal is not None:
            raise SigningUnsupported(str(_refusal), hint=_refusal.hint)
        if _bridge is None:
            try:
                _bridge = Bridge()
            except SigningUnsupported as error:
                _refusal = error.with_traceback(None)
                raise
        return _bridge


def _install(bridge: Bridge, ssl_ctx: int, chain: Sequence[bytes], sign: Sign) -> ExternalKey:
    library, provider = bridge.library, bridge.provider
    library.ERR_clear_error()
    with ExitStack() as stack:
        stack.callback(library.ERR_clear_error)
        certificates = [_certificate(library, content, stack) for content in chain]
        public_key = library.X509_get_pubkey(certificates[0])
        if not public_key:
            raise StaticCredentialError("the certificate's public key is of a kind that OpenSSL does not know")
        kind = next((name for name in KEY_TYPES if library.EVP_PKEY_is_a(public_key, name)), None)
        if kind is None:
            library.EVP_PKEY_free(public_key)
            raise StaticCredentialError("the certificate's key is none of RSA, EC and Ed25519")
        if kind == b"EC":
            _check_curve(library, public_key)
        key = ExternalKey(
            sign,
            kind.decode().lower(),
            largest=library.EVP_PKEY_get_size(public_key),
            bits=library.EVP_PKEY_get_bits(public_key),
        )
        private_key = _private_key(bridge, kind, public_key, stack)
        provider.keys[public_key] = key
        _check_that_it_is_asked(bridge, key, private_key, public_key)
        others = None
        if len(certificates) > 1:
            others = library.OPENSSL_sk_new_null()
            stack.callback(library.OPENSSL_sk_free, others)
            for certificate in certificates[1:]:
                library.OPENSSL_sk_push(others, certificate)
        # Takes references of its own to all three.
        if library.SSL_CTX_use_cert_and_key(ssl_ctx, certificates[0], private_key, others, 1) != 1:
            raise StaticCredentialError(f"the client certificate cannot be used: {library.errors()}")
        library.SSL_CTX_set_cert_cb(ssl_ctx, provider.when_asked, None)
        return key


def _check_curve(library: Library, public_key: int) -> None:
    """TLS 1.3 has three. With another, OpenSSL would silently show no certificate, and the request go out unsigned."""
    name = ctypes.create_string_buffer(80)
    library.EVP_PKEY_get_group_name(public_key, name, len(name), None)
    if name.value not in _CURVES:
        library.EVP_PKEY_free(public_key)
        curve = name.value.decode(errors="replace") or "a curve without a name"
        raise StaticCredentialError(f"the certificate's key is on {curve}, and TLS takes P-256, P-384 and P-521")


def _certificate(library: Library, content: bytes, stack: ExitStack) -> int:
    buffer = ctypes.create_string_buffer(content, len(content))
    place = c_void_p(ctypes.addressof(buffer))
    certificate: int | None = library.d2i_X509(None, byref(place), len(content))
    if not certificate:
        raise StaticCredentialError("the certificate is not DER of an X.509 certificate")
    stack.callback(library.X509_free, certificate)
    return certificate


def _private_key(bridge: Bridge, kind: bytes, public_key: int, stack: ExitStack) -> int:
    """An EVP_PKEY of our provider. Takes over the caller's reference to `public_key`, come what may."""
    library, thread = bridge.library, bridge.provider.thread
    made = c_void_p()
    no_params = (Param * 1)()
    maker = library.EVP_PKEY_CTX_new_from_name(bridge.provider.libctx, kind, None)
    thread.pending = public_key
    try:
        done = bool(maker) and library.EVP_PKEY_fromdata_init(maker) == 1
        done = done and (
            library.EVP_PKEY_fromdata(maker, byref(made), KEYPAIR_SELECTION, ctypes.addressof(no_params)) == 1
        )
    finally:
        if thread.pending is not None:
            thread.pending = None
            library.EVP_PKEY_free(public_key)
        library.EVP_PKEY_CTX_free(maker)
    if not done or not made.value:
        raise SigningUnsupported(f"OpenSSL makes no key of the provider: {library.errors()}", hint=WAY_OUT)
    stack.callback(library.EVP_PKEY_free, made.value)
    return made.value


def _check_that_it_is_asked(bridge: Bridge, key: ExternalKey, private_key: int, public_key: int) -> None:
    """The question that libssl asks before it offers a certificate. After a "no" it silently sends none."""
    hashes = [None] if key.kind == "ed25519" else [b"SHA256", b"SHA384", b"SHA512"]
    thread = bridge.provider.thread
    thread.answered = None
    ask = bridge.library.EVP_PKEY_digestsign_supports_digest
    if not any(ask(private_key, None, name, None) == 1 for name in hashes) or thread.answered != public_key:
        raise SigningUnsupported(
            f"{ssl.OPENSSL_VERSION} does not sign with a key of another library context", hint=WAY_OUT
        )


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
