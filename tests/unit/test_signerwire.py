"""The external signer's messages: exact out, liberal in."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import CertificateRequest, SigningAlgorithm, SignRequest
from kubeauthn.errors import EnvironmentFailure, PluginReplyError, SignerRequestError

VERSION = "external-signer.authentication.k8s.io/v1alpha1"
CONFIGURATION = {"objectId": "2", "pathExec": "/path/to/externalSigner", "pin": "123456", "slotId": "0"}
PSS = SigningAlgorithm("rsa", padding="pss", hash="sha256", salt=32)
DIGEST = bytes(range(32))


def test_the_certificate_request_is_the_designs():
    assert signerwire.encode_certificate_request(CONFIGURATION) == json.dumps(
        {"apiVersion": VERSION, "kind": "CertificateRequest", "configuration": CONFIGURATION}, separators=(",", ":")
    )


def test_the_sign_request_is_the_designs():
    assert json.loads(signerwire.encode_sign_request(CONFIGURATION, DIGEST, PSS)) == {
        "apiVersion": VERSION,
        "kind": "SignRequest",
        "digest": b64encode(DIGEST).decode(),
        "configuration": CONFIGURATION,
        "signerOptsType": "*rsa.PSSOptions",
        "signerOpts": '{"SaltLength":-1,"Hash":5}',
    }


OPTIONS = [
    (PSS, "*rsa.PSSOptions", '{"SaltLength":-1,"Hash":5}'),
    (SigningAlgorithm("rsa", padding="pss", hash="sha384", salt=48), "*rsa.PSSOptions", '{"SaltLength":-1,"Hash":6}'),
    (SigningAlgorithm("rsa", padding="pss", hash="sha512", salt=20), "*rsa.PSSOptions", '{"SaltLength":20,"Hash":7}'),
    (SigningAlgorithm("rsa", padding="pkcs1", hash="sha256"), "crypto.Hash", "5"),
    (SigningAlgorithm("ec", hash="sha384"), "crypto.Hash", "6"),
    (SigningAlgorithm("ed25519"), "crypto.Hash", "0"),
]


@pytest.mark.parametrize(("algorithm", "kind", "options"), OPTIONS)
def test_sign_options(algorithm: SigningAlgorithm, kind: str, options: str):
    assert signerwire.encode_options(algorithm) == (kind, options)
    decoded = signerwire.decode_options(kind, options)
    assert (decoded.hash, decoded.salt) == (algorithm.hash, algorithm.salt)
    # The same words stand for both: the signer's key decides between PKCS #1 and ECDSA.
    assert decoded.key_kind == (algorithm.key_kind if kind != "crypto.Hash" or not algorithm.hash else "")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("rsa.PSSOptions", '{"SaltLength":-1,"Hash":5}'),
        ("*rsa.PSSOptions", {"SaltLength": -1, "Hash": 5}),
        (None, '{"SaltLength":-1,"Hash":5}'),
        ("*rsa.PSSOptions", '{"SaltLength":0,"Hash":5}'),
        ("*rsa.PSSOptions", '{"Hash":5}'),
    ],
)
def test_other_spellings_of_pss(kind: str | None, options: object):
    assert signerwire.decode_options(kind, options) == PSS


@pytest.mark.parametrize("kind", ["CertificateRequest", "Certificate"])
def test_a_certificate_request_is_read(kind: str):
    text = json.dumps({"apiVersion": VERSION, "kind": kind, "configuration": CONFIGURATION})
    assert signerwire.decode_request(text) == CertificateRequest(CONFIGURATION)


@pytest.mark.parametrize("kind", ["SignRequest", "Sign"])
def test_a_sign_request_is_read(kind: str):
    document = json.loads(signerwire.encode_sign_request(CONFIGURATION, DIGEST, PSS)) | {"kind": kind}
    assert signerwire.decode_request(json.dumps(document)) == SignRequest(CONFIGURATION, DIGEST, PSS)


def test_a_request_does_not_show_its_pin():
    request = signerwire.decode_request(signerwire.encode_sign_request(CONFIGURATION, DIGEST, PSS))
    assert "123456" not in repr(request)


BAD_REQUESTS: dict[str, tuple[Any, str]] = {
    "not JSON": ("{123456", "is not JSON"),
    "not an object": ([], "is not a JSON object"),
    "another version": ({"apiVersion": "v2"}, f"wanted apiVersion {VERSION}, got v2"),
    "no version": ({"apiVersion": None}, "got none"),
    "another kind": ({"kind": "Delete"}, "wanted kind CertificateRequest or SignRequest, got Delete"),
    "kind is a list": ({"kind": []}, "got a list"),
    "configuration is a list": ({"configuration": []}, "configuration must be an object"),
    "a number in it": ({"configuration": {"slotId": 0}}, "configuration.slotId must be a string"),
    "no digest": ({"digest": None}, "digest must be a string"),
    "empty digest": ({"digest": ""}, "digest is empty"),
    "digest not base64": ({"digest": "?"}, "digest is not base64"),
    "short digest": ({"digest": "AAAA"}, "a sha256 digest has 32 bytes, this one 3"),
    "unknown options": ({"signerOptsType": "*rsa.Other"}, r"signerOptsType \*rsa.Other is not known"),
    "options not JSON": ({"signerOpts": "{"}, "signerOpts is not JSON"),
    "options a number": ({"signerOpts": "5"}, "signerOpts must be an object"),
    "SHA-1": ({"signerOpts": '{"SaltLength":-1,"Hash":3}'}, "hash 3 is not known"),
    "hash true": ({"signerOpts": '{"SaltLength":-1,"Hash":true}'}, "hash a bool is not known"),
    "negative salt": ({"signerOpts": '{"SaltLength":-2,"Hash":5}'}, "SaltLength -2 is not a length"),
    "huge salt": ({"signerOpts": '{"SaltLength":99999,"Hash":5}'}, "SaltLength 99999 is not a length"),
    "salt as text": ({"signerOpts": '{"SaltLength":"x","Hash":5}'}, "SaltLength x is not a length"),
}


@pytest.mark.parametrize(("change", "text"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_a_bad_request(change: Any, text: str):
    whole = json.loads(signerwire.encode_sign_request(CONFIGURATION, DIGEST, PSS))
    request = change if isinstance(change, str) else json.dumps(whole | change if isinstance(change, dict) else change)
    with pytest.raises(SignerRequestError, match=text) as caught:
        signerwire.decode_request(request)
    assert "123456" not in str(caught.value)
    assert caught.value.__context__ is None or "123456" not in repr(caught.value.__context__)


def test_a_request_too_large_for_a_variable():
    with pytest.raises(EnvironmentFailure, match="an environment variable takes"):
        signerwire.encode_sign_request(CONFIGURATION, bytes(100_000), SigningAlgorithm("ed25519"))


# Two DER sequences that say how long they are: one short, one with two digits of length.
ONE, TWO = b"\x30\x03\x02\x01\x05", b"\x30\x82\x01\x00" + bytes(256)


def pem(content: bytes) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{b64encode(content).decode()}\n-----END CERTIFICATE-----\n"


def certificate_reply(certificate: object, kind: str = "CertificateResponse") -> bytes:
    return json.dumps({"apiVersion": VERSION, "kind": kind, "certificate": certificate}).encode()


@pytest.mark.parametrize(
    "certificate",
    [
        b64encode(ONE + TWO).decode(),
        b64encode(ONE + TWO).decode()[:10] + "\n" + b64encode(ONE + TWO).decode()[10:],
        pem(ONE) + pem(TWO),
        "subject=jane\n" + pem(ONE) + "\nissuer\n" + pem(TWO),
        b64encode((pem(ONE) + pem(TWO)).encode()).decode(),
    ],
)
@pytest.mark.parametrize("kind", ["CertificateResponse", "ExternalPublicKey"])
def test_forms_of_a_certificate(certificate: str, kind: str):
    assert signerwire.decode_certificate_reply(certificate_reply(certificate, kind)) == (ONE, TWO)


def test_replies_go_round():
    assert signerwire.decode_certificate_reply(signerwire.encode_certificate_reply([ONE, TWO]).encode()) == (ONE, TWO)
    assert json.loads(signerwire.encode_certificate_reply([ONE])) == {
        "apiVersion": VERSION,
        "kind": "CertificateResponse",
        "certificate": b64encode(ONE).decode(),
    }
    assert signerwire.decode_sign_reply(signerwire.encode_sign_reply(b"signed").encode()) == b"signed"
    assert json.loads(signerwire.encode_sign_reply(b"s")) == {
        "apiVersion": VERSION,
        "kind": "SignResponse",
        "signature": "cw==",
    }


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        (None, "certificate must be a string, got none"),
        (5, "certificate must be a string, got a int"),
        ("", "the certificate is empty"),
        ("?", "certificate is not base64"),
        (b64encode(ONE[:-1]).decode(), "neither DER nor PEM"),
        (b64encode(ONE + b"x").decode(), "neither DER nor PEM"),
        (b64encode(b"\x30\x80").decode(), "neither DER nor PEM"),
        (b64encode(b"\x30\x85" + bytes(9)).decode(), "neither DER nor PEM"),
        (b64encode(b"\x30").decode(), "neither DER nor PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA", "a PEM block that cannot be read"),
        ("-----BEGIN PRIVATE KEY-----", "PEM without a certificate"),
        (b64encode(ONE * 17).decode(), "a chain of more than 16 certificates"),
    ],
)
def test_a_bad_certificate(certificate: object, text: str):
    with pytest.raises(PluginReplyError, match=text):
        signerwire.decode_certificate_reply(certificate_reply(certificate))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"kind": "CertificateResponse"}, "expected kind SignResponse, got CertificateResponse"),
        ({"kind": None}, "expected kind SignResponse, got none"),
        ({"apiVersion": "v1"}, f"expected apiVersion {VERSION}, got v1"),
        ({"signature": None}, "signature must be a string, got none"),
        ({"signature": ""}, "the signature is empty"),
        ({"signature": "a"}, "signature is not base64"),
    ],
)
def test_a_bad_signature(change: dict[str, Any], text: str):
    document = {"apiVersion": VERSION, "kind": "SignResponse", "signature": "cw=="} | change
    with pytest.raises(PluginReplyError, match=text):
        signerwire.decode_sign_reply(json.dumps(document).encode())
