"""Regular expressions: RE2's rules, Go's error texts, linear time."""

from __future__ import annotations

import threading
import time

import pytest

from kubeauthn.cel import regex
from kubeauthn.cel.unicode_classes import Classes, go_classes


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
    started = time.process_time()
    assert not regex.matches(text + "!", "^(a+)+$")
    assert regex.find(text, "(a|aa)+$") == text
    assert time.process_time() - started < 5


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


def test_a_pattern_of_many_unicode_classes_stays_small() -> None:
    """In brackets, what is not assigned is a list of ranges: a pattern from a token could repeat it."""
    assert regex.matches("\u0378", r"[a\pC]") is True
    with pytest.raises(regex.RegexError, match="^error parsing regexp: expression too large: "):
        regex.matches("a", r"[a\pC]" * 1000)


def test_a_class_that_go_refuses_is_shown_as_it_was_written() -> None:
    with pytest.raises(
        regex.RegexError, match=r"^error parsing regexp: invalid character class range: `\\p\{Old_Italic\}`$"
    ):
        regex.matches("a", r"\p{Old_Italic}")


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        (r"\pm[\pm", r"missing closing ]: `[\pm`"),
        (r"\pm(\pm", r"missing closing ): `\pm(\pm`"),
        (r"\pm[b-\pm]", r"invalid escape sequence: `\p`"),
        (r"a-\pm\p", r"invalid character class range: `\p`"),
        (r"\p{Mark}a{2000}", r"invalid repeat count: `{2000}`"),
    ],
)
def test_a_fault_shows_the_pattern_as_it_was_written(pattern: str, shown: str) -> None:
    with pytest.raises(regex.RegexError) as caught:
        regex.matches("a", pattern)
    assert str(caught.value) == f"error parsing regexp: {shown}"


@pytest.mark.parametrize("part", ["\\p{", "[[:", "\\Q", "\\pL", "[\\pL", "\\p{L}"])
def test_classes_are_left_alone_where_they_are_right(part: str) -> None:
    """However many there are: looking for the end of each in the whole rest would take very long here."""
    text = part * 100_000
    parts = go_classes(text, Classes(lambda name: False, str))
    assert all(made == written for written, made in parts)
    assert "".join(made for _, made in parts) == text
