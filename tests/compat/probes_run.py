"""Probes: whether the plugin is run, what it is told, and what happens when it does not deliver.

A probe returns the cells of one or more rows, in words that are the same in every run.
"""

from __future__ import annotations

import json
import logging
import os
import traceback
from pathlib import Path
from typing import Any

from kubeauthn.testing import PluginDirectory
from tests.compat.scene import V1, V1BETA1, Scene, Stage
from tests.integration.adapters.driver import Outcome

Cells = dict[str, str]

ANONYMOUS = "goes on anonymously"
INSTALL_HINT = "get kube-login from the shop"
SLOW_PLUGIN = """\
echo $$ >{pid}
sleep 2.5
touch {finished}
cat {reply}
"""


class LogTexts(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def versions(stage: Stage) -> Cells:
    """Runs first: the other probes speak a version that the library takes."""
    cells = {}
    for row, version in (("v1beta1", V1BETA1), ("v1", V1)):
        stage.api_version = version
        with stage.scene() as scene:
            scene.reply(token="one")
            scene.use()
            cells[row] = "yes" if scene.call().status == 200 else "refused"
    if cells["v1"] != "yes":
        stage.api_version = V1BETA1
    return cells


def failing_plugin(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.plugin.fail(1)
        scene.use()
        return {"fails": without_credential(scene, scene.call())}


def missing_plugin(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.use(command=str(scene.folder / "not-there"), installHint=INSTALL_HINT)
        log = LogTexts()
        logging.getLogger().addHandler(log)
        try:
            outcome = scene.call()
        finally:
            logging.getLogger().removeHandler(log)
        told = [*log.texts, *(traceback.format_exception(outcome.error) if outcome.error else ())]
        return {
            "missing": without_credential(scene, outcome),
            "install hint": "shown" if any(INSTALL_HINT in text for text in told) else "not shown",
        }


def without_credential(scene: Scene, outcome: Outcome) -> str:
    if scene.anonymous():
        return ANONYMOUS
    if outcome.error is not None and not scene.server.requests:
        return "an error, nothing is sent"
    return f"{outcome.status or 'an error'}, and requests were sent"


def slow_plugin(stage: Stage) -> Cells:
    """It would answer after 2.5 s. kubeauthn is given a limit of one second, the libraries have no such option."""
    with stage.scene() as scene:
        pid, finished, reply = (scene.folder / name for name in ("pid", "finished", "slow-reply"))
        credential = {"apiVersion": stage.api_version, "kind": "ExecCredential", "status": {"token": "one"}}
        reply.write_text(json.dumps(credential))
        script = SLOW_PLUGIN.format(pid=pid, finished=finished, reply=reply)
        scene.use(command=str(PluginDirectory(scene.folder / "slow").script("plugin", script)))
        outcome = scene.call(ours={"plugin_timeout": 1})
        if finished.exists():
            return {"time limit": "waits"}
        if outcome.error is None or scene.server.requests:
            return {"time limit": "goes on without it"}
        if not pid.exists():
            raise RuntimeError("the slow plugin was not started") from outcome.error
        return {"time limit": "still running" if is_running(pid) else "ended"}


def is_running(pid: Path) -> bool:
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def exec_info(stage: Stage) -> Cells:
    """The CA is a file, as minikube writes it: the plugin may not be able to read that path."""
    with stage.scene() as scene:
        ca = scene.folder / "ca.crt"
        ca.write_bytes(scene.server.ca.certificate_pem)
        scene.reply(token="one")
        scene.use(
            provideClusterInfo=True,
            cluster={
                "certificate-authority-data": None,
                "certificate-authority": str(ca),
                "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": "blue"}}],
            },
        )
        scene.call()
        variable = "KUBERNETES_EXEC_INFO" in scene.plugin.environment()
        info = scene.plugin.exec_info() if variable else {}
        cluster = info.get("spec", {}).get("cluster", {})
        return {
            "exec info": "set" if variable else "not set",
            "cluster info": cluster_info(cluster),
        }


def cluster_info(cluster: dict[str, Any]) -> str:
    if not cluster:
        return "absent"
    if "certificate-authority-data" not in cluster:
        return "CA as a path" if "certificate-authority" in cluster else "without the CA"
    return "complete" if cluster.get("config") == {"audience": "blue"} else "without `config`"


def null_fields(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one")
        user: dict[str, Any] = {"exec": {**scene.plugin.exec_entry(apiVersion=stage.api_version), "env": None}}
        user["exec"]["args"] = None
        scene.use_user(user)
        return {"null fields": "as if absent" if scene.call().status == 200 else "an error"}


def relative_command(stage: Stage) -> Cells:
    with stage.scene() as scene:
        scene.reply(token="one")
        scene.use(command="./bin/plugin")
        return {"relative command": "yes" if scene.call().status == 200 else "not found"}


def always_interactive(stage: Stage) -> Cells:
    """Standard input of this process is no terminal."""
    with stage.scene() as scene:
        scene.reply(token="one")
        scene.use(interactiveMode="Always")
        outcome = scene.call()
        return {"interactive": refused_or_ignored(scene, outcome)}


def denied_by_policy(stage: Stage) -> Cells:
    kuberc = Path.home() / ".kube" / "kuberc"
    kuberc.parent.mkdir(exist_ok=True)
    kuberc.write_text("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n")
    try:
        with stage.scene() as scene:
            scene.reply(token="one")
            scene.use()
            return {"policy": refused_or_ignored(scene, scene.call())}
    finally:
        kuberc.unlink()


def refused_or_ignored(scene: Scene, outcome: Outcome) -> str:
    if scene.plugin.runs:
        return "ignored"
    return "refused" if outcome.error is not None and not scene.server.requests else without_credential(scene, outcome)


def metrics(stage: Stage) -> Cells:
    from prometheus_client import REGISTRY

    if stage.ours:
        from kubeauthn.client import prometheus

        prometheus.install()
    with stage.scene() as scene:
        scene.reply(token="one")
        scene.use()
        scene.call()
    # that of proxy plugins is our own: client-go has no such plugins
    named = [family.name for family in REGISTRY.collect() if "exec_plugin" in family.name]
    found = [name for name in named if "with_proxy" not in name]
    runs = REGISTRY.get_sample_value("rest_client_exec_plugin_call_total", {"code": "0", "call_status": "no_error"})
    return {"metrics": {0: "none", 4: "all four"}.get(len(found), "some") if runs == 1 or not found else "wrong"}


def several_files(stage: Stage) -> Cells:
    """Two files, each with a context of its own as the current one."""
    with stage.scene() as first, stage.scene() as second:
        paths = []
        for scene in (first, second):
            name = scene.folder.name
            path = scene.folder / "config"
            scene.server.write_kubeconfig(
                path, {"token": "one"}, context_name=f"c{name}", cluster_name=f"k{name}", user_name=f"u{name}"
            )
            paths.append(path)
        first.use_files(*paths)
        status = first.call().status
        if status != 200:
            return {"several files": "takes one file only"}
        return {"several files": "the first's" if first.server.requests else "the last's"}


PROBES = (
    versions,
    failing_plugin,
    missing_plugin,
    slow_plugin,
    exec_info,
    null_fields,
    relative_command,
    always_interactive,
    denied_by_policy,
    metrics,
    several_files,
)
