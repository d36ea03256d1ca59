"""A suite of cases for a configuration: what a file of them says, and whether a verdict is what a case expects.

`docs/suites.md` shows one.
"""

from __future__ import annotations

import json

from kubeauthn._core import rfc3339
from kubeauthn._core.authentication.json_text import looks_like_json, read_json
from kubeauthn._core.authentication.mapping import CREDENTIAL_ID
from kubeauthn._core.authentication.yaml_text import read_yaml
from kubeauthn._core.record import field, record
from kubeauthn.errors import AuthenticationConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from kubeauthn._core.authentication.nodes import Entry, Node
    from kubeauthn._core.authentication.trace import Trace

SUITE_BYTES = 4 << 20
_SUITE_FIELDS = ("configuration", "keys", "now", "cases")
_CASE_FIELDS = ("name", "claims", "token", "now", "expect")
_USER_FIELDS = ("username", "uid", "groups", "extra")


@record(frozen=True, slots=True)
class SuiteFault:
    text: str
    line: int
    column: int


@record(frozen=True, slots=True)
class Expectation:
    """A user, of which only the given parts count; or a refusal; or a token that is not ours."""

    user: Mapping[str, Any] | None = None
    refused: str | None = None
    """A part of the reason, or the rule that refused; "" is any."""
    not_mine: bool = False

    def describe(self) -> str:
        if self.not_mine:
            return "not mine"
        if self.refused is not None:
            return f"refused: {self.refused}" if self.refused else "refused"
        parts = (f"{name} {json.dumps(value, ensure_ascii=False)}" for name, value in (self.user or {}).items())
        return "authenticated" + "".join(f", {part}" for part in parts)


@record(frozen=True, slots=True)
class Case:
    name: str
    line: int
    expect: Expectation
    claims: bytes | None = None
    """JSON, to be taken as verified."""
    token: str = field(default="", repr=False)
    now: float | None = None


@record(frozen=True, slots=True)
class Suite:
    configuration: str
    keys: str
    cases: tuple[Case, ...]
    now: float | None = None


def read_suite(content: bytes) -> tuple[Suite | None, list[SuiteFault]]:
    """The suite, or every fault of it."""
    reader = _Reader()
    try:
        text = content.decode("utf-8-sig")
        if looks_like_json(text):
            root = read_json(text)
        else:
            document = read_yaml(text)
            root = document.root
            for fault in document.duplicates:
                reader.faults.append(SuiteFault(fault.text, fault.line, fault.column))
            if document.second is not None:
                raise document.second
    except UnicodeDecodeError:
        return None, [SuiteFault("not UTF-8 text", 1, 1)]
    except AuthenticationConfigError as error:
        return None, [SuiteFault(fault.text, fault.line, fault.column) for fault in error.errors]
    suite = reader.suite(root)
    return (None if reader.faults else suite), reader.faults


