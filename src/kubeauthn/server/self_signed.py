"""`--self-signed`: a certificate for trying things out, and what kube-apiserver must be told to trust it."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import socket

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeauthn.server.certificates import Certificates

_DAYS = 365


def make(host: str) -> Certificates:
    """Kept in memory: its key is in no file."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubeauthn self-signed")])
    begins = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=5)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(_names(host)), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        # the rest is what strict verification asks for, the default since Python 3.13
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(private.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(private.public_key()), critical=False)
        .add_extension(
            x509.KeyUsage(
                digital_signature=True,
                content_commitment=False,
                key_encipherment=False,
                data_encipherment=False,
                key_agreement=False,
                key_cert_sign=True,
                crl_sign=False,
                encipher_only=False,
                decipher_only=False,
            ),
            critical=True,
        )
        .sign(private, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    key = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificates(pem, key)


def webhook_kubeconfig(server: str, pem: bytes) -> str:
    """The file for `kube-apiserver --authentication-token-webhook-config-file`."""
    authority = base64.b64encode(pem).decode()
    # All addresses are none to connect to, and none that the certificate is for.
    server = server.replace("https://0.0.0.0:", "https://127.0.0.1:").replace("https://[::]:", "https://[::1]:")
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: kubeauthn
  cluster:
    server: {server}/authenticate
    certificate-authority-data: {authority}
users:
- name: kube-apiserver
contexts:
- name: webhook
  context: {{cluster: kubeauthn, user: kube-apiserver}}
current-context: webhook
"""


def _names(host: str) -> list[x509.GeneralName]:
    names: dict[str, x509.GeneralName] = {}
    for candidate in ("localhost", "127.0.0.1", "::1", socket.gethostname(), host):
        try:
            address = ipaddress.ip_address(candidate)
        except ValueError:
            if candidate and candidate.isascii():
                names[candidate] = x509.DNSName(candidate)
        else:
            if not address.is_unspecified:
                names[candidate] = x509.IPAddress(address)
    return list(names.values())
