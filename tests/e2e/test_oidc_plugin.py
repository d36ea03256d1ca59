"""`kubeauthn plugin oidc` at the certified oidc-provider of npm, and under kubectl against kube-apiserver."""

from __future__ import annotations

import http.cookiejar
import json
import os
import shutil
import ssl
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn._core import execwire
from kubeauthn._core.jwt_peek import untrusted_claims
from kubeauthn.testing._signing import SigningKey
from tests.e2e.cluster import Cluster, Etcd
from tests.e2e.identity_providers import CLIENT_ID, Provider, _Form, _private_jwk
from tests.e2e.processes import poll
from tests.e2e.test_identity_providers import configuration, of_certified
from tests.peers.node_packages import installed
from tests.peers.programs import HERE

KUBEAUTHN = Path(sys.executable).parent / "kubeauthn"


class NativeProvider(Provider):
    """npm's `oidc-provider`, with a public client as a program on a desktop is one."""

    def __init__(self, directory: Path, modules: Path) -> None:
        super().__init__(directory, "native-provider")
        keys = directory / "native-keys.json"
        keys.touch(mode=0o600)
        keys.write_text(json.dumps({"keys": [_private_jwk(SigningKey.new("native", "ES256"))]}))
        node = shutil.which("node")
        assert node is not None
        program = HERE / "oidc-provider" / "native.mjs"
        command = [node, program, self.url, self.certificate, self.key, CLIENT_ID, keys, modules]
        self.start(command, directory / "native-provider.log")


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NativeProvider]:
    modules = installed("oidc-provider")
    if modules is None:
        pytest.skip("there is no npm here to install oidc-provider with")
    running = NativeProvider(tmp_path_factory.mktemp("native"), modules)
    yield running
    running.stop()


class Person:
    """Somebody with a browser: cookies, redirects, forms."""

    def __init__(self, trust: ssl.SSLContext) -> None:
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=trust),
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
        )

    def visit(self, address: str, *answers: dict[str, str]) -> str:
        """The last page, after each form was filled in with one of the answers."""
        page = self._opener.open(address, timeout=30)
        text = page.read().decode()
        for filled in answers:
            form = _Form(text)
            body = urllib.parse.urlencode({**form.hidden, **filled}).encode()
            page = self._opener.open(urllib.parse.urljoin(page.url, form.action), body, timeout=30)
            text = page.read().decode()
        return text


def words(provider: Provider, directory: Path) -> list[str]:
    authority = directory / "ca.pem"
    authority.write_bytes(provider.ca.certificate_pem)
    # This provider gives a refresh token only where the person was asked for it.
    return [
        f"--issuer-url={provider.url}", f"--client-id={CLIENT_ID}", f"--certificate-authority={authority}",
        "--scope=profile", "--scope=offline_access", "--parameter=prompt=consent", "--no-browser",
        "--listen=127.0.0.1:0",
    ]  # fmt: skip


def start(provider: Provider, directory: Path, *more: str) -> subprocess.Popen[str]:
    info = execwire.encode_exec_info(execwire.V1, interactive=True, cluster=None)
    return subprocess.Popen(
        [KUBEAUTHN, "plugin", "oidc", *words(provider, directory), *more],
        env={**os.environ, execwire.VARIABLE: info}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def answer(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    claims = untrusted_claims(json.loads(out)["status"]["token"])
    assert claims is not None
    return claims


def log_in(provider: Provider, directory: Path, name: str) -> dict[str, Any]:
    process = start(provider, directory)
    page = Person(provider.ca.client_context()).visit(
        first_line(process).split()[-1], {"login": name, "password": "any"}, {}
    )
    assert "You are logged in" in page
    return answer(process)


def test_a_login_by_browser_a_refresh_and_a_logout(provider: NativeProvider, tmp_path: Path):
    claims = log_in(provider, tmp_path, "jane")
    assert (claims["sub"], claims["aud"], claims["groups"]) == ("jane", CLIENT_ID, ["dev", "ops"])
    refreshed = answer(start(provider, tmp_path, "--force-refresh"))
    assert refreshed["sub"] == "jane"
    out, _ = start(provider, tmp_path, "--logout").communicate(timeout=60)
    assert out.splitlines()[1:] == ["the issuer was told to forget it too"]


def test_a_login_by_device_code(provider: NativeProvider, tmp_path: Path):
    process = start(provider, tmp_path, "--grant=device-code")
    said = first_line(process).split()
    address, code = said[1], said[-1]
    page = Person(provider.ca.client_context()).visit(
        address, {"user_code": code}, {}, {"login": "joe", "password": "any"}, {}
    )
    assert "Sign-in Success" in page or "successful" in page
    assert answer(process)["sub"] == "joe"


def test_kubectl_and_kube_apiserver_know_the_person(
    provider: NativeProvider, directory: Path, etcd: Etcd, tmp_path: Path
):
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(of_certified(provider)))  # type: ignore[arg-type]  # any provider has an address and a CA
    printed = subprocess.run(
        [KUBEAUTHN, "plugin", "oidc", *words(provider, tmp_path), "--print-kubeconfig"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    (entry,) = yaml.safe_load(printed.stdout)["users"]
    log_in(provider, tmp_path, "jane")
    environment = {"HOME": os.environ["HOME"], "PATH": f"{KUBEAUTHN.parent}:/usr/bin:/bin"}
    with Cluster(directory, etcd, "oidc-plugin", [f"--authentication-config={file}"]) as cluster:
        config = cluster.write_kubeconfig("oidc", entry["user"])

        def whoami() -> subprocess.CompletedProcess[str]:
            return cluster.kubectl(
                "auth", "whoami", "-o", "json", kubeconfig=config, check=False, environment=environment
            )

        # kube-apiserver fetches an issuer's keys in its own time
        poll(lambda: whoami().returncode == 0, 60, "kube-apiserver has the keys")
        user = json.loads(whoami().stdout)["status"]["userInfo"]
        assert user["username"] == "idp:jane"
        assert {"idp:dev", "idp:ops"} <= set(user["groups"])
        cluster.grant("idp:jane")
        poll(
            lambda: cluster.kubectl(
                "get", "namespaces", kubeconfig=config, check=False, environment=environment
            ).returncode == 0,
            30, "the role is bound",
        )  # fmt: skip
