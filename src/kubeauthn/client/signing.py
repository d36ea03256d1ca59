"""A TLS context with a client certificate whose key stays elsewhere, for code of one's own."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._core.signerwire import SigningAlgorithm, certificate_chain
from kubeauthn._core.signing_identity import signing_identity

__all__ = ["SigningAlgorithm", "signing_context"]


def signing_context(
    certificate: bytes | str,
    sign: Callable[[bytes, SigningAlgorithm], bytes],
    *,
    certificate_authority: bytes = b"",
    server_name: str = "",
) -> ssl.SSLContext:
    """A context that shows `certificate` and lets `sign` make the signatures.

    `certificate` is PEM or DER, alone or with its chain, the leaf first. `sign(digest, algorithm)` is called once per
    full handshake, from whatever thread makes it, and must have a time limit of its own; for Ed25519 it gets the whole
    message, and an ECDSA signature is in DER. What it raises comes out of the handshake as `SigningFailed`.
    `certificate_authority` is PEM; without it the system's roots count. `server_name` replaces the name to check.
    """
    from kubeauthn._io.tls import server_context

    identity = signing_identity(certificate_chain(certificate), sign, time.time())
    cluster = Cluster(server="", tls_server_name=server_name, certificate_authority_data=certificate_authority)
    return server_context(cluster, identity)
