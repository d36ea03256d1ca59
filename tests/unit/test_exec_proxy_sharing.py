"""Which clients of a process share one local proxy: KEP-2718's "Caching"."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecOptions, forget_shared_sources, shared_exec_source

CONFIG = ExecConfig(command="proxy", api_version="client.authentication.k8s.io/v1")
CLUSTER = Cluster(server="https://kube.test")
PROXIES = ExecOptions(exec_proxy=True)


@pytest.fixture(autouse=True)
def nothing_shared() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


def test_another_way_to_the_server_is_another_proxy(monkeypatch: pytest.MonkeyPatch):
    straight = shared_exec_source(CONFIG, CLUSTER, PROXIES)
    assert shared_exec_source(CONFIG, CLUSTER, PROXIES) is straight
    monkeypatch.setenv("HTTPS_PROXY", "http://one.test:3128")
    one = shared_exec_source(CONFIG, CLUSTER, PROXIES)
    assert one is not straight
    monkeypatch.setenv("HTTPS_PROXY", "http://two.test:3128")
    assert shared_exec_source(CONFIG, CLUSTER, PROXIES) not in (straight, one)
    monkeypatch.setenv("NO_PROXY", "kube.test")  # what counts is the way that is taken
    assert shared_exec_source(CONFIG, CLUSTER, PROXIES) is straight
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.setenv("HTTPS_PROXY", "gopher://three.test")
    assert shared_exec_source(CONFIG, CLUSTER, PROXIES) not in (straight, one)


def test_another_cluster_or_entry_is_another_proxy():
    first = shared_exec_source(CONFIG, CLUSTER, PROXIES)
    assert shared_exec_source(CONFIG, Cluster(server="https://other.test"), PROXIES) is not first
    assert (
        shared_exec_source(ExecConfig(command="other", api_version=CONFIG.api_version), CLUSTER, PROXIES) is not first
    )


def test_a_credential_does_not_depend_on_the_way(monkeypatch: pytest.MonkeyPatch):
    first = shared_exec_source(CONFIG, CLUSTER, ExecOptions())
    monkeypatch.setenv("HTTPS_PROXY", "http://one.test:3128")
    assert shared_exec_source(CONFIG, CLUSTER, ExecOptions()) is first
