"""`kubeauthn signer doctor` and `request-certificate`, with a real token and a cluster that signs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubeauthn.client import kubeconfig
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration import signer_process, softhsm
from tests.integration.signer_scene import issue
from tests.integration.softhsm import MODULE, PIN, SoftHsm

pytestmark = pytest.mark.needs("softhsm2-util", "pkcs11-tool")


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    return softhsm.filled(tmp_path_factory.mktemp("softhsm"))


def write_kubeconfig(server: ApiServer, path: Path, config: dict[str, str]) -> None:
    """The context's own user has a token; the signer's entry stands beside it."""
    server.accept_token("s3cret", user="bootstrap")
    server.write_kubeconfig(path, user={"token": "s3cret"})
    entry = {"pathExec": "/usr/bin/kubeauthn-signer-pkcs11", **config}
    with kubeconfig.edit(path) as edit:
        edit.set_user("signed", {"auth-provider": {"name": "externalSigner", "config": entry}})


def command(hsm: SoftHsm, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kubeauthn", "signer", *argv],
        env=hsm.environ,
        capture_output=True,
        text=True,
        timeout=50,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


@contextmanager
def settling(server: ApiServer, deny: str | None = None) -> Iterator[None]:
    """Somebody who looks for requests now and then, as an approver does."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.05):
            server.settle_certificate_requests(deny=deny)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(10)


def test_doctor_lists_what_a_module_shows(hsm: SoftHsm):
    result = command(hsm, "doctor", "--module", MODULE)
    assert result.returncode == 0, result.stderr
    assert f"token 'desk', slotId {hsm.slot}" in result.stdout
    assert "key RSA, objectId 0x01 'key-01'" in result.stdout
    assert "key EC, objectId 0x02 'key-02'" in result.stdout
    assert "CN=jane, until" in result.stdout


def test_doctor_outlives_a_module_that_ends_the_process(hsm: SoftHsm):
    result = command(hsm, "doctor", "--module", "/etc/hostname", "--module", MODULE)
    assert "is not a shared library" in result.stdout
    assert "token 'desk'" in result.stdout


def test_doctor_says_what_to_do_with_a_module_without_a_token_and_a_key_without_a_certificate(tmp_path: Path):
    hsm = SoftHsm(tmp_path / "one")
    hsm.make_key("0a", "EC:prime256v1")
    shown = command(hsm, "doctor", "--module", MODULE).stdout
    asked = f"--set pathLib={MODULE} --set slotId={hsm.slot} --set objectId=0x0a"
    assert f"      no certificate: kubeauthn signer request-certificate --signer pkcs11 {asked}\n" in shown
    assert "no token" not in shown
    hsm.install("0a", softhsm.client_certificate(hsm.public_key("0a")))
    assert "no certificate" not in command(hsm, "doctor", "--module", MODULE).stdout
    shutil.rmtree(hsm.tokens)
    hsm.tokens.mkdir()
    shown = command(hsm, "doctor", "--module", MODULE).stdout
    assert ", 1 slot)\n  no token: softhsm2-util --init-token --free --label NAME makes one\n" in shown


def test_doctor_fails_for_a_module_that_is_not_there(hsm: SoftHsm):
    result = command(hsm, "doctor", "--module", MODULE, "--module", "/nope.so")
    assert (result.returncode, result.stdout) == (4, "")
    assert result.stderr.startswith("error: --module /nope.so: no such file or directory\nhint: ")


def test_doctor_signs_warns_of_the_pin_and_writes_the_entry_without_it(hsm: SoftHsm, tmp_path: Path):
    path = tmp_path / "config"
    with ApiServer() as server:
        write_kubeconfig(server, path, hsm.configuration(pin=PIN))
    result = command(hsm, "doctor", "--kubeconfig", str(path), "--signer-user", "signed", "--write", "clean")
    assert result.returncode == 0, result.stderr
    assert "signature     ec sha256: verified with the certificate" in result.stdout
    assert "the kubeconfig holds a PIN" in result.stderr
    assert PIN not in result.stdout + result.stderr
    provider = kubeconfig.load(path).users["clean"].auth_provider
    assert provider is not None
    assert provider.name == "externalSigner"
    written = dict(provider.config)
    assert written.pop("pathExec").endswith("kubeauthn-signer-pkcs11")
    assert written == hsm.configuration()


