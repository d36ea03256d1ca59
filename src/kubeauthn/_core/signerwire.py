"""The external signer's messages, both ways: the client and the signer SDK meet here.

One JSON document in an environment variable asks, one on standard output answers. What is sent follows the
design's text to the letter; what its first implementation wrote differently is understood too.
Kept light: a signer is started for every handshake.
"""

from __future__ import annotations

import json

from kubeauthn._core import limits
from kubeauthn._core.record import field, record
from kubeauthn.errors import EnvironmentFailure, PluginReplyError, SignerRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

API_VERSION = "external-signer.authentication.k8s.io/v1alpha1"
VARIABLE = "EXTERNAL_SIGNER_PLUGIN_CONFIG"
PATH_KEY = "pathExec"

CERTIFICATE_REQUEST, SIGN_REQUEST = "CertificateRequest", "SignRequest"
CERTIFICATE_RESPONSE, SIGN_RESPONSE = "CertificateResponse", "SignResponse"
# Each with what the first implementation calls it.
_REQUEST_KINDS = {CERTIFICATE_REQUEST: "Certificate", SIGN_REQUEST: "Sign"}
_REPLY_KINDS = {CERTIFICATE_RESPONSE: "ExternalPublicKey", SIGN_RESPONSE: "ExternalSigner"}

PSS_OPTIONS = "*rsa.PSSOptions"
HASH_OPTIONS = "crypto.Hash"
"""Ours: the design's text knows RSA-PSS alone. Go's number of the hash, or 0 with the whole message as the digest."""

PIN_REFUSED_EXIT = 77
"""Ours: so ends a signer whose PIN was wrong (`EX_NOPERM` of sysexits.h). A client brings no stored one again."""

NOT_THE_PIN_EXIT = 75
"""Ours: what failed was not the PIN and may pass (`EX_TEMPFAIL`): the token is not there, or was not touched."""

GO_HASHES = {"sha256": 5, "sha384": 6, "sha512": 7}
HASH_BYTES = {"sha256": 32, "sha384": 48, "sha512": 64}
_HASH_OF_NUMBER = {number: name for name, number in GO_HASHES.items()}
_SALT_AS_HASH = -1
_SALT_AUTOMATIC = 0
_LONGEST_SALT = 512
_MOST_CERTIFICATES = 16
_PEM_BEGIN, _PEM_END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


@record(frozen=True, slots=True)
class SigningAlgorithm:
    """How a digest is to be signed.

    `key_kind` is `rsa`, `ec`, `ed25519`, or empty where the request does not tell (an RSA key then signs by PKCS #1
    v1.5, an EC key by ECDSA). `padding` is `pss`, `pkcs1` or `none`; `hash` is `sha256`, `sha384`, `sha512`, or empty
    for Ed25519, whose "digest" is the whole message. `salt` is in bytes and for PSS only.
    """

    key_kind: str
    padding: str = "none"
    hash: str = ""
    salt: int = 0

    def __str__(self) -> str:
        parts = [self.key_kind or "key", *(part for part in (self.padding, self.hash) if part not in ("", "none"))]
        return " ".join(parts)


@record(frozen=True, slots=True)
class CertificateRequest:
    """What the entry configures, `pathExec` included. It may hold a PIN and is not shown."""

    configuration: dict[str, str] = field(repr=False)


@record(frozen=True, slots=True)
class SignRequest:
    configuration: dict[str, str] = field(repr=False)
    digest: bytes = field(repr=False)
    algorithm: SigningAlgorithm


def encode_certificate_request(configuration: Mapping[str, str]) -> str:
    return _request({"kind": CERTIFICATE_REQUEST, "configuration": dict(configuration)})


def encode_sign_request(configuration: Mapping[str, str], digest: bytes, algorithm: SigningAlgorithm) -> str:
    from base64 import b64encode

    options_type, options = encode_options(algorithm)
    return _request(
        {
            "kind": SIGN_REQUEST,
            "digest": b64encode(digest).decode(),
            "configuration": dict(configuration),
            "signerOptsType": options_type,
            "signerOpts": options,
        }
    )


def encode_options(algorithm: SigningAlgorithm) -> tuple[str, str]:
    """`signerOptsType` and `signerOpts`."""
    if algorithm.padding == "pss":
        salt = _SALT_AS_HASH if algorithm.salt == HASH_BYTES[algorithm.hash] else algorithm.salt
        options = {"SaltLength": salt, "Hash": GO_HASHES[algorithm.hash]}
        return PSS_OPTIONS, json.dumps(options, separators=(",", ":"))
    return HASH_OPTIONS, str(GO_HASHES[algorithm.hash] if algorithm.hash else 0)


