"""The certificates of the fakes, looked at with `cryptography` and used in TLS handshakes in memory."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from kubeauthn.errors import UsageError
from kubeauthn.testing import CertificateAuthority, Leaf


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """A whole handshake without a socket; returns the server's side."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(10):
        waiting = False
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                waiting = True
        if not waiting:
            return ends[1]
    raise AssertionError("the handshake did not come to an end")


def client_with(authority: CertificateAuthority, leaf: Leaf) -> ssl.SSLContext:
    context = authority.client_context()
    leaf.load_into(context)
    return context


def server_that_asks(authority: CertificateAuthority) -> ssl.SSLContext:
    context = authority.server_context()
    context.load_verify_locations(cadata=authority.certificate_pem.decode())
    context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


def test_a_client_certificate_carries_user_groups_and_serial(authority):
    leaf = authority.issue_client("jane", ["dev", "ops"], serial=0x1234)
    assert leaf.serial == 0x1234
    server = handshake(client_with(authority, leaf), server_that_asks(authority), "127.0.0.1")
    seen = server.getpeercert()
    assert int(seen["serialNumber"], 16) == 0x1234
    subject = [pair for part in seen["subject"] for pair in part]
    assert subject == [("organizationName", "dev"), ("organizationName", "ops"), ("commonName", "jane")]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_the_default_server_certificate_is_for_loopback(authority, name):
    handshake(authority.client_context(), authority.server_context(), name)


def test_other_server_names(authority):
    context = authority.server_context(["api.example", "10.0.0.1"])
    handshake(authority.client_context(), context, "api.example")
    handshake(authority.client_context(), context, "10.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(authority.client_context(), context, "127.0.0.1")


def test_another_authority_is_not_trusted(authority):
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(CertificateAuthority().client_context(), authority.server_context(), "localhost")


def test_strict_verification_passes(authority):
    context = authority.client_context()
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    handshake(context, authority.server_context(), "localhost")


def test_an_intermediate_is_in_the_chain(authority):
    leaf = authority.intermediate().intermediate("second").issue_client("jane")
    assert len(x509.load_pem_x509_certificates(leaf.certificate_pem)) == 1
    assert len(x509.load_pem_x509_certificates(leaf.chain_pem)) == 3
    handshake(client_with(authority, leaf), server_that_asks(authority), "localhost")


def test_times_can_be_given(authority):
    start = datetime(2030, 1, 1, tzinfo=UTC)
    leaf = authority.issue_client("jane", not_before=start, not_after=start + timedelta(hours=1))
    assert (leaf.not_before, leaf.not_after) == (start, start + timedelta(hours=1))
    certificate = x509.load_pem_x509_certificate(leaf.certificate_pem)
    assert certificate.not_valid_before_utc == start


def test_an_expired_certificate_is_refused_by_tls(authority):
    leaf = authority.issue_client("jane", not_after=datetime(2021, 1, 1, tzinfo=UTC))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        handshake(client_with(authority, leaf), server_that_asks(authority), "localhost")


@pytest.mark.parametrize(("key_type", "key_class"), [("ec", ec.EllipticCurvePrivateKey), ("rsa", rsa.RSAPrivateKey)])
def test_key_types(authority, key_type, key_class):
    leaf = authority.issue_client("jane", key_type=key_type)
    key = load_pem_private_key(leaf.key_pem, None)
    assert isinstance(key, key_class)
    assert key.public_key() == x509.load_pem_x509_certificate(leaf.certificate_pem).public_key()


def test_what_makes_no_sense_is_refused(authority):
    with pytest.raises(UsageError, match="key type"):
        authority.issue_client("jane", key_type="dsa")
    with pytest.raises(UsageError, match="at least one name"):
        authority.issue_server([])


def test_the_key_is_not_in_the_repr(authority):
    assert "PRIVATE KEY" not in repr(authority.issue_client("jane"))


def test_serials_differ(authority):
    assert authority.issue_client("jane").serial != authority.issue_client("jane").serial
