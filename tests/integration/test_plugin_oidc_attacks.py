"""`kubeauthn plugin oidc` among those who mean no good: the issuer, other users, what lies in the cache."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubeauthn._core.oidc import limits
from kubeauthn._core.oidc.device import read_device_login
from kubeauthn.errors import EnvironmentFailure, KubeauthnError, LoginFailed
from kubeauthn.plugins.oidc.plugin import renewed
from kubeauthn.plugins.oidc.redirect_server import RedirectServer
from kubeauthn.plugins.oidc.session import Session
from kubeauthn.plugins.oidc.storage import Storage
from kubeauthn.testing import Issuer
from tests.integration.oidc_scene import OidcScene, until

NOBODY = 65534


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        running.log_in_as("jane")
        yield running


@pytest.fixture
def scene(issuer: Issuer, tmp_path: Path) -> OidcScene:
    return OidcScene(issuer, tmp_path)


def log_in(scene: OidcScene, **changes: object) -> Session:
    settings = scene.settings(**changes)
    return renewed(settings, Storage(settings), person=True)


def refused(scene: OidcScene, **changes: object) -> str:
    """Why, and that nothing was kept and no token stands in the message."""
    with pytest.raises(KubeauthnError) as caught:
        log_in(scene, **changes)
    said = f"{caught.value} {caught.value.hint}"
    assert "eyJ" not in said
    assert not list(scene.cache().glob("*.json"))
    return said


# -- the issuer -----------------------------------------------------------------------------------

WRONG_CLAIMS = {
    "another nonce": ({"nonce": "another"}, "of another login (its nonce is not ours)"),
    "no nonce": ({"nonce": None}, "of another login (its nonce is not ours)"),
    "another audience": ({"aud": "somebody-else"}, "not meant for the client kubernetes"),
    "several audiences": ({"aud": ["kubernetes", "x"]}, "does not say which client"),
    "another party": ({"aud": ["kubernetes", "x"], "azp": "x"}, "made for another client"),
    "another issuer": ({"iss": "https://evil.example"}, "names another issuer"),
    "ended": ({"exp": 1_000_000_000}, "is not good now"),
    "no end": ({"exp": None}, "is not good now"),
    "not begun": ({"nbf": 4_000_000_000}, "is not good now"),
    "nobody": ({"sub": None}, "names nobody"),
    "an empty name": ({"sub": ""}, "names nobody"),
    "another access token": ({"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, "not the one that the id token names"),
    "a wrong type": ({"exp": "tomorrow"}, "does not hold"),
}


@pytest.mark.parametrize("case", WRONG_CLAIMS)
def test_an_id_token_that_does_not_hold_is_not_given_out(scene: OidcScene, case: str):
    scene.issuer.override_claims, said = WRONG_CLAIMS[case]
    assert said in refused(scene)
    assert "did not succeed" in until(scene.pages)[0]["page"]


def test_a_token_that_another_key_signed(scene: OidcScene):
    withdrawn, real = scene.issuer.rotate(), scene.issuer.sign
    scene.issuer.withdraw(withdrawn)
    scene.issuer.rotate()
    scene.issuer.sign = lambda claims, **_: real(claims, kid=withdrawn)  # type: ignore[method-assign]
    assert "does not hold: " in refused(scene)


REDIRECTS = {
    "mixed up: another issuer answers": ({"iss": "https://evil.example"}, "the answer came from another issuer"),
    "an issuer that names itself does not": ({"iss": None}, "the answer came from nobody knows whom"),
    "no code": ({"code": None}, "without a code"),
    "an error with a text for the terminal": (
        {"error": "\x1b[31mred", "error_description": "x" * 500}, "the issuer refused the login: x"),
    "a code that was never given": ({"code": "made-up"}, "invalid_grant"),
}  # fmt: skip


@pytest.mark.parametrize("case", REDIRECTS)
def test_an_answer_in_the_redirect_that_is_not_right(scene: OidcScene, case: str):
    scene.issuer.override_redirect, said = REDIRECTS[case]
    text = refused(scene)
    assert said in text
    assert "\x1b" not in text
    # what came from elsewhere was not taken to the token endpoint
    assert scene.asked("/token") == (1 if case == "a code that was never given" else 0)


def test_an_issuer_that_need_not_name_itself_may_be_silent(scene: OidcScene):
    scene.issuer.override_discovery = {"authorization_response_iss_parameter_supported": False}
    scene.issuer.override_redirect = {"iss": None}
    assert log_in(scene).subject == "jane"


DISCOVERY = {
    "another issuer": ({"issuer": "https://evil.example"}, "calls itself https://evil.example"),
    "a file for the browser": ({"authorization_endpoint": "file:///etc/passwd"}, "authorization_endpoint is no https"),
    "a script for the browser": ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint is no"),
    "plain http elsewhere": ({"token_endpoint": "http://198.51.100.1/token"}, "token_endpoint is no https"),
    "a password in the address": ({"token_endpoint": "https://a:b@127.0.0.1/"}, "token_endpoint is no https"),
    "a line break in an address": ({"jwks_uri": "https://127.0.0.1/\r\nX: y"}, "jwks_uri is no https"),
    "no keys": ({"jwks_uri": None}, "jwks_uri is no https"),
}


@pytest.mark.parametrize("case", DISCOVERY)
def test_a_discovery_document_that_leads_astray(scene: OidcScene, case: str):
    scene.issuer.override_discovery, said = DISCOVERY[case]
    assert said in refused(scene)
    assert scene.pages() == []


def test_a_refresh_cannot_turn_one_person_into_another(scene: OidcScene):
    log_in(scene)
    kept = scene.kept().read_text()
    scene.issuer.override_claims = {"sub": "root"}
    with pytest.raises(LoginFailed, match="the token of one person with that of another"):
        log_in(scene, force_refresh=True)
    assert scene.kept().read_text() == kept


@contextmanager
def rough(behave: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server on loopback that does as it likes with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            while not ended.is_set():
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    try:
                        connection.recv(65536)
                        behave(connection)
                    except OSError:
                        pass

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            thread.join()


def endless(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        connection.sendall(b" " * 65536)


def dripping_head(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        connection.sendall(b"X: y\r\n")
        time.sleep(0.1)


def leading_away(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 307 x\r\nLocation: http://198.51.100.1/\r\nContent-Length: 0\r\n\r\n")


def compressed(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx")


@pytest.mark.parametrize(
    ("behave", "said"),
    [
        (endless, "answered more than 1048576 bytes"),
        (dripping_head, "did not end its answer within 1 s"),
        (leading_away, "answered 307 and no discovery document"),
        (compressed, "answered compressed"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_issuer_that_answers_without_end_or_leads_away(
    scene: OidcScene, behave: Callable[[socket.socket], None], said: str, monkeypatch: pytest.MonkeyPatch
):
    from kubeauthn._io import issuer_http

    monkeypatch.setitem(issuer_http.ask.__kwdefaults__, "seconds", 1.0 if behave is dripping_head else 20.0)
    with rough(behave) as url:
        assert said in refused(scene, issuer_url=url)


def test_the_limit_is_shorter_than_a_clients(scene: OidcScene):
    from kubeauthn._core.limits import PLUGIN_SECONDS

    assert limits.ANSWER_SECONDS < PLUGIN_SECONDS


def test_an_issuer_of_another_authority(scene: OidcScene):
    said = refused(scene, certificate_authority="")
    assert "CERTIFICATE_VERIFY_FAILED" in said
    assert "--certificate-authority FILE" in said


DEVICE = {
    "no code": ({"user_code": None}, "no code that a person could type"),
    "a code that a terminal obeys": ({"user_code": "\x1b[2J"}, "no code that a person could type"),
    "a code of a page": ({"user_code": "x" * 100}, "no code that a person could type"),
    "a script": ({"verification_uri": "javascript:alert(1)"}, "the address for the person is not https"),
    "plain http elsewhere": ({"verification_uri": "http://198.51.100.1/"}, "the address for the person is not https"),
    "nothing to ask with": ({"device_code": 7}, "it gave no device code"),
}


@pytest.mark.parametrize("case", DEVICE)
def test_a_device_login_that_shows_the_person_something_else(case: str):
    change, said = DEVICE[case]
    good = {"device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": "https://issuer.example/device"}
    assert read_device_login(good).interval == limits.DEVICE_INTERVAL_SECONDS
    with pytest.raises(LoginFailed, match=said):
        read_device_login({**good, **change})


# -- other users of the machine -------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[RedirectServer]:
    with RedirectServer(["127.0.0.1:0"], "", "the-state") as running:
        running.lead_to("https://issuer.example/authorize?state=the-state")
        yield running


def get(address: str, **headers: str) -> tuple[int, str]:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay())
    try:
        page = opener.open(urllib.request.Request(address, headers=headers), timeout=20)  # noqa: S310  on loopback
    except urllib.error.HTTPError as error:
        page = error
    with page:
        return page.status, page.headers.get("Location", "")


@pytest.mark.parametrize(
    "query",
    ["state=wrong&code=evil", "code=evil", "state=&code=evil", "state=the-state&state=wrong&code=evil",
     "state=%ff&code=x", "error=access_denied", "state=wrong&error=access_denied"],
)  # fmt: skip
def test_an_answer_with_another_state_changes_nothing(server: RedirectServer, query: str):
    assert get(f"{server.redirect_uri}?{query}")[0] in (400, 404)
    assert server.wait(0.0) is None
    answer = threading.Thread(target=get, args=(f"{server.redirect_uri}?state=the-state&code=good",))
    answer.start()
    assert server.wait(10.0) == {"state": "the-state", "code": "good"}
    # a second answer is nobody's
    assert get(f"{server.redirect_uri}?state=the-state&code=later")[0] == 400
    server.succeeded = True
    server._done.set()
    answer.join()


def test_the_browser_is_led_on_from_here(server: RedirectServer):
    assert get(server.start_address) == (302, "https://issuer.example/authorize?state=the-state")
    assert get(server.start_address + "elsewhere")[0] == 404


def test_another_name_for_this_machine_is_refused(server: RedirectServer):
    port = urllib.parse.urlsplit(server.start_address).port
    assert get(server.start_address, Host=f"rebound.example:{port}")[0] == 400
    assert get(f"{server.redirect_uri}?state=the-state&code=x", Host=f"rebound.example:{port}")[0] == 400
    assert server.wait(0.0) is None


ASK = """
import encodings.idna, os, socket, sys
os.setgid({user}); os.setuid({user})
port, close = int(sys.argv[1]), sys.argv[2] == "close"
with socket.create_connection(("127.0.0.1", port)) as connection:
    try:
        connection.sendall(b"GET /callback?state=the-state&code=evil HTTP/1.1\\r\\n")
        connection.sendall(b"Host: 127.0.0.1:%d\\r\\n\\r\\n" % port)
        if not close:
            sys.stdout.write(str(connection.recv(100)))
    except OSError as error:
        sys.stdout.write(type(error).__name__)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
