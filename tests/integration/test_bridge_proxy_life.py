"""How long a proxy plugin behind a bridge lives: as long as it is the one in use, or something goes through it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubeauthn.client.access import open_access
from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.plugins.bridge.route import LOOK_SECONDS, AccessRoute
from kubeauthn.testing import ApiServer, ProxyPlugin
from tests.integration.test_bridge_route import Asked, eventually_async, plan_of

GET = Asked(b"GET", b"/api")


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"t": "jane"}) as started:
        yield started


@pytest.fixture(autouse=True)
def by_counting_alone() -> Iterator[None]:
    """A collection could end what the bridge itself does not let go of, by chance and some time later."""
    gc.disable()
    yield
    gc.enable()
    forget_shared_sources()


def a_proxy(folder: Path, server: ApiServer) -> ProxyPlugin:
    return ProxyPlugin(folder, upstream=server.ca.issue_client("jane"))


def running(plugin: ProxyPlugin, scene: Callable[[AccessRoute, Path], object], server: ApiServer, folder: Path) -> None:
    file = server.write_kubeconfig(folder / "config", plugin.user())

    async def run() -> None:
        route = AccessRoute(lambda: open_access(kubeconfig=str(file)), [str(file)])
        try:
            await scene(route, file)  # type: ignore[misc]  # it is a coroutine function
        finally:
            route.close()

    asyncio.run(run())


def test_it_ends_when_the_kubeconfig_names_another_user(server: ApiServer, tmp_path: Path):
    plugin = a_proxy(tmp_path / "proxy", server)

    async def scene(route: AccessRoute, file: Path) -> None:
        await plan_of(route, GET)
        assert plugin.alive
        server.write_kubeconfig(file, {"token": "t"})
        await asyncio.sleep(LOOK_SECONDS)
        assert dict((await plan_of(route, GET)).added)[b"Authorization"] == b"Bearer t"
        await eventually_async(lambda: not plugin.alive)

    running(plugin, scene, server, tmp_path)


def test_it_stays_for_what_still_goes_through_it(server: ApiServer, tmp_path: Path):
    plugin = a_proxy(tmp_path / "proxy", server)

    async def scene(route: AccessRoute, file: Path) -> None:
        under_way = await plan_of(route, GET)
        server.write_kubeconfig(file, {"token": "t"})
        await asyncio.sleep(LOOK_SECONDS)
        await plan_of(route, GET)
        await asyncio.sleep(0.5)
        assert plugin.alive
        assert under_way.mark is not None
        del under_way
        await eventually_async(lambda: not plugin.alive)

    running(plugin, scene, server, tmp_path)


def test_one_that_was_replaced_ends(server: ApiServer, tmp_path: Path):
    plugin = a_proxy(tmp_path / "proxy", server)

    async def scene(route: AccessRoute, file: Path) -> None:
        old = await plan_of(route, GET)
        first = plugin.serving_pid
        renewed = await route.renewed(GET, old)
        assert renewed is not None
        assert plugin.serving_pid != first
        await asyncio.sleep(0.5)
        assert is_there(first)  # a watch may go through it
        del old
        await eventually_async(lambda: not is_there(first))
        assert plugin.alive

    running(plugin, scene, server, tmp_path)


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
