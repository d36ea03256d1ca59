"""A certificate that OpenSSL would silently not show: nothing is sent, where a request would go out as nobody's."""

from __future__ import annotations

import _ssl
import asyncio
import ctypes
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kubeauthn._io.tls_signer import installation
from kubeauthn.client import connect, signing_context
from kubeauthn.errors import SigningFailed, StaticCredentialError
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration.signer_scene import (
    NEW_KEY,
    DemandingServer,
    MemorySigner,
    SignerProgram,
    demanding_server,
    issue,
)

CURVES = [ec.SECP256K1(), ec.SECP224R1(), ec.BrainpoolP256R1()]
Drive = Callable[[DemandingServer, ssl.SSLContext], Any]


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.mark.parametrize("curve", CURVES, ids=lambda curve: curve.name)
def test_a_key_on_a_curve_that_tls_does_not_take(ca: CertificateAuthority, curve: ec.EllipticCurve):
    key = ec.generate_private_key(curve)
    with pytest.raises(StaticCredentialError, match=f"the certificate's key is on {curve.name}, and TLS takes P-256"):
        signing_context(issue(ca, key), MemorySigner(key))


def test_a_request_with_such_a_key_is_not_sent(ca: CertificateAuthority, tmp_path: Path):
    """The server lets people in without a certificate, as kube-apiserver does: it was nobody's request."""
    signer = SignerProgram(tmp_path / "token", ca)
    signer.show(issue(ca, ec.generate_private_key(ec.SECP256K1())))
    with ApiServer(ca=ca) as server:
        server.write_kubeconfig(tmp_path / "config", signer.user())
        with pytest.raises(StaticCredentialError, match="secp256k1"):
            with connect(kubeconfig=str(tmp_path / "config")) as api:
                api.get("/api/v1/namespaces")
        assert server.requests == []


def on_a_loop(server: DemandingServer, context: ssl.SSLContext) -> None:
    async def ask() -> None:
        _, writer = await asyncio.open_connection(*server.address, ssl=context, server_hostname="localhost")
        writer.close()
        await writer.wait_closed()

    asyncio.run(ask())


@pytest.mark.parametrize("drive", [DemandingServer.ask, on_a_loop], ids=["sync", "asyncio"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("kind", ["p256", "ed25519"])
def test_a_server_that_wants_a_certificate_and_takes_no_signature_of_this_key(
    ca: CertificateAuthority, version: str, drive: Drive, kind: str
):
    """With TLS 1.2 the server ends the handshake, by an alert that could mean anything."""
    signer = MemorySigner(NEW_KEY[kind]())
    with demanding_server(ca, version) as server:
        context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
        take_only(server.context, b"RSA-PSS+SHA256:RSA+SHA256")
        for _ in range(20):  # a connection that is reset may lose the alert
            with pytest.raises((SigningFailed, ConnectionResetError)) as caught:
                drive(server, context)
            if isinstance(caught.value, SigningFailed):
                break
        assert "takes no signature that this key can make: none was shown" in str(caught.value)
        assert isinstance(caught.value.__cause__, ssl.SSLError) == (version == "1.2")
        take_only(server.context, b"ECDSA+SHA256:ed25519:RSA+SHA256")
        drive(server, context)
    assert len(signer.asked) == 1


def take_only(context: ssl.SSLContext, algorithms: bytes) -> None:
    """Of clients' signatures. Python's `ssl` has no setting for it before 3.15."""
    bridge = installation._bridge
    assert bridge is not None
    control = ctypes.PyDLL(_ssl.__file__).SSL_CTX_ctrl
    control.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_long, ctypes.c_char_p)
    assert control(bridge.pointer.of(context), 102, 0, algorithms) == 1  # SSL_CTRL_SET_CLIENT_SIGALGS_LIST


@pytest.mark.parametrize("drive", [DemandingServer.ask, on_a_loop], ids=["sync", "asyncio"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_failure_at_the_question_whether_the_key_fits(ca: CertificateAuthority, version: str, drive: Drive):
    """To OpenSSL that is a "no": it completes the handshake without a certificate. A key that is gone is one."""
    signer = MemorySigner(NEW_KEY["p256"]())
    with demanding_server(ca, version) as server:
        server.context.verify_mode = ssl.CERT_OPTIONAL
        context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
        bridge = installation._bridge
        assert bridge is not None
        key = context._kubeauthn_key  # type: ignore[attr-defined]
        (place,) = (place for place, kept in bridge.provider.keys.items() if kept is key)
        del bridge.provider.keys[place]
        with pytest.raises(SigningFailed, match="the external signer failed: KeyError"):
            drive(server, context)
        bridge.provider.keys[place] = key
        drive(server, context)
    assert len(signer.asked) == 1