def test_a_pin_on_the_command_line_is_refused(hsm: SoftHsm):
    result = command(hsm, "doctor", "--signer", "pkcs11", "--set", f"pin={PIN}")
    assert result.returncode == 2
    assert PIN not in result.stderr


@pytest.mark.parametrize(("object_id", "kind"), [("1", "rsa"), ("2", "ec"), ("4", "ed25519")])
def test_a_certificate_is_requested_signed_and_installed_on_the_token(
    hsm: SoftHsm, tmp_path: Path, object_id: str, kind: str
):
    path = tmp_path / "config"
    configuration = hsm.configuration(object_id, pin=PIN)
    with ApiServer() as server:
        write_kubeconfig(server, path, configuration)
        options = ("--kubeconfig", str(path), "--signer-user", "signed")
        with settling(server):
            result = command(hsm, "request-certificate", *options, "--name", "joe", "--group", "dev")
            assert result.returncode == 0, result.stderr
            assert "the certificate is in the token 'desk'" in result.stdout
            first = x509.load_der_x509_certificate(signer_process.certificate("pkcs11", configuration, hsm.environ))
            assert first.subject.rfc4514_string() == "CN=joe,O=dev"
            assert "nothing to do" in command(hsm, "request-certificate", *options, "--renew").stdout
            again = command(hsm, "request-certificate", *options, "--renew", "--force")
            assert again.returncode == 0, again.stderr
        second = x509.load_der_x509_certificate(signer_process.certificate("pkcs11", configuration, hsm.environ))
        assert second.subject == first.subject
        assert second.serial_number != first.serial_number
        sent = server.objects("certificatesigningrequests")[0]["spec"]
        assert sent["signerName"] == "kubernetes.io/kube-apiserver-client"
        assert sent["usages"] == ["digital signature", "client auth"]
    assert PIN not in result.stdout + result.stderr


def test_a_request_that_is_denied_installs_nothing(hsm: SoftHsm, tmp_path: Path):
    path, certificate = tmp_path / "config", tmp_path / "cert.pem"
    with ApiServer() as server:
        write_kubeconfig(server, path, hsm.configuration("3", pin=PIN, pathCert=str(certificate)))
        options = ("--kubeconfig", str(path), "--signer-user", "signed", "--name", "joe")
        with settling(server, deny="not you"):
            result = command(hsm, "request-certificate", *options)
        assert result.returncode == 1
        assert "was denied: not you" in result.stderr
        assert not certificate.exists()
        late = command(hsm, "request-certificate", *options, "--wait", "0.1")
        assert late.returncode == 4
        assert "nobody approved kubeauthn-" in late.stderr


@pytest.mark.parametrize(
    ("made", "text"),
    [
        ({"starts": timedelta(hours=1)}, "the signer's certificate is not valid before"),
        ({"usage": ExtendedKeyUsageOID.SERVER_AUTH}, "its extended key usage has no clientAuth"),
        ({"starts": timedelta(days=-2), "ends": timedelta(days=-1)}, "the certificate has expired"),
    ],
    ids=["early", "server", "late"],
)
def test_doctor_writes_no_entry_for_a_certificate_that_a_client_would_not_show(
    hsm: SoftHsm, tmp_path: Path, made: dict[str, Any], text: str
):
    certificate, config = tmp_path / "jane.der", tmp_path / "config"
    key = SimpleNamespace(public_key=lambda: hsm.public_key("02"))
    certificate.write_bytes(issue(CertificateAuthority(), key, **made))
    settings = hsm.configuration(pathCert=str(certificate))
    options = [f"--set={name}={value}" for name, value in settings.items()]
    result = command(hsm, "doctor", "--signer=pkcs11", *options, "--no-sign", "--write=jane", f"--kubeconfig={config}")
    assert (result.returncode, text in result.stderr) == (1, True), result.stderr
    assert not config.exists()


@pytest.mark.parametrize("curve", ["06082a8648ce3d030163", "0500", ""], ids=["unknown", "null", "none"])
def test_a_key_on_a_curve_that_nobody_knows(curve: str):
    """As a token may have one, or a module may say."""
    from kubeauthn._core.signature_forms import bit_string, sequence
    from kubeauthn.cli.signer_csr import build_request, subject_of
    from kubeauthn.errors import KeyStoreError

    kind = bytes.fromhex("06072a8648ce3d0201") + bytes.fromhex(curve)
    key = sequence(sequence(kind), bit_string(b"\4" + bytes(64)))
    with pytest.raises(KeyStoreError, match="what the signer gives as a public key is none, or of a kind"):
        build_request(SimpleNamespace(public_key=lambda: key), subject_of("jane", []))


