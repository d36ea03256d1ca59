"""A proxy plugin's listener, tried from outside: by its client, by one without a certificate, by a stranger."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
import time
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kubeauthn._core.certificates import matching_pair
from kubeauthn._core.execproxy import TLS_NAME, ProxyIdentity, ProxyRoute
from kubeauthn._io.dialing import connect
from kubeauthn._io.tls import local_proxy_context
from kubeauthn._secret import Secret
from kubeauthn.errors import CredentialError

PROBE_SECONDS = 10.0
_REQUEST = b"GET /version HTTP/1.1\r\nHost: cluster.invalid\r\nConnection: close\r\n\r\n"
_ANSWER_BYTES = 4096


def client_connection(identity: ProxyIdentity) -> ssl.SSLSocket:
    """A connection as a client makes it. Raises CredentialError, or OSError."""
    return _wrapped(identity.route, local_proxy_context(identity))


def answer(connection: ssl.SSLSocket) -> str:
    """The status line of an answer; empty where there is none."""
    with contextlib.suppress(OSError):
        connection.sendall(_REQUEST)
    try:
        return connection.recv(_ANSWER_BYTES).partition(b"\r\n")[0].decode("latin-1")
    except OSError:
        return ""


def refuses(route: ProxyRoute, identity: ProxyIdentity | None) -> bool:
    """Whether somebody who shows this certificate, or none, gets nothing. Raises CredentialError if nobody listens."""
    context = local_proxy_context(identity) if identity is not None else _without_certificate(route)
    try:
        with _wrapped(route, context) as connection:
            return not answer(connection)
    except CredentialError:
        raise
    except OSError:  # TLS itself failed
        return True


def stranger(route: ProxyRoute) -> ProxyIdentity:
    """A certificate for the same proxy that nobody it knows has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stranger")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, SHA256())
        .public_bytes(Encoding.PEM)
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return ProxyIdentity(matching_pair(certificate, Secret(pem)), route)


def others_may_look(route: ProxyRoute) -> str:
    """What of the socket's place other users reach; empty: nothing, or it is a port."""
    if not route.socket_path:
        return ""
    directory = os.path.dirname(route.socket_path)
    mode = stat.S_IMODE(os.stat(directory).st_mode)
    return f"its directory has mode {mode:04o}" if mode & 0o077 else ""


def is_closed_within(connection: ssl.SSLSocket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


def nobody_listens_within(route: ProxyRoute, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        try:
            connect(route, PROBE_SECONDS).close()
        except (CredentialError, OSError):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)


def _without_certificate(route: ProxyRoute) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=route.certificate_authority.decode("ascii", "ignore"))
    return context


def _wrapped(route: ProxyRoute, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain: socket.socket = connect(route, PROBE_SECONDS)
    try:
        return context.wrap_socket(plain, server_hostname=TLS_NAME)
    except BaseException:
        plain.close()
        raise
