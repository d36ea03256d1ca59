"""The proxies we ship: signatures checked by an implementation that shares nothing with botocore, TLS, headers."""

from __future__ import annotations

import hashlib
import hmac
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote

import pytest

from kubeauthn._core import rfc3339
from kubeauthn.errors import PluginFailed
from kubeauthn.plugins.proxy_headers import headers_in
from kubeauthn.testing import ApiServer, CertificateAuthority, PluginDirectory
from tests.integration.proxy_parts import cluster_of, eventually, read_response, running
from tests.integration.signer_scene import SignerProgram, issue

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def server():
    with ApiServer(allow_anonymous=True) as started:
        yield started


def script(name: str, *words: str) -> list[str]:
    return [sys.executable, "-c", f"from kubeauthn.plugins.{name} import main; main()", *words]


def verify(method: str, target: str, headers: dict[str, str], body: bytes) -> bool:
    """Signature Version 4 as its documentation tells it, step by step."""
    scheme, _, rest = headers["authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    key, date, region, service, end = parts["Credential"].split("/")
    assert (scheme, key, end) == ("AWS4-HMAC-SHA256", KEY, "aws4_request")
    signed = parts["SignedHeaders"].split(";")
    assert {"host", "x-amz-date"} <= set(signed)
    path, _, query = target.partition("?")
    pairs = sorted((quote(k, "-_.~"), quote(v, "-_.~")) for k, v in parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join(
        [
            method,
            quote(path, "/-_.~"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            parts["SignedHeaders"],
            hashlib.sha256(body).hexdigest(),
        ]
    )
    scope = f"{date}/{region}/{service}/aws4_request"
    text = "\n".join([scheme, headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    derived = f"AWS4{SECRET}".encode()
    for step in (date, region, service, "aws4_request"):
        derived = hmac.new(derived, step.encode(), hashlib.sha256).digest()
    return hmac.new(derived, text.encode(), hashlib.sha256).hexdigest() == parts["Signature"]


def test_sigv4_signs_what_the_server_receives(server: ApiServer, tmp_path: Path):
    argv = script("proxy_sigv4", "--region", "eu-west-1", "--service", "kubernetes")
    environ = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": "session"}
    requests = [
        ("GET", "/version", b""),
        ("GET", "/api/v1/pods?labelSelector=a%3Db%2Cc&limit=5&watch=", b""),
        ("POST", "/api/v1/namespaces", b'{"metadata": {"name": "x"}}'),
        ("GET", "/api/v1/namespaces/a%20b:c", b""),
    ]
    with running(tmp_path, cluster_of(server), argv=argv, **environ) as proxy:
        for method, target, body in requests:
            lines = ["Authorization: Bearer of-the-client", "Accept: application/json"]
            lines += [f"Content-Length: {len(body)}"] if body else []
            proxy.ask(f"{method} {target} HTTP/1.1", *lines, body=body)
    assert len(server.requests) == len(requests)
    for (method, target, body), seen in zip(requests, server.requests, strict=True):
        headers = {name.lower(): value for name, value in seen.headers}
        assert headers["host"] == f"127.0.0.1:{server.port}"
        assert headers["x-amz-security-token"] == "session"
        assert verify(method, target, headers, body)
        assert not verify(method, target + ("&x=1" if "?" in target else "?x=1"), headers, body)
        assert not verify(method, target, headers, body + b"!")
        assert unquote(target).startswith(unquote(seen.path))


def test_sigv4_refuses_a_body_that_it_would_not_hold(server: ApiServer, tmp_path: Path):
    argv = script("proxy_sigv4", "--region", "eu-west-1", "--body-limit", "1000")
    environ = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
    with running(tmp_path, cluster_of(server), argv=argv, **environ) as proxy:
        status, _, text = proxy.ask("PUT /x HTTP/1.1", "Content-Length: 2000", body=bytes(2000))
    assert status == 413
    assert b"larger than 1000 bytes" in text
    assert server.requests == []


SLOW_KEYS = """#!/bin/sh
touch {folder}/asked
while [ ! -e {folder}/go ]; do sleep 0.05; done
printf '{{"Version": 1, "AccessKeyId": "{key}", "SecretAccessKey": "{secret}"}}'
"""


def test_sigv4_goes_on_while_keys_are_fetched(server: ApiServer, tmp_path: Path):
    """botocore waits where it stands: a program, a metadata server. Those who need no key must not wait with it."""
    program = PluginDirectory(tmp_path).script("slow-keys", SLOW_KEYS.format(folder=tmp_path, key=KEY, secret=SECRET))
    (tmp_path / "aws").write_text(f"[profile slow]\ncredential_process = {program}\n")
    argv = script("proxy_sigv4", "--region", "eu-west-1", "--profile", "slow")
    with running(tmp_path, cluster_of(server), argv=argv, AWS_CONFIG_FILE=str(tmp_path / "aws")) as proxy:
        with proxy.connect() as waiting:
            waiting.sendall(b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually((tmp_path / "asked").exists, "the program that is asked for keys")
            try:
                assert proxy.ask("BREW")[0] == 400
                assert server.requests == []
            finally:
                (tmp_path / "go").touch()
            read_response(waiting)  # whatever the server makes of the signature
    (request,) = server.requests
    headers = {name.lower(): value for name, value in request.headers}
    assert verify("GET", "/version", headers, b"")


def test_tls_shows_the_certificate(tmp_path: Path):
    with ApiServer(client_certificates="required") as server:
        leaf = server.ca.issue_client("jane")
        certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
        certificate.write_bytes(leaf.chain_pem)
        key.write_bytes(leaf.key_pem)
        key.chmod(0o600)
        argv = script("proxy_tls", "--certificate", str(certificate), "--key", str(key))
        with running(tmp_path, cluster_of(server), argv=argv) as proxy:
            assert proxy.ask("GET /api/v1/namespaces HTTP/1.1")[0] == 200
        assert [request.user for request in server.requests] == ["jane"]
        key.chmod(0o644)
        with pytest.raises(AssertionError, match="others may read this private key"):
            with running(tmp_path, cluster_of(server), argv=argv):
                pass


def test_tls_with_an_external_signer(tmp_path: Path):
    with ApiServer(client_certificates="required") as server:
        signer = SignerProgram(tmp_path / "token", server.ca)
        argv = script("proxy_tls", "--signer", f"pathExec={signer.path}")
        with running(tmp_path, cluster_of(server), argv=argv) as proxy:
            assert proxy.ask("GET /api/v1/namespaces HTTP/1.1")[0] == 200
        assert [request.user for request in server.requests] == ["jane"]
        assert len(signer.requests) == 2  # the certificate, and one signature


@pytest.mark.parametrize("tls12_only", [True, False], ids=["1.2", "1.3"])
def test_tls_fetches_the_certificate_of_a_signer_again_after_an_alert(tmp_path: Path, tls12_only: bool):
    with ApiServer(client_certificates="required", tls12_only=tls12_only) as server:
        signer = SignerProgram(tmp_path / "token", server.ca)
        signer.show(issue(CertificateAuthority("somebody else's"), signer.key))
        argv = script("proxy_tls", "--signer", f"pathExec={signer.path}")
        with running(tmp_path, cluster_of(server), argv=argv) as proxy:
            for _ in range(20):  # a connection that is reset may lose the alert
                status, _, body = proxy.ask("GET /api/v1/namespaces HTTP/1.1")
                assert status == 502
                if b"ALERT" in body.upper():
                    break
            signer.show(issue(server.ca, signer.key))
            assert [proxy.ask("GET /api/v1/namespaces HTTP/1.1")[0] for _ in range(2)] == [200, 200]
        assert signer.count("CertificateRequest") == 2


def test_tls_does_not_fetch_it_for_each_request_that_is_refused(tmp_path: Path):
    with ApiServer(client_certificates="required", tls12_only=True) as server:
        signer = SignerProgram(tmp_path / "token", server.ca)
        signer.show(issue(CertificateAuthority("somebody else's"), signer.key))
        argv = script("proxy_tls", "--signer", f"pathExec={signer.path}")
        with running(tmp_path, cluster_of(server), argv=argv) as proxy:
            assert {proxy.ask("GET /api/v1/namespaces HTTP/1.1")[0] for _ in range(8)} == {502}
        assert signer.count("CertificateRequest") == 2


@pytest.mark.parametrize("setting", ["pin=271828", "uri=pkcs11:token=desk?pin-value=271828"])
def test_no_pin_in_the_arguments_of_the_tls_proxy(server: ApiServer, tmp_path: Path, setting: str):
    """They are in the list of processes, and a proxy stays there."""
    signer = SignerProgram(tmp_path / "token", server.ca)
    argv = script("proxy_tls", "--signer", f"pathExec={signer.path}", "--signer", setting)
    with pytest.raises(AssertionError, match="a PIN among the arguments can be seen") as refused:
        with running(tmp_path, cluster_of(server), argv=argv):
            pass
    assert "271828" not in str(refused.value)
    assert signer.requests == []


def test_the_tls_proxy_is_started_again_when_its_certificate_ends(server: ApiServer, tmp_path: Path):
    ends = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    leaf = server.ca.issue_client("jane", not_after=ends)
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(leaf.chain_pem)
    key.write_bytes(leaf.key_pem)
    key.chmod(0o600)
    argv = script("proxy_tls", "--certificate", str(certificate), "--key", str(key))
    with running(tmp_path, cluster_of(server), argv=argv) as proxy:
        assert rfc3339.parse(proxy.status["expirationTimestamp"]) == ends.timestamp()


def test_headers_of_a_command(server: ApiServer, tmp_path: Path):
    runs = tmp_path / "runs"
    program = f"open({str(runs)!r}, 'a').write('x'); print('X-Team: red'); print('Authorization: Bearer made')"
    argv = script("proxy_headers", "--keep", "600", "--", sys.executable, "-c", program)
    with running(tmp_path, cluster_of(server), argv=argv) as proxy:
        for _ in range(3):
            proxy.ask("GET /version HTTP/1.1", "X-Team: blue")
    assert runs.read_text() == "x"
    for request in server.requests:
        assert [value for name, value in request.headers if name.lower() == "x-team"] == ["red"]


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "print()", "print('no header')", "print('A: b\\0')"])
def test_no_request_goes_out_without_the_headers(program: str, server: ApiServer, tmp_path: Path):
    argv = script("proxy_headers", "--", sys.executable, "-c", program)
    with running(tmp_path, cluster_of(server), argv=argv) as proxy:
        assert proxy.ask("GET /version HTTP/1.1")[0] == 500
    assert server.requests == []


def test_a_header_that_comes_twice_is_refused():
    assert headers_in("A: 1\n\nB: x: y\n") == {"A": "1", "B": "x: y"}
    with pytest.raises(PluginFailed):
        headers_in("A: 1\na: 2\n")


def test_the_scripts_are_there():
    import tomllib

    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]
    assert {name for name in scripts if name.startswith("kubeauthn-proxy-")} == {
        "kubeauthn-proxy-sigv4",
        "kubeauthn-proxy-tls",
        "kubeauthn-proxy-headers",
    }
