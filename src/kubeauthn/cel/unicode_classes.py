r"""Unicode classes in patterns, `\pL` and `\p{Greek}`, from Go's names to RE2's.

Go, from 1.25 on, looks names up without regard to case, spaces, underscores and hyphens, knows the long names of
categories, and counts what is not assigned to `C`. Names of scripts that have an underscore it does not find.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["SPOILT", "Classes", "Part", "as_the_user_wrote", "ends_a_range", "go_classes"]

SPOILT = "\0"
Part = tuple[str, str]
"""A part of a pattern: as the user wrote it, and for RE2."""
_CATEGORIES = frozenset((
    "C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No", "P",
    "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs", "Any",
))  # fmt: skip
_LONG = {
    "Casedletter": "Lc", "Closepunctuation": "Pe", "Combiningmark": "M", "Connectorpunctuation": "Pc", "Control": "Cc",
    "Currencysymbol": "Sc", "Dashpunctuation": "Pd", "Decimalnumber": "Nd", "Enclosingmark": "Me",
    "Finalpunctuation": "Pf", "Format": "Cf", "Initialpunctuation": "Pi", "Letter": "L", "Letternumber": "Nl",
    "Lineseparator": "Zl", "Lowercaseletter": "Ll", "Mark": "M", "Mathsymbol": "Sm", "Modifierletter": "Lm",
    "Modifiersymbol": "Sk", "Nonspacingmark": "Mn", "Number": "N", "Openpunctuation": "Ps", "Other": "C",
    "Otherletter": "Lo", "Othernumber": "No", "Otherpunctuation": "Po", "Othersymbol": "So",
    "Paragraphseparator": "Zp", "Privateuse": "Co", "Punctuation": "P", "Separator": "Z", "Spaceseparator": "Zs",
    "Spacingmark": "Mc", "Surrogate": "Cs", "Symbol": "S", "Titlecaseletter": "Lt", "Unassigned": "Cn",
    "Uppercaseletter": "Lu", "Cntrl": "Cc", "Digit": "Nd", "Punct": "P",
}  # fmt: skip
_VISIBLE = r"\pL\pM\pN\pP\pS\pZ"
_ASSIGNED = _VISIBLE + r"\pC"
_NOT_CASED = r"\p{Lm}\p{Lo}\pM\pN\pP\pS\pZ\pC"
# By name: what is in the class, or what is not in it.
_SPECIAL = {
    "Ascii": (True, r"\x00-\x7F"),
    "Assigned": (True, _ASSIGNED),
    "C": (False, _VISIBLE),
    "Cn": (False, _ASSIGNED),
    "Lc": (True, r"\p{Lu}\p{Ll}\p{Lt}"),
}
# What is outside of these: nothing shorter does, where it stands in brackets beside something else.
_OUTSIDE = {r"\x00-\x7F": (r"\x{80}-\x{10FFFF}", False), _VISIBLE: (r"\pC", True), _ASSIGNED: ("", True),
    r"\p{Lu}\p{Ll}\p{Lt}": (_NOT_CASED, True)}  # fmt: skip


class Classes:
    """What RE2 knows: `is_name` says whether it knows the name of a class, `unassigned` are the ranges of what it has
    in none, as they stand in brackets."""

    __slots__ = ("is_name", "unassigned")

    def __init__(self, is_name: Callable[[str], bool], unassigned: Callable[[], str]) -> None:
        self.is_name = is_name
        self.unassigned = unassigned


def go_classes(pattern: str, known: Classes) -> list[Part]:
    """The pattern in parts. A class that Go does not know has SPOILT in its name, so that RE2 does not, either."""
    parts: list[Part] = []
    at, brackets = 0, False
    last_named = pattern.rfind(":]")
    while at < len(pattern):
        end = _end(pattern, at, brackets, last_named)
        part = made = pattern[at:end]
        if part[:2] in ("\\p", "\\P"):
            made = _class(part, brackets, known)
        elif part[0] == "[" and not brackets:
            brackets = True
        elif part == "]":
            brackets = False
        parts.append((part, made))
        at = end
    return parts


def as_the_user_wrote(parts: list[Part], start: int, end: int) -> str:
    """What stands in the user's pattern where RE2's has this range. Of a class it may end in the middle."""
    found: list[str] = []
    at = 0
    for part, made in parts:
        first, last = max(start - at, 0), end - at
        at += len(made)
        if first < len(made) and last > 0:
            found.append(part[first:] if last >= len(made) else part[first:last])
    return "".join(found)


def ends_a_range(parts: list[Part]) -> bool:
    r"""Whether a Unicode class stands in brackets where a range wants its last character: `[a-\pL]`."""
    brackets = low = dash = False
    for part, _ in parts:
        if not brackets:
            brackets, low, dash = part[0] == "[", part.endswith("]"), False
        elif part == "]":
            brackets = False
        elif part[:2] in ("\\p", "\\P", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "[:"):
            if dash and part[1] in "pP":
                return True
            low = dash = False
        elif dash:
            low = dash = False
        else:
            low, dash = True, part == "-" and low
    return False


def _end(pattern: str, at: int, brackets: bool, last_named: int) -> int:
    """Where the part that begins here ends: an escape, the head of brackets, a class inside of them, a character."""
    if pattern[at] == "\\":
        if pattern.startswith("\\Q", at) and not brackets:
            closed = pattern.find("\\E", at)
            return closed + 2 if closed > 0 else len(pattern)
        if pattern.startswith(("p{", "P{"), at + 1):
            closed = pattern.find("}", at)
            return closed + 1 if closed > 0 else len(pattern)
        if pattern.startswith(("p", "P"), at + 1):
            return at + 3
        return at + 2
    if pattern[at] != "[":
        return at + 1
    if not brackets:
        at += 2 if pattern.startswith("^", at + 1) else 1
        return at + 1 if pattern.startswith("]", at) else at  # the first one is a character like others
    if pattern.startswith("[:", at) and at + 2 <= last_named:
        return pattern.find(":]", at + 2) + 2
    return at + 1


def _class(part: str, brackets: bool, known: Classes) -> str:
    positive = part[1] == "p"
    written = part[2:]
    if written[:1] == "{":
        if written[-1] != "}":
            return part  # a fault, as it stands
        written = written[1:].removesuffix("}")
        if written[:1] == "^":
            positive, written = not positive, written[1:]
    name = _canonical(written)
    name = _LONG.get(name, name)
    if name in _SPECIAL:
        is_inside, text = _SPECIAL[name]
        if not brackets:
            return f"[{text}]" if is_inside is positive else f"[^{text}]"
        if is_inside is positive:
            return text
        others, is_more = _OUTSIDE[text]
        return others + known.unassigned() if is_more else others
    if name in _CATEGORIES or (name.isascii() and name.isalpha() and known.is_name(name)):
        return part if name == written else rf"\{'p' if positive else 'P'}{{{name}}}"
    return part if not known.is_name(written) else part[:3] + SPOILT + part[3:]


def _canonical(name: str) -> str:
    plain = "".join(character for character in name if character not in "_- ")
    return plain.capitalize() if plain.isascii() else plain
