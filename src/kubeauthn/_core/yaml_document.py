"""YAML (and so JSON) text to plain dict, list, str, bool, int, float and None, fast and bounded.

Built straight from the events of PyYAML's C parser: no node objects, no positions kept.
Positions are found by a second reading (`yaml_lines`), which only a file with faults pays for.

Plain scalars mean what they mean to kubectl (Go's YAML 1.1): `yes`, `on` and `y` are
booleans, `0o17` and `1_000` are numbers, `1:30` and `2020-01-01` are strings. Keys are
always text. `<<` merges. What kubectl would take silently and differently from what its
writer sees, a key given twice, is reported here.
"""

from __future__ import annotations

from kubeauthn._core.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

Path = tuple[str | int, ...]

DEPTH = 64
"""How deep collections may be nested. A kubeconfig needs 7."""

ALIASED_NODES = 200_000
"""How many nodes all aliases of a file together may stand for: the bound on "billion laughs"."""
_NODE_CHARACTERS = 64
"""A longer scalar counts as several nodes: a few aliases of a huge one are a bomb as well."""

_MERGE = object()
_CONSTANTS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_NUMBER_START = frozenset("+-.0123456789")
_SUSPECT_START = frozenset("+-.0123456789~nNtTfFyYoO<") | {""}
"""The first characters of everything that may not be a string: all other scalars are taken as they are."""

_CLEARED = 1000
"""How many texts are remembered as harmless."""

_TAG = "tag:yaml.org,2002:"
_TYPED_TAGS: dict[str, tuple[type, ...]] = {
    _TAG + "null": (type(None),),
    _TAG + "bool": (bool,),
    _TAG + "int": (int,),
    _TAG + "float": (float, int),
}


class YamlSyntaxError(Exception):
    """The text is not YAML, or is nested too deeply. Says nothing of the content."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@record(frozen=True, slots=True)
class Document:
    value: Any
    faults: tuple[tuple[Path, str], ...] = ()
    """What is well-formed but not acceptable: keys given twice, unknown aliases, foreign tags."""


def parse(text: str) -> Document:
    """The first document; what comes after it is not looked at, as in kubectl. No text at all is None."""
    return next(parse_all(text), Document(None))


def parse_all(text: str) -> Iterator[Document]:
    """Every document of a stream, one by one."""
    import yaml

    try:
        loader = event_source(text)
        loader.get_event()  # the start of the stream
        while not isinstance(loader.get_event(), yaml.StreamEndEvent):
            yield _document(loader)
    except yaml.YAMLError as error:
        raise _syntax_error(error) from None
    except UnicodeEncodeError:
        raise YamlSyntaxError("contains characters that are not Unicode text") from None


def plain_value(text: str) -> object:
    """What an unquoted scalar means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    return _number(text) if text[0] in _NUMBER_START else text


def event_source(text: str) -> Any:
    import yaml

    return yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)


def _syntax_error(error: Exception) -> YamlSyntaxError:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be parsed"
    if problem == "found character that cannot start any token":
        problem += ": a tab, perhaps, where spaces belong"
    return YamlSyntaxError(f"not YAML: {problem}", mark.line + 1 if mark else None)


def _document(loader: Any) -> Document:
    """One document from its events.

    Items of the open collection, mapping or sequence, are gathered in one flat list; a
    mapping pairs them up when it ends. This loop runs once per node of the file: it is
    the speed of loading.
    """
    from yaml import MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

    get_event = loader.get_event
    suspect = _SUSPECT_START
    cleared: set[str] = set()  # texts such as `name`: strings whether they are quoted or not, keys or values
    faults: list[tuple[Path, str]] = []
    anchors = _Anchors()
    stack: list[tuple[list[Any], bool, str | None]] = []  # parent's items, parent is a mapping, own anchor
    items: list[Any] = []
    append = items.append
    in_mapping = False
    while True:
        event = get_event()
        kind = type(event)
        if kind is ScalarEvent:
            value = event.value
            if (value[:1] in suspect and value not in cleared) or event.tag is not None:
                is_key = in_mapping and not len(items) & 1
                if len(cleared) < _CLEARED and value != "<<" and plain_value(value) is value:
                    cleared.add(event.value)
                try:
                    value = _scalar(event, is_key)
                except ValueError as error:
                    faults.append((_path(stack, items, in_mapping), str(error)))
            append(value)
            if event.anchor is not None:
                anchors.keep(event.anchor, value)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if len(stack) >= DEPTH:
                raise YamlSyntaxError(f"nested deeper than {DEPTH} levels", event.start_mark.line + 1)
            if event.tag is not None and event.tag not in (_TAG + "map", _TAG + "seq", "!"):
                faults.append((_path(stack, items, in_mapping), "has a tag that is not known here"))
            stack.append((items, in_mapping, event.anchor))
            items = []
            append = items.append
            in_mapping = kind is MappingStartEvent
        elif kind is MappingEndEvent:
            pairs = iter(items)
            try:
                mapping = dict(zip(pairs, pairs, strict=False))
            except TypeError:
                mapping = {}
            if len(mapping) * 2 != len(items) or _MERGE in mapping:
                mapping = _irregular_mapping(mapping, items, stack, faults)
            items, in_mapping, anchor = stack.pop()
            append = items.append
            append(mapping)
            if anchor is not None:
                anchors.keep(anchor, mapping)
        elif kind is SequenceEndEvent:
            sequence = items
            items, in_mapping, anchor = stack.pop()
            append = items.append
            append(sequence)
            if anchor is not None:
                anchors.keep(anchor, sequence)
        elif hasattr(event, "anchor"):  # an alias
            value = anchors.get(event.anchor, event.start_mark.line + 1)
            if value is _MERGE:
                faults.append((_path(stack, items, in_mapping), "is an alias without an anchor before it"))
                value = ""
            elif in_mapping and not len(items) & 1 and type(value) is not str:
                value = []  # reported, like every key that is not text, when the mapping ends
            append(value)
        else:  # the end of the document
            return Document(items[0], tuple(faults))


