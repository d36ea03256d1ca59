"""Lines of text for a terminal: one line each, whatever they hold, and nothing that a terminal obeys."""

from __future__ import annotations

import logging

import pytest

from kubeauthn.server.log_lines import FIELD_CHARACTERS, JsonLines, TextLines


@pytest.mark.parametrize("character", ["\n", "\r", "\x1b", "\x7f", "\x9b", "\u0085", "\u2028", "\u202e", "\ud800"])
def test_a_line_holds_nothing_that_a_terminal_obeys(character: str) -> None:
    record = logging.makeLogRecord({"msg": "the issuer says %s", "args": (f"straße{character}31m",)})
    record.fields = {"reason": character}
    line = TextLines().format(record)
    assert line.isprintable()
    assert "the issuer says straße\\" in line


@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()])
def test_a_reason_makes_no_line_of_any_length(formatter: logging.Formatter) -> None:
    record = logging.makeLogRecord({"msg": "token not authenticated"})
    record.fields = {"reason": "a" * FIELD_CHARACTERS, "number": 5}
    assert "a" * FIELD_CHARACTERS in formatter.format(record)
    record.fields = {"reason": f"the token says {'a' * 200_000}", "number": 5}
    line = formatter.format(record)
    assert len(line) < 2 * FIELD_CHARACTERS
    assert "the token says aaa" in line
