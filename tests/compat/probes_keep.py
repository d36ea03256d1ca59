"""Probes: how long a credential is kept, what replaces it, and where its key and token end up."""

from __future__ import annotations

import gc
import time

from kubeauthn.testing import Leaf
from tests.compat.key_files import KeyFiles
from tests.compat.probes_run import Cells
from tests.compat.scene import Scene, Stage, wait_until
from tests.integration.adapters.driver import Client
from tests.integration.adapters.loopback_servers import redirecting_server

CALLS = 20
LIVES = (2.0, 10.0)
"""Seconds a credential holds where a probe is about its end. The second is for a machine that is very busy."""
DOES_NOT_APPLY = "–"


def at_expiry(stage: Stage) -> Cells:
    for life in LIVES:
        cells = after_life(stage, life)
        if cells is not None:
            return cells
    raise RuntimeError(f"two first calls took longer than {LIVES[-1]} s")


def after_life(stage: Stage, life: float) -> Cells | None:
    """A token and a certificate in two scenes, so that one wait serves both. None: they ended too early."""
    with stage.scene() as tokens, stage.scene() as certificates:
        old, new = (certificates.server.ca.issue_client(name) for name in ("old", "new"))
        first_end = time.time() + life
        tokens.reply(token="one", expires_in=life)
        tokens.use()
        with tokens.client() as client:
            token_taken = client.list_namespaces().status == 200
            certificates.reply(certificate=old, expires_in=life)
            certificates.use()
            last_end = time.time() + life
            with certificates.client() as rotated:
                certificate_taken = rotated.list_namespaces().status == 200
                if time.time() > first_end:
                    return None
                need(token_taken, "the first token was not taken")
                wait_until(last_end + 0.05)
                cells = after_expiry(tokens, client)
                cells["rotation"] = after_rotation(certificates, rotated, old, new) if certificate_taken else "no"
        cells["certificate"] = "used" if certificate_taken else "an error"
        return cells


def after_expiry(scene: Scene, client: Client) -> Cells:
    scene.reply(token="two", expires_in=3600)
    scene.plugin.delay(0.3)  # so that many find it running
    before = scene.plugin.runs
    outcomes = client.list_in_parallel(CALLS)
    need(all(outcome.status == 200 for outcome in outcomes), f"calls at expiry: {outcomes}")
    refreshed = {each.token for each in scene.listings()[-CALLS:]} == {"two"}
    return {
        "expiry": "yes" if refreshed else "no",
        "parallel at expiry": runs_in_words(scene.plugin.runs - before) if refreshed else DOES_NOT_APPLY,
    }


def runs_in_words(runs: int) -> str:
    """Not how many: that changes from run to run."""
    return {0: "no run", 1: "one run"}.get(runs, "several runs")


def after_rotation(scene: Scene, client: Client, old: Leaf, new: Leaf) -> str:
    scene.reply(certificate=new, expires_in=3600)
    client.list_namespaces()
    if scene.listings()[-1].certificate_serial == new.serial:
        return "at expiry"
    scene.server.revoke_serial(old.serial)
    client.list_namespaces()
    client.list_namespaces()
    return "only after a 401" if scene.listings()[-1].certificate_serial == new.serial else "no"


