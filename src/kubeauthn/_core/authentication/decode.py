"""The text of a file to a configuration, as strict as Kubernetes: unknown fields, fields given twice and wrong types
are faults, names are case-sensitive, `null` is absent. Texts are those of Kubernetes; every fault has line and column.
"""

from __future__ import annotations

from hashlib import sha256

from kubeauthn._core.authentication.assemble import assemble
from kubeauthn._core.authentication.faults import DECODE, STRICT, ConfigFault, config_error, format_field
from kubeauthn._core.authentication.json_text import UNREADABLE, looks_like_json, read_json
from kubeauthn._core.authentication.model import GROUP, KIND, AuthenticationConfiguration
from kubeauthn._core.authentication.nodes import Node, place, undecodable, unreadable
from kubeauthn._core.authentication.release import NEWEST, Release
from kubeauthn._core.authentication.schema import BOOL, OTHER_KINDS, STRING, STRING_TYPES, STRUCTS
from kubeauthn._core.authentication.yaml_text import YamlText, read_yaml
from kubeauthn._core.record import record
from kubeauthn.cel.go_text import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn._core.authentication.findings import Finding
    from kubeauthn._core.yaml_document import Path
    from kubeauthn.errors import AuthenticationConfigError

TEXT_BYTES = 16 << 20
"""How long a file may be. 64 issuers, each with a bundle of 200 KiB, fit."""

TEXT_SHOWN = 4096
"""How much of a file that is of no kind at all is repeated in the message."""

STRICT_FAULTS = 100
"""How many unknown and repeated fields are listed, as in Kubernetes."""

_META_TYPE = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'


@record(frozen=True, slots=True)
class Decoded:
    """A configuration, and where everything in it stands."""

    configuration: AuthenticationConfiguration
    root: Node
    second: AuthenticationConfigError | None = None
    """To be raised where nothing else is wrong: the text goes on after the document."""

    def placed(self, finding: Finding) -> ConfigFault:
        line, column = place(self.root, finding.path)
        return ConfigFault(finding.text, format_field(finding.path), line, column, finding.kind)


def decode_configuration(text: str | bytes, kubernetes: str = NEWEST) -> Decoded:
    """Raises AuthenticationConfigError: with one fault where the text cannot be read at all, else with all of them."""
    text, digest = _checked_text(text)
    document = YamlText(read_json(text), [], None) if looks_like_json(text) else read_yaml(text)
    root, duplicates = document.root, document.duplicates
    _refuse_infinities(root)
    release = Release.named(kubernetes)
    version = _version(root, text, duplicates, release)
    decoder = _Decoder(version, release)
    values = decoder.struct(KIND, root, ())
    if decoder.type_faults:
        raise config_error([*decoder.type_faults, *duplicates, *decoder.strict_faults])
    if duplicates or decoder.strict_faults:
        raise config_error([*duplicates, *decoder.strict_faults], message=_strict(duplicates, decoder.strict_faults))
    return Decoded(assemble(f"{GROUP}/{version}", values, digest), root, document.second)


def _checked_text(text: str | bytes) -> tuple[str, str]:
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if not raw:
        raise unreadable("empty config data")
    if len(raw) > TEXT_BYTES:
        raise unreadable(f"longer than {TEXT_BYTES >> 20} MiB")
    try:
        decoded = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise unreadable("not UTF-8 text", line, column) from None
    return decoded, "sha256:" + sha256(raw).hexdigest()


