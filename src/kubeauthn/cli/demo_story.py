"""The demo, step by step: each says what it does, does it, and checks that it held."""

from __future__ import annotations

import sys
import time

from kubeauthn._core.authentication.release import NEWEST
from kubeauthn.cli.demo_scene import Scene
from kubeauthn.cli.explain_view import Explained, text_lines
from kubeauthn.cli.text import escaped, plural
from kubeauthn.errors import CredentialError, MissingExtra, PluginFailed, SigningUnsupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx2

    from kubeauthn.cli.demo_words import Words
    from kubeauthn.cli.look import Look
    from kubeauthn.testing import RecordedRequest

LIST = "/api/v1/namespaces"
RELOAD_SECONDS = 15.0
PROXY_SECONDS = 10.0


class Story:
    """A scene is set, and played on. What an extra is missing for is left out, and said."""

    def __init__(self, scene: Scene, words: Words, look: Look) -> None:
        self._scene = scene
        self._words = words
        self._look = look

    def tell(self) -> None:
        self._identity_provider()
        self._configuration()
        self._webhook()
        self._api_server()
        self._login()
        self._ended_login()
        bob = self._refusal()
        self._reload(bob)
        self._key_elsewhere()

    # who checks tokens

    def _identity_provider(self) -> None:
        words = self._words
        words.step("An identity provider starts: OpenID Connect, with its keys")
        issuer = self._scene.start_issuer()
        words.detail(f"{issuer.url}, on loopback as everything here")
        with words.waiting_for("its key to be made"):
            keys = issuer.jwks()["keys"]
        words.held(len(keys) == 1, "it publishes one key")
        words.try_next(
            *("migrate", "--oidc-issuer-url=https://login.example.com", "--oidc-client-id=kubernetes"),
            kept=("check", self._scene.configuration, "--online"),
        )

    def _configuration(self) -> None:
        from kubeauthn.server import load_configuration

        words, scene = self._words, self._scene
        words.step("An AuthenticationConfiguration is written: members of the team dev may log in")
        scene.configure("dev")
        for line in scene.configuration.read_text().splitlines():
            if "expression" in line or "message" in line:
                words.detail(line.strip(" -"))
        config = load_configuration(scene.configuration.read_text())
        words.held(len(config.jwt) == 1, "it is valid by the rules of kube-apiserver")
        words.try_next("schema", kept=("check", scene.configuration))

    def _webhook(self) -> None:
        from kubeauthn.cli.demo_webhook import check_installed

        words = self._words
        words.step("The webhook starts: kubeauthn serve, in a process of its own")
        try:
            check_installed()
            with words.waiting_for("the webhook"):
                webhook = self._scene.start_webhook()
        except MissingExtra as missing:
            words.leave_out(str(missing))
            words.detail("the API server below decides by the same file and the same code, without a webhook")
        else:
            words.held(webhook.url.startswith("https://127.0.0.1:"), "it listens, with TLS, and has fetched the keys")
            words.detail(webhook.url)
        words.try_next("serve", "--help")

    def _api_server(self) -> None:
        words = self._words
        asks = "that asks it about every token" if self._scene.webhook else "in place of kube-apiserver"
        words.step(f"An API server starts {asks}")
        server = self._scene.start_api_server()
        words.detail(f"{server.url}; it answers 401 to whoever it does not know")
        words.try_next("doctor", kept=("doctor", *self._as("jane")), own_kubeconfig=True)

    # who sends requests

    def _login(self) -> None:
        words, scene = self._words, self._scene
        words.step("jane logs in through an exec plugin, which gets her a token from the identity provider")
        scene.add_login("jane")
        words.detail("the plugin is a page of Python, written with the SDK; there is no token in the kubeconfig")
        with self._client("jane") as api:
            response = api.get(LIST)
            words.held(response.status_code == 200, "her request is accepted")
            words.held(self._last().user == "demo:jane", "the server knows her as demo:jane")
            names = [item["metadata"]["name"] for item in response.json()["items"]]
            words.detail(f"namespaces: {escaped(', '.join(names))}")
            words.held(api.get(LIST).status_code == 200, "and so is a second one, with the same token")
        words.held(scene.login_runs("jane") == 1, f"the plugin was run {plural(1, 'time')}")
        words.try_next("whoami", kept=("whoami", *self._as("jane")), own_kubeconfig=True)

    def _ended_login(self) -> None:
        words, scene = self._words, self._scene
        words.step("Somebody's login has ended, so the plugin fails: an error, and nothing is sent")
        scene.add_login("ended")
        before = len(scene.server.requests)
        with self._client("ended") as api:
            error = _refused(api)
        words.held(isinstance(error, PluginFailed), f"the program gets PluginFailed: {_short(error)}")
        words.held(len(scene.server.requests) == before, "the server has seen no request, not even an anonymous one")
        plugin = (sys.executable, scene.login_plugin, scene.directory / "jane")
        words.try_next("plugin", "check", "--help", kept=("plugin", "check", "--", *plugin))

    def _refusal(self) -> str:
        words, scene = self._words, self._scene
        words.step("bob has a token of the same provider, but is in the team sales: refused, and explained")
        token = scene.add_bob()
        with self._client("bob") as api:
            words.held(api.get(LIST).status_code == 401, "his request is answered 401, as ever without a reason")
        now = time.time()
        trace = scene.explain(token, now)
        for line in text_lines(Explained(trace, token, now, NEWEST), self._look):
            words.detail(line)
        words.held(trace.verdict == "refused" and "dev" in trace.reason, "the reason is the rule about the team")
        judged = ("explain", scene.earlier_configuration, "--token-file", scene.bob_token, "--online", "--show-claims")
        words.try_next("playground", kept=judged)
        return token

    def _reload(self, token: str) -> None:
        words, scene = self._words, self._scene
        words.step("The configuration is changed: sales may log in too; nothing is restarted")
        scene.configure("dev", "sales")
        with self._client("bob") as api, words.waiting_for("the change to be seen"):
            accepted = _within(RELOAD_SECONDS, lambda: api.get(LIST).status_code == 200)
        words.held(accepted, "the very same token is accepted now")
        words.held(self._last().token == token and self._last().user == "demo:bob", "the server knows him as demo:bob")
        words.try_next(
            *("cel", '"sales" in ["dev", "sales"]'),
            kept=("whoami", *self._as("bob")),
        )

    # keys that stay where they are

    def _key_elsewhere(self) -> None:
        from kubeauthn._io.tls_signer import check_support

        words, scene = self._words, self._scene
        words.step("ann's key is used by another process alone: an external signer signs the TLS handshake")
        try:
            check_support()
        except SigningUnsupported as error:
            words.leave_out(f"{error}; so is the exec proxy that would use it")
            words.detail(f"hint: {error.hint}")
            words.try_next("doctor", own_kubeconfig=True)
            return
        leaf = scene.add_key_elsewhere()
        with self._client("key-elsewhere") as api:
            words.held(api.get(LIST).status_code == 200, "her request is accepted")
        words.held(self._last().certificate_serial == leaf.serial, "the server saw her certificate, and no token")
        words.detail("the signer here is kubeauthn-signer-file; a YubiKey, a TPM or a KMS are used in the same way")
        words.try_next("signer", "doctor", kept=("whoami", *self._as("key-elsewhere")))

        words.step("The same key, and an exec proxy carries the request: its client need not know of signers")
        with words.waiting_for("kubeauthn raw, which starts the proxy"):
            command = scene.command("raw", LIST, *self._as("through-proxy"))
            code = command.run()
        for line in command.said() if code else ():
            words.detail(escaped(line))
        words.held(code == 0, "kubeauthn raw, in a process of its own, gets its answer through the proxy")
        words.held(self._last().certificate_serial == leaf.serial, "the proxy showed the server ann's certificate")
        with words.waiting_for("the proxy to end"):
            gone = command.all_gone(PROXY_SECONDS)
        words.held(gone, "the proxy has ended with the program that started it")
        words.try_next("bridge", "list", kept=("raw", LIST, *self._as("through-proxy")))

    def _as(self, context: str) -> tuple[object, ...]:
        return ("--kubeconfig", self._scene.kubeconfig, "--context", context)

    def _client(self, context: str) -> httpx2.Client:
        from kubeauthn.client import PluginPolicy, connect

        # Said outright, so that neither a kuberc nor a variable of this machine changes the story.
        return connect(context, kubeconfig=str(self._scene.kubeconfig), policy=PluginPolicy(), exec_proxy=True)

    def _last(self) -> RecordedRequest:
        return self._scene.server.requests[-1]


def _refused(api: httpx2.Client) -> CredentialError | None:
    try:
        api.get(LIST)
    except CredentialError as error:
        return error
    return None


def _short(error: CredentialError | None) -> str:
    return escaped(str(error), 160)


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    ends = time.monotonic() + seconds
    while not (held := condition()) and time.monotonic() < ends:
        time.sleep(0.1)
    return held
