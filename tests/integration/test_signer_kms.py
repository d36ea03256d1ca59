"""kubeauthn-signer-kms: against moto's KMS in this process, and as a program against a service on the loopback."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import boto3
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.hazmat.primitives.hashes import SHA256, SHA384
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from moto import mock_aws

from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.client import connect
from kubeauthn.errors import KeyStoreError, SignerRequestError
from kubeauthn.plugin import signer
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.signer_kms import KmsSigner
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration.checked_plugin import check
from tests.integration.signer_scene import issue
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


def test_the_region_of_the_environment(kms: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    configuration = Configuration({**entry(kms, "RSA_2048", tmp_path), "region": ""})
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(KeyStoreError) as caught:
        KmsSigner(configuration)
    assert "AWS_REGION" in (caught.value.hint or "")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert KmsSigner(configuration).public_key()


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


class KeyService(BaseHTTPRequestHandler):
    """KMS as its clients see it, with a key of its own. Unlike moto it signs a digest as what it is."""

    key = ec.generate_private_key(ec.SECP256R1())
    asked: ClassVar[list[tuple[str, str]]] = []

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        operation = self.headers["X-Amz-Target"].rpartition(".")[2]
        self.asked.append((operation, self.headers["Authorization"].split()[0]))
        answer = {"KeyId": request["KeyId"], "KeyUsage": "SIGN_VERIFY"}
        status = 200
        if operation == "Sign" and request["SigningAlgorithm"] != "ECDSA_SHA_256":
            # One algorithm a key: that is the service's rule.
            status, answer = 400, {"__type": "InvalidKeyUsageException", "message": "not for this key"}
        elif operation == "Sign":
            assert request["MessageType"] == "DIGEST"
            signature = self.key.sign(b64decode(request["Message"]), ec.ECDSA(utils.Prehashed(SHA256())))
            answer["Signature"] = b64encode(signature).decode()
        else:
            content = self.key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
            answer["PublicKey"] = b64encode(content).decode()
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@contextmanager
def entry_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ca: CertificateAuthority
) -> Iterator[dict[str, str]]:
    """A kubeconfig entry for kubeauthn-signer-kms as a client runs it, its service behind TLS."""
    certificate = tmp_path / "cert.der"
    certificate.write_bytes(issue(ca, KeyService.key))
    (tmp_path / "ca.pem").write_bytes(ca.certificate_pem)
    program = tmp_path / "kubeauthn-signer-kms"
    program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_kms import main\nmain()\n")
    program.chmod(0o700)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    with ThreadingHTTPServer(("127.0.0.1", 0), KeyService) as service:
        service.socket = ca.server_context().wrap_socket(service.socket, server_side=True)
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        try:
            config = {"pathExec": str(program), "keyId": "alias/jane", "pathCert": str(certificate)}
            yield config | {"region": "eu-central-1", "endpointUrl": f"https://127.0.0.1:{service.server_port}"}
        finally:
            service.shutdown()
            thread.join(10)


def test_the_program_and_a_connection_with_its_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ca = CertificateAuthority()
    with entry_of_the_program(tmp_path, monkeypatch, ca) as config, ApiServer(ca=ca) as server:
        user = {"auth-provider": {"name": "externalSigner", "config": config}}
        path = server.write_kubeconfig(tmp_path / "config", user)
        with connect(kubeconfig=str(path)) as api:
            assert api.get("/api/v1/namespaces").status_code == 200
    assert [each.user for each in server.requests] == ["jane"]
    assert ("Sign", "AWS4-HMAC-SHA256") in KeyService.asked


def test_plugin_check_finds_no_fault_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with entry_of_the_program(tmp_path, monkeypatch, CertificateAuthority()) as config:
        options = [word for name, value in config.items() for word in ("--config", f"{name}={value}")]
        checked = check(config["pathExec"], options=tuple(options))
    assert checked.report["plugin"] == "signer"
    assert checked.faults == [], checked.report
    assert {"sign ec sha384", "sign ec sha512"} <= set(checked.notes) <= {"sign ec sha384", "sign ec sha512", "speed"}
