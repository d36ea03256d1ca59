"""Watches of the test API server: events, ends, and peers that leave."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager

import httpx2
import pytest

from kubeauthn.errors import UsageError
from kubeauthn.testing import ApiServer

NAMESPACES = "/api/v1/namespaces"
AUTHORIZATION = {"Authorization": "Bearer good"}


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as running:
        yield running


@pytest.fixture
def api(server):
    context = server.ca.client_context()
    with httpx2.Client(base_url=server.url, verify=context, headers=AUTHORIZATION, trust_env=False) as client:
        yield client


@contextmanager
def watching(api: httpx2.Client, path: str = NAMESPACES, **query: str):
    """An iterator over (type, name), and its response."""
    with api.stream("GET", path, params={"watch": "true", **query}) as response:
        assert response.status_code == 200
        events = (json.loads(line) for line in response.iter_lines())
        yield ((event["type"], event["object"]["metadata"]["name"]) for event in events)


def test_emit_reaches_a_running_watch(server, api):
    with watching(api) as events:
        assert [next(events), next(events)] == [("ADDED", "default"), ("ADDED", "kube-system")]
        server.emit(name="new")
        assert next(events) == ("ADDED", "new")
        server.emit(name="new")
        assert next(events) == ("MODIFIED", "new")
        server.emit(name="new", deleted=True)
        assert next(events) == ("DELETED", "new")
        assert server.open_watches == 1
    assert server.requests[0].is_watch


def test_emit_other_kinds(server, api):
    server.define("example.com", "v1", "widgets", "Widget", status=True)
    with watching(api, "/apis/example.com/v1/widgets") as events:
        assert server.emit("widgets", "w")["metadata"]["namespace"] == "default"
        assert next(events) == ("ADDED", "w")
    assert [item["metadata"]["name"] for item in server.objects("widgets")] == ["w"]
    assert server.objects("widgets", namespace="kube-system") == []
    with pytest.raises(UsageError, match="gadgets"):
        server.emit("gadgets")
    with pytest.raises(UsageError, match="already"):
        server.define("example.com", "v1", "widgets", "Widget")


def test_close_watches_ends_the_stream_and_keeps_the_connection(server, api):
    with watching(api, resourceVersion="2") as events:
        server.wait_for(lambda: server.open_watches == 1)
        server.emit(name="last")
        server.close_watches()
        assert list(events) == [("ADDED", "last")]
    server.wait_for(lambda: server.open_watches == 0)
    api.get(NAMESPACES)
    assert {request.connection_id for request in server.requests} == {1}


def test_timeout_seconds_ends_the_stream(server, api):
    with watching(api, resourceVersion="2", timeoutSeconds="1") as events:
        assert list(events) == []
    assert server.connections[0].is_open


def test_a_peer_that_leaves_during_a_watch_is_seen_at_once(server, api):
    with watching(api):
        server.wait_for(lambda: server.open_watches == 1)
    server.wait_for(lambda: server.connections[0].closed_at)
    server.wait_for(lambda: server.open_watches == 0)


def test_a_watch_goes_on_while_requests_come_and_go(server, api):
    with watching(api, resourceVersion="2") as events:
        api.get(NAMESPACES)
        server.revoke_token("good")
        assert api.get(NAMESPACES).status_code == 401
        server.emit(name="later")
        assert next(events) == ("ADDED", "later")
    watch, *others = server.requests
    assert watch.connection_id not in {request.connection_id for request in others}


def test_a_watch_that_is_too_old_is_told_so(server, api):
    for _ in range(10_001):
        server.emit(name="busy")
    response = api.get(NAMESPACES, params={"watch": "true", "resourceVersion": "1"})
    assert (response.status_code, response.json()["reason"]) == (410, "Expired")


def test_the_end_of_the_server_ends_watches(server, api):
    before = threading.active_count()
    with watching(api) as events:
        next(events)
        server.__exit__(None, None, None)
        with pytest.raises(httpx2.TransportError):
            list(events)
    assert server.open_watches == 0
    assert threading.active_count() < before + 1
