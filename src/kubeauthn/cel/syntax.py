"""Which tokens may come where, and how the messages name them."""

from __future__ import annotations

from .lexer import Token

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


def no_viable(text: str, start: int, offending: Token) -> str:
    """The message for a choice that no look ahead could make."""
    if offending[0] in ("true", "false", "null") and offending[2] == start + 1:
        return f"mismatched input '{offending[1]}' expecting IDENTIFIER"
    if offending[0] == "EOF":
        # white space and comments are part of the input, what is no token is not
        rest = text[start + 1 :]
        end = len(text) if not rest.strip() or rest.lstrip().startswith("//") else start + 1
        return f"no viable alternative at input '{_escaped(text[start:end])}'"
    seen = _escaped(text[start : offending[2]] + offending[1])
    return f"no viable alternative at input '{seen}'"
