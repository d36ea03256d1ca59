"""kubeauthn-signer-kms against moto's KMS, in this process: nothing leaves it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key
from moto import mock_aws

from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.errors import KeyStoreError, SignerRequestError
from kubeauthn.plugin import signer
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.signer_kms import KmsSigner
from tests.integration.softhsm import client_certificate

DIGEST = hashlib.sha256(b"hello").digest()


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield boto3.client("kms", region_name="eu-central-1")


def entry(kms: Any, spec: str, tmp_path: Path, usage: str = "SIGN_VERIFY") -> Configuration:
    key_id = kms.create_key(KeySpec=spec, KeyUsage=usage)["KeyMetadata"]["KeyId"]
    path = tmp_path / "cert.pem"
    if usage == "SIGN_VERIFY":
        public_key = load_der_public_key(kms.get_public_key(KeyId=key_id)["PublicKey"])
        path.write_bytes(client_certificate(public_key).public_bytes(Encoding.PEM))
    return Configuration(keyId=key_id, region="eu-central-1", pathCert=str(path))


# moto takes what it is given for the message and hashes it (again), so that is what the signatures are over;
# the last assertion sees that a digest was announced, which the real service does not hash.
@pytest.mark.parametrize("kind", ["rsa", ""])
def test_rsa_signs_by_pss_and_pkcs1(kms: Any, tmp_path: Path, kind: str):
    configuration = entry(kms, "RSA_2048", tmp_path)
    ready = KmsSigner(configuration)
    key = load_der_public_key(ready.public_key())
    pss = ready.sign(DIGEST, SigningAlgorithm("rsa", padding="pss", hash="sha256", salt=32))
    key.verify(pss, DIGEST, padding.PSS(padding.MGF1(SHA256()), padding.PSS.AUTO), SHA256())
    pkcs1 = ready.sign(DIGEST, SigningAlgorithm(kind, padding="pkcs1", hash="sha256"))
    key.verify(pkcs1, DIGEST, padding.PKCS1v15(), SHA256())


@pytest.mark.parametrize("kind", ["ec", ""])
def test_the_keys_kind_decides_where_the_request_does_not_tell(kms: Any, tmp_path: Path, kind: str):
    ready = KmsSigner(entry(kms, "ECC_NIST_P384", tmp_path))
    digest = hashlib.sha384(b"hello").digest()
    signature = ready.sign(digest, SigningAlgorithm(kind, padding="none" if kind else "pkcs1", hash="sha384"))
    load_der_public_key(ready.public_key()).verify(signature, digest, ec.ECDSA(SHA384()))


def test_the_service_is_told_that_it_gets_a_digest(kms: Any, tmp_path: Path):
    ready = KmsSigner(entry(kms, "ECC_NIST_P256", tmp_path))
    sent: list[dict[str, Any]] = []
    events = ready._service._client.meta.events
    events.register("provide-client-params.kms.Sign", lambda params, **_: sent.append(dict(params)))
    ready.sign(DIGEST, SigningAlgorithm("ec", hash="sha256"))
    assert [(one["MessageType"], one["Message"]) for one in sent] == [("DIGEST", DIGEST)]


def test_the_certificate_is_the_files(kms: Any, tmp_path: Path):
    trial = signer.try_out(KmsSigner, entry(kms, "ECC_NIST_P256", tmp_path))
    assert trial.algorithms == (SigningAlgorithm("ec", hash="sha256"),)


def test_faults_name_their_part(kms: Any, tmp_path: Path):
    configuration = entry(kms, "ECC_NIST_P256", tmp_path)
    with pytest.raises(SignerRequestError, match="lacks keyId, pathCert"):
        KmsSigner(Configuration())
    with pytest.raises(SignerRequestError, match="service must be one of aws"):
        KmsSigner(Configuration(configuration, service="other"))
    with pytest.raises(SignerRequestError, match="endpointUrl must be https"):
        KmsSigner(Configuration(configuration, endpointUrl="http://127.0.0.1:1"))
    absent = KmsSigner(Configuration(configuration, keyId="11111111-2222-3333-4444-555555555555"))
    with pytest.raises(KeyStoreError, match="keyId: AWS KMS refused sign: NotFoundException"):
        absent.sign(DIGEST, SigningAlgorithm("ec", hash="sha256"))
    with pytest.raises(KeyStoreError, match="Ed25519"):
        KmsSigner(configuration).sign(b"whole message", SigningAlgorithm("ed25519"))
