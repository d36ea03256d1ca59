"""Each shipped signer, with a certificate of the cluster's CA, signs handshakes with the real kube-apiserver."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_der_public_key,
)

from kubeauthn.client import connect, open_access
from kubeauthn.client.signer_source import ExternalSigner
from kubeauthn.plugin.signer import Configuration
from kubeauthn.plugins.signer_tpm2 import Tpm2Signer
from kubeauthn.testing import CertificateAuthority
from tests.e2e.cluster import Cluster
from tests.e2e.processes import Running, poll
from tests.integration.adapters.conftest import found_drivers
from tests.integration.adapters.driver import Driver
from tests.integration.signer_scene import issue
from tests.integration.softhsm import MODULE, SoftHsm
from tests.integration.test_signer_kms import KeyService
from tests.integration.test_signer_kubectl import KEYRING
from tests.integration.test_signer_tpm2 import SoftTpm, two_free_ports
from tests.peers import find

KINDS = ("file", "pkcs11", "tpm2", "kms")
PASSPHRASE = "tr0ub4dor"
USER = "signer"
HANDLE = 0x81000001
SECONDS = 60


class PublicHalf:
    """What `issue` needs of a key whose other half is out of reach."""

    def __init__(self, key: object) -> None:
        self._key = key

    def public_key(self) -> object:
        return self._key


class Desk:
    """A machine with a key of each kind, made when it is first asked for."""

    def __init__(self, folder: Path, cluster: Cluster, user: str = USER) -> None:
        self.folder = folder
        self.cluster = cluster
        self._user = user
        self.environ = dict(os.environ)
        self._open = ExitStack()
        self._entries: dict[str, dict[str, str]] = {}
        self._makers: dict[str, Callable[[Path], dict[str, str]]] = {
            "file": self._file,
            "pkcs11": self._pkcs11,
            "tpm2": self._tpm2,
            "kms": self._kms,
        }

    def close(self) -> None:
        self._open.close()

    def user(self, kind: str) -> dict[str, Any]:
        """The kubeconfig's user whose key this is."""
        if kind not in self._entries:
            folder = self.folder / kind
            folder.mkdir()
            program = folder / f"kubeauthn-signer-{kind}"
            program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_{kind} import main\nmain()\n")
            program.chmod(0o700)
            self._entries[kind] = {"pathExec": str(program), **self._makers[kind](folder)}
        return {"auth-provider": {"name": "externalSigner", "config": self._entries[kind]}}

    def kubeauthn(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "kubeauthn", *words]
        environ = {**self.environ, "XDG_STATE_HOME": str(self.folder / "state"), "HOME": str(self.folder)}
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS)

    def _certificate(self, folder: Path, key: Any) -> str:
        path = folder / "cert.der"
        path.write_bytes(issue(self.cluster.ca, key, user=self._user))
        return str(path)

    def _file(self, folder: Path) -> dict[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        path = folder / "key.pem"
        path.touch(0o600)
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"tr0ub4dor")))
        return {"pathKey": str(path), "pathCert": self._certificate(folder, key), "pin": PASSPHRASE}

    def _pkcs11(self, folder: Path) -> dict[str, str]:
        hsm = SoftHsm(folder / "softhsm")
        hsm.make_key("02", "EC:prime256v1")
        (folder / "shelf.py").write_text(KEYRING)
        self.environ |= {
            "SOFTHSM2_CONF": str(hsm.conf),
            "PYTHONPATH": str(folder),
            "PYTHON_KEYRING_BACKEND": "shelf.Shelf",
        }
        configuration = {
            "pathLib": MODULE,
            "tokenLabel": "desk",
            "objectId": "2",
            "pinSource": "keyring:kubeauthn/desk",
        }
        self.request(configuration, "--name", self._user, "--group", "hardware")
        return configuration

    def request(self, configuration: dict[str, str], *subject: str) -> None:
        """A certificate by the cluster's own API: requested, approved by kubectl, signed, and put into the token."""
        words = [f"--set={name}={value}" for name, value in configuration.items()]
        answers: list[subprocess.CompletedProcess[str]] = []
        asking = threading.Thread(
            target=lambda: answers.append(
                self.kubeauthn(
                    "signer", "request-certificate", "--kubeconfig", str(self.cluster.admin), "--signer", "pkcs11",
                    *words, *subject, "--expires", "3600", "--wait", "50",
                )
            )
        )  # fmt: skip
        asking.start()
        try:
            approve_and_sign(self.cluster, asking.is_alive)
        finally:
            asking.join(SECONDS)
            assert answers
            assert answers[0].returncode == 0, answers[0].stderr

    def _tpm2(self, folder: Path) -> dict[str, str]:
        (folder / "state").mkdir()
        port = two_free_ports()
        command = [
            "swtpm", "socket", "--tpm2", "--tpmstate", f"dir={folder / 'state'}",
            "--server", f"type=tcp,port={port},bindaddr=127.0.0.1",
            "--ctrl", f"type=tcp,port={port + 1},bindaddr=127.0.0.1", "--flags", "not-need-init,startup-clear",
        ]  # fmt: skip
        self._open.callback(Running(command, folder / "swtpm.log").stop)
        tpm = SoftTpm(folder, port)
        poll(lambda: answers(tpm), 20, "swtpm answers")
        tpm.make_key(HANDLE, "ecc256:null:null", name="key")
        configuration = {"device": tpm.device, "handle": hex(HANDLE)}
        public = load_der_public_key(Tpm2Signer(Configuration(configuration)).public_key())
        return {**configuration, "pathCert": self._certificate(folder, PublicHalf(public))}

    def _kms(self, folder: Path) -> dict[str, str]:
        # Not moto's: that hashes the digest it is given once more, so no handshake comes of its signatures.
        ca = CertificateAuthority("key service CA")
        (folder / "ca.pem").write_bytes(ca.certificate_pem)
        self.environ |= {
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "s3cret",
            "AWS_CA_BUNDLE": str(folder / "ca.pem"),
        }
        service = self._open.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), KeyService))
        service.socket = ca.server_context().wrap_socket(service.socket, server_side=True)
        thread = threading.Thread(target=service.serve_forever)
        thread.start()
        self._open.callback(thread.join, 10)
        self._open.callback(service.shutdown)
        where = {"region": "eu-central-1", "endpointUrl": f"https://127.0.0.1:{service.server_port}"}
        return {"keyId": "alias/jane", "pathCert": self._certificate(folder, KeyService.key), **where}


