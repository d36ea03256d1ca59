"""Which tokens may come where, and how the messages name them."""

from __future__ import annotations

from .lexer import Token
from .source import Source

__all__ = [
    "AFTER_MEMBER", "ARGUMENT_START", "EXPRESSION_START", "FIELD_START", "IDENTIFIERS", "INDEX_START", "LIST_NEXT",
    "LIST_START", "MAP_NEXT", "MAP_START", "OPERATORS", "PRIMARY_START", "STRUCT_START", "SUFFIXES", "name", "name_set",
    "no_viable", "show",
]  # fmt: skip

# In the order of the grammar's token types, which is the order inside a message's braces.
_ORDER = (
    "EOF", "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?",
    ":", "+", "*", "/", "%", "true", "false", "null", "FLOAT", "INT", "UINT", "STRING", "BYTES", "IDENT", "ESC",
)  # fmt: skip
_NAMES = {
    "EOF": "<EOF>", "FLOAT": "NUM_FLOAT", "INT": "NUM_INT", "UINT": "NUM_UINT", "STRING": "STRING", "BYTES": "BYTES",
    "IDENT": "IDENTIFIER", "ESC": "ESC_IDENTIFIER",
}  # fmt: skip

PRIMARY_START = frozenset((
    "[", "{", "(", ".", "-", "true", "false", "null", "FLOAT", "INT", "UINT", "STRING", "BYTES", "IDENT",
))  # fmt: skip
EXPRESSION_START = PRIMARY_START | {"!"}
INDEX_START = EXPRESSION_START | {"?"}
ARGUMENT_START = EXPRESSION_START | {")"}
LIST_START = EXPRESSION_START | {"]", ",", "?"}
LIST_NEXT = frozenset(("]", ","))
MAP_START = EXPRESSION_START | {"}", ",", "?"}
MAP_NEXT = frozenset(("}", ","))
FIELD_START = frozenset(("?", "IDENT", "ESC"))
STRUCT_START = frozenset(("}", ",", "?", "IDENT", "ESC"))
OPERATORS = frozenset((
    "==", "!=", "in", "<", "<=", ">=", ">", "&&", "||", "-", "?", "+", "*", "/", "%",
))  # fmt: skip
SUFFIXES = frozenset((".", "["))
AFTER_MEMBER = OPERATORS | SUFFIXES
IDENTIFIERS = frozenset(("IDENT", "ESC"))


def name(kind: str) -> str:
    return _NAMES.get(kind) or f"'{kind}'"


def name_set(kinds: frozenset[str]) -> str:
    return "{" + ", ".join(name(kind) for kind in _ORDER if kind in kinds) + "}"


def show(token: Token) -> str:
    return f"'{_escaped(token[1])}'"


def _escaped(text: str) -> str:
    return text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def no_viable(source: Source, start: int, offending: Token) -> str:
    """The message for a choice that no look ahead could make. White space and comments are part of the input that it
    shows, what is no token is not."""
    kind, text, offset = offending
    seen = source.recognised(start, offset)
    if kind in ("true", "false", "null") and len(seen) == 1:
        return f"mismatched input '{text}' expecting IDENTIFIER"
    seen += "" if kind == "EOF" else text
    return f"no viable alternative at input '{_escaped(seen)}'"
