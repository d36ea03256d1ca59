"""How to mend an expression that does not compile: what people bring along from other languages."""

from __future__ import annotations

_NAMES = "a name of more than letters, digits and _ stands in brackets: claims['a-b']"
_TYPOGRAPHIC = "these are quotation marks of a text processor: write ' or \""
_LOWER, _UPPER = "it is written x.lowerAscii()", "it is written x.upperAscii()"
_SIZE, _EXISTS = "it is written size(x)", "it is written dyn(x).exists(e, …), or 'value' in x"
_COMPARE = "to compare is ==: claims.x == 'y'"
_OPERATORS = "and is &&, or is ||, not is !"

_BY_TEXT = (
    ("cannot be range of a comprehension", "a claim may be anything: write dyn(…) around one that is a list"),
    ("must evaluate to bool", "compare it with something: a claim may be anything, and a rule wants true or false"),
    ("token recognition error at: '= '", _COMPARE),
    ("token recognition error at: '='", _COMPARE),
    ("token recognition error at: '&", _OPERATORS),
    ("token recognition error at: '|", _OPERATORS),
    ("mismatched input 'and'", _OPERATORS),
    ("mismatched input 'or'", _OPERATORS),
    ("token recognition error at: '$", "an expression is no template: claims.x, without $ and braces around it"),
    ("token recognition error at: '“", _TYPOGRAPHIC),
    ("token recognition error at: '‘", _TYPOGRAPHIC),
    ("input ':' expecting <EOF>", _NAMES),
    ("claims?.", "a claim that may be missing is claims.?x, and claims.?x.orValue('') a text in its place"),
    ("reserved identifier: if", "a choice is written CONDITION ? A : B"),
    ("invalid argument to has() macro", "has takes a field, has(claims.x): for other names write 'a-b' in claims"),
    ("invalid matches argument", "patterns are those of RE2: no lookahead, no lookbehind, no back references"),
    ("'_==_' applied to '(list(string), string)'", "it is a list of strings: write 'x' in …, or … == ['x']"),
    ("undefined field '", "user has username, uid, groups and extra"),
)  # fmt: skip

_FUNCTIONS = {
    "len": _SIZE, "length": _SIZE, "count": _SIZE,
    "lower": _LOWER, "toLower": _LOWER, "tolower": _LOWER, "lowercase": _LOWER, "toLowerCase": _LOWER,
    "upper": _UPPER, "toUpper": _UPPER, "toupper": _UPPER, "uppercase": _UPPER, "toUpperCase": _UPPER,
    "any": _EXISTS, "some": _EXISTS, "includes": _EXISTS,
    "startswith": "it is written startsWith", "hasPrefix": "it is written startsWith",
    "endswith": "it is written endsWith", "hasSuffix": "it is written endsWith",
    "match": "it is written matches", "regex": "it is written x.matches('…')",
    "strip": "it is written x.trim()",
    "now": "an expression has no clock: exp and nbf are looked at anyway",
}  # fmt: skip


def cel_hint(text: str) -> str:
    """What may be added to a message of the CEL checker, or ""."""
    found = next((hint for part, hint in _BY_TEXT if part in text), "")
    return found or next((hint for name in _undeclared(text) if (hint := _of_name(name, text))), "")


def unknown_name_hint(text: str, *, of_user: bool) -> str:
    """What there is instead of a name that nobody declared, if that is the fault. `of_user`: in a user rule."""
    if all(f"{name}(" in text for name in _undeclared(text)):
        return ""  # a function, or no name at all
    if of_user:
        return "a user rule knows user: user.username, .uid, .groups and .extra; a text stands in quotes"
    return "a claim is claims.NAME, and a text stands in quotes"


def _undeclared(text: str) -> list[str]:
    return [part.partition("'")[0] for part in text.split("undeclared reference to '")[1:]]


def _of_name(name: str, text: str) -> str:
    if name in _FUNCTIONS:
        return _FUNCTIONS[name]
    if name == "user":
        return "only user rules have user; mappings and claim rules have claims"
    if name == "claims":
        return "only mappings and claim rules have claims; user rules have user"
    return _NAMES if f"-{name}" in text else ""
