"""`kubeauthn plugin service-account` against servers, contexts and clocks that are not what they should be."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeauthn._core import execwire, rfc3339
from kubeauthn._core.limits import PLUGIN_SECONDS
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import CredentialError, EnvironmentFailure, PluginDenied, UsageError
from kubeauthn.plugin import credential
from kubeauthn.plugins import service_account
from kubeauthn.plugins.service_account import UNDER_WAY, Settings, credential_function
from kubeauthn.testing import ApiServer, ScriptedPlugin
from tests.integration.rough_servers import Answer, RoughServer, json_reply, redirect, reply

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
PATH = "/api/v1/namespaces/ci/serviceaccounts/deployer/token"
OWNER = "owners-s3cret"


@pytest.fixture(autouse=True)
def as_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(UNDER_WAY, "")  # and so it is put back, whatever the plugin writes there
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def server() -> Iterator[RoughServer]:
    with RoughServer() as running:
        yield running


def use(server: RoughServer, home: Path, user: dict[str, Any] | None = None, namespace: str = "ci") -> None:
    authority = base64.b64encode(server.ca.certificate_pem).decode()
    document = {
        "clusters": [{"name": "c", "cluster": {"server": server.url, "certificate-authority-data": authority}}],
        "users": [{"name": "owner", "user": user or {"token": OWNER}}],
        "contexts": [{"name": "owner", "context": {"cluster": "c", "user": "owner", "namespace": namespace}}],
        "current-context": "owner",
    }
    (home / ".kube").mkdir(exist_ok=True)
    (home / ".kube" / "config").write_text(json.dumps(document))


def asked() -> credential.Reply:
    """What a client gets, or the plugin's error; neither ever shows with what it asked."""
    try:
        return credential.try_out(credential_function(Settings("deployer")))
    except Exception as error:
        assert OWNER not in f"{error!r} {error} {getattr(error, 'hint', '')}"
        raise


def granted(token: str = "t0ken", *, seconds: float = 3600) -> bytes:
    status = {"token": token, "expirationTimestamp": rfc3339.format(time.time() + seconds)}
    return json_reply({"status": status}, status="201 Created")


def jwt(**claims: float) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b'=').decode()}.c2ln"


def drip(request: object) -> Iterator[bytes]:
    yield b"HTTP/1.1 201 Created\r\nContent-Length: 1000\r\n\r\n"
    for _ in range(100):
        time.sleep(0.1)
        yield b" "


def drip_the_head(request: object) -> Iterator[bytes]:
    yield b"HTTP/1.1 201 Created\r\nx: "
    for _ in range(100):
        time.sleep(0.1)
        yield b"x"


@pytest.mark.parametrize("answer", [drip, drip_the_head])
def test_a_server_that_drips_its_answer_does_not_hold_a_client_for_ever(
    server: RoughServer, own_environment: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer
):
    """kubectl has no time limit of its own for a plugin."""
    use(server, own_environment)
    server.routes[PATH] = answer
    monkeypatch.setattr(service_account, "ANSWER_SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(EnvironmentFailure, match=r"did not end its answer within 0\.5 s"):
        asked()
    assert time.monotonic() - begun < 5


def test_its_limits_together_are_less_than_a_clients():
    assert service_account._PLUGIN_SECONDS + service_account.ANSWER_SECONDS < PLUGIN_SECONDS


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (redirect("https://127.0.0.1:1/elsewhere"), CredentialError, "the server answered 302"),
        (reply(b"[" * 200_000, status="201 Created"), CredentialError, "holds no token"),
        (
            json_reply({"status": {"token": "t0ken"}}, status="201 Created"),
            CredentialError,
            "does not say when it ends",
        ),
        (granted("two\nlines"), UsageError, "characters that no header may carry"),
        (reply(b"x" * (2 << 20), status="201 Created"), EnvironmentFailure, "answered more than 1048576 bytes"),
        (
            reply(gzip.compress(b" " * (64 << 20)), status="201 Created", Content_Encoding="gzip"),
            EnvironmentFailure,
            "answered compressed",
        ),
        (json_reply({"message": f"not with {OWNER}"}, status="403 Forbidden"), CredentialError, "(?m)asked for$"),
        (json_reply({"message": f"not with {OWNER}"}, status="500 Oh"), CredentialError, "answered 500 to .* ci$"),
        (b"SSH-2.0-server\r\n\r\n", EnvironmentFailure, "cannot reach"),
    ],
    ids=["redirect", "deep", "no end", "line break", "large", "bomb", "quotes", "quotes in a 500", "not HTTP"],
)
def test_a_hostile_answer(server: RoughServer, own_environment: Path, answer: bytes, error: type[Exception], said: str):
    use(server, own_environment)
    server.routes[PATH] = answer
    with pytest.raises(error, match=said):
        asked()
    assert len(server.requests) == 1


