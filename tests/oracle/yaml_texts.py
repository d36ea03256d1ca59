"""Writes a document as YAML in the ways that people and programs write it, and in some that hardly anybody does.

What a style changes by accident (a text that reads as a number, a key that stands twice) is part of the point: both
sides read the same text.
"""

from __future__ import annotations

import json
import random
from typing import Any

__all__ = ["Plain", "odd_value", "written"]

_MARK = "\ufeff"


class Plain(str):
    """A scalar that is written as it stands, without quotes."""


_PLAIN_TEXT = (
    "yes No on OFF y n true True TRUE ~ null Null NULL 0 -0 +1 017 0o17 0x1F 0b11 1_000 12e03 1e3 .5 5. "
    "1.0 -1.5 .inf -.INF .nan 1:30 190:20:30 2001-01-01 2001-12-14T21:59:43.10-05:00 "
    "9223372036854775807 18446744073709551616 1e400 = << * & !x !!str !!str_1 !!int_3 !!float_1 "
    "!!bool_yes !!null_x !!binary_aGVsbG8= !!binary_? !!seq_[] !!set_{a} !foo_bar a:b a#b a_#b -a ?a @a "
    '`a %a ,a |a >a \'a \'a\'_b "a" "\\x41\\u00e9" "\\ud83d\\udc51" "\\ud800" "\\e\\_\\N\\L\\P" "\\q" '
    "{} [] {a} {a:_1} {a:1} {?_a:_b} [a,_,b] [,] [a,] {a,} {1:_2} {null:_1} {true:_1} [a:_b] [[a]] é "
    "👑 \x85 \u2028 !<tag:yaml.org,2002:str>_1 ! !_1 !!_a --- ... -_a a_:b 0.1e1_ 0x 0b 08 1__0 "
    "+.5 -.5e+3 1e 0o8 _"
)
_PLAINS = tuple(text.replace("_", " ") if text not in ("1_000", "1__0") else text for text in _PLAIN_TEXT.split(" "))
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    1e21,
    2**63,
    2**64,
    "",
    "a",
    " a ",
    "a\nb",
    "a\n",
    "\n",
    "é👑",
    "null",
    "true",
    "1",
    "0x1",
    "~",
    "- a",
    "a: b",
    "# a",
    "\t",
    "a\tb",
    "\\",
    '"',
    "'",
    "\x00",
    "\x07",
    "\x7f",
    "\x85",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "x" * 90,
    "a b " * 30,
    [],
    {},
    [None],
    [""],
    {"a": 1},
    {"": ""},
    [[]],
    [{}],
    ["a", 1],
    {"url": "https://a.example"},
)


def odd_value(source: random.Random) -> Any:
    """Something that most fields do not expect."""
    return Plain(source.choice(_PLAINS)) if source.random() < 0.6 else source.choice(_VALUES)


def written(source: random.Random, document: Any) -> str:
    """The document's text, each part of it in a style of its own."""
    if source.random() < 0.15:
        text = json.dumps(
            _unmarked(document), ensure_ascii=source.random() < 0.5, indent=source.choice((None, 1, "\t"))
        )
        return (
            source.choice(("", "", "", " ", "\n", "\t", "#\n", _MARK)) + text + source.choice(("", "", "\n", " x", "}"))
        )
    text = _Writer(source).block(document, 0)
    if not text.startswith("\n"):
        text = "\n" + text
    text = text[1:] + source.choice(("\n", "\n", "\n", "", "\n\n", "\n...\n", "\n# end", "\n---\n", "\n...\nx", "\n\t"))
    head = source.choices(
        (
            "",
            "---\n",
            "--- ",
            "# a\n",
            "%YAML 1.1\n---\n",
            "%YAML 1.2\n---\n",
            "%YAML 2.0\n---\n",
            "%TAG ! !x\n---\n",
            _MARK,
            "\n\n",
            "---\n---\n",
            "--- |\n",
            "%FOO\n---\n",
            " ",
        ),
        (60, 8, 1, 4, 2, 2, 1, 1, 2, 2, 1, 1, 1, 1),
    )[0]
    text = head + text
    return text.replace("\n", source.choices(("\n", "\r\n", "\r", "\x85", "\u2028"), (92, 5, 1, 1, 1))[0])


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _unmarked(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_unmarked(member) for member in value]
    return str(value) if isinstance(value, str) else value


