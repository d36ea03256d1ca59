"""A payload that the fast decoder cannot take: nested deeply, with numbers no double holds, or with lone surrogates.

Like Go's decoder: up to 10,000 levels, half a surrogate pair is U+FFFD, and a number that is too large is a fault of
the member that holds it, not of the whole. It keeps its own stack, so depth costs memory and no recursion. Anybody can
send such a payload, so it must not cost much more than others: what holds nothing is read by the fast decoder.
"""

from __future__ import annotations

import json
from json import JSONDecodeError
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner; typeshed leaves it out
from typing import TYPE_CHECKING, Any

from kubeauthn._core.jose.limits import JSON_DEPTH
from kubeauthn.cel.large_numbers import TooLarge

if TYPE_CHECKING:
    from collections.abc import Callable

_LARGEST = float.fromhex("0x1.fffffffffffffp+1023")
_SPACE = " \t\r\n"
_END = "\0"
"""Stands behind the text, so that nobody looks past its end. JSON has no place for it."""


def decode_exactly(text: str, *, whole: Callable[[str], float] = float) -> Any:
    """The value of a JSON text, its numbers as float or TooLarge. Raises ValueError.

    `whole` reads numbers that are written without a fraction and an exponent.
    """
    reader = _Reader(text + _END, whole)
    value = reader.value()
    if reader.skip_space() != len(text):
        raise JSONDecodeError("Extra data", text, reader.at)
    return value


class _Reader:
    __slots__ = ("_scan", "at", "text")

    def __init__(self, text: str, whole: Callable[[str], float]) -> None:
        self.text = text
        self.at = 0

        def read_whole(written: str) -> float | TooLarge:
            number = whole(written)
            return number if -_LARGEST <= number <= _LARGEST else TooLarge(written)

        decoder = json.JSONDecoder(parse_int=read_whole, parse_float=_read_double, parse_constant=_no_constant)
        self._scan = decoder.scan_once  # type: ignore[attr-defined]

    def skip_space(self) -> int:
        text, at = self.text, self.at
        while text[at] in _SPACE:
            at += 1
        self.at = at
        return at

    def value(self) -> Any:
        """One value, however deep. `stack` holds the open lists and objects, `names` the member each is waiting for."""
        text = self.text
        stack: list[Any] = []
        names: list[str] = []
        while True:
            character = text[self.at]
            if character in _SPACE:
                character = text[self.skip_space()]
            if character == "[" or character == "{":
                if len(stack) >= JSON_DEPTH:
                    raise ValueError("exceeded max depth")
                self.at += 1
                done: Any = [] if character == "[" else {}
                if text[self.skip_space()] == _CLOSING[character]:
                    self.at += 1
                else:
                    stack.append(done)
                    if character == "{":
                        names.append(self._name())
                    continue
            else:
                done = self._string() if character == '"' else self._scalar()
            # Put what is done where it belongs, and close what it ends.
            while stack:
                container = stack[-1]
                is_list = type(container) is list
                if is_list:
                    container.append(done)
                else:
                    container[names.pop()] = done
                character = text[self.at]
                if character in _SPACE:
                    character = text[self.skip_space()]
                self.at += 1
                if character == ",":
                    if not is_list:
                        self.skip_space()
                        names.append(self._name())
                    break
                if character != ("]" if is_list else "}"):
                    raise JSONDecodeError("Expecting ',' delimiter", text, self.at - 1)
                done = stack.pop()
            else:
                return done

    def _name(self) -> str:
        if self.text[self.at] != '"':
            raise JSONDecodeError("Expecting property name enclosed in double quotes", self.text, self.at)
        name = self._string()
        if self.text[self.skip_space()] != ":":
            raise JSONDecodeError("Expecting ':' delimiter", self.text, self.at)
        self.at += 1
        return name

    def _string(self) -> str:
        text: str
        text, self.at = scanstring(self.text, self.at + 1, True)
        if text.isascii():
            return text
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)

    def _scalar(self) -> Any:
        try:
            value, self.at = self._scan(self.text, self.at)
        except StopIteration:
            raise JSONDecodeError("Expecting value", self.text, self.at) from None
        return value


_CLOSING = {"[": "]", "{": "}"}


def _read_double(written: str) -> float | TooLarge:
    number = float(written)
    return number if -_LARGEST <= number <= _LARGEST else TooLarge(written)


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")
