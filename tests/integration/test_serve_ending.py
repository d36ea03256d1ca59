"""A worker that ends hears of no more connections, however many it has."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

SCENE = """
import os, resource, select, socket, sys
from kubeauthn.server.ending import stop_accepting

left = int(sys.argv[1])
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
pairs = [(socket.create_connection(listener.getsockname(), timeout=10), listener.accept()[0]) for _ in range(20)]
late = socket.socket()
events = select.epoll()
events.register(listener, select.EPOLLIN)
highest = max(int(name) for name in os.listdir("/proc/self/fd"))
while (spare := os.dup(0)) < highest:
    pass  # no gaps below it
os.close(spare)
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (spare + left, hard))
connections = stop_accepting()
late.connect(listener.getsockname())
print(connections, bool(events.poll(0.2)))
"""
"""In a process of its own: whose descriptors are counted must open and close no others meanwhile."""


@pytest.mark.parametrize(("left", "told"), [("2", "True False"), ("0", "False True")], ids=["few", "none"])
def test_it_stops_where_descriptors_are_few_and_ends_where_there_are_none(left: str, told: str) -> None:
    """As many as there are connections would be too many for a worker that has all it may have."""
    done = subprocess.run([sys.executable, "-c", SCENE, left], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == (told, "")