class _Reader:
    def __init__(self) -> None:
        self.faults: list[SuiteFault] = []

    def suite(self, root: Node) -> Suite | None:
        fields = self._fields(root, _SUITE_FIELDS, "a suite")
        if fields is None:
            return None
        if "configuration" not in fields:
            self._fault(root, "a suite needs configuration, the file that is tested")
        if "cases" not in fields or not fields["cases"].value.items:
            self._fault(fields["cases"].value if "cases" in fields else root, "a suite needs cases, a list of them")
            return None
        cases = [case for item in fields["cases"].value.items if (case := self._case(item)) is not None]
        names: set[str] = set()
        for case in cases:
            if case.name in names:
                self.faults.append(SuiteFault(f"two cases are called {json.dumps(case.name)}", case.line, 1))
            names.add(case.name)
        return Suite(self._text(fields, "configuration"), self._text(fields, "keys"), tuple(cases), self._now(fields))

    def _case(self, node: Node) -> Case | None:
        fields = self._fields(node, _CASE_FIELDS, "a case")
        if fields is None:
            return None
        name = self._text(fields, "name")
        if not name:
            self._fault(node, "a case needs a name")
        if ("claims" in fields) == ("token" in fields):
            self._fault(node, "a case has claims or a token, one of the two")
        if "expect" not in fields:
            self._fault(node, "a case needs expect: a user, refused or notMine")
            return None
        expect = self._expectation(fields["expect"].value)
        claims = self._claims(fields["claims"].value) if "claims" in fields else None
        return Case(name, node.line, expect, claims, self._text(fields, "token").strip(), self._now(fields))

    def _claims(self, node: Node) -> bytes | None:
        """An object; or a text with the JSON exactly as a token would have it."""
        if node.kind == "string":
            return str(node.value).encode("utf-8", "surrogatepass")
        if node.kind != "object":
            self._fault(node, f"claims are an object, or a text with one in JSON, not {node.kind}")
            return None
        try:
            return as_json(node).encode()
        except ValueError:
            self._fault(node, "claims are JSON, which has no word for infinity nor for what is no number")
            return None

    def _expectation(self, node: Node) -> Expectation:
        fields = self._fields(node, (*_USER_FIELDS, "refused", "notMine"), "expect")
        if not fields:
            if fields is not None:
                self._fault(node, "expect is empty: it would be met by anything")
            return Expectation()
        for name in ("refused", "notMine"):
            if name in fields and len(fields) > 1:
                self._fault(node, f"{name} stands alone in expect")
        if "notMine" in fields:
            if fields["notMine"].value.value is not True:
                self._fault(fields["notMine"].value, "notMine is true, or not there")
            return Expectation(not_mine=True)
        if "refused" in fields:
            value = fields["refused"].value
            if value.kind != "string" and value.value is not True:
                self._fault(value, "refused is a part of the reason, the rule that refuses, or true")
            return Expectation(refused=str(value.value) if value.kind == "string" else "")
        return Expectation(user={name: self._user_part(name, entry.value) for name, entry in fields.items()})

    def _user_part(self, name: str, node: Node) -> Any:
        if name in ("username", "uid"):
            if node.kind != "string":
                self._fault(node, f"{name} is a text, not {node.kind}")
            return node.value
        if name == "groups":
            return self._texts(node, name)
        if node.kind != "object":
            self._fault(node, f"extra is an object, not {node.kind}")
            return {}
        return {entry.key: self._texts(entry.value, f"extra {entry.key}") for entry in node.entries}

    def _texts(self, node: Node, name: str) -> list[str]:
        items = [node] if node.kind == "string" else node.items
        if node.kind not in ("string", "array") or any(item.kind != "string" for item in items):
            self._fault(node, f"{name}: a text or a list of texts is expected")
            return []
        return [str(item.value) for item in items]

    def _now(self, fields: dict[str, Entry]) -> float | None:
        if "now" not in fields:
            return None
        node = fields["now"].value
        try:
            if node.kind == "number":
                return float(node.value)  # type: ignore[arg-type]
            return rfc3339.parse(str(node.value))
        except (ValueError, OverflowError):
            self._fault(node, "now is a time such as 2030-01-01T00:00:00Z, or Unix seconds")
            return None

    def _text(self, fields: dict[str, Entry], name: str) -> str:
        if name not in fields:
            return ""
        node = fields[name].value
        if node.kind != "string" or not node.value:
            self._fault(node, f"{name} is a text, not {'empty' if node.kind == 'string' else node.kind}")
            return ""
        return str(node.value)

    def _fields(self, node: Node, known: tuple[str, ...], what: str) -> dict[str, Entry] | None:
        if node.kind != "object":
            self._fault(node, f"{what} is an object, not {node.kind}")
            return None
        for entry in node.entries:
            if entry.key not in known:
                text = f"{what} has no field {json.dumps(entry.key)}: {', '.join(known)}"
                self.faults.append(SuiteFault(text, entry.line, entry.column))
        return {entry.key: entry for entry in node.entries if entry.key in known}

    def _fault(self, node: Node, text: str) -> None:
        self.faults.append(SuiteFault(text, node.line, node.column))


def as_json(node: Node) -> str:
    """A node as JSON text. Raises ValueError for a number that JSON has not."""
    if node.kind == "object":
        return "{" + ",".join(f"{json.dumps(entry.key)}:{as_json(entry.value)}" for entry in node.entries) + "}"
    if node.kind == "array":
        return "[" + ",".join(map(as_json, node.items)) + "]"
    if node.kind == "number" and isinstance(node.value, str):
        return node.value  # JSON's own: as it was written
    return json.dumps(node.value, allow_nan=False)


# -- judging --------------------------------------------------------------------------------------


def differences(expect: Expectation, trace: Trace) -> list[tuple[str, str]]:
    """What was expected and what came, pair by pair; nothing if the case is as it should be."""
    if expect.not_mine:
        return [] if trace.verdict == "not mine" else [("not mine", outcome(trace))]
    if expect.refused is not None:
        met = trace.verdict == "refused" and _is_reason(expect.refused, trace)
        return [] if met else [(expect.describe(), outcome(trace))]
    if trace.user is None:
        return [(expect.describe(), outcome(trace))]
    got = trace.user.as_dict()
    wanted = dict(expect.user or {})
    if "extra" in wanted and CREDENTIAL_ID not in wanted["extra"]:
        got["extra"].pop(CREDENTIAL_ID, None)  # every token with an id has it: only who names it cares
    return [
        (f"{name} {json.dumps(value, ensure_ascii=False)}", f"{name} {json.dumps(got[name], ensure_ascii=False)}")
        for name, value in wanted.items()
        if got[name] != value
    ]


def outcome(trace: Trace) -> str:
    if trace.user is not None:
        return f"authenticated as {json.dumps(trace.user.username, ensure_ascii=False)}"
    rule = _deciding_rule(trace) if trace.verdict == "refused" else ""
    return f"{trace.verdict}: {trace.reason}" + (f" ({rule})" if rule else "")


def _is_reason(wanted: str, trace: Trace) -> bool:
    """A part of the reason, or the field of the rule that gave it, with or without what stands before it."""
    rule = _deciding_rule(trace)
    return wanted in trace.reason or rule == wanted or rule.endswith(f".{wanted}")


def _deciding_rule(trace: Trace) -> str:
    """The rule that gave the reason. Of several that are not met it need not be the first, as in kube-apiserver."""
    failed = [step for step in trace.steps if step.outcome == "failed"]
    deciding = next((step for step in failed if step.detail == trace.reason), failed[0] if failed else None)
    return deciding.rule if deciding is not None else ""


def failed_rules(trace: Trace) -> set[str]:
    """The rules that this token did not meet."""
    return {step.rule for step in trace.steps if step.outcome == "failed" and step.name in ("claim rule", "user rule")}
