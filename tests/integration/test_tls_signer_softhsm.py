"""From a kubeconfig to a TLS connection with a key that was made inside a token and never leaves it."""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import pytest
import yaml

from kubeauthn.client import open_access
from kubeauthn.testing import CertificateAuthority
from tests.integration import softhsm
from tests.integration.signer_scene import demanding_server
from tests.integration.softhsm import PIN, SoftHsm

pytestmark = pytest.mark.needs("softhsm2-util", "pkcs11-tool")


@pytest.fixture(scope="module")
def hsm(tmp_path_factory: pytest.TempPathFactory) -> SoftHsm:
    return softhsm.filled(tmp_path_factory.mktemp("softhsm"))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("object_id", ["1", "2", "3", "4", "5"], ids=["rsa", "p256", "p384", "ed25519", "p521"])
def test_a_connection_with_a_key_in_the_token(
    hsm: SoftHsm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, object_id: str, version: str
):
    for name, value in hsm.environ.items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "signer"
    program.write_text(f"#!{sys.executable}\nfrom kubeauthn.plugins.signer_pkcs11 import main\n\nmain()\n")
    program.chmod(0o700)
    ca = CertificateAuthority()
    config = {**hsm.configuration(object_id, pin=PIN), "pathExec": "./signer"}
    with demanding_server(ca, version) as server:
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": f"https://localhost:{server.address[1]}"}}],
            "users": [{"name": "a", "user": {"auth-provider": {"name": "externalSigner", "config": config}}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
        path = tmp_path / "config"
        path.write_text(yaml.safe_dump(document))
        access = open_access(kubeconfig=str(path))
        identity = access.credential().identity
        assert identity is not None
        # Nobody whom the server knows has issued the token's certificate, so it is told of that very one.
        server.context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        server.context.load_verify_locations(cadata=identity.certificate.decode())
        context = access.tls_context(identity)
        context.load_verify_locations(cadata=ca.certificate_pem.decode())
        assert [server.ask(context) for _ in range(3)] == ["jane"] * 3
        assert server.full_handshakes == 1
        assert "softhsm" not in Path("/proc/self/maps").read_text()