class _Writer:
    def __init__(self, source: random.Random) -> None:
        self.random = source
        self.anchors = 0
        self.tidy = source.random() < 0.5  # nothing odd beyond the styles

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def odd(self, probability: float) -> bool:
        return not self.tidy and self.chance(probability)

    def block(self, value: Any, indent: int) -> str:
        """What follows `key:` or `-`, with the space or the line break before it."""
        anchor = self._anchor()
        if isinstance(value, dict) and value and not self.chance(0.12):
            return anchor + self._mapping(value, indent)
        if isinstance(value, list) and value and not self.chance(0.25):
            return anchor + self._sequence(value, indent)
        if isinstance(value, str) and not isinstance(value, Plain) and self.chance(0.2):
            made = self._literal(value, indent)
            if made:
                return anchor + made
        return anchor + " " + self.flow(value, indent + 1) + self._comment()

    def _anchor(self) -> str:
        if not self.odd(0.01):
            return ""
        self.anchors += 1
        return f" &a{self.anchors}"

    def _comment(self) -> str:
        return self.random.choice((" # c", "  #", "\t# c", " #c: d")) if self.chance(0.03) else ""

    def _mapping(self, value: dict[str, Any], indent: int) -> str:
        lines = []
        pad = " " * indent
        step = self.random.choice((1, 2, 2, 2, 4))
        members = list(value.items())
        if self.odd(0.01):
            members.append(self.random.choice(members))
        for name, member in members:
            key = self._key(name)
            if self.anchors and self.odd(0.03):
                member = Plain(f"*a{self.random.randint(1, self.anchors)}")
            if self.odd(0.01):
                lines.append(f"{pad}? {key}\n{pad}:{self.block(member, indent + step)}")
            elif self.odd(0.005):
                lines.append(f"{pad}<<: {self.flow({name: member}, indent)}")
            elif isinstance(member, list) and member and self.chance(0.5):
                lines.append(f"{pad}{key}:{self.block(member, indent)}")
            else:
                lines.append(f"{pad}{key}{' ' if self.odd(0.01) else ''}:{self.block(member, indent + step)}")
            if self.chance(0.02):
                lines.append(self.random.choice(("", f"{pad}# c", "# c", "   ", f"{pad}#")))
        return "\n" + "\n".join(lines)

    def _sequence(self, value: list[Any], indent: int) -> str:
        pad = " " * indent
        lines = []
        for member in value:
            made = self.block(member, indent + 2)
            compact = made.startswith("\n") and not made.startswith("\n\n") and self.chance(0.85)
            lines.append(f"{pad}- {made[1:].lstrip(' ')}" if compact else f"{pad}-{made}")
        return "\n" + "\n".join(lines)

    def _key(self, name: str) -> str:
        if self.odd(0.01):
            return self.random.choice(
                (name.upper(), name.capitalize(), name + " ", f"!!str {name}", f"*{name}", "1", "null", "true", "''")
            )
        return self.random.choices((name, json.dumps(name), f"'{name}'"), (90, 5, 5))[0] if name else "''"

    def _literal(self, text: str, indent: int) -> str | None:
        """A block scalar, where the text allows one."""
        if any(character < " " and character != "\n" for character in text) or not text.strip():
            return None
        style = self.random.choice(("|", ">", "|-", ">-", "|+", ">+", "|2", "|1-"))
        pad = " " * (max(indent, 1) if not style[1:].strip("+-") else max(indent - 1, 0) + int(style[1]))
        return f" {style}\n" + "\n".join(pad + line if line else "" for line in text.split("\n"))

    def flow(self, value: Any, indent: int) -> str:
        if isinstance(value, dict):
            inner = [f"{self._flow_key(name)}{self.flow(member, indent)}" for name, member in value.items()]
            return self._bracketed("{", inner, "}", indent)
        if isinstance(value, list):
            return self._bracketed("[", [self.flow(member, indent) for member in value], "]", indent)
        return self._scalar(value, indent)

    def _flow_key(self, name: str) -> str:
        return self.random.choices(
            (f"{name}: ", f"{json.dumps(name)}:", f"{json.dumps(name)} : ", f"{name} : ", f"{name}:", f"? {name} : "),
            (80, 8, 3, 3, 1, 1),
        )[0]

    def _bracketed(self, opening: str, inner: list[str], closing: str, indent: int) -> str:
        between = self.random.choices(
            (", ", ",", ",\n" + " " * indent, " , ", ", # c\n" + " " * indent), (80, 8, 8, 2, 2)
        )[0]
        last = "," if inner and self.chance(0.05) else ""
        return opening + between.join(inner) + last + closing

    def _scalar(self, value: Any, indent: int) -> str:
        if isinstance(value, Plain):
            return str(value)
        if not isinstance(value, str):
            return json.dumps(value) if value is not None else self.random.choice(("null", "~", "", "Null"))
        style = self.random.random()
        safe = value and value == value.strip() and not any(c in ":#,[]{}&*!|>'\"%@`\n\t\\?-" or c < " " for c in value)
        if style < 0.55 and safe and value not in _PLAINS:
            return value
        if self.odd(0.02) and value and "\n" not in value:
            return value  # whatever it may come to
        if style < 0.8 and all(c >= " " for c in value):
            return "'" + value.replace("'", "''") + "'"
        return self._double(value, indent)

    def _double(self, value: str, indent: int) -> str:
        made = []
        for character in value:
            if character == "\n":
                made.append("\\n")
            elif self.odd(0.05):
                code = ord(character)
                forms = (
                    [f"\\U{code:08x}"]
                    + ([f"\\u{code:04X}"] if code < 65536 else [])
                    + ([f"\\x{code:02x}"] if code < 256 else [])
                )
                made.append(self.random.choice(forms))
            elif character == " " and self.odd(0.05):
                made.append(self.random.choice(("\\ ", " \\\n" + " " * indent, "\n" + " " * indent)))
            elif character < " " or character in '"\\\x7f':
                made.append(json.dumps(character)[1:-1])
            else:
                made.append(character)
        return '"' + "".join(made) + '"'
