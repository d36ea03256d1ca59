"""Signatures that hold almost what they should: an algorithm takes exactly what its signer must have written."""

from __future__ import annotations

import os
from hashlib import sha1, sha256, sha384, sha512

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from kubeauthn._core.jose.algorithms import _as_der, verifier
from kubeauthn.testing._signing import SigningKey

KEY = SigningKey.new("r", "RS256")
SIGNED = b"header.payload"
SIZE = 256
SHA1_INFO = bytes.fromhex("3021300906052b0e03021a05000414")
SHA256_INFO = bytes.fromhex("3031300d060960864801650304020105000420")
SHA256_INFO_WITHOUT_NULL = bytes.fromhex("302f300b0609608648016503040201" + "0420")
DIGEST = sha256(SIGNED).digest()


def raw_signature(block: bytes) -> bytes:
    """The private operation of RSA on any block at all, which no honest signer does."""
    numbers = KEY.private.private_numbers()
    message = pow(int.from_bytes(block, "big"), numbers.d, numbers.public_numbers.n)
    return message.to_bytes(SIZE, "big")


def padded(content: bytes, kind: bytes = b"\x01", fill: bytes = b"\xff", after: bytes = b"") -> bytes:
    filled = SIZE - 3 - len(content) - len(after)
    return b"\x00" + kind + fill * filled + b"\x00" + content + after


@pytest.fixture
def verify():
    check = verifier(KEY.private.public_key(), "RS256")
    assert check is not None
    return check


def test_the_block_of_the_standard_is_taken(verify):
    assert verify(raw_signature(padded(SHA256_INFO + DIGEST)), SIGNED)


@pytest.mark.parametrize(
    "block",
    [
        padded(SHA1_INFO + sha1(SIGNED).digest()),  # noqa: S324 - that is the point
        padded(SHA256_INFO_WITHOUT_NULL + DIGEST),
        padded(DIGEST),
        padded(SHA256_INFO + DIGEST, after=b"\x00"),
        padded(SHA256_INFO + DIGEST, after=os.urandom(100)),
        padded(SHA256_INFO + DIGEST, kind=b"\x02"),
        padded(SHA256_INFO + DIGEST, kind=b"\x00", fill=b"\x00"),
        padded(SHA256_INFO + DIGEST, fill=b"\xfe"),
        b"\x00\x01\xff\xff\xff\x00" + SHA256_INFO + DIGEST + os.urandom(SIZE - 6 - len(SHA256_INFO + DIGEST)),
        padded(SHA256_INFO + sha256(b"other").digest()),
        padded(b""),
    ],
    ids=["sha1", "no null", "no info", "one more byte", "garbage after", "of encryption", "zeros", "other fill",
         "short padding", "other text", "empty"],
)  # fmt: skip
def test_another_block_is_refused(verify, block):
    assert not verify(raw_signature(block), SIGNED)


@pytest.mark.parametrize("length", [0, 1, SIZE - 1, SIZE + 1, 10_000])
def test_another_length_is_refused(verify, length):
    good = raw_signature(padded(SHA256_INFO + DIGEST))
    assert not verify((good * 40)[:length], SIGNED)


@pytest.mark.parametrize("signature", [b"\x00" * SIZE, b"\x00" * (SIZE - 1) + b"\x01", b"\xff" * SIZE])
def test_numbers_that_are_their_own_signature_are_refused(verify, signature):
    assert not verify(signature, SIGNED)


@pytest.mark.parametrize(
    ("algorithm", "kind"), [("PS256", hashes.SHA256()), ("PS384", hashes.SHA384()), ("PS512", hashes.SHA512())]
)
def test_a_salt_is_as_long_as_the_hash(algorithm, kind):
    check = verifier(KEY.private.public_key(), algorithm)
    assert check is not None
    size = kind.digest_size
    for salt in (0, 1, 20, size - 1, size, size + 1, SIZE - size - 2):
        signature = KEY.private.sign(SIGNED, padding.PSS(padding.MGF1(kind), salt), kind)
        assert check(signature, SIGNED) is (salt == size), salt
    other = hashes.SHA384() if size != hashes.SHA384.digest_size else hashes.SHA256()
    assert not check(KEY.private.sign(SIGNED, padding.PSS(padding.MGF1(other), size), kind), SIGNED)
    assert not check(KEY.private.sign(SIGNED, padding.PSS(padding.MGF1(other), size), other), SIGNED)


@pytest.mark.parametrize(("algorithm", "digest"), [("RS256", sha256), ("RS384", sha384), ("RS512", sha512)])
def test_each_hash_is_its_own(algorithm, digest):
    public = KEY.private.public_key()
    key = SigningKey(KEY.kid, algorithm, KEY.private)
    signature = key._signature(SIGNED)
    taken = {name for name in ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
             if (check := verifier(public, name)) and check(signature, SIGNED)}  # fmt: skip
    assert taken == {algorithm}
    assert digest(SIGNED).digest() in pow(
        int.from_bytes(signature, "big"), public.public_numbers().e, public.public_numbers().n
    ).to_bytes(SIZE, "big")


@pytest.mark.parametrize("size", [32, 48, 66])
@pytest.mark.parametrize(
    "first", [b"\x00\x00", b"\x00\x80", b"\x00\x7f", b"\x01\x00", b"\x7f\xff", b"\x80\x00", b"\xff\xff"]
)
@pytest.mark.parametrize("second", [b"\x00\x00", b"\x00\x80", b"\x01\x00", b"\x7f\xff", b"\x80\x00", b"\xff\xff"])
def test_two_numbers_in_der(size, first, second):
    r, s = first + os.urandom(size - 2), second + os.urandom(size - 2)
    assert _as_der(r + s, size) == encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512"])
def test_a_signature_of_zeros_is_refused(algorithm):
    key = SigningKey.new("e", algorithm)
    check = verifier(key.private.public_key(), algorithm)
    assert check is not None
    for signature in (b"", b"\x00" * 64, b"\x00" * 96, b"\x00" * 132, b"\xff" * 64, b"\xff" * 96, b"\xff" * 132):
        assert not check(signature, SIGNED)