def _refuse_infinities(root: Node) -> None:
    """JSON has no word for them."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node.value, float):
            special = {float("inf"): "+Inf", float("-inf"): "-Inf"}
            shown = "NaN" if node.value != node.value else special.get(node.value)
            if shown:
                raise undecodable(f"json: unsupported value: {shown}", node)
        waiting += reversed(node.items or [entry.value for entry in node.entries])


def _version(root: Node, text: str, duplicates: list[ConfigFault], release: Release) -> str:
    """The version of the file, which must be an AuthenticationConfiguration."""
    named = _named_type(root)
    kind = named.get("kind", "")
    api_version = named.get("apiVersion", "")
    group, _, version = api_version.rpartition("/")
    if api_version.count("/") > 1:
        raise undecodable(f"unexpected GroupVersion string: {api_version}", root)
    if not kind:
        raise undecodable(f"Object 'Kind' is missing in '{_cut(text)}'", root)
    if not version:
        raise undecodable(f"Object 'apiVersion' is missing in '{_cut(text)}'", root)
    shown = f"{group}/{version}" if group else version
    others = OTHER_KINDS.get(shown, {})
    if kind in others:
        unknown = [entry for entry in root.entries if entry.key not in {"kind", "apiVersion"} | others[kind]]
        if unknown or duplicates:
            faults = [
                ConfigFault(f"unknown field {quote(entry.key)}", entry.key, entry.line, entry.column, STRICT)
                for entry in unknown
            ]
            raise config_error([*duplicates, *faults], message=_strict(duplicates, faults))
        raise undecodable(f"expected {KIND}, got *apiserver.{kind}", root)
    if group != GROUP or not release.has_version(version) or kind != KIND:
        line, column = place(root, ("kind" if group == GROUP and release.has_version(version) else "apiVersion",))
        raise unreadable(f"no kind {quote(kind)} is registered for version {quote(shown)}", line, column, kind=DECODE)
    return version


def _cut(text: str) -> str:
    """Kubernetes shows the whole file; here a message stays a message."""
    return text if len(text) <= TEXT_SHOWN else text[:TEXT_SHOWN] + "…"


def _named_type(root: Node) -> dict[str, str]:
    """`kind` and `apiVersion`; here, and only here, Kubernetes does not care about upper and lower case."""
    if root.kind not in ("object", "null"):
        raise undecodable(f"{UNREADABLE}json: cannot unmarshal {root.kind} into Go value of type {_META_TYPE}", root)
    named: dict[str, str] = {}
    names = {"apiversion": "apiVersion", "kind": "kind"}
    for entry in root.entries:
        name = names.get(entry.key.casefold())
        if name is None or entry.value.kind == "null":
            continue
        if entry.value.kind != "string":
            raise undecodable(
                f"{UNREADABLE}json: cannot unmarshal {entry.value.kind} into Go struct field .{name} of type string",
                entry.value,
            )
        named[name] = str(entry.value.value)
    return named


def _strict(duplicates: list[ConfigFault], strict_faults: list[ConfigFault]) -> str:
    """All of them in the one sentence that Kubernetes makes of them."""
    parts = [fault.text for fault in strict_faults]
    if duplicates:
        parts.insert(0, "yaml: unmarshal errors:" + "".join(f"\n  {fault.text}" for fault in duplicates))
    return "strict decoding error: " + ", ".join(parts)


class _Decoder:
    """Reads nodes by the schema, and notes what does not fit."""

    def __init__(self, version: str, release: Release) -> None:
        self._version = version
        self._release = release
        self.type_faults: list[ConfigFault] = []
        self.strict_faults: list[ConfigFault] = []

    def struct(self, name: str, node: Node, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        seen: set[str] = set()
        fields = STRUCTS[name]
        for entry in node.entries:
            inner = (*path, entry.key)
            expected = fields.get(entry.key)
            if expected is None or not self._release.has_field(name, entry.key):
                self._strict_fault("unknown", inner, entry.line, entry.column)
                continue
            if entry.key in seen:
                self._strict_fault("duplicate", inner, entry.line, entry.column)
            seen.add(entry.key)
            values[entry.key] = self._value(expected, entry.value, inner, name)
        return values

    def _value(self, expected: str, node: Node, path: Path, struct: str) -> Any:
        """The value of a field, or of an element of it; None where it is absent or wrong."""
        expected = expected.removeprefix("*")
        if node.kind == "null":
            return None
        if expected.startswith("[]"):
            if node.kind != "array":
                return self._type_fault(expected, node, path, struct)
            element = expected.removeprefix("[]")
            return [self._value(element, item, (*path, index), struct) for index, item in enumerate(node.items)]
        if expected in STRUCTS:
            return (
                self.struct(expected, node, path)
                if node.kind == "object"
                else self._type_fault(expected, node, path, struct)
            )
        if node.kind != (BOOL if expected == BOOL else STRING):
            return self._type_fault(expected, node, path, struct)
        return node.value

    def _type_fault(self, expected: str, node: Node, path: Path, struct: str) -> None:
        prefix = "[]" if expected.startswith("[]") else ""
        name = expected.removeprefix("[]")
        if name in STRUCTS or name in STRING_TYPES:
            name = f"{self._version}.{name}"
        names = ".".join(step for step in path if isinstance(step, str))
        text = f"json: cannot unmarshal {node.kind} into Go struct field {struct}.{names} of type {prefix}{name}"
        self.type_faults.append(ConfigFault(text, format_field(path), node.line, node.column, DECODE))

    def _strict_fault(self, what: str, path: Path, line: int, column: int) -> None:
        shown = format_field(path)
        text = f"{what} field {quote(shown)}"
        if len(self.strict_faults) < STRICT_FAULTS and all(fault.text != text for fault in self.strict_faults):
            self.strict_faults.append(ConfigFault(text, shown, line, column, STRICT))
