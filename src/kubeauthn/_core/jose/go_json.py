"""What Go's JSON decoder says of a text that is none: people search for these words."""

from __future__ import annotations

import json

_AFTER = {
    "Expecting value": "looking for beginning of value",
    "Extra data": "after top-level value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Invalid control character at": "in string literal",
    "Invalid \\escape": "in string escape code",
    "Invalid \\uXXXX escape": "in \\u hexadecimal character escape",
}

KINDS = {str: "string", bool: "bool", float: "number", int: "number", list: "array", dict: "object", type(None): "null"}
"""How Go names the kind of a JSON value."""


def kind(value: object) -> str:
    """The kind of a decoded JSON value, in Go's words."""
    for known, name in KINDS.items():
        if isinstance(value, known):
            return name
    return "value"


def syntax_error(error: json.JSONDecodeError) -> str:
    """The same fault in Go's words."""
    position = error.pos
    if error.msg.startswith("Illegal trailing comma"):
        position = _next_character(error.doc, position + 1)  # Python 3.13 points to the comma
    if position >= len(error.doc) or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    message = next((text for start, text in _AFTER.items() if error.msg.startswith(start)), "")
    if not message:
        message = "after array element" if _innermost(error.doc[:position]) == "[" else "after object key:value pair"
    return f"invalid character {_quoted(error.doc[position])} {message}"


def _next_character(text: str, position: int) -> int:
    return position + len(text[position:]) - len(text[position:].lstrip(" \t\r\n"))


def _quoted(character: str) -> str:
    byte = character.encode("utf-8", "replace")[0]  # Go looks at bytes
    if byte == ord("'"):
        return "'\\''"
    shown = chr(byte)
    return f"'{shown}'" if shown.isprintable() else f"'\\x{byte:02x}'"


def _innermost(text: str) -> str:
    """The bracket that is still open at the end of this valid beginning."""
    open_brackets: list[str] = []
    in_string = escaped = False
    for character in text:
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "[{":
            open_brackets.append(character)
        elif character in "]}" and open_brackets:
            open_brackets.pop()
    return open_brackets[-1] if open_brackets else ""
