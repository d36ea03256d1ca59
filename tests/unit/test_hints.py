from __future__ import annotations

from kubeauthn._core.hints import HintLimit


def test_ten_times_an_hour_and_then_again() -> None:
    limit = HintLimit()
    shown = [limit.allow("brew install x", 1000.0 + minute * 60) for minute in range(60)]
    assert shown == ["brew install x"] * 10 + [None] * 50
    assert limit.allow("brew install x", 1000.0 + 3600) == "brew install x"


def test_no_hint_is_no_hint() -> None:
    assert HintLimit().allow("", 0.0) is None


def test_no_terminal_obeys_a_hint() -> None:
    shown = HintLimit().allow("\x1b[1mbrew\tinstall\n\u202ex\x7f: größer ✓", 0.0)
    assert shown == "U+001B[1mbrew\tinstall\nU+202Ex" + "U+007F: größer ✓"
