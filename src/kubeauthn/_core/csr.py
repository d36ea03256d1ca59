"""A certificate request (PKCS#10, RFC 2986) for a key that is elsewhere: what is signed, and the whole around it."""

from __future__ import annotations

from base64 import b64encode

from kubeauthn._core.signature_forms import bit_string, integer, sequence
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.errors import UsageError

_NO_ATTRIBUTES = b"\xa0\x00"
_IDENTIFIERS = {
    ("rsa", "sha256"): "300d06092a864886f70d01010b0500",
    ("rsa", "sha384"): "300d06092a864886f70d01010c0500",
    ("rsa", "sha512"): "300d06092a864886f70d01010d0500",
    ("ec", "sha256"): "300a06082a8648ce3d040302",
    ("ec", "sha384"): "300a06082a8648ce3d040303",
    ("ec", "sha512"): "300a06082a8648ce3d040304",
    ("ed25519", ""): "300506032b6570",
}


def request_info(subject: bytes, public_key: bytes) -> bytes:
    """What is signed: the subject's name and the SubjectPublicKeyInfo, both DER."""
    return sequence(integer(0), subject, public_key, _NO_ATTRIBUTES)


def signed_request(info: bytes, signature: bytes, algorithm: SigningAlgorithm) -> bytes:
    """The whole request, DER."""
    identifier = _IDENTIFIERS.get((algorithm.key_kind, algorithm.hash))
    if identifier is None or algorithm.padding == "pss":
        raise UsageError(f"a certificate request is not signed with {algorithm}")
    return sequence(info, bytes.fromhex(identifier), bit_string(signature))


def pem(label: str, content: bytes) -> str:
    text = b64encode(content).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""))
