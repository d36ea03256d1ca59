"""Key sets: what is read, what is skipped, and which key may have signed what."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kubeauthn._core.jose.algorithms import ALGORITHMS
from kubeauthn._core.jose.key_remarks import key_remarks
from kubeauthn._core.jose.keys import KeySet, parse_key_set
from kubeauthn._core.jose.limits import KEYS
from kubeauthn.errors import KeySetError
from kubeauthn.testing._signing import SigningKey, _integer

RSA = SigningKey.new("r", "RS256")
P256 = SigningKey.new("e", "ES256")


def jwk(**changes):
    return {name: value for name, value in {**RSA.jwk(), **changes}.items() if value is not None}


def skipped(key):
    keys = KeySet.from_dict({"keys": [key, P256.jwk()]})
    assert keys.kids == ("e",), "the other key still serves"
    return keys.skipped[0]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_each_algorithm_verifies_its_own_signature_and_no_other(algorithm):
    key = SigningKey.new("k", algorithm)
    keys = KeySet.from_dict({"keys": [key.jwk()]})
    token = key.sign({}, {})
    signed, _, _ = token.rpartition(".")
    signature = key._signature(signed.encode())
    (verify,) = keys.verifiers("k", algorithm)
    assert verify(signature, signed.encode())
    assert not verify(signature, signed.encode() + b"x")
    assert not verify(signature[:-1], signed.encode())
    assert not verify(signature + b"\0", signed.encode())
    assert not verify(b"", signed.encode())
    assert not verify(b"\0" * len(signature), signed.encode())
    for other in set(ALGORITHMS) - {algorithm}:
        assert not any(check(signature, signed.encode()) for check in keys.verifiers("k", other))


def test_a_curve_verifies_one_algorithm_only():
    keys = KeySet.from_dict({"keys": [P256.jwk()]})
    assert keys.verifiers("e", "ES384") == () == keys.verifiers("e", "RS256")


def test_a_signature_in_der_is_no_jws_signature():
    keys = KeySet.from_dict({"keys": [P256.jwk()]})
    from cryptography.hazmat.primitives import hashes

    der = P256.private.sign(b"text", ec.ECDSA(hashes.SHA256()))
    (verify,) = keys.verifiers("e", "ES256")
    assert not verify(der, b"text")


def test_a_kid_chooses_and_no_kid_tries_all():
    keys = KeySet.from_dict({"keys": [RSA.jwk(), SigningKey.new("r2", "RS256").jwk(), P256.jwk()]})
    assert len(keys.verifiers("r", "RS256")) == 1
    assert len(keys.verifiers("", "RS256")) == 2
    assert keys.verifiers("../../etc/passwd", "RS256") == () == keys.verifiers("' OR 1=1 --", "RS256")


def test_two_keys_may_have_one_id():
    keys = KeySet.from_dict({"keys": [RSA.jwk(), {**SigningKey.new("x", "RS256").jwk(), "kid": "r"}]})
    assert len(keys.verifiers("r", "RS256")) == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"use": "enc"}, "use"),
        ({"key_ops": ["sign"]}, "key_ops"),
        ({"key_ops": "verify"}, "key_ops"),
        ({"alg": "RSA-OAEP"}, "alg"),
        ({"alg": "ES256"}, "alg"),
        ({"alg": "none"}, "alg"),
        ({"kty": "oct", "k": "c2VjcmV0", "alg": None}, "kty"),
        ({"kty": None, "alg": None}, "kty"),
        ({"kid": 5}, "kid"),
        ({"n": "AQAB"}, "bits"),
        ({"n": None}, "n is no number"),
        ({"n": 5}, "n is no number"),
        ({"e": "AQAB="}, "e is no number"),
        ({"e": "AQ"}, "exponent"),
        ({"e": "_____w-_"}, "exponent"),
        ({"e": "BA"}, "numbers|exponent"),
        ({"n": "A" * 5000}, "n is no number"),
    ],
)
def test_a_key_that_is_not_used(changes, says):
    reason = skipped(jwk(**changes))
    assert any(word in reason for word in says.split("|")), reason


@pytest.mark.parametrize("key", [None, [], "x", 5])
def test_a_key_that_is_no_object(key):
    assert "no JSON object" in skipped(key)


def test_a_weak_rsa_key_is_not_used():
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key().public_numbers()  # noqa: S505
    assert "1024 bits" in skipped({"kty": "RSA", "kid": "weak", "n": _integer(weak.n), "e": _integer(weak.e)})


WEAK = rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key().public_numbers()  # noqa: S505
DROPPED = "keys[1] cannot be read by kube-apiserver, which drops the whole key set for it: "


@pytest.mark.parametrize(
    ("key", "remark"),
    [
        (jwk(use="enc", alg="RSA-OAEP"), ""),  # as Keycloak publishes
        (jwk(key_ops=["wrapKey"]), ""),
        ({"kty": "oct", "k": "c2VjcmV0"}, ""),
        ({"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}, ""),
        (
            {"kty": "RSA", "n": _integer(WEAK.n), "e": _integer(WEAK.e)},
            "keys[1] is not used, and kube-apiserver uses it: it is an RSA key of 1024 bits, not of 2048 to 8192",
        ),
        ({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"}, f"{DROPPED}its alg is not one that this kind of key "),
        ({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"}, f"{DROPPED}its curve is none of "),
        (jwk(n="!"), f"{DROPPED}its n is no number in base64url"),
        (jwk(x5t="AAAA"), f"{DROPPED}a member of it is malformed"),
        (None, f"{DROPPED}it is no JSON object"),
    ],
)
def test_what_kube_apiserver_makes_otherwise_of_a_key(key, remark):
    """Each was tried on kube-apiserver's own code, beside a key that is good."""
    remarks = list(key_remarks({"keys": [P256.jwk(), key]}))
    assert len(remarks) == (1 if remark else 0)
    assert all(said.startswith(remark) for said in remarks)


