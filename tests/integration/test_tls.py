"""TLS contexts: what they trust, which name they check, and where the key goes."""

from __future__ import annotations

import base64
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubeauthn._core.certificates import matching_pair
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io import tls
from kubeauthn._secret import Secret
from kubeauthn.cli.certificate_view import presented_view
from kubeauthn.client import connect
from kubeauthn.errors import EnvironmentFailure, KubeconfigError, StaticCredentialError
from kubeauthn.testing.apiserver import ApiServer
from kubeauthn.testing.pki import CertificateAuthority
from tests.integration.signer_scene import issue


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer(server_names=["127.0.0.1", "api.internal"]) as running:
        yield running


def handshake(server: ApiServer, context: ssl.SSLContext, name: str = "127.0.0.1") -> str | None:
    import socket

    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname=name) as wrapped,
    ):
        return wrapped.version()


def cluster(server: ApiServer, **fields: object) -> Cluster:
    values = {"server": server.url, "certificate_authority_data": server.ca.certificate_pem} | fields
    return Cluster(**values)  # type: ignore[arg-type]


def test_the_clusters_ca_is_trusted(server: ApiServer) -> None:
    assert handshake(server, tls.server_context(cluster(server))) == "TLSv1.3"


def test_another_ca_is_not(server: ApiServer) -> None:
    other = CertificateAuthority().certificate_pem
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, tls.server_context(cluster(server, certificate_authority_data=other)))


def test_the_certificate_of_a_server_that_is_not_trusted_can_be_looked_at(server: ApiServer) -> None:
    before = len(server.requests)
    untrusting = cluster(server, certificate_authority_data=CertificateAuthority().certificate_pem)
    shown = presented_view(tls.presented_certificate(untrusting, 5))
    subject, _, rest = shown.partition(", issued by ")
    issuer, _, fingerprint = rest.partition(", SHA-256 ")
    assert subject
    assert issuer == "CN=kubeauthn test CA"
    assert len(fingerprint.split(":")) == 32
    assert len(server.requests) == before
    with pytest.raises(OSError, match="refused"):
        tls.presented_certificate(Cluster(server="https://127.0.0.1:1"), 5)


def test_without_a_ca_the_system_decides(server: ApiServer) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, tls.server_context(cluster(server, certificate_authority_data=b"")))


def test_tls_server_name_is_asked_for_and_checked(server: ApiServer) -> None:
    handshake(server, tls.server_context(cluster(server, tls_server_name="api.internal")), name="wrong.example")
    assert server.wait_for(lambda: server.connections[-1].sni == "api.internal")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(server, tls.server_context(cluster(server, tls_server_name="other.internal")))


def test_insecure_is_insecure_only_when_asked_for(server: ApiServer) -> None:
    handshake(
        server, tls.server_context(cluster(server, certificate_authority_data=b"", insecure_skip_tls_verify=True))
    )


@pytest.mark.parametrize(
    "bundle", [b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff"]
)
def test_a_ca_that_is_none_is_an_error_not_an_empty_trust(server: ApiServer, bundle: bytes) -> None:
    with pytest.raises(KubeconfigError, match="certificate-authority"):
        tls.server_context(cluster(server, certificate_authority_data=bundle))


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_the_private_key_never_touches_the_disk(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every file opened while a key is loaded is looked at: none is below a directory that holds files."""
    leaf = server.ca.issue_client("jane")
    opened: list[str] = []
    watching = True  # a hook cannot be taken away again
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if watching and event == "open" else None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = len(os.listdir("/proc/self/fd"))
    identity = matching_pair(leaf.certificate_pem, Secret(leaf.key_pem.decode()))
    context = tls.server_context(cluster(server), identity)
    watching = False
    written = [path for path in opened if not path.isdigit() and not path.startswith("/proc/self/fd")]
    assert not [path for path in written if "tmp" in path]
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before
    handshake(server, context)
    assert server.wait_for(lambda: server.connections[-1].certificate_serial == leaf.serial)


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs /dev/fd")
def test_the_way_without_memfd_works_too(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    leaf = server.ca.issue_client("jane", key_type="rsa")
    identity = matching_pair(leaf.chain_pem, Secret(leaf.key_pem.decode()))
    handshake(server, tls.server_context(cluster(server), identity))
    assert server.wait_for(lambda: server.connections[-1].certificate_serial == leaf.serial)
    with pytest.raises(EnvironmentFailure, match="too large"), tls.path_to_pipe(b"x" * 10_000_000):
        pass


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (ec.generate_private_key(ec.SECP256K1()), "the key is on secp256k1, and TLS takes P-256, P-384 and P-521"),
        (ec.generate_private_key(ec.BrainpoolP256R1()), "the key is on brainpoolP256r1"),
        (ed448.Ed448PrivateKey.generate(), "the key is none of RSA, EC and Ed25519"),
    ],
    ids=["secp256k1", "brainpool", "ed448"],
)
def test_a_key_that_tls_would_silently_leave_out_is_refused(
    server: ApiServer, own_environment: Path, key: ec.EllipticCurvePrivateKey | ed448.Ed448PrivateKey, said: str
) -> None:
    """OpenSSL shows no certificate then, and the request would go out as nobody's."""
    pem = x509.load_der_x509_certificate(issue(server.ca, key)).public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    user = {
        "client-certificate-data": base64.b64encode(pem).decode(),
        "client-key-data": base64.b64encode(private).decode(),
    }
    server.write_kubeconfig(own_environment / ".kube" / "config", user)
    before = len(server.requests)
    with pytest.raises(StaticCredentialError, match=said), connect() as api:
        api.get("/api/v1/namespaces")
    assert len(server.requests) == before
