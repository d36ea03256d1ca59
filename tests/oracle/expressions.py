"""Generates CEL expressions that type-check (mostly): grown from the environment's own overloads, by result type."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.cel_mutations import mutated, soup
from tests.oracle.idioms import idiom, odd_claims
from tests.oracle.user_expressions import message_text, odd_user, user_text

__all__ = ["CLAIMS", "USER", "Grower", "expression_cases"]

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
CLAIMS = json.dumps(
    {
        "sub": "u-1",
        "email": "jane@example.com",
        "email_verified": True,
        "groups": ["dev", "ops", "system:x"],
        "roles": "a,b,c",
        "n": 42,
        "f": 3.5,
        "neg": -7,
        "zero": 0,
        "big": 9007199254740993,
        "t": True,
        "nul": None,
        "empty": "",
        "el": [],
        "em": {},
        "nested": {"a": {"b": "deep"}, "l": [1, "x", {"y": None}], "c.d": 1},
        "nums": [3, 1, 2],
        "strs": ["b", "a", "c"],
        "mixed": [1, "a", None, True, 2.5, [1]],
        "uni": "ünï 👑 ß",
        "url": "https://u@example.com:8443/p?q=1&q=2#f",
        "ip": "192.168.1.10",
        "cidr": "10.0.0.0/8",
        "q": "1.5Gi",
        "ver": "1.2.3-rc.1+b5",
        "ts": "2023-11-14T22:13:20Z",
        "dur": "1h30m",
        "foo.bar/baz": "odd",
        "exp": 4102444800,
    }
)
USER = {
    "username": "jane",
    "uid": "42",
    "groups": ["dev", "system:authenticated"],
    "extra": {"example.com/a": ["x", "y"], "authentication.kubernetes.io/credential-id": ["JTI=1"]},
}

_LEAVES: dict[str, tuple[str, ...]] = {
    "bool": ("true", "false", "has(claims.email)", "claims.t == true", "claims.email_verified == true"),
    "int": (
        "0",
        "1",
        "-1",
        "2",
        "7",
        "100",
        "9223372036854775807",
        "-9223372036854775808",
        "0x1F",
        "size(claims.groups)",
    ),
    "uint": ("0u", "1u", "3u", "18446744073709551615u", "0xFFu"),
    "double": ("0.0", "1.5", "-2.25", "1e300", "-0.0", "1e-320", "3.0", "double(claims.n)", "double(claims.f)"),
    "string": (
        "''",
        "'a'",
        "'Hello, World'",
        "'é👑'",
        "'a,b,,c'",
        "'10.0.0.1'",
        "'10.0.0.0/8'",
        "'fe80::1'",
        "'::ffff:1.2.3.4'",
        "'1.2.3'",
        "'v1.2'",
        "'1.5Gi'",
        "'100m'",
        "'https://x.example/p?a=b'",
        "'2024-02-29T23:59:59.5Z'",
        "'1h2m3.5s'",
        "'%s %d'",
        "'(a|b)+'",
        "'[a-z]*'",
        "'\\n\\t'",
        "'\\u0000'",
        "'true'",
        "'-12'",
        "'0x1'",
        "'1e3'",
        "'inf'",
        "'NaN'",
        "string(claims.email)",
        "string(claims.roles)",
        "string(claims.uni)",
        "string(claims.ver)",
        "string(claims.ts)",
    ),
    "bytes": ("b''", "b'abc'", "b'\\xff\\x00'", "b'é'", "bytes(claims.uni)"),
    "null_type": ("null",),
    "dyn": (
        "dyn(1)",
        "dyn('a')",
        "dyn([1, 2])",
        "dyn({'a': 1})",
        "dyn(1u)",
        "dyn(2.0)",
        "dyn(null)",
        "dyn(true)",
        "claims.n",
        "claims.email",
        "claims.groups",
        "claims.nested",
        "claims.nul",
        "claims.mixed",
        "claims.missing",
        "claims.el",
        "claims.nested.a",
        "claims.nested.l[1]",
        "claims['foo.bar/baz']",
        "claims.foo__dot__bar__slash__baz",
        "claims.f",
        "dyn(claims)",
        "claims.nested.c__dot__d",
        "dyn(claims.nums)",
        "dyn(claims.strs)",
        "dyn(b'x')",
    ),
    "google.protobuf.Timestamp": (
        "timestamp('2024-02-29T12:30:45.123456789Z')",
        "timestamp(0)",
        "timestamp('0001-01-01T00:00:00Z')",
        "timestamp('9999-12-31T23:59:59.999999999Z')",
        "timestamp('1969-12-31T23:59:59+01:30')",
        "timestamp(claims.ts)",
    ),
    "google.protobuf.Duration": (
        "duration('1s')",
        "duration('-1.5h')",
        "duration('0s')",
        "duration('1ns')",
        "duration('2562047h')",
        "duration(claims.dur)",
    ),
    "type": (
        "int",
        "string",
        "type(1)",
        "type(claims.email)",
        "list",
        "type([1])",
        "type(null)",
        "google.protobuf.Timestamp",
    ),
    "net.IP": ("ip('10.0.0.1')", "ip('fe80::1')", "ip('127.0.0.1')", "ip(claims.ip)", "ip('::')"),
    "net.CIDR": ("cidr('10.0.0.0/8')", "cidr('fe80::/10')", "cidr(claims.cidr)", "cidr('1.2.3.4/32')"),
    "kubernetes.URL": ("url('https://a.example:80/p/q?x=1&y=%20')", "url(claims.url)", "url('/rel')"),
    "kubernetes.Quantity": (
        "quantity('1.5Gi')",
        "quantity('100m')",
        "quantity('-3')",
        "quantity(claims.q)",
        "quantity('1e3')",
        "quantity('0')",
    ),
    "kubernetes.Semver": ("semver('1.2.3')", "semver('0.0.1-alpha.1')", "semver(claims.ver)", "semver('v1.0', true)"),
    "kubernetes.NamedFormat": ("format.dns1123Label()", "format.uuid()", "format.date()", "format.qualifiedName()"),
}
_SIMPLE = (
    "bool",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "dyn",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
)
_RARE = ("net.IP", "net.CIDR", "kubernetes.URL", "kubernetes.Quantity", "kubernetes.Semver", "type", "null_type")
Case = dict[str, Any]
Overload = tuple[str, dict[str, Any]]


class Grower:
    """Makes an expression of a wanted type. Deterministic: the same random source, the same expressions."""

    def __init__(self, source: random.Random) -> None:
        self.random = source
        self._names: list[tuple[str, str]] = []
        environment = json.loads((RECORDED / "cel_env.json").read_text(encoding="utf-8"))
        self._by_result: dict[str, list[Overload]] = {}
        for name, overloads in environment["functions"].items():
            for overload in overloads:
                if "authz" not in overload["id"] and "<" not in overload["result"]:
                    self._by_result.setdefault(overload["result"], []).append((name, overload))
        self._generic = [
            (name, overload)
            for name, overloads in environment["functions"].items()
            for overload in overloads
            if "<" in overload["result"]
        ]

    def any_type(self) -> str:
        draw = self.random.random()
        if draw < 0.7:
            return self.random.choice(_SIMPLE)
        if draw < 0.8:
            return self.random.choice(_RARE)
        inner = self.random.choice(_SIMPLE[:6])
        return self.random.choice(
            (f"list({inner})", f"map(string, {inner})", f"optional_type({inner})", f"list(list({inner}))")
        )

    def grow(self, wanted: str, depth: int) -> str:
        if self.random.random() < 0.02:
            wanted = self.any_type()  # now and then the wrong type: the checker has to say the same
        bound = [name for name, of in self._names if of == wanted]
        if bound and self.random.random() < 0.35:
            return self.random.choice(bound)
        if depth <= 0:
            return self._leaf(wanted)
        draw = self.random.random()
        if draw < 0.08:
            condition = self.grow("bool", depth - 1)
            return f"({condition} ? {self.grow(wanted, depth - 1)} : {self.grow(wanted, depth - 1)})"
        if draw < 0.14:
            return self._optional(wanted, depth)
        if draw < 0.26:
            made = self._comprehension(wanted, depth)
            if made:
                return made
        if draw < 0.36:
            return self._access(wanted, depth)
        return self._call(wanted, depth)

    def _leaf(self, wanted: str) -> str:
        if wanted in _LEAVES:
            return self.random.choice(_LEAVES[wanted])
        head, inner = _split(wanted)
        if head == "list":
            return "[" + ", ".join(self._leaf(inner[0]) for _ in range(self.random.randint(0, 3))) + "]"
        if head == "map":
            pairs = (f"{self._leaf(inner[0])}: {self._leaf(inner[1])}" for _ in range(self.random.randint(0, 2)))
            return "{" + ", ".join(pairs) + "}"
        if head == "optional_type":
            return self.random.choice((f"optional.of({self._leaf(inner[0])})", "optional.none()"))
        return self.random.choice(_LEAVES["dyn"])

    def _access(self, wanted: str, depth: int) -> str:
        draw = self.random.random()
        if draw < 0.3:
            return f"{self.grow(f'list({wanted})', depth - 1)}[{self.grow('int', depth - 2)}]"
        if draw < 0.5:
            return f"{self.grow(f'map(string, {wanted})', depth - 1)}[{self.grow('string', depth - 2)}]"
        if draw < 0.7:
            return f"{{'k': {self.grow(wanted, depth - 1)}}}.k"
        if draw < 0.85:
            index, other = self.grow("int", depth - 2), self.grow(wanted, depth - 1)
            return f"[{self.grow(wanted, depth - 1)}][?{index}].orValue({other})"
        return f"dyn({self.grow(wanted, depth - 1)})"

    def _optional(self, wanted: str, depth: int) -> str:
        held = f"optional_type({wanted})"
        made = self.grow(held, depth - 1) if not wanted.startswith("optional") else self._leaf(held)
        value = self.grow(wanted, depth - 1)
        return self.random.choice(
            (
                f"{made}.orValue({value})",
                f"{made}.value()",
                f"optional.of({value}).optMap(o, o).orValue({value})",
                f"claims.?{self.random.choice(('email', 'missing', 'n'))}.orValue({value})",
                f"optional.ofNonZeroValue({value}).or({made}).value()",
            )
        )

    def _comprehension(self, wanted: str, depth: int) -> str | None:
        head, inner = _split(wanted)
        element = self.random.choice(_SIMPLE)
        variable = self.random.choice(("x", "y", "class", "e"))
        ranged = self.grow(f"list({element})", depth - 1)
        if wanted == "bool":
            macro = self.random.choice(("all", "exists", "exists_one"))
            return f"{ranged}.{macro}({variable}, {self._under(variable, element, 'bool', depth - 1)})"
        if head == "list":
            body = self._under(variable, element, inner[0], depth - 1)
            if self.random.random() < 0.3:
                return f"{ranged}.transformList(i, {variable}, {body})"
            if self.random.random() < 0.3:
                same = self.grow(wanted, depth - 1)
                return f"{same}.filter({variable}, {self._under(variable, inner[0], 'bool', depth - 1)})"
            return f"{ranged}.map({variable}, {body})"
        if head == "map" and inner[0] == "string":
            body = self._under(variable, inner[1], inner[1], depth - 1)
            return f"{self.grow(wanted, depth - 1)}.transformMap(k, {variable}, {body})"
        return None

    def _under(self, name: str, of: str, wanted: str, depth: int) -> str:
        self._names.append((name, of))
        try:
            return self.grow(wanted, depth)
        finally:
            self._names.pop()

    def _call(self, wanted: str, depth: int) -> str:
        choices = self._by_result.get(wanted, ())
        bindings: dict[str, str] = {
            "<A>": self.random.choice(_SIMPLE),
            "<B>": self.random.choice(_SIMPLE),
            "<T>": "int",
            "<K>": "string",
            "<V>": "int",
        }
        if self.random.random() < 0.2 or not choices:
            fitting = [(one, bound) for one in self._generic if (bound := _unify(one[1]["result"], wanted)) is not None]
            if fitting:
                overload, bound = self.random.choice(fitting)
                return self._written(overload, {**bindings, **bound}, depth)
        if not choices:
            return self._leaf(wanted)
        return self._written(self.random.choice(choices), bindings, depth)

    def _written(self, overload: Overload, bindings: dict[str, str], depth: int) -> str:
        name, details = overload
        arguments = [self.grow(_substituted(argument, bindings), depth - 1) for argument in details["args"] or ()]
        if name.startswith("_") or name in ("!_", "-_", "@in"):
            return _operator(name, arguments)
        if details["member"]:
            return f"{arguments[0]}.{name}({', '.join(arguments[1:])})"
        return f"{name}({', '.join(arguments)})"


def _operator(name: str, arguments: list[str]) -> str:
    if name == "@in":
        return f"({arguments[0]} in {arguments[1]})"
    if name == "_[_]":
        return f"{arguments[0]}[{arguments[1]}]"
    if name == "_[?_]":
        return f"{arguments[0]}[?{arguments[1]}]"
    if name == "_?._":
        return f"{arguments[0]}.?a"
    if name == "_?_:_":
        return f"({arguments[0]} ? {arguments[1]} : {arguments[2]})"
    if len(arguments) == 1:
        return f"{name[0]}({arguments[0]})"
    return f"({arguments[0]} {name.strip('_')} {arguments[1]})"


def _split(type_text: str) -> tuple[str, list[str]]:
    """`map(string, list(int))` → `map`, [`string`, `list(int)`]."""
    head, opened, rest = type_text.partition("(")
    if not opened:
        return head, []
    parts, level, start = [], 0, 0
    inner = rest[:-1]
    for place, character in enumerate(inner):
        level += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and level == 0:
            parts.append(inner[start:place].strip())
            start = place + 1
    return head, [*parts, inner[start:].strip()]


def _unify(pattern: str, wanted: str) -> dict[str, str] | None:
    if pattern.startswith("<"):
        return {pattern: wanted}
    pattern_head, pattern_inner = _split(pattern)
    head, inner = _split(wanted)
    if pattern_head != head or len(pattern_inner) != len(inner):
        return None
    bound: dict[str, str] = {}
    for one, other in zip(pattern_inner, inner, strict=True):
        more = _unify(one, other)
        if more is None or any(bound.get(key, value) != value for key, value in more.items()):
            return None
        bound.update(more)
    return bound


def _substituted(text: str, bindings: dict[str, str]) -> str:
    for name, of in bindings.items():
        text = text.replace(name, of)
    return text


def expression_cases(source: random.Random) -> Iterator[Case]:
    """Endless cases: grown, mutated from the recorded ones, and tokens thrown together."""
    recorded = [
        json.loads(line) for line in (RECORDED / "cel.jsonl").read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    recorded = [case for case in recorded if len(case["expr"]) < 600]
    texts = [case["expr"] for case in recorded]
    grower = Grower(source)
    while True:
        draw = source.random()
        if draw < 0.25:
            case: Case = {"expr": idiom(source), "claims": odd_claims(source)}
        elif draw < 0.29:
            case = {"expr": user_text(source), "user": odd_user(source), "env": "user"}
        elif draw < 0.31:
            case = {"expr": message_text(source), "claims": CLAIMS}
        elif draw < 0.65:
            case = {"expr": grower.grow(grower.any_type(), source.randint(1, 4)), "claims": CLAIMS}
        elif draw < 0.95:
            start = source.choice(recorded)
            case = {key: start[key] for key in ("claims", "user", "env", "check") if key in start}
            case["expr"] = mutated(source, start["expr"], texts)
        else:
            case = {"expr": soup(source), "claims": CLAIMS}
        if source.random() < 0.1 and "env" not in case:
            case["check"] = "bool"
        if _is_text(case["expr"]):
            yield case


def _is_text(text: str) -> bool:
    """Go knows no lone surrogates: such an expression cannot reach it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return len(text) < 4000