def answers(tpm: SoftTpm) -> bool:
    try:
        tpm.tool("tpm2_createprimary", "-Q", "-C", "o", "-G", "ecc256", "-c", "primary.ctx")
    except AssertionError:
        return False
    return True


def approve_and_sign(cluster: Cluster, expected: Callable[[], bool]) -> None:
    """What an administrator and the signing controller do, as long as a request is expected."""
    named: list[str] = []

    def requested() -> bool:
        assert expected(), "nobody asks for a certificate any more"
        named[:] = cluster.kubectl("get", "csr", "-o", "name").stdout.split()
        return bool(named)

    poll(requested, 40, "the request is there")
    name = named[0].partition("/")[2]
    cluster.kubectl("certificate", "approve", name)
    request = json.loads(cluster.kubectl("get", "csr", name, "-o", "json").stdout)
    assert request["status"]["conditions"][0]["type"] == "Approved"
    assert request["spec"]["expirationSeconds"] == 3600
    csr = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    assert csr.is_signature_valid
    issued = issue(cluster.ca, csr, user=csr.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
    pem = x509.load_der_x509_certificate(issued).public_bytes(Encoding.PEM)
    status = json.dumps({"status": {"certificate": base64.b64encode(pem).decode()}})
    cluster.kubectl("patch", "csr", name, "--subresource=status", "--type=merge", "-p", status)
    # Whoever asked has it a moment later; the next request is to be the only one.
    poll(lambda: not expected(), 40, "the certificate is taken")
    cluster.kubectl("delete", "csr", name)


@pytest.fixture(scope="module")
def desk(direct: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    direct.grant(USER)
    made = Desk(tmp_path_factory.mktemp("desk"), direct)
    yield made
    made.close()


@pytest.fixture
def file(desk: Desk, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig with the signer of this kind."""
    path = desk.cluster.write_kubeconfig(f"signer-{request.param}", desk.user(request.param))
    for name, value in desk.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@pytest.mark.parametrize("file", KINDS, indirect=True)
def test_the_key_opens_the_connection(file: Path):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    with connect() as api:
        user = api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json=review).json()["status"]["userInfo"]
        assert user["username"] == USER
        with api.stream("GET", "/api/v1/namespaces?watch=true&timeoutSeconds=2") as watch:
            seen = [json.loads(line)["object"]["metadata"]["name"] for line in watch.iter_lines() if line]
    assert "kube-system" in seen


@pytest.mark.parametrize("file", KINDS, indirect=True)
def test_kubectl_uses_the_key_through_the_bridge(file: Path, desk: Desk):
    desk.environ["KUBECONFIG"] = str(file)
    desk.environ["PATH"] = f"{find('kubectl').parent}:{os.environ['PATH']}"  # type: ignore[union-attr]
    try:
        who = desk.kubeauthn("kubectl", "--", "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
        assert (who.returncode, who.stdout) == (0, USER), who.stderr
        listed = desk.kubeauthn("kubectl", "--", "get", "namespaces", "-o", "name")
        assert "namespace/kube-system" in listed.stdout
    finally:
        desk.kubeauthn("bridge", "stop", "--all")


@pytest.mark.parametrize("file", KINDS, indirect=True)
def test_whoami(file: Path, desk: Desk):
    done = desk.kubeauthn("whoami", "--kubeconfig", str(file), "--output", "json")
    assert done.returncode == 0, done.stderr
    assert USER in done.stdout


@pytest.mark.parametrize("file", ["pkcs11"], indirect=True)
def test_the_cluster_renews_the_certificate(file: Path, desk: Desk):
    """For the same name and the same key, by a new request that somebody approves; the key then opens connections."""
    entry = desk.user("pkcs11")["auth-provider"]["config"]
    configuration = {name: value for name, value in entry.items() if name != "pathExec"}
    before = certificate_in_use(file)
    desk.request(configuration, "--renew", "--force")
    after = certificate_in_use(file)
    assert after.serial_number != before.serial_number
    assert (after.subject, after.public_key()) == (before.subject, before.public_key())
    done = desk.kubeauthn("whoami", "--kubeconfig", str(file), "--output", "json")
    assert done.returncode == 0, done.stderr
    assert USER in done.stdout


def certificate_in_use(file: Path) -> x509.Certificate:
    entry = open_access(kubeconfig=file).target.user.auth_provider  # type: ignore[union-attr]
    assert entry is not None
    identity = ExternalSigner(entry).make_credential().identity
    assert identity is not None
    return x509.load_pem_x509_certificate(identity.certificate)


@pytest.mark.parametrize("driver", found_drivers(), ids=lambda found: found.name)
@pytest.mark.parametrize("file", ["file"], indirect=True)
def test_each_adapter_lists_and_watches_with_the_key(driver: Driver, file: Path, direct: Cluster):
    with driver.session() as client:
        outcome = client.list_namespaces()
        assert outcome.error is None
        assert "kube-system" in outcome.names
        watch = client.watch_namespaces()
        poll(lambda: watch.next(20) == "kube-system", 30, "the watch shows what is there", interval=0)
