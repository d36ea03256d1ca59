"""Other people's text on a terminal, and times in words."""

from __future__ import annotations

import pytest

from kubeauthn.cli.text import aligned, duration, escaped, escaped_lines, time_left


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ä and 漢", "plain text, ä and 漢"),
        ("\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("right\u202eto left", "right\\u202eto left"),
        ("\x9b31m", "\\x9b31m"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("not utf-8 \udcff", "not utf-8 \\udcff"),
        # letters and marks by their category, of which nothing is seen
        ("admin\u3164", "admin\\u3164"),
        ("admin\uffa0\u115f\u2800", "admin\\uffa0\\u115f\\u2800"),
        ("admin\ufe0f\u034f\u180b\U000e0100", "admin\\ufe0f\\u034f\\u180b\\U000e0100"),
        ("e\u0301, مرحبا, नमस्ते and 😀", "e\u0301, مرحبا, नमस्ते and 😀"),
    ],
)
def test_nothing_a_terminal_would_obey(text: str, shown: str):
    assert escaped(text) == shown


def test_long_text_is_cut():
    assert escaped("x" * 1000) == "x" * 400 + "…"


def test_lines_stay_lines():
    assert escaped_lines("one\r\n\ttwo\x1b\n") == ["one", "        two\\x1b"]


def test_columns():
    assert aligned([("a", "1"), ("long", ""), ("b", "22")]) == ["a      1", "long", "b      22"]
    assert aligned([]) == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (90, "1 minute 30 seconds"),
        (3600, "1 hour"),
        (3605, "1 hour"),
        (90000, "1 day 1 hour"),
        (86400 * 366, "1 year 1 day"),
    ],
)
def test_durations(seconds: float, words: str):
    assert duration(seconds) == words


def test_time_left():
    assert time_left(100, 40) == "expires in 1 minute"
    assert time_left(40, 100) == "expired 1 minute ago"
