"""Run a shipped signer as a client does: one request in the environment, one document on standard output."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.plugin._signer_rehearsal import verify


def command(kind: str) -> list[str]:
    return [sys.executable, "-c", f"from kubeauthn.plugins.signer_{kind} import main; main()"]


def ask(
    kind: str, request: str, environ: Mapping[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(kind),
        env={**(environ or os.environ), signerwire.VARIABLE: request},
        capture_output=True,
        timeout=50,
        start_new_session=True,  # no /dev/tty, whoever runs the tests
        stdin=subprocess.DEVNULL,
        **options,
    )


def certificate(kind: str, configuration: Mapping[str, str], environ: Mapping[str, str] | None = None) -> bytes:
    result = ask(kind, signerwire.encode_certificate_request(configuration), environ)
    assert result.returncode == 0, result.stderr.decode()
    return signerwire.decode_certificate_reply(result.stdout)[0]


def sign(
    kind: str,
    configuration: Mapping[str, str],
    algorithm: SigningAlgorithm,
    environ: Mapping[str, str] | None = None,
    message: bytes = b"hello",
    **options: object,
) -> subprocess.CompletedProcess[bytes]:
    digest = hashlib.new(algorithm.hash, message).digest() if algorithm.hash else message
    return ask(kind, signerwire.encode_sign_request(configuration, digest, algorithm), environ, **options)


def check(leaf: bytes, result: subprocess.CompletedProcess[bytes], algorithm: SigningAlgorithm) -> None:
    """The reply holds a signature over `hello` that the certificate's key made."""
    assert result.returncode == 0, result.stderr.decode()
    digest = hashlib.new(algorithm.hash, b"hello").digest() if algorithm.hash else b"hello"
    verify(leaf, signerwire.decode_sign_reply(result.stdout), digest, algorithm)
