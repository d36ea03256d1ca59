"""The forms of a signature: what tokens return, what TLS wants, and the little DER in between."""

from __future__ import annotations

from kubeauthn.errors import UsageError

_DIGEST_INFO = {
    "sha1": bytes.fromhex("3021300906052b0e03021a05000414"),
    "sha256": bytes.fromhex("3031300d060960864801650304020105000420"),
    "sha384": bytes.fromhex("3041300d060960864801650304020205000430"),
    "sha512": bytes.fromhex("3051300d060960864801650304020305000440"),
}
"""RFC 8017, section 9.2, note 1: everything of a DigestInfo but the digest."""


def digest_info(digest: bytes, hash_name: str) -> bytes:
    """What `CKM_RSA_PKCS` signs: the digest with the name of its hash in front."""
    prefix = _DIGEST_INFO.get(hash_name)
    if prefix is None:
        raise UsageError(f"PKCS#1 v1.5 is signed over {', '.join(_DIGEST_INFO)}, not {hash_name}")
    if len(digest) != prefix[-1]:
        raise UsageError(f"a {hash_name} digest has {prefix[-1]} bytes, not {len(digest)}")
    return prefix + digest


def ecdsa_der(raw: bytes) -> bytes:
    """`r || s`, as tokens return it, in the DER form that TLS and X.509 carry."""
    if not raw or len(raw) % 2:
        raise UsageError(f"a raw ECDSA signature has two halves of one length, and this has {len(raw)} bytes")
    half = len(raw) // 2
    return ecdsa_der_of(int.from_bytes(raw[:half], "big"), int.from_bytes(raw[half:], "big"))


def ecdsa_der_of(r: int, s: int) -> bytes:
    """The same from two numbers."""
    return sequence(integer(r), integer(s))


def sequence(*parts: bytes) -> bytes:
    return tagged(0x30, b"".join(parts))


def integer(value: int) -> bytes:
    """A number that is not negative; a leading zero where the first bit would make it so."""
    return tagged(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def bit_string(content: bytes) -> bytes:
    return tagged(0x03, b"\0" + content)


def octet_string(content: bytes) -> bytes:
    return tagged(0x04, content)


def tagged(tag: int, content: bytes) -> bytes:
    """One DER element: the tag, the shortest length, the content."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def pss_salt_bytes(signature: bytes, modulus: int, exponent: int, hash_name: str) -> int | None:
    """How long the salt of an RSA-PSS signature is (RFC 8017, section 9.1.2, backwards); None if it is none."""
    import hashlib

    bits = modulus.bit_length() - 1
    size, digest_size = (bits + 7) // 8, hashlib.new(hash_name).digest_size
    encoded = pow(int.from_bytes(signature, "big"), exponent, modulus)
    if encoded.bit_length() > bits or encoded & 0xFF != 0xBC or size < digest_size + 2:
        return None
    content = encoded.to_bytes(size, "big")
    masked, seed = content[: -digest_size - 1], content[-digest_size - 1 : -1]
    mask = b"".join(
        hashlib.new(hash_name, seed + number.to_bytes(4, "big")).digest()
        for number in range((len(masked) + digest_size - 1) // digest_size)
    )
    block = int.from_bytes(masked, "big") ^ int.from_bytes(mask[: len(masked)], "big")
    block &= (1 << (bits - 8 * (digest_size + 1))) - 1
    # Zeroes, a one, and behind it the salt.
    salt_bits = block.bit_length() - 1
    return salt_bits // 8 if salt_bits >= 0 and salt_bits % 8 == 0 else None
