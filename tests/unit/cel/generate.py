"""Random expressions that are well typed, for a given seed always the same ones.

Types are texts: "int", "list(int)", "map(string, int)". The generator knows a subset of the language in which
Kubernetes' implementation and cel-expr-python mean the same: no NUL, no nulls, no timestamps finer than a microsecond.
"""

from __future__ import annotations

import random
from collections.abc import Callable

__all__ = ["VARIABLES", "Generator", "values"]

VARIABLES = {
    "i": "int", "j": "int", "u": "uint", "d": "double", "s": "string", "t": "string", "b": "bool", "y": "bytes",
    "xs": "list(int)", "ss": "list(string)", "ds": "list(double)", "m": "map(string, int)", "n": "map(string, string)",
}  # fmt: skip
SCALARS = ("int", "uint", "double", "string", "bool", "bytes")
_INTS = (
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "10",
    "-5",
    "100",
    "9223372036854775807",
    "-9223372036854775808",
    "4611686018427387904",
)
_UINTS = ("0u", "1u", "2u", "3u", "10u", "18446744073709551615u", "9223372036854775808u")
_DOUBLES = ("0.0", "1.0", "-1.5", "2.25", "1e10", "0.5", "-0.0", "1e300", "9007199254740993.0", "1e-5")
_STRINGS = (
    "''",
    "'a'",
    "'b'",
    "'abc'",
    "'é'",
    "'\\U0001F600'",
    "'a,b'",
    "'12'",
    "' x '",
    '"q\'"',
    "'\\n'",
    "'A'",
    "'key'",
)
_BYTES = ("b''", "b'a'", "b'abc'", "b'\\xff'", "b'\\xc3\\xa9'")
_PATTERNS = ("'a'", "'^a'", "'b$'", "'[a-c]+'", "'a|b'", "'^$'", "'.'", "'\\\\d+'", "'(a)(b)?'")


def values() -> dict[str, object]:
    """The variables that the expressions are run with, as plain Python."""
    return {
        "i": 5, "j": -3, "u": 7, "d": 2.5, "s": "abc", "t": "é,x", "b": True, "y": b"ab", "xs": [1, 2, 3, 2],
        "ss": ["a", "b", "abc"], "ds": [1.0, -2.5], "m": {"a": 1, "b": 2}, "n": {"a": "x", "abc": "y"},
    }  # fmt: skip


