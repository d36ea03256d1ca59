"""`kubeauthn plugin oidc`: logins by browser and by device code, refresh, the cache, and many commands at once."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubeauthn._core.jwt_peek import untrusted_claims
from kubeauthn.client import connect
from kubeauthn.testing import ApiServer, Issuer
from tests.integration.at_once import start_at_once
from tests.integration.oidc_scene import KUBEAUTHN, OidcScene, until

HEAVY = {
    "asyncio", "cryptography", "dataclasses", "hashlib", "http", "httpx2", "inspect", "logging", "socket", "ssl",
    "subprocess", "threading", "urllib.parse", "yaml",
}  # fmt: skip


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        running.log_in_as("jane", groups=["dev"])
        yield running


@pytest.fixture
def scene(issuer: Issuer, tmp_path: Path) -> OidcScene:
    return OidcScene(issuer, tmp_path)


def test_a_login_in_the_browser_gives_the_id_token_and_is_kept(scene: OidcScene):
    done = scene.run()
    assert done.returncode == 0, done.stderr
    status = json.loads(done.stdout)["status"]
    claims = untrusted_claims(status["token"])
    assert claims is not None
    assert (claims["sub"], claims["groups"], claims["aud"]) == ("jane", ["dev"], "kubernetes")
    # a minute before its end
    assert status["expirationTimestamp"] == time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(claims["exp"] - 60))
    assert re.search(r"log in at http://127\.0\.0\.1:\d+/ \(opened in your browser\)", done.stderr)
    (page,) = until(scene.pages)
    assert page["status"] == 200
    assert "You are logged in" in page["page"]
    scene.issuer.requests.clear()
    again = scene.run(person=False)
    assert (again.returncode, again.stderr) == (0, "")
    assert json.loads(again.stdout) == json.loads(done.stdout)
    assert scene.issuer.requests == []


def test_what_is_kept_is_ours_alone(scene: OidcScene):
    token = scene.token()
    kept = scene.kept()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    for directory in (kept.parent, kept.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert (kept.parent / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
    document = json.loads(kept.read_text())
    assert document["token"] == token
    assert document["refreshToken"].startswith("refresh-")


def test_pkce_state_and_nonce_are_sent_and_the_verifier_is_the_challenges(scene: OidcScene):
    scene.token()
    (asked,) = [request for request in scene.issuer.requests if request.path == "/token"]
    assert asked.form["grant_type"] == "authorization_code"
    assert len(asked.form["code_verifier"]) == 43
    # The fake verifies it: a code without its verifier is refused there, see test_testing_logins.
    assert asked.form["redirect_uri"].endswith("/callback")


def test_a_refresh_gives_a_new_token_without_a_person(tmp_path: Path):
    with Issuer(rotate_refresh_tokens=True) as issuer:
        issuer.log_in_as("jane")
        scene = OidcScene(issuer, tmp_path)
        scene.token()
        before = json.loads(scene.kept().read_text())["refreshToken"]
        for _ in range(2):
            scene.token("--force-refresh", person=False)
            after = json.loads(scene.kept().read_text())["refreshToken"]
            assert after != before
            before = after
        assert len(until(scene.pages)) == 1


def test_a_token_that_has_ended_is_refreshed(scene: OidcScene):
    scene.token()
    document = json.loads(scene.kept().read_text())
    scene.kept().write_text(json.dumps({**document, "until": time.time() - 1}))
    scene.issuer.requests.clear()
    scene.token(person=False)
    assert [request.form.get("grant_type") for request in scene.issuer.requests if request.path == "/token"] == [
        "refresh_token"
    ]


def test_a_refresh_token_that_was_revoked_means_a_login(scene: OidcScene):
    scene.token()
    scene.issuer.revoke_refresh_token(json.loads(scene.kept().read_text())["refreshToken"])
    refused = scene.run("--force-refresh", person=False)
    assert refused.returncode == 1
    assert "you must log in at" in refused.stderr
    scene.token("--force-refresh")
    assert len(until(lambda: scene.pages()[1:])) == 1


def test_an_issuer_that_is_down_costs_no_login_and_no_refresh_token(scene: OidcScene):
    scene.token()
    kept = scene.kept().read_text()
    scene.issuer.fail_next(10, 503)
    done = scene.run("--force-refresh")
    assert done.returncode == 1
    assert "answered 503" in done.stderr
    assert scene.kept().read_text() == kept
    assert len(scene.pages()) == 1


def test_without_a_terminal_there_is_an_error_at_once_and_the_command_that_helps(scene: OidcScene):
    done = scene.run(person=False)
    assert (done.returncode, done.stdout) == (1, "")
    error, hint = done.stderr.splitlines()
    assert error == f"kubeauthn: error: you must log in at {scene.issuer.url}, and there is no terminal for it"
    helps = f"kubeauthn plugin oidc --login --issuer-url={scene.issuer.url} --client-id=kubernetes "
    assert hint.startswith(f"kubeauthn: hint: log in once in a terminal: {helps}")
    assert scene.issuer.requests == []


def test_without_terminal_can_be_allowed(scene: OidcScene):
    assert scene.token("--without-terminal", person=False)


def test_a_login_by_hand_then_a_client_without_a_terminal(scene: OidcScene):
    done = subprocess.run(
        scene.command("--login"), capture_output=True, text=True, timeout=50, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"logged in at {scene.issuer.url} as jane"
    assert second.endswith("then it is refreshed")
    assert scene.token(person=False)


def test_logout_forgets_here_and_at_the_issuer(scene: OidcScene):
    scene.token()
    refresh_token = json.loads(scene.kept().read_text())["refreshToken"]
    done = scene.run("--logout")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"forgot the login at {scene.issuer.url}",
        "the issuer was told to forget it too",
    ]
    assert [path.name for path in scene.cache().iterdir()] == ["CACHEDIR.TAG"]
    (asked,) = [request for request in scene.issuer.requests if request.path == "/revoke"]
    assert asked.form["token"] == refresh_token
    assert scene.run("--logout").stdout == "nobody was logged in here with these settings\n"


# -- the device grant -----------------------------------------------------------------------------


def test_a_login_with_a_device_code(scene: OidcScene):
    scene.issuer.device_interval = 1.0
    process = subprocess.Popen(
        scene.command("--grant=device-code"), env=scene.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    (code,) = until(lambda: scene.issuer.user_codes)
    scene.issuer.approve_device(code, "joe")
    out, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    claims = untrusted_claims(json.loads(out)["status"]["token"])
    assert claims is not None
    assert claims["sub"] == "joe"
    assert f"open {scene.issuer.url}/device in a browser, on any device, and enter the code {code}" in err
    assert scene.token(person=False)  # the refresh token came with it, and the token is kept


def test_a_device_login_that_is_refused(scene: OidcScene):
    scene.issuer.device_interval = 1.0
    process = subprocess.Popen(
        scene.command("--grant=device-code"), env=scene.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    (code,) = until(lambda: scene.issuer.user_codes)
    scene.issuer.deny_device(code)
    out, err = process.communicate(timeout=40)
    assert (process.returncode, out) == (1, "")
    assert "the issuer gave no token: access_denied" in err


def test_a_device_login_that_nobody_does(scene: OidcScene):
    scene.issuer.device_interval = 1.0
    done = scene.run("--grant=device-code", "--timeout=2")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nobody logged in with the code in time" in done.stderr


# -- clients, tokens and options ------------------------------------------------------------------


@pytest.mark.parametrize("methods", [None, ["client_secret_basic"], ["client_secret_post"]])
@pytest.mark.parametrize("source", ["file", "env"])
def test_a_client_with_a_secret(tmp_path: Path, source: str, methods: list[str] | None):
    secret = "s3cret / with+signs%"
    with Issuer(client_secret=secret) as issuer:
        issuer.log_in_as("jane")
        if methods is not None:
            issuer.override_discovery = {"token_endpoint_auth_methods_supported": methods}
        scene = OidcScene(issuer, tmp_path)
        (tmp_path / "secret").write_text(f"{secret}\n")
        option = f"--client-secret-file={tmp_path / 'secret'}" if source == "file" else "--client-secret-env=THE_SECRET"
        assert scene.token(option, THE_SECRET=secret)
        (asked,) = [request for request in issuer.requests if request.path == "/token"]
        assert ("client_secret" in asked.form) == (methods == ["client_secret_post"])
        assert secret not in scene.kept().read_text()


def test_without_its_secret_a_client_is_told_whose_turn_it_is(tmp_path: Path):
    with Issuer(client_secret="x") as issuer:
        issuer.log_in_as("jane")
        done = OidcScene(issuer, tmp_path).run()
    assert done.returncode == 1
    assert "invalid_client" in done.stderr
    assert "does the client need a secret (--client-secret-file)?" in done.stderr


def test_the_access_token_if_that_is_asked_for(scene: OidcScene):
    token = scene.token("--access-token")
    assert untrusted_claims(token) is not None
    assert scene.token("--access-token", "--force-refresh", person=False)
    # another choice is another login
    assert scene.run("--id-token", person=False).returncode == 1


def test_the_ports_of_listen_are_tried_in_turn_and_the_redirect_url_is_obeyed(issuer: Issuer, tmp_path: Path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
        busy, second = taken.getsockname()[1], free.getsockname()[1]
        free.close()
        with Issuer(redirect_uris=[f"http://localhost:{second}"]) as other:
            other.log_in_as("jane")
            scene = OidcScene(other, tmp_path)
            words = [f"--listen=127.0.0.1:{busy},127.0.0.1:{second}", f"--redirect-url=http://localhost:{second}"]
            assert scene.token(*words)
            done = scene.run(f"--listen=127.0.0.1:{busy}", "--force-refresh", "--audience=new")
    assert done.returncode == 1
    assert f"no address to listen on for the login (127.0.0.1:{busy}: address already in use)" in done.stderr


def test_a_person_who_takes_too_long(scene: OidcScene):
    done = scene.run("--browser-command=true", "--timeout=1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nobody logged in within 1 s" in done.stderr


def test_a_person_who_cancels(scene: OidcScene):
    scene.issuer.log_in_as(None)
    done = scene.run()
    assert (done.returncode, done.stdout) == (1, "")
    assert "the issuer refused the login: access_denied" in done.stderr
    (page,) = until(scene.pages)
    assert (page["status"], "did not succeed" in page["page"]) == (400, True)


def test_no_browser_only_prints_the_address(scene: OidcScene):
    words = [word for word in scene.command("--no-browser", "--timeout=1") if not word.startswith("--browser-command")]
    done = subprocess.run(words, env=scene.environment(), capture_output=True, text=True, timeout=50)
    assert re.search(r"^log in at http://127\.0\.0\.1:\d+/$", done.stderr, re.MULTILINE)
    assert scene.pages() == []


def test_nothing_is_kept_where_that_is_asked_for(scene: OidcScene):
    scene.token("--store=none")
    assert not scene.cache().exists()


def test_tokens_in_the_keyring(scene: OidcScene, tmp_path: Path):
    backend = tmp_path / "plain_backend.py"
    backend.write_text(
        "import json, os, pathlib\n"
        "from keyring.backend import KeyringBackend\n"
        "FILE = pathlib.Path(os.environ['KEYRING_FILE'])\n"
        "class Plain(KeyringBackend):\n"
        "    priority = 1\n"
        "    def _all(self):\n"
        "        return json.loads(FILE.read_text()) if FILE.exists() else {}\n"
        "    def get_password(self, service, name):\n"
        "        return self._all().get(f'{service}/{name}')\n"
        "    def set_password(self, service, name, value):\n"
        "        FILE.write_text(json.dumps({**self._all(), f'{service}/{name}': value}))\n"
        "    def delete_password(self, service, name):\n"
        "        left = self._all()\n"
        "        del left[f'{service}/{name}']\n"
        "        FILE.write_text(json.dumps(left))\n"
    )
    more = {
        "PYTHONPATH": str(tmp_path),
        "PYTHON_KEYRING_BACKEND": "plain_backend.Plain",
        "KEYRING_FILE": str(tmp_path / "keyring.json"),
    }
    token = scene.token("--store=keyring", **more)
    assert scene.token("--store=keyring", person=False, **more) == token
    assert not list(scene.cache().glob("*.json"))
    assert len(json.loads((tmp_path / "keyring.json").read_text())) == 1
    assert scene.run("--store=keyring", "--logout", **more).returncode == 0
    assert json.loads((tmp_path / "keyring.json").read_text()) == {}


# -- many at once ---------------------------------------------------------------------------------


def start(scene: OidcScene, count: int, *words: str) -> list[subprocess.Popen[str]]:
    return start_at_once(scene.command(*words), scene.environment(), count)


def test_twenty_at_once_open_one_browser(scene: OidcScene):
    processes = start(scene, 20)
    answers = [process.communicate(timeout=50) for process in processes]
    assert [process.returncode for process in processes] == [0] * 20, answers
    assert len({json.loads(out)["status"]["token"] for out, _ in answers}) == 1
    assert len(until(scene.pages)) == 1
    assert scene.asked("/token") == 1


def test_twenty_at_once_use_a_refresh_token_once(tmp_path: Path):
    with Issuer(rotate_refresh_tokens=True) as issuer:
        issuer.log_in_as("jane")
        scene = OidcScene(issuer, tmp_path)
        scene.token()
        document = json.loads(scene.kept().read_text())
        scene.kept().write_text(json.dumps({**document, "until": 0}))
        issuer.requests.clear()
        processes = start(scene, 20)
        answers = [process.communicate(timeout=50) for process in processes]
        assert [process.returncode for process in processes] == [0] * 20, answers
        assert scene.asked("/token") == 1


def test_a_login_that_fails_is_not_begun_again_by_those_who_waited(scene: OidcScene):
    # The browser of the first one answers when all the others wait.
    slow = scene.directory / "slow"
    opened = scene.directory / "opened"
    slow.write_text(f"#!/bin/sh\necho x >> {opened}\nwhile [ ! -e {scene.directory}/go ]; do sleep 0.05; done\n"
                    f"exec {scene.browser} \"$1\"\n")  # fmt: skip
    slow.chmod(0o755)
    scene.issuer.log_in_as(None)
    processes = start(scene, 5, f"--browser-command={slow}")
    waiting = [process for process in processes if process.stderr is not None]
    until(opened.exists)
    seen = sum("waiting for the login that another command" in process.stderr.readline() for process in waiting)
    assert seen == 4
    (scene.directory / "go").touch()
    answers = [process.communicate(timeout=50) for process in processes]
    assert [process.returncode for process in processes] == [1] * 5
    assert sum("another process was getting this credential, and it did not succeed" in err for _, err in answers) == 4
    assert opened.read_text() == "x\n"
    # Who comes later is not told of it, and begins anew.
    scene.issuer.log_in_as("jane")
    assert scene.token()


def test_a_process_that_was_killed_holds_up_nobody(scene: OidcScene):
    (stuck,) = start(scene, 1, "--browser-command=true")
    until(lambda: list(scene.cache().glob("*.lock")))
    assert stuck.stderr is not None
    stuck.stderr.readline()
    stuck.kill()
    stuck.communicate()
    assert scene.token()


# -- in the kubeconfig ----------------------------------------------------------------------------


@pytest.mark.needs("kubectl")
def test_the_printed_entry_serves_kubectl_and_python(scene: OidcScene, tmp_path: Path):
    printed = subprocess.run(scene.command("--print-kubeconfig"), capture_output=True, text=True, check=True).stdout
    (user,) = yaml.safe_load(printed)["users"]
    assert user["user"]["exec"]["interactiveMode"] == "IfAvailable"
    token = scene.token()
    path = os.pathsep.join((str(Path(KUBEAUTHN).parent), os.environ["PATH"]))
    with ApiServer(tokens={token: "jane"}) as server:
        config = server.write_kubeconfig(tmp_path / "config", user["user"])
        listed = subprocess.run(
            ["kubectl", "get", "--raw", "/api/v1/namespaces"],
            env={**os.environ, "PATH": path, "KUBECONFIG": str(config)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50,
        )  # fmt: skip
        assert listed.returncode == 0, listed.stderr
        os.environ["PATH"], before = path, os.environ["PATH"]
        try:
            with connect(kubeconfig=str(config)) as api:
                assert api.get("/api/v1/namespaces").status_code == 200
        finally:
            os.environ["PATH"] = before
        assert {request.user for request in server.requests} == {"jane"}


@pytest.mark.needs("chromium")
def test_a_login_in_chromium(scene: OidcScene):
    """The real browser, from the address that is printed to the page that says it is done."""
    from tests.integration.playground_browser import chromium

    words = [word for word in scene.command("--no-browser") if not word.startswith("--browser-command")]
    process = subprocess.Popen(
        words, env=scene.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    address = process.stderr.readline().split()[-1]
    with chromium() as browser:
        context = browser.new_context(ignore_https_errors=True)  # the test's CA is not the browser's
        page = context.new_page()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(address)
        page.get_by_role("heading", name="You are logged in").wait_for()
        assert [line for line in complaints if "favicon" not in line and "404" not in line] == []
        out, err = process.communicate(timeout=40)
    assert process.returncode == 0, err
    assert json.loads(out)["status"]["token"]


def test_the_plugin_checker_finds_nothing(scene: OidcScene):
    scene.token()
    checked = subprocess.run(
        [KUBEAUTHN, "plugin", "check", "--", *scene.command()], capture_output=True, text=True, timeout=50
    )
    assert checked.returncode == 0, checked.stdout


def test_the_cached_path_imports_nothing_heavy(scene: OidcScene):
    scene.token()
    program = (
        "import atexit, sys\n"
        "from kubeauthn.cli.main import main\n"
        "atexit.register(lambda: sys.stderr.write('\\n'.join(sys.modules)))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, "plugin", "oidc", *scene.words],
        env=scene.environment(), capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert json.loads(done.stdout)["status"]["token"]
    assert not set(done.stderr.split()) & HEAVY
