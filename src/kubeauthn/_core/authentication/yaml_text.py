"""YAML text to nodes, with places, the way Kubernetes turns YAML into JSON, and with its error texts.

Plain scalars mean what they mean in YAML 1.1: `n` is false, also where a name was meant. The fields of an object come
out sorted, because that is the order in which Kubernetes then reads them. Of a field that is given twice the last one
stands; that it is an error is said in `duplicates`.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from math import copysign, inf
from struct import pack, unpack

from kubeauthn._core.authentication.faults import STRICT, ConfigFault
from kubeauthn._core.authentication.nodes import DEPTH, Entry, Node, undecodable, unreadable
from kubeauthn._core.record import record
from kubeauthn._core.yaml_document import event_source, plain_value
from kubeauthn.cel.go_text import go_format_double, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn.errors import AuthenticationConfigError

ALIASED_NODES = 100_000
"""How many nodes all aliases together may stand for. 64 entries that share everything need a few thousand."""

_COLON_PROBLEM = "found unexpected ':'"
_MENDED = 200
"""How many places that libyaml refuses and go-yaml takes may be in a file: it is read once more for each."""

_TAG = "tag:yaml.org,2002:"
_KINDS = {str: "string", bool: "bool", int: "number", float: "number", type(None): "null"}
_SHORT_TAGS = {str: "!!str", bool: "!!bool", int: "!!int", float: "!!float", type(None): "!!null"}
_MERGE = "<<"
_LARGEST_INT = (1 << 63) - 1
_GO_NULL = "interface {}(nil)"
_IN_TAGS = frozenset("_-;/?:@&=+$,.!~*'()[]%")


@record(frozen=True, slots=True)
class YamlText:
    """What a YAML text holds: a tree, and what is wrong although it can be read."""

    root: Node
    duplicates: list[ConfigFault]
    """Fields that are given twice."""
    second: AuthenticationConfigError | None
    """There is more than one document. Kubernetes would take the first in silence, so its own faults are said first."""


def read_yaml(text: str) -> YamlText:
    import yaml

    text = text.removeprefix("\ufeff")  # libyaml would count it as a column
    for _ in range(_MENDED):
        try:
            return _read_once(text)
        except yaml.scanner.ScannerError as error:
            text = _mended(text, error)
        except yaml.YAMLError as error:
            raise _syntax_error(error) from None
        except UnicodeEncodeError:
            raise unreadable("yaml: control characters are not allowed") from None
    raise unreadable(f"yaml: more than {_MENDED} texts that only some readers of YAML take; quote them with '")


def _mended(text: str, error: Any) -> str:
    """The text with what libyaml refuses and go-yaml takes written in a way that both take."""
    at = error.problem_mark.index
    if error.problem == _COLON_PROBLEM:  # `{claim: sub, prefix: oidc:}`
        start, end = error.context_mark.index, at + 1
        quoted = text[start:end].replace("'", "''")
        return f"{text[:start]}'{quoted}'{text[end:]}"
    if text.startswith("\\'", at):  # in double quotes
        return text[:at] + text[at + 1 :]
    raise _syntax_error(error) from None


def _read_once(text: str) -> YamlText:
    composer = _Composer(event_source(text), text)
    root = composer.document()
    return YamlText(root, composer.duplicates, composer.what_follows())


def _syntax_error(error: Any) -> AuthenticationConfigError:
    import yaml

    problem = (
        getattr(error, "problem", None) or getattr(error, "reason", None) or "unknown problem parsing YAML content"
    )
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return unreadable(f"yaml: {problem}")
    # Go counts the lines of the parser from 0, those of the scanner from 1, and is silent about the first
    line = mark.line + 1 if isinstance(error, yaml.scanner.ScannerError) else mark.line
    where = f"line {line}: " if mark.line else ""
    return unreadable(f"yaml: {where}{problem}", mark.line + 1, mark.column + 1)


class _Composer:
    def __init__(self, loader: Any, text: str) -> None:
        import yaml

        self._yaml = yaml
        self._next = loader.get_event
        self._text = text
        self._anchors: dict[str, Node | None] = {}  # None: still open
        self._aliased = 0
        self._brackets: list[str] = []  # what closes the brackets that are open
        # What is well-formed but means nothing is said after the last syntax error: first values, then keys.
        self._bad_values: list[Exception] = []
        self._bad_keys: dict[tuple[int, int], Exception] = {}  # by place
        self._no_texts: dict[tuple[int, int], str] = {}  # keys that are no texts, as Go writes them, by place
        self.duplicates: list[ConfigFault] = []

    def document(self) -> Node:
        yaml = self._yaml
        self._next()  # the start of the stream
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            return Node("null", None, 1, 1)
        if start.version not in (None, (1, 1)):  # libyaml knows 1.2 as well
            line = start.start_mark.line
            where = f"line {line}: " if line else ""
            raise unreadable(f"yaml: {where}found incompatible YAML document", line + 1, 1)
        root = self._node(self._next(), 0)
        self._next()  # the end of the document
        for fault in self._bad_values:
            raise fault
        if self._bad_keys:
            self._check_keys(root)
        return root

    def _check_keys(self, root: Node) -> None:
        """Keys are refused where they still stand: what a second field of the same name has replaced is not there.

        Of several the first is named, as in a list. In an object Kubernetes names any.
        """
        waiting = [root]
        while waiting:
            node = waiting.pop()
            for entry in node.entries:
                if (entry.line, entry.column) in self._bad_keys:
                    raise self._bad_keys[entry.line, entry.column]
            waiting += [entry.value for entry in reversed(node.entries)]
            waiting += reversed(node.items)

    def what_follows(self) -> AuthenticationConfigError | None:
        """The fault that a second document follows; an empty one, such as a last `---` makes, is nothing."""
        yaml = self._yaml
        try:
            while (event := self._next()) is not None and not isinstance(event, yaml.StreamEndEvent):
                mark = event.start_mark
                content = self._next()
                if not (isinstance(content, yaml.ScalarEvent) and content.value == "" and content.implicit[0]):
                    text = "a file holds one document, and here a second one begins"
                    return unreadable(text, mark.line + 1, mark.column + 1)
                self._next()  # the end of the empty document
        except yaml.YAMLError as error:
            return _syntax_error(error)
        return None

    def _node(self, event: Any, depth: int) -> Node:
        yaml = self._yaml
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, line, column)
        if depth >= DEPTH:
            raise unreadable(f"nested more than {DEPTH} levels deep", line, column)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if self._brackets and event.tag is not None and self._has_comma_in_tag(event.start_mark.index):
            raise self._not_separated(line, column)
        if isinstance(event, yaml.ScalarEvent):
            if self._brackets and event.implicit[0] and "?" in event.value[1:]:
                raise self._not_separated(line, column)  # go-yaml ends a plain text there, in brackets
            node = self._scalar(event, line, column)
            if event.anchor is not None:
                self._anchors[event.anchor] = node
            return node
        if event.flow_style:
            self._brackets.append("]" if isinstance(event, yaml.SequenceStartEvent) else "}")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(inner := self._next(), yaml.SequenceEndEvent):
                items.append(self._node(inner, depth + 1))
            node = Node("array", items, line, column, 1 + sum(item.size for item in items))
        else:
            node = self._mapping(line, column, depth)
        if event.flow_style:
            self._brackets.pop()
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _not_separated(self, line: int, column: int) -> AuthenticationConfigError:
        where = f"line {line - 1}: " if line > 1 else ""
        return unreadable(f"yaml: {where}did not find expected ',' or '{self._brackets[-1]}'", line, column)

    def _has_comma_in_tag(self, at: int) -> bool:
        """To go-yaml a tag goes on over commas and square brackets."""
        start = self._text.find("!", at)
        end = start
        while self._text[end : end + 1].isalnum() or self._text[end : end + 1] in _IN_TAGS:
            end += 1
        return any(sign in self._text[start:end] for sign in ",[]")

    def _alias(self, name: str, line: int, column: int) -> Node:
        if name not in self._anchors:
            raise unreadable(f"yaml: unknown anchor '{name}' referenced", line, column)
        node = self._anchors[name]
        if node is None:
            self._bad_values.append(unreadable(f"yaml: anchor '{name}' value contains itself", line, column))
            return Node("null", None, line, column)
        self._aliased += node.size
        if self._aliased > ALIASED_NODES:
            raise unreadable("yaml: document contains excessive aliasing", line, column)
        return node

    def _mapping(self, line: int, column: int, depth: int) -> Node:
        yaml = self._yaml
        found: dict[str | None, Entry] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            is_merge = isinstance(event, yaml.ScalarEvent) and event.value == _MERGE and event.implicit[0]
            key = self._node(event, depth + 1)
            # a key is looked at before its value
            before_value = len(self._bad_values)
            value = self._node(self._next(), depth + 1)
            if is_merge:
                for entry in self._merged(value, before_value):
                    self._put(found, entry.key, entry, None)
            else:
                entry = Entry(self._key(key, value, before_value), value, key.line, key.column)
                self._put(found, None if key.kind == "null" else entry.key, entry, key)
        entries = sorted(found.values(), key=lambda entry: entry.key.encode("utf-8", "replace"))
        return Node("object", entries, line, column, 1 + sum(entry.value.size for entry in entries))

    def _put(self, found: dict[str | None, Entry], name: str | None, entry: Entry, written: Node | None) -> None:
        """`written` is the key as it stands there; a merged one does not."""
        if name in found:
            shown = quote(entry.key) if written is None else self._go_syntax(written)
            text = f"line {entry.value.line}: key {shown} already set in map"
            self.duplicates.append(ConfigFault(text, entry.key, entry.line, entry.column, STRICT))
        found[name] = entry

    def _scalar(self, event: Any, line: int, column: int) -> Node:
        text: str = event.value
        tag: str = event.tag or ""
        if event.style == '"':
            self._check_escapes(event)
        if not tag and not event.implicit[0]:
            return Node("string", text, line, column)  # quoted
        if tag == _TAG + "binary":
            try:
                return Node("string", b64decode(text, validate=True).decode("utf-8", "replace"), line, column)
            except Base64Error:
                self._bad_values.append(unreadable("yaml: !!binary value contains invalid base64 data", line, column))
        name = tag.removeprefix(_TAG) if tag.startswith(_TAG) else tag
        if name not in ("", "bool", "int", "float", "null"):
            return Node("string", text, line, column)
        value = plain_value(text)
        found = _SHORT_TAGS[type(value)].removeprefix("!!")
        if name not in ("", found) and (name, found) != ("float", "int"):
            fault = unreadable(f"yaml: cannot decode !!{found} `{text}` as a !!{name}", line, column)
            self._bad_values.append(fault)
        return Node(_KINDS[type(value)], value, line, column)

    def _check_escapes(self, event: Any) -> None:
        """`\\/`, which JSON has and YAML 1.2, is none in Kubernetes' YAML."""
        written = self._text[event.start_mark.index : event.end_mark.index]
        at = written.find("\\")
        while at >= 0:
            if written[at + 1] == "/":
                line = event.start_mark.line + 1 + written.count("\n", 0, at)
                where = f"line {line}: " if line > 1 else ""
                raise unreadable(f"yaml: {where}found unknown escape character", line)
            at = written.find("\\", at + 2)

    def _merged(self, node: Node, position: int) -> list[Entry]:
        """What `<<` brings, the strongest last."""
        sources = node.items[::-1] if node.kind == "array" else [node]
        if any(source.kind != "object" for source in sources):
            text = "yaml: map merge requires map or sequence of maps as the value"
            self._bad_values.insert(position, unreadable(text, node.line, node.column))
        return [entry for source in sources for entry in source.entries]

    def _key(self, node: Node, value: Node, position: int) -> str:
        """A key as the text that Kubernetes makes of it."""
        if node.kind == "string":
            return str(node.value)
        self._no_texts[node.line, node.column] = self._go_syntax(node)
        if node.kind == "bool":
            return "true" if node.value else "false"
        if isinstance(node.value, int) and node.value <= _LARGEST_INT:
            return str(node.value)
        if isinstance(node.value, float):
            written = go_format_double(_single(node.value))
            return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}.get(written, written)
        if node.kind in ("null", "number"):
            kind, shown = ("%!s(<nil>)", "<nil>") if node.kind == "null" else ("uint64", self._go_syntax(node))
            held = "<nil>" if value.kind == "null" else self._go_syntax(value)
            text = f"unsupported map key of type: {kind}, key: {shown}, value: {held}"
            self._bad_keys[node.line, node.column] = undecodable(text, node)
        else:
            self._bad_values.insert(position, undecodable(f"yaml: invalid map key: {self._go_syntax(node)}", node))
        return ""

    def _go_syntax(self, node: Node) -> str:
        """A value as Go would write it in a program."""
        if node.kind == "array":
            return "[]interface {}{" + ", ".join(map(self._go_syntax, node.items)) + "}"
        if node.kind == "object":
            shown = ((self._shown_key(entry), entry.value) for entry in node.entries)
            sorted_as_go = sorted(shown, key=lambda pair: _rank(pair[0]))
            entries = ", ".join(f"{key}:{self._go_syntax(value)}" for key, value in sorted_as_go)
            return "map[interface {}]interface {}{" + entries + "}"
        if node.kind == "string":
            return quote(str(node.value))
        if isinstance(node.value, float):
            return go_format_double(node.value)
        if node.kind == "bool":
            return "true" if node.value else "false"
        if isinstance(node.value, int):
            return str(node.value) if node.value <= _LARGEST_INT else hex(node.value)
        return _GO_NULL

    def _shown_key(self, entry: Entry) -> str:
        return self._no_texts.get((entry.line, entry.column)) or quote(entry.key)


def _rank(shown: str) -> tuple[int, float]:
    """Where a key in Go's syntax stands beside keys of other types: as the types do in kube-apiserver's program."""
    if shown == _GO_NULL:
        return 0, 0
    if shown.startswith('"'):
        return 1, 0  # they are in order already
    if shown.startswith("0x"):
        return 2, int(shown, 16)
    if shown.removeprefix("-").isdigit():
        return 3, int(shown)
    if shown == "NaN":
        return 4, 0
    if shown in ("true", "false"):
        return 6, shown == "true"
    # a list or a map is no key at all, and the fault is another one
    return (7, 0) if shown.endswith("}") else (5, float(shown))


def _single(number: float) -> float:
    """The shortest number that is the same in single precision: Kubernetes writes keys so."""
    try:
        wanted = pack("f", number)
    except OverflowError:
        return copysign(inf, number)
    nearer = (float(f"{unpack('f', wanted)[0]:.{digits}g}") for digits in range(1, 10))
    return next((one for one in nearer if pack("f", one) == wanted), number)
