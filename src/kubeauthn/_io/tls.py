"""TLS contexts for an API server, built so that a private key never touches the disk."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import weakref
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from kubeauthn._core.credential import ClientIdentity
from kubeauthn._core.execproxy import TLS_NAME, ProxyIdentity
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io.descriptors import path_of
from kubeauthn.errors import EnvironmentFailure, KubeconfigError, StaticCredentialError

_ENDS = "_kubeauthn_ends"
_SPENT = "_kubeauthn_spent"
_NO_CA = "certificate-authority: no usable PEM certificate in it"
_WHICH_CA = "kubeauthn doctor shows the cluster entry in use, and its place"


class ServerNameContext(ssl.SSLContext):
    """A context that asks for, and checks, a name of our choosing.

    `tls-server-name` means: whatever host is dialled, the certificate must be for this name.
    Doing it here rather than in each HTTP library makes every one of them right. Both signatures
    are the base class's, because some libraries pass these arguments by position.
    """

    server_name: str

    def wrap_socket(
        self,
        sock: socket.socket,
        server_side: bool = False,
        do_handshake_on_connect: bool = True,
        suppress_ragged_eofs: bool = True,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLSocket:
        return super().wrap_socket(
            sock, server_side, do_handshake_on_connect, suppress_ragged_eofs, self.server_name, session
        )

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        return super().wrap_bio(incoming, outgoing, server_side, self.server_name, session)


def server_context(cluster: Cluster, identity: ClientIdentity | None = None) -> ssl.SSLContext:
    """What Go's client would verify: the cluster's CA alone, or the system's roots where none is given."""
    context = _client_context(cluster.tls_server_name)
    if cluster.insecure_skip_tls_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif cluster.certificate_authority_data:
        _trust(context, cluster.certificate_authority_data)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if identity is not None:
        load_identity(context, identity)
    return context


def local_proxy_context(identity: ProxyIdentity) -> ssl.SSLContext:
    """For the way to a local proxy: its one-run CA alone, the name that every such proxy has, our certificate."""
    context = _client_context(TLS_NAME)
    _trust(context, identity.route.certificate_authority)
    load_identity(context, identity)
    return context


def proxy_context(cluster: Cluster) -> ssl.SSLContext:
    """For the way to an https proxy: the system's roots and the cluster's CA, and never a client certificate.

    A proxy only carries what is encrypted for the server, so it may be known by either.
    """
    context = _client_context("")
    context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if cluster.certificate_authority_data:
        _trust(context, cluster.certificate_authority_data)
    return context


def presented_certificate(cluster: Cluster, seconds: float) -> bytes:
    """The certificate that the server shows, as DER, verified by nobody. For a diagnosis: nothing is sent to it.

    Raises OSError where none can be had.
    """
    context = _client_context(cluster.tls_server_name)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    parts = urlsplit(cluster.server)
    host = parts.hostname or ""
    with socket.create_connection((host, parts.port or 443), seconds) as plain:
        with context.wrap_socket(plain, server_hostname=host) as encrypted:
            return encrypted.getpeercert(binary_form=True) or b""


def load_identity(context: ssl.SSLContext, identity: ClientIdentity) -> None:
    """`load_cert_chain` takes only paths, so it is given paths that lead to memory."""
    setattr(context, _ENDS, identity.not_after)
    if not identity.key:  # it is elsewhere, and never comes here
        from kubeauthn._core.signing_identity import SigningIdentity
        from kubeauthn._io.tls_signer import install

        if isinstance(identity, SigningIdentity):
            refused, unfit = _noting_the_end(context, identity.refused, identity.unfit)
            install(context, identity.chain, identity.sign, refused=refused, unfit=unfit)
            return
    with contextlib.ExitStack() as stack:
        certificate = stack.enter_context(path_to_memory(identity.certificate))
        key = stack.enter_context(path_to_memory(identity.key.reveal().encode()))
        try:
            # The password callback keeps OpenSSL from asking the terminal for an encrypted key.
            context.load_cert_chain(certificate, key, password=_no_password)
        except ssl.SSLError as error:
            raise StaticCredentialError(f"the client certificate cannot be used: {error.reason or 'refused'}") from None


def identity_end(context: ssl.SSLContext) -> float | None:
    """When the certificate ends that `load_identity` gave to a context; None where it gave none, or it is not known."""
    return getattr(context, _ENDS, None) or None


def identity_is_spent(context: ssl.SSLContext) -> bool:
    """Whether a server refused the external signer's certificate that this context shows, or the key is another now."""
    return getattr(context, _SPENT, False)


def _noting_the_end(
    context: ssl.SSLContext, refused: Callable[[], None] | None, unfit: Callable[[str], None] | None
) -> tuple[Callable[[], None], Callable[[str], None]]:
    known = weakref.ref(context)  # it holds what is returned here

    def note() -> None:
        if (spent := known()) is not None:
            setattr(spent, _SPENT, True)

    def when_refused() -> None:
        note()
        if refused is not None:
            refused()

    def when_unfit(reason: str) -> None:
        note()
        if unfit is not None:
            unfit(reason)

    return when_refused, when_unfit


def _client_context(server_name: str) -> ssl.SSLContext:
    context: ssl.SSLContext
    if server_name:
        context = ServerNameContext(ssl.PROTOCOL_TLS_CLIENT)
        context.server_name = server_name
    else:
        # A plain one where it will do: anyio hands every handshake of a subclass to a thread.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go accepts an intermediate in the bundle as a trust anchor; so do clusters' users.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _trust(context: ssl.SSLContext, bundle: bytes) -> None:
    try:
        # Text between the certificates may be in any script; Go passes over it.
        context.load_verify_locations(cadata=bundle.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise KubeconfigError(_NO_CA, hint=_WHICH_CA) from None
    if not context.cert_store_stats()["x509"]:
        raise KubeconfigError(_NO_CA, hint=_WHICH_CA)


@contextlib.contextmanager
def path_to_memory(data: bytes) -> Iterator[str]:
    """A path that can be opened once, by this process, and is never on a disk."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("kubeauthn", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as file:
                file.write(data)
            yield path_of(descriptor)
        finally:
            os.close(descriptor)
    elif os.path.isdir("/dev/fd"):
        with path_to_pipe(data) as path:
            yield path
    else:
        raise EnvironmentFailure(
            "a client certificate cannot be loaded here without writing its private key to disk",
            hint="see docs/platforms.md",
        )


@contextlib.contextmanager
def path_to_pipe(data: bytes) -> Iterator[str]:
    """The same without memfd (macOS): what fits into a pipe's buffer, read back through /dev/fd."""
    readable, writable = os.pipe()
    try:
        try:
            os.set_blocking(writable, False)
            complete = os.write(writable, data) == len(data)
        except BlockingIOError:
            complete = False
        finally:
            os.close(writable)
        if not complete:
            raise EnvironmentFailure(f"a certificate or key of {len(data)} bytes is too large to load on this platform")
        yield path_of(readable)
    finally:
        os.close(readable)


def _no_password() -> str:
    raise StaticCredentialError("the private key is encrypted")
