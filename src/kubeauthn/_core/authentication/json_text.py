"""JSON text to nodes, with places, and with the error texts of Go's decoder."""

from __future__ import annotations

import json
from bisect import bisect_right

from kubeauthn._core.authentication.nodes import DEPTH, Entry, Node, unreadable
from kubeauthn.cel.go_text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn.errors import AuthenticationConfigError

_SPACE = " \t\r\n"
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdefABCDEF")
_LITERALS = {"t": ("true", "bool", True), "f": ("false", "bool", False), "n": ("null", "null", None)}
_DECODER = json.JSONDecoder()
_IN_ESCAPE, _IN_HEX = "in string escape code", "in \\u hexadecimal character escape"
_IN_NUMBER, _AFTER_POINT = "in numeric literal", "after decimal point in numeric literal"
_IN_EXPONENT = "in exponent of numeric literal"
_NO_SPACE = {_IN_ESCAPE, _IN_HEX, _IN_NUMBER, _AFTER_POINT, _IN_EXPONENT} | {
    f"in literal {word} (expecting '{letter}')" for word, _, _ in _LITERALS.values() for letter in word
}
"""Where a space, which means nothing elsewhere, is as wrong as anything."""
UNREADABLE = "couldn't get version/kind; json parse error: "


def looks_like_json(text: str) -> bool:
    """Whether Kubernetes takes the text for JSON: by its first character, which no array has."""
    return text.lstrip().startswith("{")


def read_json(text: str) -> Node:
    """The tree of a JSON text. Fields that are given twice stand there twice."""
    reader = _Reader(text)
    root = reader.value(0)
    reader.skip_space()
    if reader.at < len(text):
        raise reader.fault("after top-level value")
    return root


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._line_starts = [0]
        end = text.find("\n")
        while end != -1:
            self._line_starts.append(end + 1)
            end = text.find("\n", end + 1)

    def place(self, at: int) -> tuple[int, int]:
        line = bisect_right(self._line_starts, at)
        return line, at - self._line_starts[line - 1] + 1

    def fault(self, context: str) -> AuthenticationConfigError:
        """The character at hand does not belong here, or there is none."""
        at_end = self.at >= len(self.text)
        if at_end and context not in _NO_SPACE:
            return unreadable(f"{UNREADABLE}unexpected end of JSON input", *self.place(len(self.text)))
        # Go looks at bytes: of a character outside ASCII it shows the first byte as if it were one; and at the end
        # of the text it tries a space
        first = " " if at_end else chr(self.text[self.at].encode("utf-8", "replace")[0])
        shown = {"'": r"'\''", '"': "'\"'"}.get(first) or "'" + quote(first)[1:-1] + "'"
        return unreadable(f"{UNREADABLE}invalid character {shown} {context}", *self.place(self.at))

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip_space(self) -> None:
        text, at = self.text, self.at
        while at < len(text) and text[at] in _SPACE:
            at += 1
        self.at = at

    def value(self, depth: int) -> Node:
        self.skip_space()
        start = self.at
        first = self.peek()
        if first in ("{", "["):
            if depth >= DEPTH:
                raise unreadable(f"nested more than {DEPTH} levels deep", *self.place(start))
            self.at += 1
            if first == "{":
                return Node("object", self._object(depth), *self.place(start))
            return Node("array", self._array(depth), *self.place(start))
        if first == '"':
            return Node("string", self._string(), *self.place(start))
        if first in _LITERALS:
            word, kind, meaning = _LITERALS[first]
            for expected in word:
                if self.peek() != expected:
                    raise self.fault(f"in literal {word} (expecting '{expected}')")
                self.at += 1
            return Node(kind, meaning, *self.place(start))
        if first and (first == "-" or first in _DIGITS):
            self._number()
            return Node("number", self.text[start : self.at], *self.place(start))
        raise self.fault("looking for beginning of value")

    def _object(self, depth: int) -> list[Entry]:
        entries: list[Entry] = []
        self.skip_space()
        if self.peek() == "}":
            self.at += 1
            return entries
        while True:
            self.skip_space()
            start = self.at
            if self.peek() != '"':
                raise self.fault("looking for beginning of object key string")
            key = self._string()
            self.skip_space()
            if self.peek() != ":":
                raise self.fault("after object key")
            self.at += 1
            entries.append(Entry(key, self.value(depth + 1), *self.place(start)))
            if self._ends("}", "after object key:value pair"):
                return entries

    def _array(self, depth: int) -> list[Node]:
        items: list[Node] = []
        self.skip_space()
        if self.peek() == "]":
            self.at += 1
            return items
        while True:
            items.append(self.value(depth + 1))
            if self._ends("]", "after array element"):
                return items

    def _ends(self, closing: str, context: str) -> bool:
        self.skip_space()
        found = self.peek()
        if found not in (",", closing) or not found:
            raise self.fault(context)
        self.at += 1
        return found == closing

    def _string(self) -> str:
        decoded: str
        try:
            decoded, self.at = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError:
            self._find_string_fault()
            raise
        if decoded.isascii():
            return decoded
        # half of a surrogate pair is no character
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in decoded)

    def _find_string_fault(self) -> None:
        self.at += 1
        while True:
            character = self.peek()
            if not character or character < " ":
                raise self.fault("in string literal")
            if character == "\\":
                self.at += 1
                if self.peek() == "u":
                    for _ in range(4):
                        self.at += 1
                        if self.peek() not in _HEX:
                            raise self.fault(_IN_HEX)
                elif not self.peek() or self.peek() not in '"\\/bfnrt':
                    raise self.fault(_IN_ESCAPE)
            self.at += 1

    def _number(self) -> None:
        if self.peek() == "-":
            self.at += 1
        if self.peek() not in _DIGITS:
            raise self.fault(_IN_NUMBER)
        if self.peek() == "0":
            self.at += 1
        else:
            self._digits()
        if self.peek() == ".":
            self.at += 1
            if self.peek() not in _DIGITS:
                raise self.fault(_AFTER_POINT)
            self._digits()
        if self.peek() in ("e", "E"):
            self.at += 1
            if self.peek() in ("+", "-"):
                self.at += 1
            if self.peek() not in _DIGITS:
                raise self.fault(_IN_EXPONENT)
            self._digits()

    def _digits(self) -> None:
        while self.peek() in _DIGITS:
            self.at += 1
