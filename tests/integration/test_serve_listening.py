"""Where `kubeauthn serve` listens, nobody else does: a second one fails, whatever it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kubeauthn.testing import Issuer
from tests.integration.serve_process import PATIENCE, Serve, configuration, until, write_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


@pytest.fixture
def file(issuer: Issuer, tmp_path: Path) -> Path:
    path = tmp_path / "authn.yaml"
    path.write_text(configuration(issuer))
    return path


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


def test_what_is_no_address_is_said(file: Path) -> None:
    command = [sys.executable, "-m", "kubeauthn", "serve", str(file), "--self-signed", "--listen", "nowhere.invalid:0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert (result.returncode, result.stderr) == (
        4,
        "error: cannot listen on nowhere.invalid:0: not an IP address\n",
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
