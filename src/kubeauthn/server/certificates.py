"""Certificate, key and client CA of the server: read once, checked, and handed on as they were read.

Workers start at any time: when one died, or when the certificate changed. The files may be broken by then, or half
written. So workers never see them: they get the copy that was checked, over the pipe they are started through, and
the key is in no file but the operator's own.
"""

from __future__ import annotations

import os
import ssl
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kubeauthn._io.descriptors import path_of
from kubeauthn._io.files import read_bounded
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOO_LARGE = "a certificate, key or client CA is larger than this system lets us hand to workers"


@dataclass(frozen=True, slots=True)
class Certificates:
    """PEM, each. The key is not shown."""

    chain: bytes
    key: bytes = field(repr=False)
    client_ca: bytes = b""

    def ends(self) -> float:
        """When the server's certificate is over, in unix seconds."""
        from cryptography import x509

        from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE

        try:
            return x509.load_pem_x509_certificate(self.chain).not_valid_after_utc.timestamp()
        except NOT_A_CERTIFICATE:  # OpenSSL has read it, and that is what counts
            return float("inf")

    @contextmanager
    def as_paths(self) -> Iterator[tuple[str, str, str]]:
        """For those who take nothing but paths. Each can be opened once, and is gone afterwards."""
        with ExitStack() as stack:
            chain, key = (stack.enter_context(_readable(content)) for content in (self.chain, self.key))
            yield chain, key, stack.enter_context(_readable(self.client_ca)) if self.client_ca else ""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Where they come from. A pair that was `made` here is in no file; its client CA may be."""

    chain: str = ""
    key: str = ""
    client_ca: str = ""
    made: Certificates | None = None

    def paths(self) -> tuple[str, ...]:
        return tuple(path for path in (self.chain, self.key, self.client_ca) if path)

    def read(self, *, pipes: bool = True) -> Certificates:
        """What the files hold now, if OpenSSL can use it. Raises EnvironmentFailure."""

        def content(path: str) -> bytes:
            return read_bounded(path, limits.CERTIFICATE_BYTES, pipes=pipes)

        pair = self.made or Certificates(content(self.chain), content(self.key))
        found = replace(pair, client_ca=content(self.client_ca) if self.client_ca else b"")
        _check(self, found)
        return found

    def shown(self) -> str:
        """The pair, for messages."""
        return f"certificate {self.chain} and key {self.key}" if self.chain else "the certificate that was made"


def _check(files: CertificateFiles, found: Certificates) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with found.as_paths() as (chain, key, client_ca):
        try:
            context.load_cert_chain(chain, key, password=lambda: "")
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            raise EnvironmentFailure(_no_pem(files, found) or f"{files.shown()}: {_why(error)}") from None
        try:
            if client_ca:
                context.load_verify_locations(client_ca)
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"client CA {files.client_ca}: {_why(error)}") from None


def _no_pem(files: CertificateFiles, found: Certificates) -> str:
    """What OpenSSL says of such a file has neither a reason nor its name."""
    if b" CERTIFICATE-----" not in found.chain:
        return f"certificate {files.chain}: it holds no certificate in PEM"
    if b"PRIVATE KEY-----" not in found.key:
        return f"key {files.key}: it holds no private key in PEM"
    return ""


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "cannot be used").replace("_", " ").lower()
    return (getattr(error, "strerror", None) or "cannot be used").lower()


@contextmanager
def _readable(content: bytes) -> Iterator[str]:
    """A path of this process alone. No thread may be needed to fill it: who reads it may hold the interpreter."""
    descriptor = in_memory(content) if hasattr(os, "memfd_create") else in_a_pipe(content)
    try:
        yield path_of(descriptor)
    finally:
        os.close(descriptor)


def in_memory(content: bytes) -> int:
    """A descriptor of a file that is nowhere but in memory."""
    descriptor = os.memfd_create("kubeauthn")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def in_a_pipe(content: bytes) -> int:
    """The same where there are no such files. A pipe holds some 64 KiB."""
    reader, writer = os.pipe()
    try:
        os.set_blocking(writer, False)
        written = os.write(writer, content)
    except BaseException as error:
        os.close(reader)
        if isinstance(error, BlockingIOError):
            raise EnvironmentFailure(_TOO_LARGE) from None
        raise
    finally:
        os.close(writer)
    if written < len(content):
        os.close(reader)
        raise EnvironmentFailure(_TOO_LARGE)
    return reader
