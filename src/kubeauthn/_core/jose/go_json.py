"""What Go's JSON decoder says of a text that is none: people search for these words."""

from __future__ import annotations

from kubeauthn.cel.go_text import quote
from kubeauthn.cel.large_numbers import TooLarge

KINDS = {
    TooLarge: "number",
    str: "string",
    bool: "bool",
    float: "number",
    int: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
"""How Go names the kind of a JSON value."""

_SPACE = frozenset(b" \t\r\n")
_DIGITS = frozenset(b"0123456789")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_ESCAPES = frozenset(b'bfnrtu\\/"')
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}
_AFTER = {ord("{"): "after object key:value pair", ord("["): "after array element"}


def kind(value: object) -> str:
    """The kind of a decoded JSON value, in Go's words."""
    for known, name in KINDS.items():
        if isinstance(value, known):
            return name
    return "value"


def syntax_fault(text: bytes) -> str:
    """The first thing that makes the text no JSON, in Go's words; "" if nothing does."""
    try:
        _Scanner(text).read()
    except _Fault as fault:
        return str(fault)
    return ""


class _Fault(Exception):
    pass


class _Scanner:
    """Goes over a JSON text and keeps nothing of it. Brackets are on a list of their own: depth costs no recursion."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0

    def read(self) -> None:
        open_brackets: list[int] = []
        while True:
            bracket = self._value_or_bracket()
            if bracket:
                open_brackets.append(bracket)
                if self._peek() != _CLOSING[bracket]:
                    if bracket == ord("{"):
                        self._name()
                    continue
            while open_brackets and self._peek() == _CLOSING[open_brackets[-1]]:
                self.at += 1
                open_brackets.pop()
            if not open_brackets:
                self._skip_space()
                if self.at < len(self.text):
                    raise self._fault("after top-level value")
                return
            self._expect(ord(","), _AFTER[open_brackets[-1]])
            if open_brackets[-1] == ord("{"):
                self._name()

    def _value_or_bracket(self) -> int:
        """The bracket that opens, or 0 after a value."""
        first = self._peek()
        if first in _CLOSING:
            self.at += 1
            return first
        if first == ord('"'):
            self._string()
        elif first in _LITERALS:
            self._literal(_LITERALS[first])
        elif first == ord("-") or first in _DIGITS:
            self._number()
        else:
            raise self._fault("looking for beginning of value")
        return 0

    def _name(self) -> None:
        if self._peek() != ord('"'):
            raise self._fault("looking for beginning of object key string")
        self._string()
        self._expect(ord(":"), "after object key")

    def _string(self) -> None:
        self.at += 1
        while (byte := self._byte()) != ord('"'):
            if byte < ord(" "):
                raise self._fault("in string literal")
            self.at += 1
            if byte == ord("\\"):
                self._escape()
        self.at += 1

    def _escape(self) -> None:
        self._one_of(_ESCAPES, "in string escape code")
        if self.text[self.at - 1] == ord("u"):
            for _ in range(4):
                self._one_of(_HEX, "in \\u hexadecimal character escape")

    def _literal(self, word: bytes) -> None:
        for expected in word:
            self._one_of(frozenset((expected,)), f"in literal {word.decode()} (expecting '{chr(expected)}')")

    def _number(self) -> None:
        if self._byte() == ord("-"):
            self.at += 1
        if self._next() == ord("0"):
            self.at += 1
        else:
            self._digits("in numeric literal")
        if self._next() == ord("."):
            self.at += 1
            self._digits("after decimal point in numeric literal")
        if self._next() in (ord("e"), ord("E")):
            self.at += 1
            if self._next() in (ord("+"), ord("-")):
                self.at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str) -> None:
        self._one_of(_DIGITS, context)
        while self._next() in _DIGITS:
            self.at += 1

    def _one_of(self, allowed: frozenset[int], context: str) -> None:
        if self._next() not in allowed:
            raise self._fault(context)
        self.at += 1

    def _expect(self, wanted: int, context: str) -> None:
        if self._peek() != wanted:
            raise self._fault(context)
        self.at += 1

    def _peek(self) -> int:
        """The next byte that is no space."""
        self._skip_space()
        return self._byte()

    def _skip_space(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in _SPACE:
            self.at += 1

    def _next(self) -> int:
        return self.text[self.at] if self.at < len(self.text) else -1

    def _byte(self) -> int:
        if self.at >= len(self.text):
            raise _Fault("unexpected end of JSON input")
        return self.text[self.at]

    def _fault(self, context: str) -> _Fault:
        # Go looks at bytes, and at the end it tries a space
        character = chr(self.text[self.at]) if self.at < len(self.text) else " "
        shown = {"'": r"\'", '"': '"'}.get(character) or quote(character)[1:-1]
        return _Fault(f"invalid character '{shown}' {context}")
