"""Reload of the configuration in the real server: atomic, in all workers at once, and never by something wrong."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from typing import TYPE_CHECKING

import pytest

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits
from kubeauthn.server.runtime import Runtime
from kubeauthn.testing import Issuer
from tests.integration.serve_process import Serve, configuration, replace, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG_INFO = "apiserver_authentication_config_controller_last_config_info{"
RELOADED = "configuration reloaded"
NOT_RELOADED = "the configuration was not reloaded"


@pytest.fixture
def file(issuer: Issuer, tmp_path: Path) -> Path:
    path = tmp_path / "authn.yaml"
    path.write_text(configuration(issuer, prefix="old:"))
    return path


@pytest.fixture
def serve(file: Path) -> Iterator[Serve]:
    with Serve(file, "--workers", "2") as running:
        yield running.ready()


def name(serve: Serve, issuer: Issuer) -> str:
    found: str = serve.review(issuer.token("jane", audience="kubernetes"))["user"]["username"]
    return found


def hashes(serve: Serve) -> list[str]:
    return [line for line in serve.metrics().splitlines() if line.startswith(CONFIG_INFO)]


def test_all_workers_change_together(serve: Serve, file: Path, issuer: Issuer) -> None:
    token = issuer.token("jane", audience="kubernetes")
    assert {serve.review(token)["user"]["username"] for _ in range(20)} == {"old:jane"}  # remembered by now
    assert len(until(lambda: serve.workers() if len(serve.workers()) == 2 else None, "two workers")) == 2
    before = hashes(serve)
    replace(file, configuration(issuer, prefix="new:"))
    told = serve.said(RELOADED)[0]
    assert {serve.review(token)["user"]["username"] for _ in range(200)} == {"new:jane"}
    after = hashes(serve)
    assert len(before) == len(after) == 1
    assert before != after
    assert told["hash"] in after[0]
    assert told["workers"] == 2


def test_the_symlinks_of_a_mounted_configmap(issuer: Issuer, tmp_path: Path) -> None:
    for generation in ("old", "new"):
        (tmp_path / f"..{generation}").mkdir()
        (tmp_path / f"..{generation}" / "authn.yaml").write_text(configuration(issuer, prefix=f"{generation}:"))
    (tmp_path / "..data").symlink_to("..old")
    (tmp_path / "authn.yaml").symlink_to("..data/authn.yaml")
    with Serve(tmp_path / "authn.yaml") as serve:
        serve.ready()
        assert name(serve, issuer) == "old:jane"
        (tmp_path / "..data_tmp").symlink_to("..new")
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")
        serve.said(RELOADED)
        assert name(serve, issuer) == "new:jane"


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ("jwt: [", "yaml"),
        ("", "empty config data"),
        ("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: [{}]\n", "jwt[0]"),
    ],
)
def test_an_invalid_file_changes_nothing_and_says_why(
    serve: Serve, file: Path, issuer: Issuer, wrong: str, reason: str
) -> None:
    before = hashes(serve)
    replace(file, wrong)
    told = serve.said(NOT_RELOADED)[0]
    assert reason in told["reason"]
    assert name(serve, issuer) == "old:jane"
    assert hashes(serve) == before
    assert 'automatic_reloads_total{status="failure"' in serve.metrics()
    replace(file, configuration(issuer, prefix="new:"))
    serve.said(RELOADED)
    assert name(serve, issuer) == "new:jane"


def test_an_issuer_that_does_not_answer_holds_the_change_back(serve: Serve, file: Path, issuer: Issuer) -> None:
    with Issuer() as other:
        sick = configuration(other, prefix="other:").partition("jwt:\n")[2]
    both = configuration(issuer, prefix="new:") + sick
    replace(file, both)
    until(lambda: any(other.url in line for line in serve.raw), "the issuer was asked")
    assert name(serve, issuer) == "old:jane"
    assert not [line for line in serve.lines if line["message"] == RELOADED]
    # Something newer takes its place at once, and not after the minute that the sick issuer is given.
    replace(file, configuration(issuer, prefix="newer:"))
    serve.said(RELOADED)
    assert name(serve, issuer) == "newer:jane"


def test_a_worker_that_dies_while_a_sick_issuer_holds_the_change_back_is_replaced_at_once(
    serve: Serve, file: Path, issuer: Issuer
) -> None:
    """And not after the minute that the issuer is given; what comes in force then is so in the new one too."""
    before = until(lambda: serve.workers() if len(serve.workers()) == 2 else None, "two workers")
    with Issuer() as other:
        sick = configuration(other, prefix="other:").partition("jwt:\n")[2]
    replace(file, configuration(issuer, prefix="new:") + sick)
    until(lambda: any(other.url in line for line in serve.raw), "the issuer was asked")
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(set(serve.workers()) - set(before)) == 1, "another worker")
    until(lambda: "kubeauthn_workers 2" in serve.metrics(), "it has joined")
    assert {name(serve, issuer) for _ in range(20)} == {"old:jane"}
    assert not [line for line in serve.lines if line["message"] in (RELOADED, NOT_RELOADED)]
    replace(file, configuration(issuer, prefix="newer:"))
    assert serve.said(RELOADED)[0]["workers"] == 2
    assert {name(serve, issuer) for _ in range(50)} == {"newer:jane"}


def test_after_its_minute_a_sick_issuer_ends_the_change_and_is_named(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEALTHY_SECONDS", 1.0)
    with Issuer() as other:
        sick = configuration(other, prefix="other:").partition("jwt:\n")[2]
    token = issuer.token("jane", audience="kubernetes")

    async def decided() -> str:
        runtime = Runtime()
        await runtime.prepare(1, configuration(issuer, prefix="old:"), patient=True)
        runtime.commit(1)
        with pytest.raises(EnvironmentFailure, match=rf"^unhealthy issuers: {re.escape(other.url)} \(.+\)$"):
            await runtime.prepare(2, configuration(issuer, prefix="new:") + sick, patient=True)
        runtime.abort()  # as every worker is told
        with pytest.raises(EnvironmentFailure, match="is not the one that was prepared"):
            runtime.commit(2)
        decision = await runtime.switch.decide(token)
        runtime.stop()
        return decision.user.username if decision.user else ""

    assert asyncio.run(decided()) == "old:jane"


def test_anonymous_may_not_change(serve: Serve, file: Path, issuer: Issuer) -> None:
    replace(file, configuration(issuer, prefix="new:", extra="anonymous: {enabled: true}\n"))
    assert "anonymous may not change" in serve.said(NOT_RELOADED)[0]["reason"]
    assert name(serve, issuer) == "old:jane"


def test_a_hangup_reloads_at_once_and_equal_content_does_nothing(serve: Serve, file: Path, issuer: Issuer) -> None:
    serve.hang_up()
    file.write_text(configuration(issuer, prefix="new:"))
    serve.hang_up()
    serve.said(RELOADED)
    assert name(serve, issuer) == "new:jane"
    serve.hang_up()
    os.utime(file)
    assert name(serve, issuer) == "new:jane"
    assert 'automatic_reloads_total{status="success"' in serve.metrics()
    assert len(serve.said(RELOADED)) == 1


def test_a_worker_that_is_killed_is_replaced_and_gets_what_is_in_force(
    serve: Serve, file: Path, issuer: Issuer
) -> None:
    replace(file, configuration(issuer, prefix="new:"))
    serve.said(RELOADED)
    before = until(lambda: serve.workers() if len(serve.workers()) == 2 else None, "two workers")
    os.kill(before[0], signal.SIGKILL)
    until(lambda: len(set(serve.workers()) - set(before)) == 1, "another worker")
    until(lambda: "kubeauthn_workers 2" in serve.metrics(), "both have joined")
    assert {name(serve, issuer) for _ in range(50)} == {"new:jane"}
    assert len(hashes(serve)) == 1


def test_a_removed_file_keeps_what_is_in_force(serve: Serve, file: Path, issuer: Issuer) -> None:
    file.unlink()
    serve.hang_up()
    assert "no such file" in serve.said(NOT_RELOADED)[0]["reason"].lower()
    assert name(serve, issuer) == "old:jane"


def test_what_is_no_file_any_more_holds_nobody_up(issuer: Issuer, tmp_path: Path) -> None:
    """Neither a pipe that nobody writes nor a gigabyte: numbers are told, and the next content counts."""
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(issuer, prefix="old:"))
    with Serve(file, tls=tmp_path / "tls") as serve:
        serve.ready()
        certificate = tmp_path / "tls" / "tls.crt"
        for path, complaint in ((file, NOT_RELOADED), (certificate, "the new certificate is not used")):
            path.unlink()
            os.mkfifo(path)
            assert "is a pipe" in serve.said(complaint)[0]["reason"]
            assert "kubeauthn_workers 1" in serve.metrics()
        file.unlink()
        with file.open("wb") as sparse:
            sparse.truncate(1 << 30)
        until(lambda: "is larger than" in serve.said(NOT_RELOADED)[-1]["reason"], "that is told too")
        replace(file, configuration(issuer, prefix="new:"))
        serve.said(RELOADED)
        assert name(serve, issuer) == "new:jane"


def test_a_key_that_was_rotated_in_is_found(serve: Serve, issuer: Issuer) -> None:
    assert name(serve, issuer) == "old:jane"
    issuer.rotate()
    assert name(serve, issuer) == "old:jane"
