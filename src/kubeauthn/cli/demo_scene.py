"""The stage of `kubeauthn demo`: identity provider, webhook, API server, people, and one directory for it all."""

from __future__ import annotations

import json
import os
import shlex
import sys
import sysconfig
from contextlib import ExitStack, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import kubeauthn
from kubeauthn._core.execwire import V1
from kubeauthn._core.kubeconfig.model import EXEC_PROXY_EXTENSION
from kubeauthn.cli.demo_command import Command
from kubeauthn.cli.demo_files import LAUNCHER, LOGIN_PLUGIN, configuration_text
from kubeauthn.cli.demo_webhook import Shield, Webhook
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing import ApiServer, Issuer, Leaf, User

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from kubeauthn._core.authentication.trace import Trace

LAST_SECONDS = 15.0
REFRESH_TOKENS = {"jane": "jane-may-come-back", "ended": "this-login-has-ended"}


class Scene:
    """Use it as a context manager: nothing of it is left when it ends. The directory is the owner's alone."""

    def __init__(self, environ: Mapping[str, str], shield: Shield = nullcontext) -> None:
        self._stack = ExitStack()
        self._shield = shield
        self._environ = environ
        self._users: dict[str, dict[str, Any]] = {}
        self.webhook: Webhook | None = None

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            with self._shield():
                self.directory = Path(stack.enter_context(TemporaryDirectory(prefix="kubeauthn-demo-")))
            self.run_directory = self.directory / "run"
            self.run_directory.mkdir(mode=0o700)
            self.configuration = self.directory / "authentication.yaml"
            self.earlier_configuration = self.directory / "authentication.before.yaml"
            self.kubeconfig = self.directory / "kubeconfig"
            self.bob_token = self.directory / "bob.token"
            self.login_plugin = self._write("login-plugin.py", LOGIN_PLUGIN)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    # the servers, in the order in which they need each other

    def start_issuer(self) -> Issuer:
        self.issuer = self._stack.enter_context(Issuer())
        self.issuer.accept_refresh_token(REFRESH_TOKENS["jane"], "jane", team="dev")
        self._write("issuer-ca.crt", self.issuer.ca.certificate_pem.decode())
        return self.issuer

    def configure(self, *teams: str) -> None:
        """Let these teams in. The file is replaced as an editor does it; the one before is kept beside it."""
        text = configuration_text(self.issuer.url, self.issuer.ca.certificate_pem.decode(), teams)
        if self.configuration.exists():
            os.replace(self.configuration, self.earlier_configuration)
        os.replace(self._write("authentication.yaml.new", text), self.configuration)

    def start_webhook(self) -> Webhook:
        webhook = Webhook(self.configuration, self.directory, self._child_environment())
        self._stack.callback(webhook.stop)  # first, so that it is also ended if it is interrupted at its start
        webhook.start(self._shield)
        self.webhook = webhook
        return webhook

    def start_api_server(self) -> ApiServer:
        if self.webhook is None:
            server = ApiServer(token_review=self.decide)
        else:
            server = ApiServer(token_review=self.webhook.url, token_review_ca=self.webhook.ca)
        self.server = self._stack.enter_context(server)
        return self.server

    def decide(self, token: str) -> User | None:
        """Without a webhook: the same decision by the same file, made here."""
        from kubeauthn.errors import NotMine, TokenError

        try:
            user = self._authenticator().authenticate(token)
        except (NotMine, TokenError):
            return None
        return User(user.username, tuple(user.groups), user.uid)

    def explain(self, token: str, now: float) -> Trace:
        """With what each rule saw, which is the point of it; the claims as a whole are left out."""
        return self._authenticator().explain(token, now, show_claims=True)._replace(claims=None)

    def _authenticator(self) -> Authenticator:
        config = load_configuration(self.configuration.read_text())
        return Authenticator(config, keys={self.issuer.url: self.issuer.jwks()})

    # the people

    def add_login(self, name: str) -> None:
        """A user who logs in through the exec plugin."""
        home = self.directory / name
        home.mkdir(mode=0o700)
        settings = {
            "token_endpoint": f"{self.issuer.url}/token",
            "client_id": self.issuer.client_id,
            "refresh_token": REFRESH_TOKENS[name],
            "ca": str(self.directory / "issuer-ca.crt"),
        }
        self._write(f"{name}/login.json", json.dumps(settings))
        self._add(name, {"exec": self._exec(sys.executable, [str(self.login_plugin), str(home)])})

    def login_runs(self, name: str) -> int:
        log = self.directory / name / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def add_bob(self) -> str:
        """A user with a token in a file. Returns it."""
        token = self.issuer.token("bob", team="sales")
        self._write("bob.token", token)
        self._add("bob", {"tokenFile": str(self.bob_token)})
        return token

    def bob_claims(self) -> str:
        return json.dumps({"iss": self.issuer.url, "aud": self.issuer.client_id, "sub": "bob", "team": "sales"})

    def add_key_elsewhere(self) -> Leaf:
        """ann's certificate is shown by whoever asks the signer; the key is read by the signer alone."""
        leaf = self.server.ca.issue_client("ann", ["hardware"])
        self._write("ann.key", leaf.key_pem.decode())
        self._write("ann.crt", leaf.chain_pem.decode())
        signer = {
            "pathExec": self._program("kubeauthn-signer-file", "kubeauthn.plugins.signer_file"),
            "pathKey": str(self.directory / "ann.key"),
            "pathCert": str(self.directory / "ann.crt"),
            "allowPlainKey": "true",
        }
        self._add("key-elsewhere", {"auth-provider": {"name": "externalSigner", "config": signer}})
        proxy = self._program("kubeauthn-proxy-tls", "kubeauthn.plugins.proxy_tls")
        settings = [word for key, value in signer.items() for word in ("--signer", f"{key}={value}")]
        through = {
            "exec": {**self._exec(proxy, settings), "provideClusterInfo": True},
            "extensions": [{"name": EXEC_PROXY_EXTENSION, "extension": {"enabled": True}}],
        }
        self._add("through-proxy", through)
        return leaf

    def command(self, *words: object) -> Command:
        """A kubeauthn command to be run in another process."""
        here = str(self.run_directory)
        environment = {**self._child_environment(), "XDG_RUNTIME_DIR": here, "TMPDIR": here}
        environment |= {"KUBERC": "off", "KUBEAUTHN_EXEC_PROXY": "1"}  # what this machine has is no part of the story
        command = Command(words, environment, self._shield)
        self._stack.callback(command.all_gone, LAST_SECONDS)  # a proxy whose client was interrupted ends by itself
        return command

    # files and programs

    def _add(self, name: str, user: dict[str, Any]) -> None:
        self._users[name] = user
        document = self.server.kubeconfig(context_name="jane", cluster_name="demo", user_name="jane")
        document["contexts"] = [{"name": name, "context": {"cluster": "demo", "user": name}} for name in self._users]
        document["users"] = [{"name": name, "user": user} for name, user in self._users.items()]
        self._write("kubeconfig", json.dumps(document, indent=2))

    def _exec(self, command: str, arguments: list[str]) -> dict[str, Any]:
        names = ("PYTHONPATH", "XDG_RUNTIME_DIR", "TMPDIR")
        environment = {**self._child_environment(), **dict.fromkeys(names[1:], str(self.run_directory))}
        return {
            "apiVersion": V1,
            "command": command,
            "args": arguments,
            "env": [{"name": name, "value": environment[name]} for name in names],
            "interactiveMode": "Never",
        }

    def _child_environment(self) -> dict[str, str]:
        # The package may be running from a place that a fresh interpreter would not find.
        search = (_found_at(), self._environ.get("PYTHONPATH", ""))
        environment = {**self._environ, "PYTHONPATH": os.pathsep.join(part for part in search if part)}
        for name in ("NO_PROXY", "no_proxy"):  # loopback is not reached through the company's proxy
            environment[name] = ",".join(part for part in (self._environ.get(name, ""), "127.0.0.1") if part)
        return environment

    def _program(self, name: str, module: str) -> str:
        """The installed command; where there is none, a small one of the demo's own that starts the same code."""
        installed = os.path.join(sysconfig.get_path("scripts"), name)
        if os.access(installed, os.X_OK):
            return installed
        script = self._write(f"{name}.py", LAUNCHER.format(found_at=_found_at(), module=module))
        line = shlex.join([sys.executable, str(script)])
        launcher = self._write(name, f'#!/bin/sh\nexec {line} "$@"\n')
        launcher.chmod(0o700)
        return str(launcher)

    def _write(self, name: str, text: str) -> Path:
        path = self.directory / name
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        return path


def _found_at() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(kubeauthn.__file__)))
