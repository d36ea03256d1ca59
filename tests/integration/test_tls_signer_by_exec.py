"""A signer that an exec plugin names: when its certificate is of no more use, plugin and signer are asked again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import CredentialWaiting, SigningFailed
from kubeauthn.testing import ApiServer, CertificateAuthority, ScriptedPlugin
from tests.integration.signer_scene import SignerProgram, issue
from tests.integration.test_tls_signer_replaced import URL, Desk, desk

__all__ = ["desk"]


@pytest.fixture(autouse=True)
def nothing_shared() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


def naming(folder: Path, signer: SignerProgram) -> ScriptedPlugin:
    plugin = ScriptedPlugin(folder / "plugin")
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    plugin.raw(json.dumps({**document, "status": {"externalSigner": {"pathExec": str(signer.path)}}}))
    return plugin


@pytest.mark.parametrize("tls12_only", [True, False], ids=["1.2", "1.3"])
def test_a_certificate_that_the_server_refuses_by_alert_is_fetched_again(tmp_path: Path, tls12_only: bool):
    ca = CertificateAuthority()
    signer = SignerProgram(tmp_path / "token", ca)
    signer.show(issue(CertificateAuthority("somebody else's"), signer.key))
    plugin = naming(tmp_path, signer)
    with ApiServer(ca=ca, client_certificates="required", tls12_only=tls12_only) as server:
        config = server.write_kubeconfig(tmp_path / "config", plugin.user())
        with connect(kubeconfig=str(config)) as api:
            for _ in range(20):  # a connection that is reset may lose the alert
                with pytest.raises(Exception) as caught:  # noqa: PT011  the library's, and it must not be ours
                    api.get(URL)
                if "ALERT" in str(caught.value).upper():
                    break
            assert (plugin.runs, signer.count("CertificateRequest")) == (1, 1)
            signer.show(issue(ca, signer.key))
            assert api.get(URL).status_code == 200
    assert (plugin.runs, signer.count("CertificateRequest")) == (2, 2)
    assert [each.user for each in server.requests] == ["jane"]


def test_a_server_that_refuses_every_certificate_does_not_have_the_plugin_run_without_end(tmp_path: Path):
    ca = CertificateAuthority()
    signer = SignerProgram(tmp_path / "token", ca)
    signer.show(issue(CertificateAuthority("somebody else's"), signer.key))
    plugin = naming(tmp_path, signer)
    with ApiServer(ca=ca, client_certificates="required", tls12_only=True) as server:
        config = server.write_kubeconfig(tmp_path / "config", plugin.user())
        with connect(kubeconfig=str(config)) as api:
            for _ in range(20):
                with pytest.raises(Exception) as caught:  # noqa: PT011  the library's, until it is ours
                    api.get(URL)
                if isinstance(caught.value, CredentialWaiting):
                    break
            else:
                pytest.fail("it is asked for at each request")
    assert plugin.runs == 2


def test_the_certificate_of_a_new_key_is_fetched(desk: Desk, tmp_path: Path):
    plugin = naming(tmp_path, desk.signer)
    desk.server.write_kubeconfig(desk.config, plugin.user())
    with connect(kubeconfig=str(desk.config)) as api:
        assert api.get(URL).status_code == 200
        desk.replace_key()
        desk.certify()
        with pytest.raises(SigningFailed, match="the signer returned"):
            api.get(URL)
        assert [api.get(URL).status_code for _ in range(2)] == [200, 200]
    assert (plugin.runs, desk.signer.count("CertificateRequest")) == (2, 2)