def test_a_point_off_its_curve_is_not_used():
    broken = {**P256.jwk(), "kid": "broken", "x": "A" * 43}
    assert "not on its curve" in skipped(broken)
    assert "curve" in skipped({**P256.jwk(), "kid": "k", "crv": "secp256k1", "alg": None})


def test_of_a_private_key_only_the_public_part_is_read():
    private = RSA.private.private_numbers()
    keys = KeySet.from_dict({"keys": [jwk(d=_integer(private.d), p=_integer(private.p), q="!not even base64!")]})
    assert len(keys) == 1
    assert "private" not in repr(vars(type(keys))).lower()
    assert all(isinstance(key, rsa.RSAPublicKey) for key in keys._by_kid["r"])


def test_no_keys_and_too_many():
    assert len(KeySet.from_dict({"keys": []})) == 0 == len(KeySet.from_dict({}))
    with pytest.raises(KeySetError, match="10000 keys"):
        KeySet.from_dict({"keys": [RSA.jwk()] * 10_000})
    assert len(KeySet.from_dict({"keys": [RSA.jwk()] * KEYS})) == KEYS


@pytest.mark.parametrize("document", [b"", b"x", b'"x"', b"[]", b"null", b'{"keys": 5}', b"[" * 100_000, b"\xff"])
def test_what_is_no_key_set(document):
    with pytest.raises(KeySetError):
        parse_key_set(document)


def test_a_key_set_as_text_and_as_a_dict():
    document = {"Keys": [RSA.jwk()]}
    assert parse_key_set(document).kids == parse_key_set(json.dumps(document)).kids == ("r",)


def test_the_memory_of_headers_is_bounded():
    keys = KeySet.from_dict({"keys": [RSA.jwk()]})
    for number in range(1000):
        keys.remember_header(b"%d" % number, ())
    assert len(keys.known_headers) == 64
