"""lightkube: what the common suite cannot ask of every library."""

from __future__ import annotations

import asyncio
from io import BytesIO

import httpx2
import pytest
from httpx2.websockets import WebSocketDisconnect
from lightkube.config.models import Cluster, User
from lightkube.resources.core_v1 import ConfigMap

from kubeauthn.client import lightkube as adapter
from kubeauthn.errors import UsageError
from tests.integration.adapters.lab import Lab
from tests.integration.adapters.loopback_servers import WebsocketServer


@pytest.fixture
def token_lab(lab: Lab) -> Lab:
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    return lab


def test_the_namespace_is_the_kubeconfigs_or_the_callers(token_lab: Lab):
    path = token_lab.server.write_kubeconfig(token_lab.folder / "other", token_lab.plugin.user(), namespace="blue")
    with adapter.client(kubeconfig=str(path)) as api:
        assert api.namespace == "blue"
        assert list(api.list(ConfigMap)) == []
    with adapter.client(kubeconfig=str(path), namespace="green") as api:
        assert api.namespace == "green"
    with adapter.client() as api:
        assert api.namespace == "default"
    assert token_lab.server.requests[0].path == "/api/v1/namespaces/blue/configmaps"


def test_options_of_lightkube_go_to_lightkube(token_lab: Lab):
    with adapter.client(timeout=httpx2.Timeout(0.05)) as api:
        token_lab.server.delay(5)
        with pytest.raises(httpx2.ReadTimeout):
            list(api.list(ConfigMap))
        token_lab.server.delay(0)


@pytest.mark.parametrize("name", ["config", "transport", "proxy", "trust_env"])
def test_what_the_kubeconfig_decides_cannot_be_given(token_lab: Lab, name: str):
    for make in (adapter.client, adapter.async_client):
        with pytest.raises(UsageError, match=f"{name} cannot be given"):
            make(**{name: None})


def test_lightkube_itself_has_nothing_to_authenticate_with(token_lab: Lab):
    with adapter.client() as api:
        assert api.config.user == User()
        assert api.config.cluster == Cluster(server=token_lab.server.url)


def test_exec_in_a_pod_carries_the_credential(lab: Lab):
    lab.plugin.reply(token="one", certificate=(certificate := lab.ca.issue_client("jane")))
    with WebsocketServer(lab.ca) as server:
        server.tokens.add("one")
        lab.use(cluster={"server": server.url})
        printed = BytesIO()
        # The fake pod's output ends without the status that lightkube waits for.
        with adapter.client() as api, pytest.raises(WebSocketDisconnect):
            api.exec("pod", command=["true"], stdout=printed, timeout=20)
        printed_async = BytesIO()

        async def go() -> None:
            api = adapter.async_client()
            try:
                with pytest.raises(WebSocketDisconnect):
                    await api.exec("pod", command=["true"], stdout=printed_async, timeout=20)
            finally:
                await api.close()

        asyncio.run(go())
    assert printed.getvalue() == printed_async.getvalue() == server.greeting
    assert [each.serial for each in server.handshakes] == [certificate.serial] * 2