def decode_request(text: str) -> CertificateRequest | SignRequest:
    """For signers. Never quotes the request: it may hold a PIN."""
    document = None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        problem = "is not JSON"
    else:
        problem = "is not a JSON object"
    if not isinstance(document, dict):
        # Raised out here, so that the parser's error, which holds the whole text, is not the context of ours.
        raise SignerRequestError(f"{VARIABLE} {problem}")
    version = document.get("apiVersion")
    if version != API_VERSION:
        raise SignerRequestError(f"{VARIABLE}: wanted apiVersion {API_VERSION}, got {_shown(version)}")
    kind = _kind(document, _REQUEST_KINDS)
    if kind is None:
        wanted = " or ".join(_REQUEST_KINDS)
        raise SignerRequestError(f"{VARIABLE}: wanted kind {wanted}, got {_shown(document.get('kind'))}")
    configuration = _configuration(document.get("configuration"))
    if kind == CERTIFICATE_REQUEST:
        return CertificateRequest(configuration)
    digest = _request_digest(document.get("digest"))
    algorithm = decode_options(document.get("signerOptsType"), document.get("signerOpts"))
    if algorithm.hash and len(digest) != HASH_BYTES[algorithm.hash]:
        wanted_bytes = HASH_BYTES[algorithm.hash]
        raise SignerRequestError(
            f"{VARIABLE}: a {algorithm.hash} digest has {wanted_bytes} bytes, this one {len(digest)}"
        )
    return SignRequest(configuration, digest, algorithm)


def decode_options(options_type: object, options: object) -> SigningAlgorithm:
    """From `signerOptsType` and `signerOpts`; the latter a document inside a string, or the document itself."""
    if isinstance(options, str):
        try:
            options = json.loads(options)
        except (ValueError, RecursionError):
            raise SignerRequestError(f"{VARIABLE}: signerOpts is not JSON") from None
    name = options_type.removeprefix("*") if isinstance(options_type, str) else options_type
    if name in (None, "", "rsa.PSSOptions"):  # the default, says the design
        return _pss_algorithm(options)
    if name != HASH_OPTIONS:
        raise SignerRequestError(f"{VARIABLE}: signerOptsType {_shown(options_type)} is not known")
    if options == 0 and not isinstance(options, bool):
        return SigningAlgorithm("ed25519")
    return SigningAlgorithm("", padding="pkcs1", hash=_hash_name(options))


def encode_certificate_reply(chain: Sequence[bytes]) -> str:
    """What a signer prints. `chain` is DER, the leaf first."""
    from base64 import b64encode

    return _reply(CERTIFICATE_RESPONSE, "certificate", b64encode(b"".join(chain)).decode())


def encode_sign_reply(signature: bytes) -> str:
    from base64 import b64encode

    return _reply(SIGN_RESPONSE, "signature", b64encode(signature).decode())


def decode_certificate_reply(data: bytes) -> tuple[bytes, ...]:
    """The chain that a signer printed, as DER, the leaf first. Whether these *are* certificates is not looked at."""
    text = _reply_text(data, CERTIFICATE_RESPONSE, "certificate")
    return certificate_chain(text if "-----BEGIN" in text else _reply_base64(text, "certificate"))


def certificate_chain(content: bytes | str) -> tuple[bytes, ...]:
    """PEM or DER, one certificate or several, as DER each."""
    if isinstance(content, bytes) and b"-----BEGIN" in content:
        content = content.decode("ascii", "replace")
    return _pem_chain(content) if isinstance(content, str) else _der_chain(content)


def decode_sign_reply(data: bytes) -> bytes:
    signature = _reply_base64(_reply_text(data, SIGN_RESPONSE, "signature"), "signature")
    if not signature:
        raise PluginReplyError("decoding stdout: the signature is empty")
    return signature


def _request(fields: dict[str, Any]) -> str:
    text = json.dumps({"apiVersion": API_VERSION, **fields}, separators=(",", ":"))
    if len(text) > limits.SIGNER_REQUEST_BYTES:
        raise EnvironmentFailure(
            f"the request to the signer takes {len(text)} bytes, "
            f"and an environment variable takes {limits.SIGNER_REQUEST_BYTES}"
        )
    return text


def _reply(kind: str, name: str, value: str) -> str:
    return json.dumps({"apiVersion": API_VERSION, "kind": kind, name: value})


def _kind(document: dict[str, Any], known: dict[str, str]) -> str | None:
    kind = document.get("kind")
    return next((name for name, other in known.items() if kind in (name, other)), None)


