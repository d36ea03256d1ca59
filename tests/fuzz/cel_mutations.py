"""Expressions made from other expressions, and from nothing but tokens."""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["TOKENS", "mutated", "soup"]

_OPERATORS_TEXT = "+ - * / % ! && || == != < <= > >= in ? : . .? [ ] [? { } {? ( ) , ?"
_OPERATORS = _OPERATORS_TEXT.split(" ")
_LITERALS_TEXT = (
    "0 1 -1 2u 18446744073709551615u 9223372036854775807 -9223372036854775808 "
    "9223372036854775808 0x7fffffffffffffff 1.5 -0.0 1e308 1e999 5e-324 .5 1. true false null "
    "'' 'a' \"é\" '\\u0000' '\\U0010FFFF' '\\ud800' b'\\xff' b'' r'\\d+' '1s' '1970-01-01T00:00:00Z' "
    "'10.0.0.0/8' '1.2.3' '1.5Gi' '(a+)+$' '%s' '%' '__dot__' '\\n' '''x''' [] {} [1] {1:2}"
)
_LITERALS = _LITERALS_TEXT.split(" ")
_NAMES_TEXT = (
    "claims user s n b z l m email groups x y e i k v a class None __import__ self V c t1 k1 "
    "f1 __result__ @result __dot__ foo__dot__bar __ int string type dyn list map optional "
    "google.protobuf.Duration"
)
_NAMES = _NAMES_TEXT.split(" ")
_CALLS_TEXT = (
    "size has all exists exists_one existsOne map filter transformList transformMap "
    "transformMapEntry optMap optFlatMap sortBy matches find findAll split join replace "
    "substring charAt indexOf lastIndexOf lowerAscii upperAscii trim format quote contains "
    "startsWith endsWith int uint double string bytes bool duration timestamp dyn type "
    "getFullYear getSeconds getDate optional.of optional.none optional.ofNonZeroValue orValue "
    "or value hasValue unwrapOpt sets.contains sets.intersects lists.range slice flatten "
    "distinct sort first last isSorted sum min max url isURL getHost quantity isQuantity add "
    "sub sign ip isIP family cidr isCIDR containsIP semver isSemver isGreaterThan compareTo "
    "format.named validate cel.bind math.greatest"
)
_CALLS = _CALLS_TEXT.split(" ")
TOKENS = (*_OPERATORS, *_LITERALS, *_NAMES, *_CALLS)
_ODD_CHARACTERS = (
    "\0\x01\t\n\r\x0b\x0c\x1f\x7f\x85\xa0é\u2028\u202e\ufeff\ufffe\ufffd\U0001f600\ud800\udfff`'\"\\$#@~^;|&"
)

Mutation = Callable[[random.Random, str, list[str]], str]


def soup(source: random.Random) -> str:
    """Tokens at random; half of the time in an order that nearly makes sense."""
    if source.random() < 0.5:
        return source.choice(("", " ")).join(source.choice(TOKENS) for _ in range(source.randint(1, 40)))
    return _sketch(source, source.randint(1, 5))


def _sketch(source: random.Random, depth: int) -> str:
    if depth <= 0 or source.random() < 0.15:
        return source.choice(source.choice((_LITERALS, _NAMES)))
    part = [_sketch(source, depth - 1) for _ in range(3)]
    name, call = source.choice(_NAMES), source.choice(_CALLS)
    return source.choice((
        f"{part[0]} {source.choice(_OPERATORS)} {part[1]}", f"({part[0]})", f"[{part[0]}, {part[1]}]",
        f"{{{part[0]}: {part[1]}}}", f"{part[0]}.{name}", f"{part[0]}[{part[1]}]", f"{part[0]}.?{name}",
        f"{part[0]} ? {part[1]} : {part[2]}", f"{call}({part[0]})", f"{part[0]}.{call}({part[1]})",
        f"{part[0]}.{call}({name}, {part[1]})", f"{part[0]}.{call}({name}, {part[1]}, {part[2]})",
        f"{part[0]}.{call}()", f"!{part[0]}", f"-{part[0]}", f"has({part[0]}.{name})", f"{name}{{{name}: {part[0]}}}",
    ))  # fmt: skip


