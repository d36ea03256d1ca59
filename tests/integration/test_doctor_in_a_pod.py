"""`kubeauthn doctor` where there is no kubeconfig but a service account."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from kubeauthn._io import kubeconfig as kubeconfig_shell
from kubeauthn.cli.main import main
from kubeauthn.cli.world import World
from kubeauthn.testing import ApiServer, Issuer


def doctor(*arguments: str) -> tuple[int, list[str]]:
    def stream() -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)

    world = World(stdin=stream(), stdout=stream(), stderr=stream(), environ=os.environ)
    code = main(["doctor", *arguments], world)
    text = world.stdout.buffer.getvalue().decode() + world.stderr.buffer.getvalue().decode()  # type: ignore[attr-defined]
    return code, [" ".join(line.split()) for line in text.splitlines()]


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    monkeypatch.setitem(kubeconfig_shell.load.__kwdefaults__, "service_account", str(folder))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    return folder


def test_it_says_what_the_pod_has(account: Path, monkeypatch: pytest.MonkeyPatch):
    with ApiServer() as server, Issuer() as issuer:
        token = issuer.token("system:serviceaccount:shop:operator", expires_in=3600)
        server.accept_token(token, "system:serviceaccount:shop:operator")
        (account / "token").write_text(token)
        (account / "ca.crt").write_bytes(server.ca.certificate_pem)
        (account / "namespace").write_text("shop")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
        code, lines = doctor("--online")
        assert code == 0, lines
        assert "ok source the service account of this pod" in lines
        assert "ok leads to cluster in-cluster, user in-cluster, namespace shop" in lines
        assert f"ok server {server.url}" in lines
        assert "ok credential the token in a file" in lines
        (about_token,) = [line for line in lines if line.startswith("ok token ")]
        assert f"a JWT, in {account}/token; unverified: issuer {issuer.url}" in about_token
        assert any(line.startswith("ok you are system:serviceaccount:shop:operator") for line in lines)
        assert not any(token in line for line in lines)


def test_a_pod_whose_ca_is_missing_is_a_fault(account: Path, monkeypatch: pytest.MonkeyPatch):
    (account / "token").write_text("t0ken")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    code, lines = doctor()
    assert code == 1
    assert any("unable to read certificate-authority" in line for line in lines)
    assert "nothing would be sent: the kubeconfig does not say where to, or as whom" in lines
