"""A plugin that is a proxy, through every adapter: what the server sees, and what happens when the proxy goes."""

from __future__ import annotations

import pytest

from kubeauthn.testing import ProxyPlugin
from tests.integration.adapters.driver import Driver
from tests.integration.adapters.lab import Lab

CREATED = (200, 201)


@pytest.fixture
def proxy(lab: Lab) -> ProxyPlugin:
    plugin = ProxyPlugin(lab.folder / "proxy", upstream=lab.ca.issue_client("jane"))
    lab.use(plugin.user())
    return plugin


def test_requests_go_through_the_unix_socket(driver: Driver, lab: Lab, proxy: ProxyPlugin):
    with driver.session() as client:
        outcome = client.list_namespaces()
        assert outcome.status == 200, outcome.error
        assert client.create_namespace("made").status in CREATED
    assert {each.user for each in lab.server.requests} == {"jane"}
    assert proxy.runs == 1
    assert proxy.info()["spec"]["lockFilePath"].startswith("/")


def test_requests_go_through_loopback(driver: Driver, lab: Lab, proxy: ProxyPlugin):
    proxy.order(form="https", daemon=True)
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status == 200, outcome.error
    assert [each.user for each in lab.listings()] == ["jane"]


def test_a_proxy_that_was_killed_is_started_again(driver: Driver, lab: Lab, proxy: ProxyPlugin):
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        proxy.kill()
        lab.wait_for(lambda: not proxy.alive)
        outcomes = client.list_in_parallel(4)
        assert [each.status for each in outcomes] == [200] * 4, outcomes
        assert client.create_namespace("made").status in CREATED
    assert proxy.runs == 2


def test_a_post_is_sent_again_when_nobody_listened(driver: Driver, lab: Lab, proxy: ProxyPlugin):
    with driver.session() as client:
        assert client.list_namespaces().status == 200
    proxy.kill()
    lab.wait_for(lambda: not proxy.alive)
    with driver.session() as client:
        assert client.create_namespace("made").status in CREATED
    assert [each["metadata"]["name"] for each in lab.server.objects("namespaces")].count("made") == 1
    assert proxy.runs == 2


def test_a_watch_ends_with_its_proxy_and_the_next_one_works(driver: Driver, lab: Lab, proxy: ProxyPlugin):
    with driver.session() as client:
        watch = client.watch_namespaces()
        lab.wait_for(lambda: lab.server.open_watches == 1)
        lab.server.emit("namespaces", "seen")
        while watch.next() != "seen":
            pass
        proxy.kill()
        lab.wait_for(lambda: not proxy.alive)
        assert client.list_namespaces().status == 200
    assert proxy.runs == 2


def test_a_401_runs_the_plugin_again_once(driver: Driver, lab: Lab, proxy: ProxyPlugin):
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        lab.server.unauthorized(times=1)
        assert client.list_namespaces().status == 200
        assert proxy.runs == 2
        lab.server.unauthorized()
        assert client.list_namespaces().status == 401
        assert proxy.runs == 3