class Generator:
    """Writes expressions of a wanted type."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.scope: list[tuple[str, str]] = list(VARIABLES.items())

    def expression(self) -> tuple[str, str]:
        """An expression and its type."""
        kind = self.random.choice((*SCALARS, "bool", "bool", "list(int)", "list(string)", "map(string, int)"))
        return self.make(kind, self.random.randint(1, 5)), kind

    def make(self, kind: str, depth: int) -> str:
        if depth <= 0 or self.random.random() < 0.12:
            return self.leaf(kind)
        makers = self._makers(kind)
        return self.random.choice(makers)(depth - 1)

    def leaf(self, kind: str) -> str:
        names = [name for name, of in self.scope if of == kind]
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        if kind.startswith("list("):
            element = kind[5:-1]
            return "[" + ", ".join(self.leaf(element) for _ in range(self.random.randint(1, 3))) + "]"
        if kind.startswith("map("):
            element = kind[:-1].rpartition(" ")[2]
            return "{" + ", ".join(f"'{key}': {self.leaf(element)}" for key in "ab"[: self.random.randint(1, 2)]) + "}"
        return self.random.choice({
            "int": _INTS, "uint": _UINTS, "double": _DOUBLES, "string": _STRINGS, "bool": ("true", "false"),
            "bytes": _BYTES,
        }[kind])  # fmt: skip

    def _pick(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _in_loop(self, element: str, kind: str, depth: int) -> tuple[str, str]:
        """A name for the element, and an expression that may use it."""
        name = self._pick("x", "e", "c", "s", "class", "V")
        self.scope.append((name, element))
        hidden, self.scope = self.scope, [pair for pair in self.scope[:-1] if pair[0] != name] + [(name, element)]
        body = self.make(kind, depth)
        self.scope = hidden[:-1]
        return name, body

    def _makers(self, kind: str) -> list[Callable[[int], str]]:
        make = self.make
        makers: list[Callable[[int], str]] = [
            lambda depth: f"({make('bool', depth)} ? {make(kind, depth)} : {make(kind, depth)})",
            lambda depth: f"[{make(kind, depth)}, {make(kind, depth)}][{self._pick('0', '1', '2')}]",
            lambda depth: f"{{'k': {make(kind, depth)}}}.{self._pick('k', 'absent')}",
            lambda depth: f"optional.of({make(kind, depth)}).orValue({make(kind, depth)})",
            lambda depth: f"{{'k': {make(kind, depth)}}}.?{self._pick('k', 'absent')}.orValue({make(kind, depth)})",
        ]
        if kind == "bool":
            makers += self._bool_makers()
        elif kind in ("int", "uint", "double"):
            operators = ("+", "-", "*", "/") if kind == "double" else ("+", "-", "*", "/", "%")
            makers += [lambda depth: f"({make(kind, depth)} {self._pick(*operators)} {make(kind, depth)})"] * 4
            if kind != "uint":
                makers.append(lambda depth: f"-({make(kind, depth)})")
            makers.append(lambda depth: f"{kind}({make(self._pick('int', 'uint', 'double'), depth)})")
        if kind == "int":
            makers += self._int_makers()
        elif kind == "string":
            makers += self._string_makers()
        elif kind == "bytes":
            makers += [
                lambda depth: f"({make('bytes', depth)} + {make('bytes', depth)})",
                lambda depth: f"bytes({make('string', depth)})",
            ]
        elif kind.startswith("list("):
            makers += self._list_makers(kind, kind[5:-1])
        return makers

    def _bool_makers(self) -> list[Callable[[int], str]]:
        make = self.make

        def compare(depth: int) -> str:
            kind = self._pick(*SCALARS)
            return f"({make(kind, depth)} {self._pick('==', '!=', '<', '<=', '>', '>=')} {make(kind, depth)})"

        def equal(depth: int) -> str:
            kind = self._pick("list(int)", "list(string)", "map(string, int)")
            return f"({make(kind, depth)} {self._pick('==', '!=')} {make(kind, depth)})"

        def mixed(depth: int) -> str:
            one, two = self._pick("int", "uint", "double"), self._pick("int", "uint", "double")
            return f"(dyn({make(one, depth)}) {self._pick('==', '!=', '<', '>=')} dyn({make(two, depth)}))"

        def quantify(depth: int) -> str:
            element = self._pick("int", "string")
            name, body = self._in_loop(element, "bool", depth)
            return f"{make(f'list({element})', depth)}.{self._pick('all', 'exists', 'exists_one')}({name}, {body})"

        def member(depth: int) -> str:
            kind = self._pick("int", "string")
            return f"({make(kind, depth)} in {make(f'list({kind})', depth)})"

        def logical(depth: int) -> str:
            return f"({make('bool', depth)} {self._pick('&&', '||')} {make('bool', depth)})"

        def of_text(depth: int) -> str:
            method = self._pick("startsWith", "endsWith", "contains")
            return f"{make('string', depth)}.{method}({make('string', depth)})"

        return [
            compare, compare, equal, mixed, quantify, quantify, member, logical, logical, of_text,
            lambda depth: f"!({make('bool', depth)})",
            lambda depth: f"{make('string', depth)}.matches({self._pick(*_PATTERNS)})",
            lambda depth: f"has(m.{self._pick('a', 'z')})",
            lambda depth: f"({make('string', depth)} in {make('map(string, int)', depth)})",
        ]  # fmt: skip

    def _int_makers(self) -> list[Callable[[int], str]]:
        make = self.make
        return [
            lambda depth: f"size({make(self._pick('string', 'bytes', 'list(int)', 'map(string, int)'), depth)})",
            lambda depth: f"{make('string', depth)}.indexOf({make('string', depth)})",
            lambda depth: f"{make('list(int)', depth)}[{make('int', depth)}]",
            lambda depth: f"{make('map(string, int)', depth)}[{make('string', depth)}]",
            lambda depth: f"int({make('string', depth)})",
        ]

    def _string_makers(self) -> list[Callable[[int], str]]:
        make = self.make
        return [
            lambda depth: f"({make('string', depth)} + {make('string', depth)})",
            lambda depth: f"string({make(self._pick('int', 'uint', 'bool', 'string'), depth)})",
            lambda depth: f"{make('string', depth)}.{self._pick('lowerAscii', 'upperAscii', 'trim')}()",
            lambda depth: f"{make('string', depth)}.substring({make('int', depth)})",
            lambda depth: f"{make('string', depth)}.charAt({make('int', depth)})",
            lambda depth: f"{make('string', depth)}.replace({make('string', depth)}, {make('string', depth)})",
            lambda depth: f"{make('list(string)', depth)}.join({make('string', depth)})",
            lambda depth: f"string({make('bytes', depth)})",
        ]

    def _list_makers(self, kind: str, element: str) -> list[Callable[[int], str]]:
        make = self.make

        def mapped(depth: int) -> str:
            source = self._pick("int", "string")
            name, body = self._in_loop(source, element, depth)
            return f"{make(f'list({source})', depth)}.map({name}, {body})"

        def filtered(depth: int) -> str:
            name, body = self._in_loop(element, "bool", depth)
            return f"{make(kind, depth)}.filter({name}, {body})"

        makers = [mapped, filtered, lambda depth: f"({make(kind, depth)} + {make(kind, depth)})"]
        makers.append(lambda depth: f"[{make(element, depth)}, {make(element, depth)}]")
        if element == "string":
            makers.append(lambda depth: f"{make('string', depth)}.split({make('string', depth)})")
        return makers
