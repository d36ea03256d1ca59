"""`kubeauthn-proxy-tls`: mutual TLS with the API server, for clients that cannot show the certificate themselves.

The key is a file, or stays in hardware and is used through an external signer.
"""

from __future__ import annotations

import argparse
import ssl
import time

from kubeauthn._core import limits
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure, UsageError
from kubeauthn.plugin import proxy


def with_key_file(cluster: proxy.Cluster, certificate: str, key: str) -> ssl.SSLContext:
    """TLS that verifies the cluster's server and shows this certificate. A key that others can read is refused."""
    from kubeauthn._core.certificates import client_identity
    from kubeauthn._io.files import read_bounded
    from kubeauthn._io.tls import load_identity

    _check_private(key)
    identity = client_identity(
        read_bounded(certificate, limits.CREDENTIAL_FILE_BYTES),
        Secret(read_bounded(key, limits.CREDENTIAL_FILE_BYTES).decode("ascii", "replace")),
        time.time(),
    )
    context = proxy.server_context(cluster)
    load_identity(context, identity)
    return context


def with_signer(cluster: proxy.Cluster, settings: list[str]) -> ssl.SSLContext:
    """TLS that shows the certificate of an external signer, which also makes the signatures."""
    from kubeauthn._core.kubeconfig.model import AuthProvider
    from kubeauthn._core.stored_pin import holds_pin
    from kubeauthn._io.kuberc import read_policy
    from kubeauthn._io.tls import load_identity
    from kubeauthn.client.exec_source import ExecOptions
    from kubeauthn.client.signer_source import NAME, shared_signer

    # The settings come from a kubeconfig: what it makes us run is the policy's to allow, here as there.
    pairs = [tuple(setting.partition("=")[::2]) for setting in settings]
    if holds_pin({str(key): str(value) for key, value in pairs}):
        raise UsageError(
            "a PIN among the arguments can be seen by every user of this machine, as long as the proxy runs",
            hint="use --signer pinSource=keyring:kubeauthn/NAME, or the signer agent",
        )
    entry = AuthProvider(NAME, tuple((str(key), str(value)) for key, value in pairs))
    # The same one when this is called again: it remembers that a stored PIN was wrong.
    identity = shared_signer(entry, ExecOptions(policy=read_policy())).make_credential().identity
    context = proxy.server_context(cluster)
    if identity is not None:
        load_identity(context, identity)
    return context


def _check_private(path: str) -> None:
    import os

    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {(error.strerror or 'unreadable').lower()}") from None
    if mode & 0o077:
        raise EnvironmentFailure(f"{path}: others may read this private key", hint=f"chmod 600 {path}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="kubeauthn-proxy-tls", description=__doc__, allow_abbrev=False)
    parser.add_argument("--certificate", metavar="FILE", help="the client certificate, PEM")
    parser.add_argument("--key", metavar="FILE", help="its private key, PEM, mode 600")
    parser.add_argument(
        "--signer",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="instead: a setting of an external signer, as its kubeconfig entry has it; may repeat",
    )
    arguments = parser.parse_args()
    if arguments.signer and not (arguments.certificate or arguments.key):
        proxy.run(tls=lambda cluster: with_signer(cluster, arguments.signer))
    if arguments.signer or not (arguments.certificate and arguments.key):
        parser.error("give --certificate and --key, or --signer")
    proxy.run(tls=lambda cluster: with_key_file(cluster, arguments.certificate, arguments.key))