def mutated(source: random.Random, text: str, others: list[str]) -> str:
    """One to four changes, seldom many."""
    changes = source.randint(1, 4) if source.random() < 0.95 else source.randint(5, 30)
    for _ in range(changes):
        text = source.choice(_MUTATIONS)(source, text, others)
    return text[:5000]


def _span(source: random.Random, text: str) -> tuple[int, int]:
    start = source.randint(0, len(text))
    return start, min(len(text), start + source.choice((1, 1, 2, 3, 5, 8, 13, 40)))


def _delete(source: random.Random, text: str, others: list[str]) -> str:
    start, end = _span(source, text)
    return text[:start] + text[end:]


def _repeat(source: random.Random, text: str, others: list[str]) -> str:
    start, end = _span(source, text)
    return text[:end] + text[start:end] * source.choice((1, 1, 2, 3, 10, 60)) + text[end:]


def _insert_token(source: random.Random, text: str, others: list[str]) -> str:
    at = source.randint(0, len(text))
    space = source.choice(("", " "))
    return text[:at] + space + source.choice(TOKENS) + space + text[at:]


def _insert_character(source: random.Random, text: str, others: list[str]) -> str:
    at = source.randint(0, len(text))
    return text[:at] + source.choice(_ODD_CHARACTERS) + text[at:]


def _replace_word(source: random.Random, text: str, others: list[str]) -> str:
    """A name or number becomes another token."""
    words = _words(text)
    if not words:
        return text
    start, end = source.choice(words)
    return text[:start] + source.choice(source.choice((_LITERALS, _NAMES, _CALLS))) + text[end:]


def _swap_words(source: random.Random, text: str, others: list[str]) -> str:
    words = _words(text)
    if len(words) < 2:
        return text
    (one, one_end), (two, two_end) = sorted(source.sample(words, 2))
    return text[:one] + text[two:two_end] + text[one_end:two] + text[one:one_end] + text[two_end:]


def _words(text: str) -> list[tuple[int, int]]:
    words, start = [], -1
    for at, char in enumerate(text + " "):
        if char.isalnum() or char == "_":
            start = at if start < 0 else start
        elif start >= 0:
            words.append((start, at))
            start = -1
    return words


def _splice(source: random.Random, text: str, others: list[str]) -> str:
    other = source.choice(others)
    return text[: source.randint(0, len(text))] + other[source.randint(0, len(other)) :]


def _combine(source: random.Random, text: str, others: list[str]) -> str:
    """Two expressions side by side, which is often an expression."""
    other = source.choice(others)
    return source.choice((
        f"({text}) {source.choice(_OPERATORS)} ({other})", f"[{text}, {other}]", f"({text}) ? ({other}) : ({text})",
        f"[{text}].all(x, ({other}) == x)", f"[{text}].map(c, {other})", f"{{{text}: {other}}}",
        f"optional.of({text}).or(optional.of({other}))", f"[?optional.of({text}), {other}]", f"({text})[{other}]",
        f"dyn({text}) == dyn({other})", f"({text} == 1) || ({other} == 1)", f"[({text})].filter(t1, ({other}) == t1)",
        f"({text}).{source.choice(_CALLS)}({other})", f"'%s'.format([{text}])", f"string({text}) + string({other})",
    ))  # fmt: skip


def _nest(source: random.Random, text: str, others: list[str]) -> str:
    times = source.choice((1, 2, 5, 21, 70))
    before, after = source.choice((
        ("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("{1: ", "}"), ("dyn(", ")"), ("true ? (", ") : null"),
        ("[1].map(x, ", ")"), ("[1].all(x, ", ")"), ("false || (", ")"), ("true && (", ")"), ("optional.of(", ")"),
        ("", ".a"), ("", "[0]"), ("", ".?a"), ("1 + ", ""), ("[1].exists(x, true || ", ")"), ("string(", ")"),
    ))  # fmt: skip
    return before * times + text + after * times


_MUTATIONS: tuple[Mutation, ...] = (
    _delete, _repeat, _insert_token, _insert_character, _replace_word, _replace_word, _swap_words, _splice, _combine,
    _combine, _nest,
)  # fmt: skip
