"""Identity providers that are not ours, started on loopback, and a browser's part of a login at each."""

from __future__ import annotations

import base64
import http.cookiejar
import json
import secrets
import shutil
import signal
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from kubeauthn.testing import CertificateAuthority
from kubeauthn.testing._signing import SigningKey
from tests.e2e.processes import Running, free_port, poll
from tests.peers import find
from tests.peers.node_packages import installed
from tests.peers.programs import HERE

CLIENT_ID = "kubernetes"
REDIRECT = "http://127.0.0.1/callback"
EMAIL, PASSWORD = "jane@example.com", "correct horse"
START_SECONDS = 30.0


class Provider:
    """One provider: its address, its CA, and a client that may log people in there."""

    def __init__(self, directory: Path, name: str, path: str = "") -> None:
        self.ca = CertificateAuthority(f"{name} CA")
        self.url = f"https://127.0.0.1:{free_port()}{path}"
        self.secret = secrets.token_urlsafe(16)
        leaf = self.ca.issue_server()
        self.certificate, self.key = directory / f"{name}.crt", directory / f"{name}.key"
        self.certificate.write_bytes(leaf.chain_pem)
        self.key.touch(mode=0o600)
        self.key.write_bytes(leaf.key_pem)
        self.running: Running | None = None

    def start(self, command: list[str | Path], log: Path) -> None:
        self.running = Running(command, log)
        poll(self._answers, START_SECONDS, f"{command[0]} answers")

    def stop(self) -> None:
        if self.running is not None:
            self.running.stop()

    def _answers(self) -> bool:
        assert self.running is not None
        self.running.check_alive()
        try:
            self.discovery()
        except (urllib.error.URLError, OSError):
            return False
        return True

    def discovery(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._browser().open(f"{self.url}/.well-known/openid-configuration").read())
        return found

    def kids(self) -> set[str]:
        keys = json.loads(self._browser().open(self.discovery()["jwks_uri"]).read())["keys"]
        return {key["kid"] for key in keys}

    def _browser(self) -> urllib.request.OpenerDirector:
        return urllib.request.build_opener(
            urllib.request.ProxyHandler({}),
            urllib.request.HTTPSHandler(context=self.ca.client_context()),
            urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()),
            _UntilCallback(),
        )

    def log_in(self, scope: str, *fields: dict[str, str]) -> str:
        """The ID token of a person who fills in these forms, one after another (authorization code flow)."""
        document, browser = self.discovery(), self._browser()
        query = {
            "client_id": CLIENT_ID, "redirect_uri": REDIRECT, "response_type": "code", "scope": scope,
            "state": secrets.token_urlsafe(8), "nonce": secrets.token_urlsafe(8),
        }  # fmt: skip
        page = browser.open(f"{document['authorization_endpoint']}?{urllib.parse.urlencode(query)}")
        for answers in fields:
            form = _Form(page.read().decode())
            action = urllib.parse.urljoin(page.url, form.action)
            page = browser.open(action, urllib.parse.urlencode({**form.hidden, **answers}).encode())
        arrived = urllib.parse.parse_qs(urllib.parse.urlsplit(page.headers["Location"]).query)
        assert arrived["state"] == [query["state"]]
        form = {"grant_type": "authorization_code", "code": arrived["code"][0], "redirect_uri": REDIRECT}
        return self._token(document, form)

    def _token(self, document: dict[str, Any], form: dict[str, str]) -> str:
        basic = base64.b64encode(f"{CLIENT_ID}:{self.secret}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310  the provider of this test, on loopback
            document["token_endpoint"], urllib.parse.urlencode(form).encode(), {"Authorization": f"Basic {basic}"}
        )
        return str(json.loads(self._browser().open(request).read())["id_token"])


class _UntilCallback(urllib.request.HTTPRedirectHandler):
    """Follows redirects as a browser does, but not to the client: the answer that leads there is returned."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        return None if newurl.startswith(REDIRECT) else super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        location = urllib.parse.urljoin(req.full_url, headers["Location"])
        return fp if location.startswith(REDIRECT) else super().http_error_302(req, fp, code, msg, headers)

    http_error_303 = http_error_302


class _Form(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.hidden = "", {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form" and not self.action:
            self.action = values.get("action") or ""
        elif tag == "input" and values.get("type") == "hidden" and values.get("name"):
            self.hidden[str(values["name"])] = values.get("value") or ""


class Dex(Provider):
    """Built from its module; it makes a new key every few seconds."""

    def __init__(self, directory: Path, rotate_seconds: int) -> None:
        super().__init__(directory, "dex", "/dex")
        program = find("dex")
        assert program is not None, "python -m tests.peers.build dex"
        self.start(
            [
                program,
                self.url,
                self.certificate,
                self.key,
                CLIENT_ID,
                self.secret,
                REDIRECT,
                EMAIL,
                PASSWORD,
                str(rotate_seconds),
            ],
            directory / "dex.log",
        )

    def token(self) -> str:
        return self.log_in("openid email profile", {"login": EMAIL, "password": PASSWORD})

    def token_by_password(self) -> str:
        form = {"grant_type": "password", "username": EMAIL, "password": PASSWORD, "scope": "openid email profile"}
        return self._token(self.discovery(), form)


class CertifiedProvider(Provider):
    """npm's `oidc-provider`, with keys that the test gives and withdraws."""

    def __init__(self, directory: Path, modules: Path) -> None:
        super().__init__(directory, "oidc-provider")
        self._keys = directory / "provider-keys.json"
        self.use_keys(SigningKey.new("first", "ES256"))
        node = shutil.which("node")
        assert node is not None
        program = HERE / "oidc-provider" / "provider.mjs"
        self.start(
            [
                node,
                program,
                self.url,
                self.certificate,
                self.key,
                CLIENT_ID,
                self.secret,
                REDIRECT,
                self._keys,
                modules,
            ],
            directory / "oidc-provider.log",
        )

    def use_keys(self, *keys: SigningKey) -> None:
        """Published from the next start or signal on; the first one signs."""
        self._keys.touch(mode=0o600)
        self._keys.write_text(json.dumps({"keys": [_private_jwk(key) for key in keys]}))

    def rotate(self, *keys: SigningKey) -> None:
        self.use_keys(*keys)
        assert self.running is not None
        self.running.signal(signal.SIGHUP)
        wanted = {key.kid for key in keys}
        poll(lambda: self.kids() == wanted, 10.0, "the new keys are published")

    def token(self, name: str = "jane") -> str:
        return self.log_in("openid profile", {"login": name, "password": "any"}, {})


def _private_jwk(key: SigningKey) -> dict[str, Any]:
    number = key.private.private_numbers().private_value
    secret = base64.urlsafe_b64encode(number.to_bytes(32, "big")).rstrip(b"=").decode()
    return {**key.jwk(), "d": secret}


def certified_provider(directory: Path) -> CertifiedProvider | None:
    modules = installed("oidc-provider")
    return None if modules is None else CertifiedProvider(directory, modules)
