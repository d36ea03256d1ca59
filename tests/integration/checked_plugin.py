"""`kubeauthn plugin check`, run in the test's process; what it prints is looked through for secrets every time."""

from __future__ import annotations

import io
import json
import os
from typing import Any

from kubeauthn.cli.main import main
from kubeauthn.cli.world import World

SECRET = "SECRET-TOKEN-1234567890"


class Checked:
    """The report of one check, taken from its JSON; the text form must say the same and hold no secret either."""

    def __init__(self, code: int, text: str) -> None:
        self.code = code
        self.report: dict[str, Any] = json.loads(text)
        assert self.report["version"] == 1
        self.results = {entry["check"]: entry["result"] for entry in self.report["checks"]}
        self.reasons = {entry["check"]: entry["reason"] for entry in self.report["checks"]}

    @property
    def faults(self) -> list[str]:
        return [check for check, result in self.results.items() if result == "fault"]

    @property
    def notes(self) -> list[str]:
        return [check for check, result in self.results.items() if result == "note"]


def invoke(*arguments: object, environ: dict[str, str] | None = None) -> tuple[int, str, str]:
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    world = World(
        stdin=io.TextIOWrapper(io.BytesIO(), "utf-8"),
        stdout=out,
        stderr=err,
        environ=dict(os.environ) if environ is None else environ,
    )
    code = main(["plugin", "check", *map(str, arguments)], world)
    out.flush()
    err.flush()
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    assert SECRET not in "".join(texts)
    assert "PRIVATE KEY" not in "".join(texts)
    return code, texts[0], texts[1]


def check(*arguments: object, options: tuple[object, ...] = ()) -> Checked:
    code, out, err = invoke("--output", "json", *options, "--", *arguments)
    assert err == ""
    return Checked(code, out)
