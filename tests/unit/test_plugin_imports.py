"""A plugin is started by every kubectl call: what it does not use is not imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from kubeauthn._core import execwire
from kubeauthn._core.kubeconfig.model import Cluster

HEAVY = {
    "argparse",
    "asyncio",
    "cryptography",
    "dataclasses",
    "hashlib",
    "httpx2",
    "inspect",
    "logging",
    "socket",
    "ssl",
    "subprocess",
    "threading",
    "typing",
    "yaml",
}

PLUGIN = """
import atexit, sys
from kubeauthn.plugin import credential
atexit.register(lambda: sys.stderr.write("\\n".join(sys.modules)))
credential.run(lambda request: {answer})
"""

TOKEN = 'credential.Token("t", expires_in=60)'
CERTIFICATE = 'credential.Certificate("-----BEGIN CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----", expires_in=60)'


def modules_of(answer: str) -> set[str]:
    cluster = Cluster(server="https://127.0.0.1:6443", config='{"audience":"x"}')
    info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster)
    result = subprocess.run(
        # -I: what a developer's environment or the tests' own folder would add is not the plugin's.
        [sys.executable, "-I", "-c", PLUGIN.format(answer=answer)],
        env={**os.environ, execwire.VARIABLE: info},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["status"]
    return set(result.stderr.split())


@pytest.mark.parametrize("answer", [TOKEN, CERTIFICATE], ids=["token", "certificate"])
def test_a_plugin_loads_nothing_heavy(answer: str):
    loaded = modules_of(answer)
    assert "kubeauthn.plugin.credential" in loaded
    assert not loaded & HEAVY


def test_only_a_function_that_asks_for_the_cluster_pays_for_it():
    assert not modules_of(f"request.cluster_config and {TOKEN}") & HEAVY
    assert "kubeauthn._core.kubeconfig.model" in modules_of(f"request.cluster and {TOKEN}")


def test_the_packages_above_load_nothing_at_all():
    program = "import sys, kubeauthn.plugin; print(*(name for name in sys.modules if name.startswith('kubeauthn')))"
    result = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["kubeauthn", "kubeauthn.plugin"]
