"""Where `kubeauthn serve` listens, nobody else does: a second one fails, whatever it is told."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx2
import pytest

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits
from kubeauthn.server.granian_server import still_runs
from kubeauthn.server.listening import Listening, alone_at, bound_alone
from kubeauthn.testing import Issuer
from tests.integration.serve_process import PATIENCE, Serve, until, write_certificate

if TYPE_CHECKING:
    from pathlib import Path


def second(file: Path, listen: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubeauthn", "serve", str(file), "--listen", listen]
    environ = {**os.environ, "RUST_BACKTRACE": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environ)


def test_a_second_server_on_the_same_port_fails(file: Path, issuer: Issuer) -> None:
    with Serve(file, "--workers", "2") as first:
        listen = first.ready().address.removeprefix("http://")
        result = second(file, listen)
        assert (result.returncode, result.stdout) == (4, "")
        assert result.stderr == f"error: cannot listen on {listen}: address already in use\n"
        assert first.review(issuer.token("jane", audience="kubernetes"))["authenticated"] is True


def test_a_second_server_on_the_same_unix_socket_fails_in_one_line(file: Path, tmp_path: Path) -> None:
    listen = f"unix:{tmp_path / 's'}"
    with Serve(file, "--listen", listen):
        result = second(file, listen)
    assert (result.returncode, result.stderr) == (4, f"error: cannot listen on {listen}: address already in use\n")


def test_a_unix_socket_that_a_killed_server_left_behind_is_taken_over(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Serve(file, "--listen", f"unix:{path}") as first:
        until(lambda: is_ready(first, path), "the first one answers")
        first.process.kill()
        first.process.wait(PATIENCE)
        until(lambda: not is_heard(path), "its workers ended too")
    assert path.is_socket()
    with Serve(file, "--listen", f"unix:{path}") as again:
        until(lambda: is_ready(again, path), "the second one answers")


def is_ready(serve: Serve, path: Path) -> bool:
    with serve.client(transport=httpx2.HTTPTransport(uds=str(path))) as client:
        return client.get("/readyz").status_code == 200


def is_heard(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def test_what_is_no_socket_is_left_alone(file: Path, tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    result = second(file, f"unix:{tmp_path / 's'}")
    assert (result.returncode, (tmp_path / "s").read_text()) == (4, "mine")


def test_who_keeps_the_directory_locked_does_not_keep_the_server_waiting_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may lock what he may read."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(limits, "LOCK_SECONDS", 0.2)
    held = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_SH)
        with pytest.raises(EnvironmentFailure, match="another process keeps its directory locked"):
            with alone_at(str(tmp_path / "s")):
                pytest.fail("it is not alone")
    finally:
        os.close(held)
    with alone_at(str(tmp_path / "s")):
        pass


def test_no_part_of_an_answer_waits_for_the_one_before() -> None:
    with bound_alone(Listening("127.0.0.1")) as listener:
        listener.setblocking(True)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


def test_a_worker_that_ended_is_not_taken_for_one_that_refuses_to() -> None:
    process = multiprocessing.get_context("spawn").Process(target=os.getpid)
    process.start()
    assert process.pid is not None
    os.waitpid(process.pid, 0)  # as Granian's watching thread does
    assert process.is_alive()  # what is asked instead could not tell
    assert not still_runs(process)


def with_descriptors(soft: int, hard: int) -> tuple[str, ...]:
    """The program, with a limit to how many files it may have open."""
    limited = f'ulimit -S -n {soft}; ulimit -H -n {hard}; exec "$@"'
    return "sh", "-c", limited, "sh", sys.executable, "-m", "kubeauthn"


def opened(serve: Serve) -> int:
    [worker] = serve.workers()
    return len(os.listdir(f"/proc/{worker}/fd"))


def test_more_connections_than_there_are_descriptors_for_wait(file: Path, issuer: Issuer) -> None:
    """Else the worker would have none left to fetch keys with, or to find those who say nothing."""
    token = issuer.token("jane", audience="kubernetes")
    with Serve(file, program=with_descriptors(150, 300)) as serve:
        before = opened(serve.ready())  # 300 are allowed, 256 are for other things, and 44 for connections
        host, _, port = serve.address.removeprefix("http://").rpartition(":")
        with ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            until(lambda: opened(serve) >= before + 40, "as many as there may be were taken")
            time.sleep(0.5)
            assert (
                opened(serve) <= before + 44 + 8
            )  # a look at its connections, or at an issuer, takes some for a moment
        assert serve.review(token)["authenticated"] is True


def test_too_few_descriptors_are_said_at_the_start(file: Path) -> None:
    command = [*with_descriptors(200, 200), "serve", str(file), "--listen", "127.0.0.1:0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stdout) == (4, "")
    assert result.stderr == "error: serve cannot run with so few open files: it needs 257 (ulimit -n)\n"


def test_what_is_no_address_is_said(file: Path) -> None:
    command = [sys.executable, "-m", "kubeauthn", "serve", str(file), "--self-signed", "--listen", "nowhere.invalid:0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stderr) == (
        4,
        "error: cannot listen on nowhere.invalid:0: not an IP address\n"
        "hint: HOST is an address of this machine, such as 127.0.0.1 or [::1], and no name; :PORT is every address\n",
    )


def test_the_port_is_kept_when_workers_are_replaced_and_free_afterwards(
    file: Path, issuer: Issuer, tmp_path: Path
) -> None:
    tls = tmp_path / "tls"
    with Serve(file, tls=tls) as first:
        listen = first.ready().address.removeprefix("https://")
        before = set(first.workers())
        write_certificate(first.ca, tls)
        until(lambda: first.workers() and not before & set(first.workers()), "the worker is replaced")
        assert first.review(issuer.token("jane", audience="kubernetes"))["authenticated"] is True
        assert second(file, listen).returncode == 4
    with Serve(file, "--listen", listen) as next_one:
        assert next_one.address.endswith(listen)
