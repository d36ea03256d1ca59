"""kr8s: what the common suite cannot ask of every library."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import kr8s
import pytest
from kr8s.objects import Namespace

from kubeauthn.client import kr8s as adapter
from kubeauthn.client.access import open_access
from kubeauthn.errors import PluginFailed, UsageError
from tests.integration.adapters.lab import Lab
from tests.integration.adapters.loopback_servers import WebsocketServer


@pytest.fixture
def token_lab(lab: Lab) -> Lab:
    lab.server.accept_token("one", user="jane")
    lab.plugin.reply(token="one")
    lab.use()
    return lab


@contextmanager
def opened(**options: Any) -> Iterator[kr8s.Api]:
    """kr8s has no way to close a client; a test wants to leave nothing open."""
    api = adapter.api(**options)
    try:
        yield api
    finally:
        adapter.as_sync_func(close_session)(api)


async def close_session(api: Any) -> None:
    if api._session is not None:
        await api._session.aclose()


def test_kinds_by_name_and_the_kubeconfigs_namespace(token_lab: Lab):
    path = token_lab.server.write_kubeconfig(token_lab.folder / "other", token_lab.plugin.user(), namespace="blue")
    token_lab.server.emit("namespaces", "blue")
    token_lab.server.emit("configmaps", "settings", namespace="blue")
    with opened(kubeconfig=str(path)) as api:
        assert api.namespace == "blue"
        assert [each.name for each in api.get("configmaps")] == ["settings"]
    assert {each.token for each in token_lab.server.requests} == {"one"}


def test_nothing_is_sent_before_the_first_call(token_lab: Lab):
    with opened():
        assert token_lab.server.requests == []
        assert token_lab.plugin.runs == 0


def test_whoami_asks_the_server(token_lab: Lab):
    with opened() as api:
        assert api.whoami() == "jane"

    async def go() -> str:
        api = await adapter.async_api()
        try:
            return await api.whoami()
        finally:
            await close_session(api)

    assert asyncio.run(go()) == "jane"


def test_kr8s_finds_the_client_again(token_lab: Lab):
    kr8s.Api._instances.clear()  # what other tests have left there
    with opened() as api:
        assert kr8s.api() is api
        assert "default" in [each.name for each in kr8s.get("namespaces")]
        api.reauthenticate()
    assert token_lab.plugin.runs == 1
    assert {each.token for each in token_lab.server.requests} == {"one"}


def test_two_clients_are_not_taken_for_each_other(token_lab: Lab):
    with opened() as first, opened(impersonate_user="joe") as second:
        assert first is not second
        assert first.whoami() == "jane"
        assert second.whoami() == "joe"


def test_no_key_on_disk(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    certificate = lab.ca.issue_client("jane")
    for user in (certificate.kubeconfig_user(), lab.plugin.user()):
        lab.plugin.reply(certificate=certificate)
        lab.use(user)
        with opened() as api:
            assert api.whoami() == "jane"
    assert list(temporary.iterdir()) == []


def test_a_refused_request_is_kr8s_own_error_and_sent_once(token_lab: Lab):
    with opened() as api:
        token_lab.server.forbidden()
        with pytest.raises(kr8s.ServerError, match="forbidden: the test server was told to refuse") as caught:
            Namespace({"metadata": {"name": "blue"}}, api=api).create()
        assert caught.value.status["code"] == 403
        assert caught.value.response.status_code == 403
        token_lab.server.fail(403, 0)
        token_lab.server.fail(500, 1)
        with pytest.raises(kr8s.ServerError, match="500 Internal Server Error") as failed:
            list(api.get(Namespace))
        assert failed.value.status == "500"
        assert not Namespace({"metadata": {"name": "nowhere"}}, api=api).exists()
    assert len([each for each in token_lab.server.requests if each.method == "POST"]) == 1
    assert token_lab.plugin.runs == 1


def test_a_refusal_that_the_caller_raises_is_not_sent_again_either(token_lab: Lab):
    async def go() -> None:
        api = await adapter.async_api()
        token_lab.server.forbidden()
        with pytest.raises(httpx.HTTPStatusError, match="403 Forbidden"):
            async with api.call_api(url="namespaces", raise_for_status=False) as response:
                response.raise_for_status()
        await close_session(api)

    asyncio.run(go())
    assert len(token_lab.server.requests) == 1


def test_a_watch_that_is_refused_is_an_error(token_lab: Lab):
    with opened() as api:
        token_lab.server.forbidden()
        with pytest.raises(kr8s.ServerError, match="told to refuse"):
            next(api.watch(Namespace))
    assert len(token_lab.server.requests) == 1


def test_a_failing_plugin_is_our_error_unwrapped(token_lab: Lab):
    token_lab.plugin.fail(1)
    with opened() as api, pytest.raises(PluginFailed):
        list(api.get("namespaces"))


def test_an_explicit_authorization_is_left_alone(token_lab: Lab):
    token_lab.server.accept_token("explicit", user="joe")

    async def go() -> None:
        api = await adapter.async_api()
        async with api.call_api(url="namespaces", headers={"Authorization": "Bearer explicit"}) as response:
            assert response.status_code == 200
        await close_session(api)

    asyncio.run(go())
    assert [each.user for each in token_lab.server.requests] == ["joe"]
    assert token_lab.plugin.runs == 0


def test_unknown_options_are_refused(token_lab: Lab):
    with pytest.raises(UsageError, match="takes no option colour"):
        adapter.api(colour="blue")
    with pytest.raises(UsageError, match="not both"):
        adapter.api("test", access=open_access())


def test_a_websocket_carries_the_credential_and_a_renewed_one_after_a_401(lab: Lab):
    lab.plugin.reply(token="one")
    with WebsocketServer(lab.ca) as server:
        server.tokens.add("one")
        lab.use(cluster={"server": server.url})

        async def go() -> list[bytes]:
            api = await adapter.async_api()
            seen = []
            for token in ("one", "two"):
                server.tokens = {token}
                lab.plugin.reply(token=token)
                async with api.open_websocket(
                    version="v1", namespace="default", url="pods/pod/exec", subprotocols=["v4.channel.k8s.io"]
                ) as websocket:
                    seen.append(await websocket.receive_bytes(timeout=20))
            await close_session(api)
            return seen

        assert asyncio.run(go()) == [b"\1" + server.greeting] * 2
        sent = [each.values("authorization") for each in server.handshakes]
        assert sent == [["Bearer one"], ["Bearer one"], ["Bearer two"]]
