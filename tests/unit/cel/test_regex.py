"""Regular expressions: RE2's rules, Go's error texts, linear time."""

from __future__ import annotations

import threading
import time

import pytest

from kubeauthn.cel import regex


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("(", "missing closing ): `(`"),
        ("[a", "missing closing ]: `[a`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("\\", "trailing backslash at end of expression: ``"),
        ("(?P<n", "invalid named capture: `(?P<n`"),
        ("x{2000}", "invalid repeat count: `{2000}`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a)", "unexpected ): `a)`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("\\8", "invalid escape sequence: `\\8`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("a\\C", "invalid escape sequence: `\\C`"),
    ],
)
def test_faults(pattern, fault) -> None:
    with pytest.raises(regex.RegexError) as caught:
        regex.compile_pattern(pattern)
    assert caught.value.message == f"error parsing regexp: {fault}"


@pytest.mark.parametrize("pattern", ["\\Q\\C\\E", "\\\\C", "\\Q\\C", "[\\\\]C"])
def test_a_backslash_and_a_letter_that_only_look_like_a_byte(pattern) -> None:
    regex.compile_pattern(pattern)


def test_no_pattern_takes_long() -> None:
    text = "a" * 50_000
    started = time.perf_counter()
    assert not regex.matches(text + "!", "^(a+)+$")
    assert regex.find(text, "(a|aa)+$") == text
    assert time.perf_counter() - started < 5


def test_the_end_is_the_end() -> None:
    assert not regex.matches("a\n", "^a$")
    assert not regex.matches("١", "^\\d$")


def test_matches_are_cut_between_characters() -> None:
    assert regex.find_all("日本語", ".") == ["日", "本", "語"]
    assert regex.find_all("é", "") == ["", ""]
    assert regex.find_all("aXbX", "[a-z]?") == ["a", "b", ""]
    assert regex.find_all("aa", "a", 0) == []


def test_text_that_no_encoding_can_hold_matches_something_else() -> None:
    assert regex.find("\ud800a", "a") == "a"
    with pytest.raises(regex.RegexError):
        regex.compile_pattern("\ud800")


def test_threads_share_the_patterns() -> None:
    found: list[bool] = []

    def work(start: int) -> None:
        found.extend(regex.matches(f"x{number}", f"^x{number}$") for number in range(start, start + 400))

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 1600
    assert all(found)
