"""A proxy plugin in a kubeconfig, and a server that it leads to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.testing import ApiServer, ProxyPlugin


@pytest.fixture(autouse=True)
def no_proxy_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as running:
        yield running


@pytest.fixture
def proxy(server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProxyPlugin:
    plugin = ProxyPlugin(tmp_path / "proxy", upstream=server.ca.issue_client("jane"))
    monkeypatch.setenv("KUBECONFIG", str(server.write_kubeconfig(tmp_path / "config", plugin.user())))
    return plugin
