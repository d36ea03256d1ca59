"""A worker that ends hears of no more connections, however many it has."""

from __future__ import annotations

import os
import select
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest

from kubeauthn.server.ending import stop_accepting

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@contextmanager
def descriptors_left(number: int) -> Iterator[None]:
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as spares:
        used = {int(name) for name in os.listdir("/proc/self/fd")}
        highest = max(used)
        while (spare := os.dup(0)) < highest:  # no gaps below it
            spares.callback(os.close, spare)
        os.close(spare)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(spare, highest + 1) + number, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(("left", "stops"), [(2, True), (0, False)], ids=["few", "none"])
def test_it_stops_where_descriptors_are_few_and_ends_where_there_are_none(left: int, stops: bool) -> None:
    """As many as there are connections would be too many for a worker that has all it may have."""
    with ExitStack() as open_ones:
        listener = open_ones.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        for _ in range(20):
            open_ones.enter_context(socket.create_connection(listener.getsockname(), timeout=10))
            open_ones.enter_context(closing(listener.accept()[0]))
        events = open_ones.enter_context(select.epoll())
        events.register(listener, select.EPOLLIN)
        with descriptors_left(left):
            assert stop_accepting() is stops
        open_ones.enter_context(socket.create_connection(listener.getsockname(), timeout=10))
        assert bool(events.poll(0.2)) is not stops
