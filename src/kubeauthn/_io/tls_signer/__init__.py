"""TLS client certificates whose private key stays outside the process.

An ordinary `ssl.SSLContext` is given a key that OpenSSL takes for one of its own, made by a provider written with
ctypes on the very libraries that `ssl` uses. Read in this order: `libcrypto` (which library), `context_pointer`
(where its context is), `provider` (the tables OpenSSL calls through), `signature` (one signature, verified before use),
`installation` (certificate and key into the context), `handshake` (errors, sessions and event loops).
"""

from __future__ import annotations

from kubeauthn._io.tls_signer.installation import check_support, install

__all__ = ["check_support", "install"]
