"""A token's text: one way to write it, and no other."""

from __future__ import annotations

import base64
import os

import pytest

from kubeauthn._core.jose.compact import NotCompact, decode_part, decode_text, split_compact
from kubeauthn._core.jose.limits import TOKEN_CHARACTERS


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


@pytest.mark.parametrize("length", [*range(1, 10), 255, 256, 257])
def test_bytes_of_every_length_come_back(length):
    data = os.urandom(length)
    assert decode_text(encoded(data)) == data


def test_parts_and_what_is_signed():
    signed, header, payload, signature = split_compact(f"{encoded(b'h?>')}.{encoded(b'p?>')}.{encoded(b's?>')}")
    assert signed == f"{encoded(b'h?>')}.{encoded(b'p?>')}".encode()
    assert [decode_part(part) for part in (header, payload, signature)] == [b"h?>", b"p?>", b"s?>"]


@pytest.mark.parametrize(
    "text",
    ["", "a", "a.b", "a.b.c.d", "a.b.c.d.e", ".", "...", '{"payload":""}'],
)
def test_what_is_not_three_parts(text):
    with pytest.raises(NotCompact):
        split_compact(text)


@pytest.mark.parametrize("other", ["QUJD", "-_-_", "+A", "/A", "QQ=="])
@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("QQ==", "byte 2"),
        ("Q+I_", "byte 1"),
        ("Q/I_", "byte 1"),
        ("Q I_", "byte 1"),
        ("Q!I-", "byte 1"),
        ("QUI\n", "byte 3"),
        ("\0UJD", "byte 0"),
        ("QU\u00e9D", "byte 2"),
        ("QUJ\ud800", "byte 3"),
        ("\u00e9", "byte 0"),
        ("QUJDR", "byte 4"),
        ("QR", "stray bits"),
    ],
)
def test_a_part_is_judged_alike_whatever_stands_in_the_others(part, says, other):
    """Characters of the standard alphabet anywhere in a token choose another way of reading it."""
    for at in range(3):
        parts = [other, other, other]
        parts[at] = part
        with pytest.raises(ValueError, match=says):
            decode_part(split_compact(".".join(parts))[at + 1])


def test_a_part_in_the_standard_alphabet_is_never_the_same_as_one_in_the_other():
    """A header is known again by its text."""
    assert split_compact("-_.A.A")[1] != split_compact("+/.A.A")[1]
    assert split_compact("-_.A.A")[1] == split_compact("-_.A.+")[1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("QQ==", "byte 2"),
        ("QUI=", "byte 3"),
        ("Q+I_", "byte 1"),
        ("Q/I_", "byte 1"),
        ("Q I_", "byte 1"),
        ("QUI\n", "byte 3"),
        ("\ufeffQUI", "ascii"),
        ("Q.I_", "byte 1"),
        ("QR", "stray bits"),  # QQ is the one way to write A
        ("QUJ", "stray bits"),
        ("QUJDR", "byte 4"),
    ],
)
def test_text_that_is_not_canonical(text, says):
    with pytest.raises(ValueError, match=says):
        decode_text(text)


def test_every_last_character_but_the_canonical_ones_is_refused():
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    accepted = []
    for last in alphabet:
        try:
            accepted.append(decode_text("A" + last))
        except ValueError:
            continue
    assert sorted(accepted) == [bytes([number]) for number in range(4)]


@pytest.mark.parametrize("size", [TOKEN_CHARACTERS + 1, 1_000_000, 100_000_000])
def test_a_huge_token_is_not_looked_at(size):
    with pytest.raises(NotCompact, match="at most"):
        split_compact("." * size)
