"""A payload that the fast decoder cannot take: nested deeply, with numbers no double holds, or with lone surrogates.

Like Go's decoder: up to 10,000 levels, half a surrogate pair is U+FFFD, and a number that is too large is a fault of
the member that holds it, not of the whole. It keeps its own stack, so depth costs memory and no recursion.
"""

from __future__ import annotations

from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner; typeshed leaves it out
from typing import TYPE_CHECKING, Any

from kubeauthn._core.jose.limits import JSON_DEPTH
from kubeauthn.cel.large_numbers import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

_SPACE = " \t\r\n"
_DIGITS = frozenset("0123456789")
_NUMBER = frozenset("0123456789+-.eE")
_LITERALS: dict[str, tuple[str, Any]] = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}


def decode_exactly(text: str, *, whole: Callable[[str], float] = float) -> Any:
    """The value of a JSON text, its numbers as float or TooLarge. Raises ValueError.

    `whole` reads numbers that are written without a fraction and an exponent.
    """
    reader = _Reader(text, whole)
    value = reader.value()
    reader.skip_space()
    if reader.at != len(text):
        raise JSONDecodeError("Extra data", text, reader.at)
    return value


class _Reader:
    __slots__ = ("at", "text", "whole")

    def __init__(self, text: str, whole: Callable[[str], float]) -> None:
        self.text = text
        self.at = 0
        self.whole = whole

    def skip_space(self) -> None:
        text, at = self.text, self.at
        while at < len(text) and text[at] in _SPACE:
            at += 1
        self.at = at

    def value(self) -> Any:
        """One value, however deep. `stack` holds the open lists and objects, `names` the member each is waiting for."""
        stack: list[Any] = []
        names: list[str] = []
        while True:
            opened = self._opening()
            if opened is not None:
                if len(stack) >= JSON_DEPTH:
                    raise ValueError("exceeded max depth")
                if not self._closes("]" if isinstance(opened, list) else "}"):
                    stack.append(opened)
                    if isinstance(opened, dict):
                        names.append(self._name())
                    continue
                done: Any = opened
            else:
                done = self._scalar()
            # Put what is done where it belongs, and close what it ends.
            while stack:
                container = stack[-1]
                if isinstance(container, list):
                    container.append(done)
                else:
                    container[names.pop()] = done
                if not self._closes("]" if isinstance(container, list) else "}"):
                    self._expect(",")
                    if isinstance(container, dict):
                        names.append(self._name())
                    break
                done = stack.pop()
            else:
                return done

    def _opening(self) -> list[Any] | dict[str, Any] | None:
        self.skip_space()
        character = self.text[self.at : self.at + 1]
        if character not in ("[", "{"):
            return None
        self.at += 1
        return [] if character == "[" else {}

    def _closes(self, bracket: str) -> bool:
        self.skip_space()
        if self.text[self.at : self.at + 1] != bracket:
            return False
        self.at += 1
        return True

    def _expect(self, character: str) -> None:
        self.skip_space()
        if self.text[self.at : self.at + 1] != character:
            raise JSONDecodeError(f"Expecting '{character}' delimiter", self.text, self.at)
        self.at += 1

    def _name(self) -> str:
        self.skip_space()
        if self.text[self.at : self.at + 1] != '"':
            raise JSONDecodeError("Expecting property name enclosed in double quotes", self.text, self.at)
        name = self._string()
        self._expect(":")
        return name

    def _string(self) -> str:
        text: str
        text, self.at = scanstring(self.text, self.at + 1, True)
        if text.isascii():
            return text
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)

    def _scalar(self) -> Any:
        character = self.text[self.at : self.at + 1]
        if character == '"':
            return self._string()
        word, value = _LITERALS.get(character, ("", None))
        if word and self.text.startswith(word, self.at):
            self.at += len(word)
            return value
        return self._number()

    def _number(self) -> float | TooLarge:
        start = end = self.at
        while end < len(self.text) and self.text[end] in _NUMBER:
            end += 1
        written = self.text[start:end]
        if not _is_number(written):
            raise JSONDecodeError("Expecting value", self.text, start)
        self.at = end
        number = self.whole(written) if _are_digits(written.removeprefix("-")) else float(written)
        return TooLarge(written) if number in (float("inf"), float("-inf")) else number


def _is_number(text: str) -> bool:
    """-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?"""
    mantissa, letter, exponent = text.lower().removeprefix("-").partition("e")
    whole, point, fraction = mantissa.partition(".")
    if exponent[:1] in ("+", "-"):
        exponent = exponent[1:]
    return (
        _are_digits(whole)
        and (whole == "0" or whole[0] != "0")
        and (not point or _are_digits(fraction))
        and (not letter or _are_digits(exponent))
    )


def _are_digits(text: str) -> bool:
    return text != "" and _DIGITS.issuperset(text)
