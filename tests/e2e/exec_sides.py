"""One kubeconfig and one plugin, run by client-go (`tests/peers/execprobe`) and by us: what each side did and saw."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubeauthn.client import connect
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.errors import KubeauthnError
from kubeauthn.testing import ApiServer, CertificateAuthority, ScriptedPlugin
from tests.peers import find

__all__ = ["CREDENTIAL", "REPLIES", "Scene", "Seen", "run_ours", "run_theirs"]

LIST = "/api/v1/namespaces"
CREDENTIAL = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential"'
MARK = "getting credentials: "


@dataclass(frozen=True)
class Seen:
    """What one side did: outcomes of the requests, runs of the plugin, what the plugin and the server saw."""

    outcomes: list[str]
    runs: int
    arguments: list[str]
    exec_info: Any
    own_variable: str | None
    requests: list[tuple[str, str | None, int | None]]


def run_theirs(kubeconfig: Path, paths: list[str]) -> list[str]:
    program = find("execprobe")
    assert program is not None
    done = subprocess.run(
        [program, kubeconfig, *paths], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=True
    )
    outcomes = []
    for line in done.stdout.splitlines():
        answer = json.loads(line)
        error = str(answer.get("error", ""))
        outcomes.append(str(answer["status"]) if "status" in answer else error.rpartition(MARK)[2])
    return outcomes


def run_ours(kubeconfig: Path, paths: list[str]) -> list[str]:
    forget_shared_sources()
    outcomes: list[str] = []
    try:
        with connect(kubeconfig=str(kubeconfig), retry_unauthorized=False) as api:
            for path in paths:
                try:
                    outcomes.append(str(api.get(path).status_code))
                except KubeauthnError as error:
                    outcomes.append(str(error))
    except KubeauthnError as error:
        outcomes.append(str(error))
    return outcomes


class Scene:
    """A server and a plugin, fresh for each side."""

    def __init__(self, directory: Path) -> None:
        self.ca = CertificateAuthority()
        self.directory = directory

    def play(self, side: Any, order: Any, requests: int = 1, **entry: Any) -> Seen:
        name = side.__name__
        folder = self.directory / name
        folder.mkdir()
        plugin = ScriptedPlugin(folder / "plugin")
        with ApiServer(tokens={"good": "jane"}, ca=self.ca) as server:
            order(plugin)
            file = folder / "config"
            server.write_kubeconfig(file, {"exec": {**plugin.exec_entry(), **entry}})
            outcomes = side(file, [LIST] * requests)
            seen = [(request.path, request.token, request.certificate_serial) for request in server.requests]
            url = server.url
        ran = plugin.runs > 0
        info = plugin.exec_info() if ran else None
        if info and "cluster" in info["spec"]:
            info["spec"]["cluster"]["server"] = info["spec"]["cluster"]["server"].replace(url, "URL")
            info["spec"]["cluster"].pop("certificate-authority-data", None)  # each server has its own
            if info["spec"]["cluster"].get("config", ...) is None:
                del info["spec"]["cluster"]["config"]  # client-go writes null where there is none, we leave it out
        texts = [text.replace(str(folder), "FOLDER") for text in outcomes]
        variables = plugin.environment() if ran else {}
        return Seen(texts, plugin.runs, plugin.arguments() if ran else [], info, variables.get("REALM"), seen)


REPLIES: dict[str, Any] = {
    "token": lambda plugin: plugin.reply(token="good"),
    "token that is refused": lambda plugin: plugin.reply(token="bad"),
    "no status": lambda plugin: plugin.raw(CREDENTIAL + "}"),
    "empty status": lambda plugin: plugin.raw(CREDENTIAL + ',"status":{}}'),
    "only a certificate": lambda plugin: plugin.raw(CREDENTIAL + ',"status":{"clientCertificateData":"x"}}'),
    "only a key": lambda plugin: plugin.raw(CREDENTIAL + ',"status":{"token":"good","clientKeyData":"x"}}'),
    "another version": lambda plugin: plugin.reply(token="good", api_version="client.authentication.k8s.io/v1beta1"),
    "exit code": lambda plugin: plugin.fail(3),
}
