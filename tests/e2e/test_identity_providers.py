"""Tokens of identity providers that are not ours: Dex, and the certified oidc-provider of npm. Logins are real ones."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubeauthn.errors import SignatureRefused
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing._signing import SigningKey
from tests.e2e.cluster import Cluster, Etcd
from tests.e2e.identity_providers import CLIENT_ID, EMAIL, CertifiedProvider, Dex, Provider, certified_provider
from tests.e2e.processes import poll
from tests.e2e.serving import Serving
from tests.e2e.test_server import seen, who

ROTATE_SECONDS = 6


@pytest.fixture(scope="module")
def dex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dex]:
    running = Dex(tmp_path_factory.mktemp("dex"), ROTATE_SECONDS)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CertifiedProvider]:
    running = certified_provider(tmp_path_factory.mktemp("oidc-provider"))
    if running is None:
        pytest.skip("there is no npm here to install oidc-provider with")
    yield running
    running.stop()


def entry(provider: Provider, mappings: dict[str, object]) -> dict[str, object]:
    ca = provider.ca.certificate_pem.decode()
    issuer = {"url": provider.url, "audiences": [CLIENT_ID], "certificateAuthority": ca}
    return {"issuer": issuer, "claimMappings": mappings}


def configuration(*entries: dict[str, object]) -> str:
    head = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": list(entries)}
    return str(yaml.safe_dump(head))


def of_dex(dex: Dex) -> dict[str, object]:
    return entry(
        dex,
        {"username": {"expression": "claims.email_verified ? 'dex:' + claims.email : ''"}, "uid": {"claim": "sub"}},
    )


def of_certified(certified: CertifiedProvider) -> dict[str, object]:
    return entry(
        certified, {"username": {"claim": "sub", "prefix": "idp:"}, "groups": {"claim": "groups", "prefix": "idp:"}}
    )


def test_check_online_finds_both_providers_good(dex: Dex, certified: CertifiedProvider, tmp_path: Path):
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(of_dex(dex), of_certified(certified)))
    command = [sys.executable, "-m", "kubeauthn", "check", "--online", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_login_at_dex_is_a_user(dex: Dex):
    authenticator = Authenticator(load_configuration(configuration(of_dex(dex))))
    for token in (dex.token(), dex.token_by_password()):
        user = asyncio.run(authenticator.authenticate_async(token))
        assert user.username == f"dex:{EMAIL}"
        assert user.uid


def test_keys_that_dex_makes_anew_are_found(dex: Dex):
    authenticator = Authenticator(load_configuration(configuration(of_dex(dex))))
    asyncio.run(authenticator.authenticate_async(dex.token()))
    before = dex.kids()
    poll(lambda: dex.kids() != before, ROTATE_SECONDS * 10, "dex rotates its keys", interval=0.5)
    assert asyncio.run(authenticator.authenticate_async(dex.token())).username == f"dex:{EMAIL}"


def test_a_key_that_the_provider_withdrew_signs_nobody_in(certified: CertifiedProvider):
    old, new = SigningKey.new("old", "ES256"), SigningKey.new("new", "ES256")
    certified.rotate(old)
    with_old = certified.token()
    text = configuration(of_certified(certified))
    assert asyncio.run(Authenticator(load_configuration(text)).authenticate_async(with_old)).username == "idp:jane"
    certified.rotate(new)
    fresh = Authenticator(load_configuration(text))
    assert asyncio.run(fresh.authenticate_async(certified.token())).groups == ("idp:dev", "idp:ops")
    with pytest.raises(SignatureRefused):
        asyncio.run(fresh.authenticate_async(with_old))


def test_kube_apiserver_and_serve_see_the_same_people(
    dex: Dex, certified: CertifiedProvider, directory: Path, etcd: Etcd, tmp_path: Path
):
    from tests.e2e.conftest import asking

    file = tmp_path / "authn.yaml"
    file.write_text(configuration(of_dex(dex), of_certified(certified)))
    with (
        Cluster(directory, etcd, "providers-direct", [f"--authentication-config={file}"]) as direct,
        Serving(tmp_path, file) as serving,
        asking(directory, etcd, serving, "providers-webhook", "--authentication-token-webhook-version=v1") as webhook,
    ):
        for token in (dex.token(), certified.token("joe")):
            # kube-apiserver fetches an issuer's keys in its own time
            poll(lambda token=token: isinstance(who(direct, token), dict), 60, "kube-apiserver has the keys")
            assert seen(who(direct, token)) == seen(who(webhook, token))
