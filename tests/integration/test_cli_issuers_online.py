"""`check --online` and `explain --online` against an issuer on this machine."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.cli.main import main
from kubeauthn.cli.world import World
from kubeauthn.testing import CertificateAuthority, Issuer
from kubeauthn.testing.issuer import DISCOVERY_PATH
from tests.integration.rough_servers import RoughServer, json_reply


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        running.jwks()
        yield running


def configuration(folder: Path, issuer: Issuer | RoughServer, **changes: Any) -> str:
    settings = {
        "url": issuer.url,
        "audiences": ["kubernetes"],
        "certificateAuthority": issuer.ca.certificate_pem.decode(),
        **changes,
    }
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{"issuer": settings, "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}}}],
    }
    path = folder / "authn.json"
    path.write_text(json.dumps(document))
    return str(path)


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(list(words), World(stdin=io.StringIO(), stdout=out, stderr=err, environ={}))
    return code, out.getvalue(), err.getvalue()


def test_an_issuer_that_is_as_the_file_says(tmp_path: Path, issuer: Issuer):
    code, out, _ = run("check", "--online", configuration(tmp_path, issuer))
    assert code == 0
    assert f"jwt[0] {issuer.url}: 1 key" in out


def test_a_slash_too_many(tmp_path: Path, issuer: Issuer):
    code, out, _ = run("check", "--online", configuration(tmp_path, issuer, url=f"{issuer.url}/"))
    assert code == 1
    assert "jwt[0].issuer.url: " in out
    assert "issuer did not match the issuer returned by provider" in out
    assert "hint: url must be what the issuer calls itself" in out


def test_a_document_that_is_not_there(tmp_path: Path, issuer: Issuer):
    code, out, _ = run("check", "--online", configuration(tmp_path, issuer, discoveryURL=f"{issuer.url}/nowhere"))
    assert code == 1
    assert "jwt[0].issuer.discoveryURL: " in out
    assert "answered 404" in out


def test_another_ca(tmp_path: Path, issuer: Issuer):
    other = CertificateAuthority("another CA").certificate_pem.decode()
    code, out, _ = run("check", "--online", configuration(tmp_path, issuer, certificateAuthority=other))
    assert code == 1
    assert "jwt[0].issuer.certificateAuthority: " in out
    assert "hint: the server's certificate is not of this CA" in out


def test_no_ca(tmp_path: Path, issuer: Issuer):
    code, out, _ = run("check", "--online", configuration(tmp_path, issuer, certificateAuthority=""))
    assert code == 1
    assert "put its CA into certificateAuthority" in out


def test_an_issuer_without_keys(tmp_path: Path, issuer: Issuer):
    issuer.withdraw(issuer.kids[0])
    code, out, _ = run("check", "--online", configuration(tmp_path, issuer))
    assert code == 1
    assert "the issuer publishes no key that can be used" in out


def test_keys_that_kube_apiserver_treats_otherwise(tmp_path: Path):
    good, for_encryption = Issuer(tls=False).jwks()["keys"][0], {"use": "enc", "alg": "RSA-OAEP"}
    unknown = {"kty": "AKP", "kid": "new", "alg": "ML-DSA-44", "pub": "AA"}
    with RoughServer() as server:
        server.routes[DISCOVERY_PATH] = json_reply({"issuer": server.url, "jwks_uri": f"{server.url}/keys"})
        path = configuration(tmp_path, server)

        server.routes["/keys"] = json_reply({"keys": [good, {**good, "kid": "e", **for_encryption}]})
        code, out, _ = run("check", "--online", "--strict", path)
        assert (code, "warning" in out) == (0, False)

        server.routes["/keys"] = json_reply({"keys": [good, unknown]})
        code, out, _ = run("check", "--online", "--strict", path)
    assert code == 1
    assert "warning: jwt[0].issuer.url: keys[1] cannot be read by kube-apiserver, which drops the whole key set" in out
    assert f"jwt[0] {server.url}: 1 key" in out


def test_an_issuer_that_is_down_is_no_fault_of_the_file(tmp_path: Path):
    with Issuer() as gone:
        path = configuration(tmp_path, gone)
    code, out, _ = run("check", "--online", path, "--output", "json")
    assert code == 4
    (found,) = json.loads(out)["files"][0]["findings"]
    assert found["rule"] == "unreachable"


def test_a_faulty_file_is_not_asked_about(tmp_path: Path, issuer: Issuer):
    assert run("check", "--online", configuration(tmp_path, issuer, audiences=[]))[0] == 1
    assert issuer.requests == []


def test_a_token_is_explained_with_keys_that_are_fetched(tmp_path: Path, issuer: Issuer):
    token = issuer.token("jane", audience="kubernetes")
    (tmp_path / "token").write_text(token)
    code, out, err = run(
        "explain", configuration(tmp_path, issuer), "--token-file", str(tmp_path / "token"), "--online"
    )
    assert (code, err) == (0, "")
    assert "username  oidc:jane" in out
    assert token.rpartition(".")[2] not in out


def test_keys_that_cannot_be_fetched_are_said_to_be_so(tmp_path: Path):
    with Issuer() as gone:
        (tmp_path / "token").write_text(gone.token("jane", audience="kubernetes"))
        path = configuration(tmp_path, gone)
    code, out, err = run("explain", path, "--token-file", str(tmp_path / "token"), "--online")
    assert (code, out) == (4, "")
    assert "were not fetched" in err


def test_nobody_is_asked_about_a_strangers_token(tmp_path: Path, issuer: Issuer):
    (tmp_path / "token").write_text(issuer.sign({"iss": "https://else.example"}))
    issuer.requests.clear()
    code, _, _ = run("explain", configuration(tmp_path, issuer), "--token-file", str(tmp_path / "token"), "--online")
    assert code == 3
    assert issuer.requests == []


def test_claims_that_are_elsewhere_are_fetched(tmp_path: Path, issuer: Issuer):
    inner = issuer.sign({"iss": issuer.url, "aud": "kubernetes", "exp": 4_000_000_000, "groups": ["dev"]})
    token = issuer.token(
        "jane", audience="kubernetes", _claim_names={"groups": "s"}, _claim_sources={"s": {"JWT": inner}}
    )
    path = Path(configuration(tmp_path, issuer))
    document = json.loads(path.read_text())
    document["jwt"][0]["claimMappings"]["groups"] = {"expression": "claims.groups"}
    path.write_text(json.dumps(document))
    (tmp_path / "token").write_text(token)
    code, out, _ = run("explain", str(path), "--token-file", str(tmp_path / "token"), "--online", "--show-claims")
    (tmp_path / "keys").write_text(json.dumps(issuer.jwks()))
    offline = run("explain", str(path), "--token-file", str(tmp_path / "token"), "--jwks", str(tmp_path / "keys"))
    assert (code, offline[0]) == (0, 0), out
    for text in (out, offline[1]):
        assert '  groups    ["dev"]' in text
        assert inner.rpartition(".")[2] not in text


def test_another_issuer_of_the_file_vouches_with_the_ca_that_it_has_there(tmp_path: Path, issuer: Issuer):
    with Issuer() as other:
        inner = other.sign({"iss": other.url, "aud": "kubernetes", "exp": 4_000_000_000, "groups": ["dev"]})
        token = issuer.token(
            "jane", audience="kubernetes", _claim_names={"groups": "s"}, _claim_sources={"s": {"JWT": inner}}
        )
        second = json.loads(Path(configuration(tmp_path, other)).read_text())["jwt"]
        path = Path(configuration(tmp_path, issuer))
        document = json.loads(path.read_text())
        document["jwt"][0]["claimMappings"]["groups"] = {"claim": "groups", "prefix": ""}
        path.write_text(json.dumps({**document, "jwt": document["jwt"] + second}))
        (tmp_path / "token").write_text(token)
        code, out, _ = run("explain", str(path), "--token-file", str(tmp_path / "token"), "--online")
    assert code == 0, out
    assert '  groups    ["dev"]' in out


def test_a_source_that_cannot_be_reached_refuses(tmp_path: Path, issuer: Issuer):
    source = {"endpoint": "https://192.0.2.1:1/", "access_token": "s3cret"}
    with Issuer() as gone:
        source["endpoint"] = f"{gone.url}/claims"
    token = issuer.token("jane", audience="kubernetes", _claim_names={"groups": "s"}, _claim_sources={"s": source})
    path = Path(configuration(tmp_path, issuer))
    document = json.loads(path.read_text())
    document["jwt"][0]["claimMappings"]["groups"] = {"claim": "groups", "prefix": ""}
    path.write_text(json.dumps(document))
    (tmp_path / "token").write_text(token)
    code, out, _ = run("explain", str(path), "--token-file", str(tmp_path / "token"), "--online", "--show-claims")
    assert code == 1
    assert "refused: oidc: could not expand distributed claims: " in out
    assert "cannot be reached" in out
    assert "s3cret" not in out
    assert "--online fetches" not in out
    (tmp_path / "keys").write_text(json.dumps(issuer.jwks()))
    words = ("--token-file", str(tmp_path / "token"), "--jwks", str(tmp_path / "keys"))
    code, out, _ = run("explain", str(path), *words)
    assert (code, out.splitlines()[-1]) == (1, "--online fetches claims that are elsewhere")
