"""httpx and httpx2: what the common suite cannot ask of every library."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import httpx2
import pytest

from kubeauthn._core.certificates import matching_pair
from kubeauthn._core.credential import Credential
from kubeauthn._secret import Secret
from kubeauthn.client import httpx as httpx_adapter
from kubeauthn.client import httpx2 as httpx2_adapter
from kubeauthn.client.access import Access, open_access
from kubeauthn.errors import UsageError
from tests.integration.adapters.lab import Lab
from tests.integration.adapters.loopback_servers import WebsocketServer

NAMESPACES = "/api/v1/namespaces"
LIBRARIES = [pytest.param(httpx2_adapter, httpx2, id="httpx2"), pytest.param(httpx_adapter, httpx, id="httpx")]
both = pytest.mark.parametrize(("adapter", "library"), LIBRARIES)


@pytest.fixture
def token_lab(lab: Lab) -> Lab:
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    return lab


def revoke(lab: Lab) -> None:
    lab.plugin.reply(token="two")
    lab.server.accept_only("two")


# -- what the caller brings -----------------------------------------------------------------------


@both
def test_an_explicit_authorization_is_left_alone(adapter: Any, library: Any, lab: Lab):
    lab.server.accept_token("explicit")
    lab.plugin.reply(token="from-plugin", certificate=lab.ca.issue_client("jane"))
    lab.use()
    with adapter.client() as api:
        assert api.get(NAMESPACES, headers={"Authorization": "Bearer explicit"}).status_code == 200
        assert api.get(NAMESPACES, headers={"Authorization": "Bearer wrong"}).status_code == 401
    with adapter.client(auth=("jane", "password")) as api:
        assert api.get(NAMESPACES).status_code == 401

    async def go() -> None:
        async with adapter.async_client() as api:
            assert (await api.get(NAMESPACES, headers={"Authorization": "Bearer explicit"})).status_code == 200

    asyncio.run(go())
    assert lab.plugin.runs == 0
    assert lab.tokens() == ["explicit", "wrong", None, "explicit"]
    assert set(lab.serials()) == {None}  # Kubernetes would believe a certificate before the header


@both
def test_options_of_the_client_go_to_the_client(adapter: Any, library: Any, token_lab: Lab):
    with adapter.client(headers={"X-Mine": "yes"}, base_url=token_lab.server.url + "/api/v1/") as api:
        assert api.get("namespaces").status_code == 200
    assert token_lab.listings()[0].header("x-mine") == "yes"


@both
def test_options_of_the_connections_go_to_the_transport(adapter: Any, library: Any, token_lab: Lab):
    """With `transport=` the library would ignore them."""
    with adapter.client(limits=library.Limits(max_keepalive_connections=0)) as api:
        assert api.get(NAMESPACES).status_code == 200
        assert api.get(NAMESPACES).status_code == 200
    assert len(token_lab.server.connections) == 2


@both
@pytest.mark.parametrize("name", ["transport", "mounts", "verify", "cert", "proxy", "trust_env"])
def test_what_the_kubeconfig_decides_cannot_be_given(adapter: Any, library: Any, token_lab: Lab, name: str):
    for make in (adapter.client, adapter.async_client):
        with pytest.raises(UsageError, match=f"{name} cannot be given"):
            make(**{name: None})
    with pytest.raises(UsageError, match="cannot be given"):
        adapter.Transport(open_access(), **{name: None})


@both
def test_either_an_access_or_what_opens_one(adapter: Any, library: Any, token_lab: Lab):
    with pytest.raises(UsageError, match="not both"):
        adapter.client("test", access=open_access())


# -- what goes where ------------------------------------------------------------------------------


@both
def test_an_absolute_url_elsewhere_is_refused(adapter: Any, library: Any, token_lab: Lab):
    elsewhere = token_lab.start_server()
    with adapter.client() as api, pytest.raises(UsageError, match="carries credentials for"):
        api.get(elsewhere.url + NAMESPACES)
    with (
        library.Client(auth=adapter.Auth(open_access()), verify=token_lab.ca.client_context()) as api,
        pytest.raises(UsageError, match="carries credentials for"),
    ):
        api.get(elsewhere.url + NAMESPACES)
    assert elsewhere.requests == []


@both
def test_the_token_is_not_left_in_the_request(adapter: Any, library: Any, token_lab: Lab):
    with adapter.client() as api:
        response = api.get(NAMESPACES)
        revoke(token_lab)
        repeated = api.get(NAMESPACES)
    assert response.status_code == repeated.status_code == 200
    assert "authorization" not in response.request.headers
    assert "authorization" not in repeated.request.headers


@both
def test_a_websocket_carries_the_credential(adapter: Any, library: Any, lab: Lab):
    if library is httpx:
        from httpx_ws import connect_ws
    else:

        def connect_ws(url: str, client: Any, **options: Any) -> Any:
            return client.websocket(url, **options)

    lab.plugin.reply(token="one", certificate=(certificate := lab.ca.issue_client("jane")))
    with WebsocketServer(lab.ca) as server:
        server.tokens.add("one")
        lab.use(cluster={"server": server.url})
        address = server.url.replace("https", "wss") + "/exec"
        with adapter.client() as api, connect_ws(address, api, subprotocols=["v4.channel.k8s.io"]) as websocket:
            assert websocket.receive_bytes(timeout=20) == b"\1" + server.greeting
        assert [each.serial for each in server.handshakes] == [certificate.serial]


# -- 401 ------------------------------------------------------------------------------------------


@both
def test_the_connection_of_a_401_is_used_on(adapter: Any, library: Any, token_lab: Lab):
    with adapter.client() as api:
        assert api.get(NAMESPACES).status_code == 200
        revoke(token_lab)
        assert api.get(NAMESPACES).status_code == 200
        assert len(token_lab.server.connections) == 1


@both
def test_a_put_with_its_body_at_hand_is_repeated_and_a_streamed_one_is_not(adapter: Any, library: Any, token_lab: Lab):
    token_lab.server.emit("namespaces", "blue")
    body = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"blue","labels":{"a":"b"}}}'
    with adapter.client() as api:
        assert api.get(NAMESPACES).status_code == 200
        revoke(token_lab)
        assert api.put(f"{NAMESPACES}/blue", content=body).status_code == 200
        token_lab.plugin.reply(token="three")
        token_lab.server.accept_only("three")
        assert api.put(f"{NAMESPACES}/blue", content=iter([body])).status_code == 401
    puts = [each for each in token_lab.server.requests if each.method == "PUT"]
    assert [each.token for each in puts] == ["one", "two", "two"]
    assert [each.body for each in puts] == [body] * 3


@both
def test_when_the_renewal_fails_the_401_comes_back(adapter: Any, library: Any, token_lab: Lab, caplog: Any):
    with adapter.client() as api:
        assert api.get(NAMESPACES).status_code == 200
        token_lab.server.revoke_token("one")
        token_lab.plugin.fail(3)
        response = api.get(NAMESPACES)
    assert response.status_code == 401
    assert response.json()["reason"] == "Unauthorized"
    assert "failed with exit code 3" in caplog.text


@both
def test_a_cancelled_renewal_keeps_no_connection(adapter: Any, library: Any, token_lab: Lab):
    async def go() -> None:
        async with adapter.async_client() as api:
            assert (await api.get(NAMESPACES)).status_code == 200
            revoke(token_lab)
            token_lab.plugin.delay(1)
            call = asyncio.create_task(api.get(NAMESPACES))
            await token_lab.server.wait_for_async(lambda: token_lab.plugin.runs == 2)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            # That run goes on and serves the next caller; the refused response was let go of.
            assert (await api.get(NAMESPACES)).status_code == 200
            await token_lab.server.wait_for_async(
                lambda: len([each for each in token_lab.server.connections if each.is_open]) == 1
            )

    asyncio.run(go())
    assert token_lab.plugin.runs == 2


# -- Auth and Transport, for a client of one's own ------------------------------------------------


@both
def test_auth_in_a_client_of_ones_own(adapter: Any, library: Any, token_lab: Lab):
    options = {"verify": token_lab.ca.client_context(), "base_url": token_lab.server.url, "trust_env": False}
    with library.Client(auth=adapter.Auth(open_access()), **options) as api:
        assert api.get(NAMESPACES).status_code == 200
        revoke(token_lab)
        assert api.get(NAMESPACES).status_code == 200
        assert api.post(NAMESPACES, json={"metadata": {"name": "blue"}}).status_code == 201

    async def go() -> None:
        async with library.AsyncClient(auth=adapter.Auth(open_access()), **options) as api:
            assert (await api.get(NAMESPACES)).status_code == 200
            token_lab.plugin.reply(token="three")
            token_lab.server.accept_only("three")
            assert (await api.get(NAMESPACES)).status_code == 200

    asyncio.run(go())
    assert [each.token for each in token_lab.server.requests] == ["one", "one", "two", "two", "two", "two", "three"]
    assert token_lab.plugin.runs == 3


@both
def test_auth_refuses_a_credential_that_it_could_only_half_show(adapter: Any, library: Any, lab: Lab):
    lab.plugin.reply(token="one", certificate=lab.ca.issue_client("jane"))
    lab.use()
    with library.Client(auth=adapter.Auth(open_access()), verify=lab.ca.client_context(), trust_env=False) as api:
        with pytest.raises(UsageError, match="brings a client certificate"):
            api.get(lab.server.url + NAMESPACES)
    assert lab.server.requests == []


@both
def test_transport_in_a_client_of_ones_own(adapter: Any, library: Any, token_lab: Lab):
    access = open_access()
    with library.Client(transport=adapter.Transport(access), base_url=access.server) as api:
        assert api.get(NAMESPACES).status_code == 200

    async def go() -> None:
        async with library.AsyncClient(transport=adapter.AsyncTransport(access), base_url=access.server) as api:
            assert (await api.get(NAMESPACES)).status_code == 200

    asyncio.run(go())
    assert token_lab.tokens() == ["one", "one"]


# -- rotation under load --------------------------------------------------------------------------


class Rotating:
    """A source whose certificate changes at every few requests, whoever asks."""

    def __init__(self, lab: Lab, every: int, kinds: int) -> None:
        leaves = [lab.ca.issue_client(f"user-{number}") for number in range(kinds)]
        self._pairs = [matching_pair(leaf.chain_pem, Secret(leaf.key_pem.decode())) for leaf in leaves]
        self._serials = [leaf.serial for leaf in leaves]
        self._count = itertools.count()
        self._every = every
        self._lock = threading.Lock()
        self._current: tuple[int, Credential] | None = None

    def at_hand(self) -> None:
        """Nothing: each request takes its turn."""

    def get(self) -> Credential:
        with self._lock:
            turn = next(self._count) // self._every
            if self._current is None or self._current[0] != turn:
                which = turn % len(self._pairs)
                token = Secret(f"token-of-{self._serials[which]}")
                self._current = (turn, Credential(token=token, identity=self._pairs[which]))
            return self._current[1]

    async def get_async(self) -> Credential:
        return self.get()

    def refused(self, credential: Credential) -> None:
        raise AssertionError("nothing is refused here")

    def accepted(self, credential: Credential) -> None:
        credential.proven = True


def rotating_access(lab: Lab) -> Access:
    lab.use()
    access = open_access()
    access.source = Rotating(lab, every=7, kinds=5)
    return access


def every_request_was_right(lab: Lab, statuses: list[int], expected: int) -> None:
    assert statuses == [200] * expected
    assert len(lab.listings()) == expected
    # Token and certificate of each request belong together.
    assert {each.token == f"token-of-{each.certificate_serial}" for each in lab.listings()} == {True}


def one_certificate_is_in_use(lab: Lab) -> bool:
    return len({each.certificate_serial for each in lab.server.connections if each.is_open}) == 1


@both
def test_threads_under_rotation(adapter: Any, library: Any, lab: Lab):
    with adapter.client(access=rotating_access(lab)) as api, ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: api.get(NAMESPACES).status_code, range(160)))
        statuses += [api.get(NAMESPACES).status_code, api.get(NAMESPACES).status_code]
        every_request_was_right(lab, statuses, 162)
        lab.wait_for(lambda: one_certificate_is_in_use(lab))


@both
def test_tasks_under_rotation(adapter: Any, library: Any, lab: Lab):
    async def go() -> None:
        async with adapter.async_client(access=rotating_access(lab)) as api:

            async def calls() -> list[int]:
                return [(await api.get(NAMESPACES)).status_code for _ in range(20)]

            statuses = [status for group in await asyncio.gather(*(calls() for _ in range(8))) for status in group]
            statuses += [(await api.get(NAMESPACES)).status_code, (await api.get(NAMESPACES)).status_code]
            every_request_was_right(lab, statuses, 162)
            await lab.server.wait_for_async(lambda: one_certificate_is_in_use(lab))

    asyncio.run(go())


@both
def test_closing_the_client_closes_every_connection(adapter: Any, library: Any, lab: Lab):
    with adapter.client(access=rotating_access(lab)) as api:
        for _ in range(10):
            api.get(NAMESPACES)
        api.get(NAMESPACES, headers={"Authorization": "Bearer explicit"})
    lab.wait_for(lambda: not [each for each in lab.server.connections if each.is_open])


# -- the library is not there ---------------------------------------------------------------------


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], None]]:
    """Make a library look as if it were not installed, and forget the adapter that has imported it."""

    def forget(library: str, adapter: str) -> None:
        monkeypatch.setitem(sys.modules, library, None)
        monkeypatch.delitem(sys.modules, f"kubeauthn.client.{adapter}", raising=False)

    yield forget
    gc.collect()


@pytest.mark.parametrize("name", ["httpx", "lightkube", "kr8s"])
def test_a_missing_library_is_named_with_its_extra(without: Any, name: str, monkeypatch: pytest.MonkeyPatch):
    import importlib

    import kubeauthn.client
    from kubeauthn.errors import MissingExtra

    monkeypatch.setattr(kubeauthn.client, name, None, raising=False)  # so that the attribute is put back too
    without(name, name)
    with pytest.raises(MissingExtra, match=f"{name} is not installed") as caught:
        importlib.import_module(f"kubeauthn.client.{name}")
    assert f"kubeauthn[{name}]" in str(caught.value)