@pytest.mark.parametrize("manner", ["stay", "close"])
def test_another_user_is_turned_away_even_with_the_right_state(server: RedirectServer, manner: str):
    port = str(urllib.parse.urlsplit(server.start_address).port)
    done = subprocess.run(
        [sys.executable, "-I", "-c", ASK.format(user=NOBODY), port, manner], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert "HTTP/1.1" not in done.stdout
    assert server.wait(0.5) is None
    assert get(server.start_address)[0] == 302  # ours is still served


def test_the_state_is_in_no_process_arguments(scene: OidcScene):
    """Every user of the machine can read them."""
    seen = scene.directory / "arguments"
    peek = scene.directory / "peek"
    peek.write_text(f'#!/bin/sh\necho "$@" > {seen}\nexec {scene.browser} "$1"\n')
    peek.chmod(0o755)
    log_in(scene, browser_command=str(peek))
    address = seen.read_text()
    assert "state" not in address
    assert "code_challenge" not in address


def test_connections_that_say_nothing_do_not_lock_the_browser_out(server: RedirectServer):
    port = int(str(urllib.parse.urlsplit(server.start_address).port))
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
    silent[0].sendall(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000)
    try:
        assert get(server.start_address)[0] == 302
    finally:
        for connection in silent:
            connection.close()


@pytest.mark.parametrize(
    "listen", ["0.0.0.0:8000", "192.0.2.1:80", "[::]:80", "8000", "127.0.0.1:99999", "127.0.0.1:x"]
)
def test_nobody_elsewhere_can_reach_it(scene: OidcScene, listen: str):
    assert "--listen takes loopback addresses" in refused(scene, listen=(listen,))


@pytest.mark.parametrize(
    "url",
    ["https://evil.example/", "http://evil.example/", "http://localhost@evil.example/", "http://localhost:1/?a=b"],
)
def test_the_code_is_sent_nowhere_else(scene: OidcScene, url: str):
    assert "--redirect-url takes an http address of this machine" in refused(scene, redirect_url=url)


@pytest.mark.parametrize("name", ["state", "nonce", "redirect_uri", "code_challenge_method", "response_mode"])
def test_what_protects_the_login_cannot_be_set(scene: OidcScene, name: str):
    assert f"--parameter cannot set {name}" in refused(scene, parameters=((name, "x"),))


# -- the cache ------------------------------------------------------------------------------------

BROKEN = {
    "empty": b"",
    "no JSON": b"{",
    "not UTF-8": b"\xff\xfe",
    "a list": b"[]",
    "another version": b'{"version": 99}',
    "too deep": b"[" * 100_000,
    "too large": b" " * (2 << 20),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_file_is_as_good_as_none(scene: OidcScene, case: str):
    log_in(scene)
    scene.kept().write_bytes(BROKEN[case])
    assert log_in(scene).subject == "jane"
    assert json.loads(scene.kept().read_text())["subject"] == "jane"
    assert len(until(lambda: scene.pages()[1:])) == 1


@pytest.mark.parametrize(
    "change", [{"identity": "other"}, {"token": "a\nb"}, {"until": "later"}, {"until": 1e300}, {"token": ""}]
)
def test_a_file_of_another_login_or_with_other_content_is_not_used(scene: OidcScene, change: dict[str, object]):
    log_in(scene)
    document = json.loads(scene.kept().read_text())
    scene.kept().write_text(json.dumps({**document, **change}))
    assert Storage(scene.settings()).read() is None


def test_a_link_in_the_place_of_the_file_is_neither_read_nor_written_through(scene: OidcScene):
    log_in(scene)
    kept, elsewhere = scene.kept(), scene.directory / "elsewhere"
    elsewhere.write_bytes(kept.read_bytes())
    elsewhere.chmod(0o600)
    kept.unlink()
    kept.symlink_to(elsewhere)
    before = elsewhere.read_bytes()
    assert Storage(scene.settings()).read() is None
    log_in(scene)
    assert not kept.is_symlink()
    assert elsewhere.read_bytes() == before


def test_a_file_that_others_can_read_is_not_used(scene: OidcScene):
    log_in(scene)
    scene.kept().chmod(0o640)
    assert Storage(scene.settings()).read() is None


def test_a_directory_that_is_a_link_is_refused(scene: OidcScene):
    elsewhere = scene.directory / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    scene.cache().parent.mkdir(parents=True, mode=0o700)
    scene.cache().symlink_to(elsewhere)
    assert "is a link or no directory" in refused(scene)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_directory_that_others_can_enter_is_refused(scene: OidcScene, mode: int):
    scene.cache().mkdir(parents=True, mode=0o700)
    scene.cache().parent.chmod(0o700)
    scene.cache().chmod(mode)
    assert "others may read or change what is in it" in refused(scene)


def test_a_cache_home_that_others_can_write_to_is_refused(scene: OidcScene):
    home = scene.cache().parent.parent
    home.mkdir(parents=True)
    home.chmod(0o777)
    assert "other users may write to it" in refused(scene)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(scene: OidcScene):
    scene.cache().mkdir(parents=True, mode=0o700)
    scene.cache().parent.chmod(0o700)
    os.chown(scene.cache(), NOBODY, NOBODY)
    assert "others may read or change what is in it" in refused(scene)


def test_a_relative_cache_home_counts_as_none(scene: OidcScene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    log_in(scene)
    assert scene.kept().exists()


def test_no_home_is_an_error_with_a_hint(scene: OidcScene, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(EnvironmentFailure, match="no home directory"):
        log_in(scene)


# -- the clock ------------------------------------------------------------------------------------


def test_a_clock_that_is_behind_does_not_use_a_token_after_its_end(scene: OidcScene):
    now = int(time.time())
    scene.issuer.override_claims = {"iat": now + 600, "exp": now + 600 + 900}
    session = log_in(scene)
    # 900 s from now by our clock, and a minute less
    assert now + 835 <= session.until <= now + 845


def test_a_clock_that_is_ahead_is_named(scene: OidcScene):
    now = int(time.time())
    scene.issuer.override_claims = {"iat": now - 7200, "exp": now - 3600}
    assert "is the clock of this machine right?" in refused(scene)


def test_a_short_token_is_used_for_most_of_its_life(scene: OidcScene):
    now = int(time.time())
    scene.issuer.override_claims = {"iat": now, "exp": now + 100}
    assert now + 85 <= log_in(scene).until <= now + 92