def four_minute_token(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one", expires_in=240)
        scene.use()
        with scene.client() as client:
            for _ in range(5):
                need(client.list_namespaces().status == 200, "a call with a token of four minutes failed")
        return {"four minutes": "a run for each call" if scene.plugin.runs >= 5 else runs_in_words(scene.plugin.runs)}


def unauthorized(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one")
        scene.use()
        with scene.client() as client:
            need(client.list_namespaces().status == 200, "the first token was not taken")
            seen = len(scene.server.requests)
            scene.reply(token="two")
            scene.server.accept_only("two")
            statuses = [client.list_namespaces().status, client.list_namespaces().status]
        was_refused = any(each.token == "one" for each in scene.server.requests[seen:])
        if statuses[0] == 200:
            return {"401": "yes, same call" if was_refused else "runs before each call"}
        return {"401": "yes, next call" if statuses[1] == 200 else "never"}


def parallel_unauthorized(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one")
        scene.use()
        with scene.client() as client:
            need(client.list_namespaces().status == 200, "the first token was not taken")
            scene.reply(token="two")
            scene.server.accept_only("two")
            scene.server.delay(0.2)  # so that many are on their way when the first is refused
            before = scene.plugin.runs
            outcomes = client.list_in_parallel(CALLS)
            runs = scene.plugin.runs - before
        answered = [outcome.status for outcome in outcomes]
        if not runs and set(answered) == {401}:
            return {"parallel 401": DOES_NOT_APPLY}
        return {"parallel 401": runs_in_words(runs) if set(answered) == {200} else "calls fail"}


def forbidden(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one")
        scene.use()
        with scene.client() as client:
            need(client.list_namespaces().status == 200, "the first token was not taken")
            start = scene.plugin.runs
            need(client.list_namespaces().status == 200, "the second call failed")
            anyway = scene.plugin.runs - start  # a client may run it for each call, whatever the answer
            scene.server.forbidden()
            need(client.list_namespaces().status == 403, "the call was not forbidden")
        return {"403": runs_in_words(scene.plugin.runs - start - 2 * anyway)}


def token_and_certificate(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one", certificate=scene.server.ca.issue_client("jane"))
        scene.use()
        need(scene.call().status == 200, "a token with a certificate was not taken")
        request = scene.listings()[-1]
        used = (request.token is not None, request.certificate_serial is not None)
        return {"both": {(True, True): "both", (True, False): "certificate dropped"}.get(used, "token dropped")}


def key_on_disk(stage: Stage) -> Cells:
    """The key that a plugin returned, and the one in a kubeconfig."""
    cells = {}
    for row in ("plugin's key", "kubeconfig's key"):
        with stage.scene() as scene, KeyFiles() as files:
            leaf = scene.server.ca.issue_client("jane")
            scene.reply(certificate=leaf)
            if row == "plugin's key":
                scene.use()
            else:
                scene.use_user(leaf.kubeconfig_user())
            worked = certificate_works(scene, files)
            gc.collect()  # the client is gone, and with it what it holds
            stage.left_by_probe[row] = files.look()
            cells[row] = files.in_words() if worked else DOES_NOT_APPLY
    return cells


def certificate_works(scene: Scene, files: KeyFiles) -> bool:
    """In a function of its own: when it returns, nobody holds the client any more."""
    with scene.client() as client:
        worked = client.list_namespaces().status == 200
        files.look()
        return worked


class SentOn(dict[str, str]):
    """Every path leads to the same one at another server."""

    def __init__(self, server: str) -> None:
        self._server = server

    def get(self, path: str, default: object = None) -> str:
        return self._server + path


def redirected(stage: Stage) -> Cells:
    """The server of the kubeconfig sends the client on to another one, which notes what it is shown."""
    shown = []
    for what in ("token", "certificate"):
        with stage.scene() as scene:
            if what == "token":
                scene.reply(token="one")
            else:
                scene.reply(certificate=scene.server.ca.issue_client("jane"))
            with redirecting_server(scene.server.ca, SentOn(scene.server.url)) as (url, asked):
                scene.use(cluster={"server": url})
                scene.call()
                need(bool(asked) or what == "certificate", "the redirecting server was not asked")
            tokens = [each.token for each in scene.server.requests]
            certificates = [each.certificate_serial for each in scene.server.connections]
            if any((*tokens, *certificates)):
                shown.append(what)
    return {"redirect": " and ".join(shown) or "no"}


def need(true: bool, otherwise: str) -> None:
    """What a probe stands on. Without it there is nothing to measure, and the column fails."""
    if not true:
        raise RuntimeError(otherwise)


PROBES = (
    at_expiry,
    four_minute_token,
    unauthorized,
    parallel_unauthorized,
    forbidden,
    token_and_certificate,
    key_on_disk,
    redirected,
)
