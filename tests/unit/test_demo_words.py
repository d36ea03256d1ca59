"""How the demo speaks: plain in a file, coloured on a terminal, and with a command that the reader can type."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from kubeauthn.cli.demo_words import Words, spoken_program
from kubeauthn.cli.world import World
from kubeauthn.errors import EnvironmentFailure


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def world(stdout: io.StringIO, **environ: str) -> World:
    return World(stdin=io.StringIO(), stdout=stdout, stderr=io.StringIO(), environ=environ)


def spoken(stdout: io.StringIO, **environ: str) -> str:
    words = Words(world(stdout, **environ), kept=False)
    words.step("A step")
    with words.waiting_for("something"):
        pass
    words.held(True, "it held")
    words.leave_out("there is no such thing")
    words.try_next("cel", '"a" in ["b c"]')
    return stdout.getvalue()


PLAIN = """\
1. A step
  ok it held
  left out: there is no such thing
  try: kubeauthn cel '"a" in ["b c"]'
"""


def test_plain_where_there_is_no_terminal():
    assert spoken(io.StringIO(), TERM="xterm") == PLAIN


@pytest.mark.parametrize("environ", [{"TERM": "xterm", "NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_plain_on_a_terminal_that_wants_it_so(environ: dict[str, str]):
    assert spoken(Terminal(), **environ) == PLAIN


def test_coloured_on_a_terminal():
    assert "\x1b[32mok\x1b[0m it held" in spoken(Terminal(), TERM="xterm")


def test_what_does_not_hold_names_the_step():
    words = Words(world(io.StringIO()), kept=False)
    words.step("A step")
    with pytest.raises(EnvironmentFailure, match="step 1 of the demo did not hold: water flows uphill"):
        words.held(False, "water flows uphill")


def test_a_kept_stage_has_commands_of_its_own():
    stdout = io.StringIO()
    words = Words(world(stdout), kept=True)
    words.try_next("doctor", kept=("doctor", "--kubeconfig", Path("/a b")), own_kubeconfig=True)
    words.try_next("doctor", own_kubeconfig=True)
    assert stdout.getvalue() == (
        "  try: kubeauthn doctor --kubeconfig '/a b'\n  try with a kubeconfig of your own: kubeauthn doctor\n"
    )


def test_a_program_that_the_shell_would_not_find_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here, elsewhere = (tmp_path / name / "kubeauthn" for name in ("here", "elsewhere"))
    for program in (here, elsewhere):
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
    monkeypatch.setattr(sys, "argv", [str(here)])
    assert spoken_program(world(io.StringIO(), PATH=str(here.parent))) == "kubeauthn"
    assert spoken_program(world(io.StringIO(), PATH=str(elsewhere.parent))) == str(here)
    assert spoken_program(world(io.StringIO(), PATH=os.devnull)) == str(here)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "__main__.py")])
    assert spoken_program(world(io.StringIO(), PATH=os.devnull)) == "kubeauthn"
