"""The audit log: what is in a line, that nothing breaks out of it, and what happens when it cannot be written."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubeauthn._core.authentication.verdict import UserInfo
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import audit_file
from kubeauthn.server.audit import AuditDecider, audit_line
from kubeauthn.server.audit_file import AuditFile
from kubeauthn.server.decisions import Decision
from kubeauthn.server.request_details import RequestDetails, current_request

TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl"
EXTRA = {"authentication.kubernetes.io/credential-id": ("JTI=id-1",)}


def good(name: str = "jane") -> Decision:
    return Decision("authenticated", UserInfo(name, "7", ("dev",), EXTRA), "", "", "https://i.test", None, 9e9, True)


def no(reason: str) -> Decision:
    return Decision("refused", None, "the token is refused", reason, "https://i.test", "jwt[0].x", None, False)


class Fixed:
    """A decider that always says the same."""

    def __init__(self, decision: Decision) -> None:
        self.decision = decision

    def decide_now(self, token: str) -> Decision:
        return self.decision

    async def decide(self, token: str) -> Decision:
        return self.decision


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line]


def until(condition: Callable[[], object]) -> None:
    for _ in range(500):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not become so")


def test_a_line_says_who_by_whom_and_from_where():
    request = RequestDetails("r-1", "10.0.0.1:5000", "/authenticate")
    line = json.loads(audit_line(good(), request, 1769850000.25, TOKEN))
    assert line.pop("id")
    assert line == {
        "kind": "Decision",
        "version": 1,
        "time": "2026-01-31T09:00:00.250000Z",
        "requestID": "r-1",
        "client": "10.0.0.1:5000",
        "path": "/authenticate",
        "outcome": "authenticated",
        "issuer": "https://i.test",
        "username": "jane",
        "uid": "7",
        "credentialID": "JTI=id-1",
        "cached": True,
    }
    refused = json.loads(audit_line(no("a rule"), RequestDetails(), 0.0, TOKEN))
    assert (refused["outcome"], refused["rule"], refused["reason"]) == ("refused", "jwt[0].x", "a rule")


@pytest.mark.parametrize("name", ["a\nb", 'x"},{"y', "\r\n{}", "\u2028\u2029\x85", "\x1b[2J", "\ud800", "é\0"])
def test_no_name_breaks_out_of_its_line(name: str):
    line = audit_line(good(name), RequestDetails(client=name), 0.0, TOKEN)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert all(32 <= byte < 127 for byte in line[:-1])
    assert json.loads(line)["username"] == name


def test_the_token_is_in_no_line_and_long_texts_are_cut():
    line = audit_line(no(f"got {TOKEN}" + "x" * 100_000), RequestDetails(), 0.0, TOKEN)
    assert TOKEN.encode() not in line
    assert len(line) < 2000


def test_lines_are_appended_to_a_file_that_only_its_owner_reads(tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    sink = AuditFile(str(path))
    decider = AuditDecider(Fixed(good()), sink)
    token = current_request.set(RequestDetails("r-9"))
    try:
        assert decider.decide_now(TOKEN) is decider._inner.decision
        asyncio.run(decider.decide(TOKEN))
    finally:
        current_request.reset(token)
    sink.close()
    assert [line["requestID"] for line in lines(path)] == ["r-9", "r-9"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert TOKEN not in path.read_text()


def test_it_is_found_again_after_rotation_without_a_signal_and_with_one(tmp_path: Path):
    path, now = tmp_path / "audit.jsonl", [0.0]
    sink = AuditFile(str(path), clock=lambda: now[0])
    sink.tell(b'{"n":1}\n')
    until(lambda: path.read_text())
    path.rename(tmp_path / "one")
    now[0] += 2.0
    sink.tell(b'{"n":2}\n')
    until(lambda: path.exists() and path.read_text())
    path.rename(tmp_path / "two")
    sink.reopen()
    sink.tell(b'{"n":3}\n')
    until(lambda: path.exists() and path.read_text())
    sink.close()
    assert [lines(file)[0]["n"] for file in (tmp_path / "one", tmp_path / "two", path)] == [1, 2, 3]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_a_full_disk_loses_lines_and_not_authentication(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "audit.jsonl"
    sink = AuditFile(str(path))
    good_descriptor = sink._descriptor
    sink._descriptor = os.open("/dev/full", os.O_WRONLY)
    sink._look_at = float("inf")
    decider = AuditDecider(Fixed(good()), sink)
    for _ in range(3):
        assert decider.decide_now(TOKEN).outcome == "authenticated"
    until(lambda: sink.lost == 3)
    assert len([record for record in caplog.records if "audit lines are lost" in record.message]) == 1

    required = AuditDecider(Fixed(good()), sink, required=True)
    assert required.decide_now(TOKEN) is None
    failed = asyncio.run(required.decide(TOKEN))
    assert (failed.outcome, failed.user, failed.rule) == ("failed", None, "audit")

    os.close(sink._descriptor)
    sink._descriptor = good_descriptor  # there is room again
    assert asyncio.run(required.decide(TOKEN)).outcome == "authenticated"
    sink.close()
    assert [line["kind"] for line in lines(path)] == ["Lost", "Decision"]
    assert lines(path)[0]["lines"] == 4


def test_more_lines_than_can_wait_are_lost_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(audit_file, "WAITING_LINES", 2)
    read_end, write_end = os.pipe()
    sink = AuditFile(str(tmp_path / "audit.jsonl"))
    os.close(sink._descriptor)
    sink._descriptor, sink._look_at = write_end, float("inf")
    line = b"x" * 70_000 + b"\n"  # more than a pipe holds: the writer stands still
    for _ in range(10):
        sink.tell(line)
    assert sink.lost >= 7
    os.close(read_end)  # the writer fails, and goes on
    until(lambda: sink.lost == 10)
    sink.close()


def test_a_log_that_nobody_reads_does_not_keep_the_server_from_ending(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(audit_file, "WAITING_LINES", 2)
    monkeypatch.setattr(audit_file, "WRITE_SECONDS", 0.1)
    sink = AuditFile("-")
    read_end, sink._descriptor = os.pipe()
    sink._look_at = float("inf")
    line = b"x" * 70_000 + b"\n"  # more than a pipe holds: the writer stands still
    sink.tell(line)
    until(sink._lines.empty)
    while not sink.lost:
        sink.tell(line)
    closing = threading.Thread(target=sink.close, daemon=True)
    closing.start()
    closing.join(10)
    assert not closing.is_alive()
    os.close(read_end)


def test_what_is_no_file_of_ours_is_refused(tmp_path: Path):
    target = tmp_path / "target"
    target.write_text("")
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "no/such", "."):
        with pytest.raises(EnvironmentFailure):
            AuditFile(str(tmp_path / name))