def test_a_certificate_for_another_key_is_not_installed():
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    from kubeauthn.cli.signer_csr import check_issued
    from kubeauthn.errors import KeyStoreError

    ours, theirs = (ec.generate_private_key(ec.SECP256R1()).public_key() for _ in range(2))
    issued = softhsm.client_certificate(theirs).public_bytes(Encoding.PEM)
    with pytest.raises(KeyStoreError, match="for another key"):
        check_issued(issued, ours.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))


def test_the_request_for_another_authority_is_printed(hsm: SoftHsm, tmp_path: Path):
    path = tmp_path / "config"
    with ApiServer() as server:
        write_kubeconfig(server, path, hsm.configuration("1", pin=PIN))
        options = ("--kubeconfig", str(path), "--signer-user", "signed", "--name", "joe", "--group", "dev", "--print")
        result = command(hsm, "request-certificate", *options)
        assert result.returncode == 0, result.stderr
        assert server.requests == []
    request = x509.load_pem_x509_csr(result.stdout.encode())
    assert request.is_signature_valid
    assert request.subject.rfc4514_string() == "CN=joe,O=dev"
    assert request.public_key() == hsm.public_key("01")


def test_a_request_needs_the_pin_and_says_so(hsm: SoftHsm):
    settings = [f"--set={key}={value}" for key, value in hsm.configuration().items()]
    result = command(hsm, "request-certificate", "--signer", "pkcs11", *settings, "--name", "joe", "--print")
    assert "no terminal to ask for PIN" in result.stderr
    assert (result.returncode, result.stdout) == (4, "")


@pytest.mark.parametrize(("days_left", "renewed"), [(49, False), (32, True), (-1, True)])
def test_a_certificate_is_renewed_when_a_third_of_its_time_is_left(
    hsm: SoftHsm, tmp_path: Path, days_left: int, renewed: bool
):
    """Of a hundred days; one that has ended is renewed too."""
    path, place = tmp_path / "config", tmp_path / "cert.der"
    begins, ends = timedelta(days=days_left - 100), timedelta(days=days_left)
    key = SimpleNamespace(public_key=lambda: hsm.public_key("03"))
    old = issue(CertificateAuthority(), key, user="joe", starts=begins, ends=ends)
    place.write_bytes(old)
    with ApiServer() as server:
        write_kubeconfig(server, path, hsm.configuration("3", pin=PIN, pathCert=str(place)))
        with settling(server):
            result = command(
                hsm, "request-certificate", "--renew", "--kubeconfig", str(path), "--signer-user", "signed"
            )
        assert result.returncode == 0, result.stderr
        assert len(server.objects("certificatesigningrequests")) == renewed
    assert (place.read_bytes() != old) == renewed
    if renewed:
        (new,) = x509.load_pem_x509_certificates(place.read_bytes())
        assert new.subject.rfc4514_string() == "CN=joe"
        assert new.public_key() == hsm.public_key("03")
    else:
        assert "nothing to do: 49% of the certificate's time is left" in result.stdout


def test_the_certificate_that_was_installed_authenticates(hsm: SoftHsm, tmp_path: Path):
    """From an empty entry to the first request, with the client that everybody uses."""
    path = tmp_path / "config"
    program = tmp_path / "kubeauthn-signer-pkcs11"
    program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_pkcs11 import main\nmain()\n")
    program.chmod(0o700)
    with ApiServer() as server:
        write_kubeconfig(server, path, hsm.configuration("2", pin=PIN, pathExec=str(program)))
        options = ("--kubeconfig", str(path), "--signer-user", "signed")
        with settling(server):
            made = command(hsm, "request-certificate", *options, "--name", "joe", "--group", "dev")
        assert made.returncode == 0, made.stderr
        argv = [sys.executable, "-m", "kubeauthn", "whoami", "--kubeconfig", str(path), "--user", "signed"]
        who = subprocess.run(argv, env=hsm.environ, capture_output=True, text=True, timeout=50, start_new_session=True)
        assert who.returncode == 0, who.stderr
        assert "joe" in who.stdout
        assert "dev" in who.stdout
        assert PIN not in who.stdout + who.stderr
