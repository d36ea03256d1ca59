"""How an answer looks: who decides about colour, and where lines are folded."""

from __future__ import annotations

import io

import pytest

from kubeauthn.cli.look import Look
from kubeauthn.cli.world import World


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def world(out: io.StringIO, **environ: str) -> World:
    return World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={"TERM": "xterm", **environ})


@pytest.mark.parametrize(
    ("out", "environ", "wanted", "coloured"),
    [
        pytest.param(Tty(), {}, "auto", True, id="a terminal"),
        pytest.param(io.StringIO(), {}, "auto", False, id="a pipe"),
        pytest.param(Tty(), {"TERM": "dumb"}, "auto", False, id="a terminal that cannot"),
        pytest.param(Tty(), {"NO_COLOR": "1"}, "auto", False, id="NO_COLOR"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "1"}, "auto", True, id="FORCE_COLOR in a pipe"),
        pytest.param(io.StringIO(), {"FORCE_COLOR": "0"}, "auto", False, id="FORCE_COLOR=0 asks for nothing"),
        pytest.param(Tty(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto", False, id="no is stronger than yes"),
        pytest.param(io.StringIO(), {"NO_COLOR": "1"}, "always", True, id="the command line is stronger than both"),
        pytest.param(Tty(), {"FORCE_COLOR": "1"}, "never", False, id="never"),
    ],
)
def test_who_decides_about_colour(out: io.StringIO, environ: dict[str, str], wanted: str, coloured: bool):
    assert world(out, **environ).look(wanted).colour is coloured


def test_a_pipe_has_no_width_and_nothing_is_folded_in_it():
    look = world(io.StringIO(), FORCE_COLOR="1").look()
    assert look.width is None
    assert look.folded("word " * 100, 10) == ["word " * 100]


def test_a_terminal_that_does_not_say_its_width_has_eighty_columns():
    assert world(Tty()).look().width == 80


def test_lines_are_folded_between_words_and_long_words_stay_whole():
    look = Look(width=40)
    assert look.folded("aaaa bbbb cccc dddd eeee ffff gggg", 20) == ["aaaa bbbb cccc dddd", "eeee ffff gggg"]
    token = "x" * 60
    assert look.folded(f"the token {token} is long", 20) == ["the token", token, "is long"]
    assert Look(width=25).folded("aaaa bbbb cccc", 20) == ["aaaa bbbb cccc"], "no room for a column"


def test_a_first_line_that_begins_further_right_is_shorter():
    assert Look(width=40).folded("aaaa bbbb cccc dddd eeee ffff gggg", 4, first=24) == [
        "aaaa bbbb cccc",
        "dddd eeee ffff gggg",
    ]


def test_what_somebody_else_indents_has_less_room():
    assert Look(width=80).narrower(5).width == 75
    assert Look(colour=True).narrower(5).width is None