@pytest.mark.parametrize("namespace", ["../../../apis/x", "ci/secrets/x?", "..", "CI"])
def test_the_namespace_of_a_context_becomes_part_of_a_path_too(
    server: RoughServer, own_environment: Path, namespace: str
):
    use(server, own_environment, namespace=namespace)
    with pytest.raises(UsageError, match="the namespace of the context takes a name"):
        asked()
    assert not server.requests


def test_a_clock_that_is_ahead_is_named(server: RoughServer, own_environment: Path):
    use(server, own_environment)
    server.routes[PATH] = granted(seconds=-5)
    with pytest.raises(CredentialError, match="has ended by this machine's clock") as caught:
        asked()
    assert "clock" in str(caught.value.hint)


def test_a_clock_that_is_behind_does_not_make_the_token_last_longer(server: RoughServer, own_environment: Path):
    use(server, own_environment)
    now = time.time()
    server.routes[PATH] = granted(jwt(iat=now + 1800, exp=now + 5400), seconds=5400)
    expires_at = asked().expires_at
    assert expires_at is not None
    assert 3500 < expires_at - now < 3545  # an hour, less a minute


def test_a_credential_that_was_refused_is_renewed_and_the_question_asked_again(own_environment: Path):
    plugin = ScriptedPlugin(own_environment / "owners-plugin")
    plugin.reply(token="withdrawn")

    with RoughServer() as server:

        def answer(request: Any) -> bytes:
            if request.header("authorization") == "Bearer withdrawn":
                plugin.reply(token=OWNER)
                return json_reply({}, status="401 Unauthorized")
            return granted()

        use(server, own_environment, plugin.user())
        server.routes[PATH] = answer
        assert asked().token == "t0ken"
        assert len(server.requests) == plugin.runs == 2


def test_who_stays_unknown_is_asked_about_no_more_than_twice(own_environment: Path):
    plugin = ScriptedPlugin(own_environment / "owners-plugin")
    plugin.reply(token=OWNER)
    with ApiServer() as server:
        server.write_kubeconfig(own_environment / ".kube" / "config", plugin.user(), namespace="ci")
        with pytest.raises(CredentialError, match=r"does not know who asks for the token \(401\)"):
            asked()
        assert len(server.requests) == plugin.runs == 2


def test_the_policy_holds_for_the_plugin_of_the_other_context(server: RoughServer, own_environment: Path):
    plugin = ScriptedPlugin(own_environment / "owners-plugin")
    plugin.reply(token=OWNER)
    use(server, own_environment, plugin.user())
    (own_environment / ".kube" / "kuberc").write_text(
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: kubeauthn}]\n"
    )
    with pytest.raises(PluginDenied, match="owners-plugin"):
        asked()
    assert plugin.runs == 0


@pytest.mark.parametrize("interactive", [False, True])
def test_the_other_plugin_gets_the_terminal_only_where_a_person_may_be_asked(
    server: RoughServer, own_environment: Path, interactive: bool
):
    """A client may leave us its terminal, and say that nobody is to be asked."""
    plugin = ScriptedPlugin(own_environment / "owners-plugin")
    plugin.reply(token=OWNER)
    use(server, own_environment, plugin.user(interactiveMode="IfAvailable"))
    server.routes[PATH] = granted()
    info = execwire.encode_exec_info(execwire.V1, interactive=interactive, cluster=None)
    master, terminal = os.openpty()
    try:
        done = subprocess.run(
            [KUBEAUTHN, "plugin", "service-account", "deployer"], stdin=terminal, capture_output=True, text=True,
            env={**os.environ, execwire.VARIABLE: info}, timeout=50,
        )  # fmt: skip
    finally:
        os.close(master)
        os.close(terminal)
    assert done.returncode == 0, done.stderr
    assert plugin.exec_info()["spec"]["interactive"] is interactive