def _configuration(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SignerRequestError(f"{VARIABLE}: configuration must be an object")
    for name, entry in value.items():
        if not isinstance(entry, str):
            raise SignerRequestError(f"{VARIABLE}: configuration.{_shown(name)} must be a string")
    return value


def _request_digest(value: object) -> bytes:
    if not isinstance(value, str):
        raise SignerRequestError(f"{VARIABLE}: digest must be a string")
    digest = _base64(value)
    if not digest:
        raise SignerRequestError(f"{VARIABLE}: digest is {'empty' if digest is not None else 'not base64'}")
    return digest


def _pss_algorithm(options: object) -> SigningAlgorithm:
    if not isinstance(options, dict):
        raise SignerRequestError(f"{VARIABLE}: signerOpts must be an object with SaltLength and Hash")
    name = _hash_name(options.get("Hash"))
    salt = options.get("SaltLength", _SALT_AS_HASH)
    # Go's "automatic" leaves the length to the signer: as long as the hash is what TLS asks for.
    if salt in (_SALT_AS_HASH, _SALT_AUTOMATIC) and not isinstance(salt, bool):
        salt = HASH_BYTES[name]
    if not isinstance(salt, int) or isinstance(salt, bool) or not 0 < salt <= _LONGEST_SALT:
        raise SignerRequestError(f"{VARIABLE}: SaltLength {_shown(salt)} is not a length, nor -1")
    return SigningAlgorithm("rsa", padding="pss", hash=name, salt=salt)


def _hash_name(number: object) -> str:
    name = _HASH_OF_NUMBER.get(number) if isinstance(number, int) and not isinstance(number, bool) else None
    if name is None:
        known = ", ".join(f"{value} ({name})" for name, value in GO_HASHES.items())
        raise SignerRequestError(f"{VARIABLE}: hash {_shown(number)} is not known: wanted {known}")
    return name


def _reply_text(data: bytes, kind: str, name: str) -> str:
    from kubeauthn._core.execwire import reply_document

    document = reply_document(data)
    version = document.get("apiVersion")
    if version != API_VERSION:
        raise PluginReplyError(f"decoding stdout: expected apiVersion {API_VERSION}, got {_shown(version)}")
    if _kind(document, _REPLY_KINDS) != kind:
        raise PluginReplyError(f"decoding stdout: expected kind {kind}, got {_shown(document.get('kind'))}")
    value = document.get(name)
    if not isinstance(value, str):
        raise PluginReplyError(f"decoding stdout: {name} must be a string, got {_shown_type(value)}")
    return value


def _reply_base64(text: str, name: str) -> bytes:
    content = _base64(text)
    if content is None:
        raise PluginReplyError(f"decoding stdout: {name} is not base64")
    return content


def _base64(text: str) -> bytes | None:
    from base64 import b64decode

    try:
        return b64decode("".join(text.split()), validate=True)
    except ValueError:
        return None


def _pem_chain(text: str) -> tuple[bytes, ...]:
    chain: list[bytes] = []
    for part in text.split(_PEM_BEGIN)[1:]:
        body, end, _ = part.partition(_PEM_END)
        content = _base64(body) if end else None
        if not content:
            raise PluginReplyError("certificate: a PEM block that cannot be read")
        _add(content, chain)
    if not chain:
        raise PluginReplyError("certificate: PEM without a certificate in it")
    return tuple(chain)


def _der_chain(content: bytes) -> tuple[bytes, ...]:
    """Certificates one behind the other, each a DER SEQUENCE that says how long it is."""
    chain: list[bytes] = []
    while content:
        end = _der_sequence_end(content)
        if end is None:
            raise PluginReplyError("the certificate is neither DER nor PEM")
        _add(content[:end], chain)
        content = content[end:]
    if not chain:
        raise PluginReplyError("the certificate is empty")
    return tuple(chain)


def _add(certificate: bytes, chain: list[bytes]) -> None:
    """At once, and not when all are there: a million bytes hold hundreds of thousands of small ones."""
    if len(chain) == _MOST_CERTIFICATES:
        raise PluginReplyError(f"a chain of more than {_MOST_CERTIFICATES} certificates")
    chain.append(certificate)


def _der_sequence_end(content: bytes) -> int | None:
    if len(content) < 2 or content[0] != 0x30:
        return None
    size, start = content[1], 2
    if size >= 0x80:
        digits = size & 0x7F
        if not 1 <= digits <= 4 or len(content) < 2 + digits:
            return None
        size, start = int.from_bytes(content[2 : 2 + digits]), 2 + digits
    end = start + size
    return end if size and end <= len(content) else None


def _shown(value: object) -> str:
    """A name from a document, short and on one line."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value) if abs(value) < 1 << 32 else "a number too large"
    if not isinstance(value, str):
        return _shown_type(value)
    return value if len(value) <= 80 and value.isprintable() else f"{value[:80]!r}"


def _shown_type(value: object) -> str:
    return "none" if value is None else f"a {type(value).__name__}"