def _irregular_mapping(
    mapping: dict[Any, Any],
    items: list[Any],
    stack: list[tuple[list[Any], bool, str | None]],
    faults: list[tuple[Path, str]],
) -> dict[str, Any]:
    """A mapping that merges another, has a key that is no text (it then came out empty), or has a key twice."""
    if not mapping:
        faults.append((_open_path(stack), "has a key that is not text"))
        return mapping
    seen: set[Any] = set()
    for key in items[::2]:
        if key in seen:
            faults.append(((*_open_path(stack), "<<" if key is _MERGE else key), "is given twice"))
        seen.add(key)
    return _merged(mapping, stack, faults) if _MERGE in mapping else mapping


def _merged(
    mapping: dict[Any, Any], stack: list[tuple[list[Any], bool, str | None]], faults: list[tuple[Path, str]]
) -> dict[str, Any]:
    """`<<`: what it brings stands behind the mapping's own keys; of several, the first wins."""
    brought = mapping.pop(_MERGE)
    sources = brought if isinstance(brought, list) else [brought]
    if not all(isinstance(source, dict) for source in sources):
        faults.append(((*_open_path(stack), "<<"), "merges something that is not an object"))
        return mapping
    for source in sources:
        for key, value in source.items():
            mapping.setdefault(key, value)
    return mapping


def _scalar(event: Any, is_key: bool) -> object:
    value: str = event.value
    tag: str | None = event.tag
    if tag is None:
        if not event.implicit[0]:  # quoted
            return value
        if is_key:
            return _MERGE if value == "<<" else value
        return plain_value(value)
    if is_key or tag in ("!", _TAG + "str"):
        return value
    expected = _TYPED_TAGS.get(tag)
    if expected is None:
        raise ValueError("has a tag that is not known here")
    typed = plain_value(value)
    if type(typed) not in expected:
        raise ValueError("has a tag that its value does not fit")
    return typed


def _number(text: str) -> object:
    """An int or a float if Go's YAML would see one, else the text itself."""
    plain = text.replace("_", "")
    unsigned = plain[1:] if plain[:1] in ("+", "-") else plain
    if not unsigned or not unsigned.isascii() or unsigned[0] in "+-":
        return text
    base = {"0x": 16, "0X": 16, "0o": 8, "0O": 8, "0b": 2, "0B": 2}.get(unsigned[:2], 10)
    if base == 10 and len(unsigned) > 1 and unsigned[0] == "0" and set(unsigned) <= set("01234567"):
        base = 8
    if base != 10 or unsigned.isdigit():
        try:
            # What does not fit 64 bits is a float to Go as well, or a text if it is no decimal.
            if len(unsigned) <= 20 or base != 10:
                number = int(plain, base)
                if -(1 << 63) <= number < (1 << 63 if plain[0] == "+" else 1 << 64):
                    return number
        except ValueError:
            return text
    if not set(unsigned) <= set("0123456789.eE+-"):
        return text
    try:
        approximate = float(plain)
    except ValueError:
        return text
    return text if approximate in (float("inf"), float("-inf")) else approximate


class _Anchors:
    """What `&name` marked, and a count of what `*name` has multiplied."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._alive: list[Any] = []  # so that an id in `_sizes` is never another object's
        self._sizes: dict[int, int] = {}
        self._aliased = 0

    def keep(self, name: str, value: Any) -> None:
        self._values[name] = value
        self._alive.append(value)
        self._sizes[id(value)] = self._size(value)

    def get(self, name: str, line: int) -> Any:
        """The value; `_MERGE`, which no anchor can hold as a value, if there is none (or it is still open)."""
        value = self._values.get(name, _MERGE)
        self._aliased += self._sizes.get(id(value), 1)
        if self._aliased > ALIASED_NODES:
            raise YamlSyntaxError(f"aliases stand for more than {ALIASED_NODES} values", line)
        return value

    def _size(self, value: Any) -> int:
        """How many nodes `value` stands for. Anchored parts are known already, so each node is counted once."""
        if type(value) is dict:
            parts: Iterable[Any] = value.values()
        elif type(value) is list:
            parts = value
        else:
            return 1 + len(value) // _NODE_CHARACTERS if type(value) is str else 1
        return 1 + sum(self._sizes.get(id(part)) or self._size(part) for part in parts)


def _open_path(stack: list[tuple[list[Any], bool, str | None]]) -> Path:
    """The path of the collection that is open. Its parents end with the key, or before the index, that leads to it."""
    steps: list[str | int] = []
    for items, in_mapping, _ in stack[1:]:
        steps.append(_step(items, in_mapping))
    return tuple(steps)


def _path(stack: list[tuple[list[Any], bool, str | None]], items: list[Any], in_mapping: bool) -> Path:
    """The path of the node that comes next in the collection that is open."""
    return (*_open_path(stack), _step(items, in_mapping)) if stack else ()


def _step(items: list[Any], in_mapping: bool) -> str | int:
    if not in_mapping:
        return len(items)
    return items[-1] if len(items) & 1 and isinstance(items[-1], str) else "?"
