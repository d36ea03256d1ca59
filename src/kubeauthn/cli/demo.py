"""Run the main job end to end on this machine: an API server, a credential plugin, and requests that need it.

Everything happens on loopback and in a temporary directory; nothing is left behind.
"""

from __future__ import annotations

import time

from kubeauthn.cli import failure
from kubeauthn.cli.text import escaped, plural
from kubeauthn.errors import CredentialError, EnvironmentFailure, PluginDenied, PluginFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    import httpx2

    from kubeauthn.cli.demo_scene import DemoPlugin, Scene
    from kubeauthn.cli.world import World

HELP = "the whole thing end to end on this machine"

LIST = "/api/v1/namespaces"
TOKEN_SECONDS = 4
"""Long enough for a slow machine to start the plugin, short enough to wait for."""


def add_arguments(parser: ArgumentParser) -> None:
    """It takes none."""


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.cli.demo_scene import scene
    from kubeauthn.cli.log import show_warnings

    show_warnings(world)
    with scene() as stage:
        _Demo(stage, world).play()
    return failure.YES


class _Demo:
    """Each step says what it does, does it, and checks that it held."""

    def __init__(self, stage: Scene, world: World) -> None:
        self._stage = stage
        self._server = stage.server
        self._world = world
        self._number = 0

    def play(self) -> None:
        self._step("An API server is started")
        self._detail(f"{self._server.url}, with TLS; it answers 401 to whoever it does not know")
        self._token_steps()
        self._certificate_steps()
        self._refusal_steps()
        self._world.say()
        self._world.say("Every step held. What to try next, with a kubeconfig of your own:")
        for command in ("doctor", "whoami", "raw /api/v1/namespaces", "credential", "plugin check -- COMMAND"):
            self._world.say(f"  {self._world.program} {command}")

    def _token_steps(self) -> None:
        from kubeauthn.client import PluginPolicy, connect

        tokens = [f"demo-token-{number}" for number in (1, 2, 3)]
        plugin = self._stage.plugin("token-plugin")
        server = self._server

        self._step("A kubeconfig is written whose user is an exec plugin, a few lines of Python")
        kubeconfig = self._stage.kubeconfig(plugin)
        self._detail("users[0].user.exec.command is the plugin; there is no token in the file")

        server.accept_token(tokens[0], user="jane", groups=["demo"])
        expires_at = int(time.time()) + TOKEN_SECONDS
        plugin.give_token(tokens[0], expires_at)
        with connect("demo", kubeconfig=kubeconfig, policy=PluginPolicy()) as api:
            self._step("connect() lists the namespaces; the plugin is run for the token")
            response = api.get(LIST)
            self._held(response.status_code == 200, "the server answers 200")
            self._held(server.requests[-1].user == "jane", "the server sees the user jane")
            names = [item["metadata"]["name"] for item in response.json()["items"]]
            self._detail(f"namespaces: {escaped(', '.join(names))}")
            self._runs(plugin, 1)

            self._step("A second request uses the same token")
            self._held(api.get(LIST).status_code == 200, "the server answers 200")
            self._runs(plugin, 1)

            self._step("The token expires, so the plugin is run once more")
            server.accept_only(tokens[1], user="jane")
            plugin.give_token(tokens[1])
            _wait_until(expires_at + 0.1)
            self._held(api.get(LIST).status_code == 200, "the server answers 200")
            self._held(server.requests[-1].token == tokens[1], "the new token was sent")
            self._runs(plugin, 2)

            self._step("The server no longer takes the token: one refresh, and the request is repeated")
            server.accept_only(tokens[2], user="jane")
            plugin.give_token(tokens[2])
            before = len(server.requests)
            self._held(api.get(LIST).status_code == 200, "the caller sees only the 200")
            users = [request.user for request in server.requests[before:]]
            self._held(users == [None, "jane"], "the server saw the 401 and the repeated request")
            self._runs(plugin, 3)

    def _certificate_steps(self) -> None:
        from kubeauthn.client import PluginPolicy, connect

        plugin = self._stage.plugin("certificate-plugin")
        server = self._server
        first, second = (server.ca.issue_client("joe", ["demo"]) for _ in range(2))
        plugin.give_certificate(first)
        with connect("demo", kubeconfig=self._stage.kubeconfig(plugin), policy=PluginPolicy()) as api:
            self._step("Another plugin returns a client certificate")
            self._held(api.get(LIST).status_code == 200, "the server answers 200")
            self._held(self._last_serial() == first.serial, "the server sees the certificate of joe")
            old = server.requests[-1].connection_id

            self._step("The certificate is revoked and replaced while the program runs")
            server.revoke_serial(first.serial)
            plugin.give_certificate(second)
            self._held(self._ok_after_rotation(api), "the server answers 200")
            self._held(self._last_serial() == second.serial, "the server sees the new certificate")
            self._held(server.requests[-1].connection_id != old, "on a new connection")
            server.wait_for(lambda: all(not c.is_open for c in server.connections if c.id == old))
            self._held(True, "and the old connection is closed")
            self._runs(plugin, 2)

    def _refusal_steps(self) -> None:
        from kubeauthn.client import PluginPolicy, connect

        plugin = self._stage.plugin("failing-plugin")
        kubeconfig = self._stage.kubeconfig(plugin)
        plugin.refuse("your login has ended")

        self._step("A plugin fails: an error, and nothing is sent")
        before = len(self._server.requests)
        with connect("demo", kubeconfig=kubeconfig, policy=PluginPolicy()) as api:
            error = _refused(api)
        self._held(isinstance(error, PluginFailed), f"the program gets PluginFailed: {_short(error)}")
        self._held(len(self._server.requests) == before, "the server has seen no request")
        self._runs(plugin, 1)

        self._step("A plugin that is not on the allowlist is not run at all")
        policy = PluginPolicy("Allowlist", ("/usr/bin/some-other-plugin",))
        with connect("demo", kubeconfig=kubeconfig, policy=policy) as api:
            error = _refused(api)
        self._held(isinstance(error, PluginDenied), f"the program gets PluginDenied: {_short(error)}")
        self._held(len(self._server.requests) == before, "the server has seen no request")
        self._runs(plugin, 1)

    def _ok_after_rotation(self, api: httpx2.Client) -> bool:
        return api.get(LIST).status_code == 200

    def _last_serial(self) -> int | None:
        return self._server.requests[-1].certificate_serial

    def _step(self, title: str) -> None:
        self._number += 1
        self._world.say(f"{self._number}. {title}")
        self._world.stdout.flush()  # before the plugin says something of its own

    def _detail(self, text: str) -> None:
        self._world.say(f"     {text}")

    def _runs(self, plugin: DemoPlugin, expected: int) -> None:
        self._held(plugin.runs == expected, f"the plugin was run {plural(expected, 'time')} so far")

    def _held(self, condition: bool, claim: str) -> None:
        if not condition:
            raise EnvironmentFailure(f"step {self._number} of the demo did not hold: {claim}")
        self._world.say(f"  ok {claim}")
        self._world.stdout.flush()


def _refused(api: httpx2.Client) -> CredentialError | None:
    try:
        api.get(LIST)
    except CredentialError as error:
        return error
    return None


def _short(error: CredentialError | None) -> str:
    return escaped(str(error), 160)


def _wait_until(moment: float) -> None:
    while (left := moment - time.time()) > 0:
        time.sleep(min(left, TOKEN_SECONDS + 1))
