"""A trace, shown: for people as steps in columns, for programs as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubeauthn._core.authentication.claims import with_sources
from kubeauthn._core.authentication.seen import ABSENT
from kubeauthn._core.authentication.token import read_token
from kubeauthn.cli.cel_value import shown
from kubeauthn.cli.look import Look
from kubeauthn.cli.text import duration, escaped, escaped_lines, time_left
from kubeauthn.errors import NotMine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubeauthn._core.authentication.trace import Step, Trace

WORDS = {"passed": "ok", "failed": "refused", "skipped": "skipped"}
_KINDS = {"ok": "good", "refused": "bad", "skipped": "doubt"}
_VERDICTS = {"authenticated": "good", "refused": "bad", "not mine": "doubt"}
_ANY = "google.protobuf.Any"
_MAPPING_STEP = 9
_LONGEST_VALUE = 2000
_WIDEST_NAME = 24
"""Of a claim in its column; some are URLs."""
_TIMES_STEP = 6
_SIGNATURE_STEP = 3
_RULE_STEPS = (8, 10)
TAKEN_AS_VERIFIED = "not looked at: the claims are taken as verified"


@dataclass(frozen=True)
class Explained:
    """A trace and what it was made from. The token is for reading times and values: it is not shown."""

    trace: Trace
    token: str = field(repr=False)
    now: float
    kubernetes: str
    from_claims: bool = False
    assumed: list[str] = field(default_factory=list)
    """Claims that were not given, and taken to be as they must be."""
    fetched: dict[str, Any] = field(default_factory=dict, repr=False)

    def steps(self) -> Iterator[Step]:
        for step in self.trace.steps:
            if self.from_claims and step.number == 1:
                continue  # there was no token
            if self.from_claims and step.number == _SIGNATURE_STEP:
                yield step._replace(outcome="skipped", detail=TAKEN_AS_VERIFIED, inputs={}, hint="")
            else:
                yield step

    @property
    def signed(self) -> bool:
        """The claims are the issuer's, though the token may have ended or be for somebody else."""
        return any(step.number == _SIGNATURE_STEP and step.outcome == "passed" for step in self.trace.steps)

    @property
    def refused_by_rule(self) -> bool:
        return any(step.number in _RULE_STEPS and step.outcome == "failed" for step in self.trace.steps)

    @property
    def needs_fetching(self) -> bool:
        """Whether it was refused because a claim is elsewhere, and nobody fetched it."""
        return self.trace.verdict == "refused" and "has to be fetched" in self.trace.reason

    def claims(self) -> dict[str, Any]:
        try:
            claims = read_token(self.token).untrusted_claims
            return with_sources(claims, self.fetched)
        except (NotMine, AttributeError, TypeError):
            return {}


# -- for programs ---------------------------------------------------------------------------------


def as_json(explained: Explained) -> dict[str, Any]:
    trace = explained.trace.as_dict()
    del trace["format"]
    steps = []
    for step in explained.steps():
        outcome = WORDS[step.outcome]
        steps.append({**step.as_dict(), "outcome": outcome})
    document = {"version": 1, **trace, "steps": steps, "assumed": explained.assumed}
    if explained.from_claims:
        document["verified"] = "taken"
    return document


# -- for people -----------------------------------------------------------------------------------


def text_lines(explained: Explained, look: Look | None = None) -> Iterator[str]:
    look = look or Look()
    trace = explained.trace
    if explained.from_claims:
        yield from look.folded("the claims are taken as verified: nobody has looked at a signature", 0)
        if explained.assumed:
            yield from look.folded(f"not given, and taken to be as they must be: {', '.join(explained.assumed)}", 0)
    steps = [(_named(step), step) for step in explained.steps()]
    width = max((len(name) for (name, _), _ in steps), default=0)
    indent = width + 15
    for (name, key), step in steps:
        word = WORDS[step.outcome]
        mark = look.paint(_KINDS[word], word.ljust(7))
        lines = [
            look.paint(kind, line) for kind, text in _told(step, key, explained) for line in look.folded(text, indent)
        ]
        yield f"{step.number:>2}  {mark}  {name.ljust(width)}  {lines[0]}".rstrip()
        for line in lines[1:]:
            yield f"{'':{indent}}{line}".rstrip()
    if trace.issuer and not explained.signed and not explained.from_claims:
        warning = "what comes after step 6 is about claims that are not verified: anybody may have written them"
        yield from (look.paint("doubt", line) for line in look.folded(warning, 0))
    yield ""
    yield from _verdict(trace, look)
    if trace.claims is not None:
        yield ""
        known = explained.from_claims or explained.signed
        yield "claims" if known else "claims, not verified: anybody may have written them"
        yield from _claims(trace.claims, look)


def _claims(claims: Mapping[str, Any], look: Look) -> Iterator[str]:
    rows = [(escaped(name), escaped(_plain(value), _LONGEST_VALUE)) for name, value in claims.items()]
    width = min(max((len(name) for name, _ in rows), default=0), _WIDEST_NAME)
    for name, text in rows:
        first, *rest = look.folded(text, width + 4, first=max(len(name), width) + 4)
        yield f"  {name.ljust(width)}  {first}"
        yield from (f"{'':{width + 4}}{line}" for line in rest)


def _named(step: Step) -> tuple[str, str]:
    """The name, short enough for a column, and the key of an extra value, which may be as long as it likes."""
    name, _, key = escaped(step.name).partition(" ") if step.name.startswith("extra ") else (escaped(step.name), "", "")
    return name, key


def _verdict(trace: Trace, look: Look) -> Iterator[str]:
    word = look.paint(_VERDICTS[trace.verdict], trace.verdict)
    if trace.user is None:
        first, *rest = escaped_lines(trace.reason)
        begin, *more = look.folded(first, 2, first=len(trace.verdict) + 2)
        yield f"{word}: {begin}"
        yield from (f"  {line}" for text in (more, *(look.folded(line, 2) for line in rest)) for line in text)
        return
    yield word
    rows = [("username", escaped(trace.user.username))]
    if trace.user.uid:
        rows.append(("uid", escaped(trace.user.uid)))
    rows.append(("groups", escaped(_plain(list(trace.user.groups)), _LONGEST_VALUE)))
    for key, values in trace.user.extra.items():
        rows.append(("extra", f"{escaped(key)}: {escaped(_plain(list(values)), _LONGEST_VALUE)}"))
    for name, text in rows:
        first, *rest = look.folded(text, 12)
        yield f"  {name.ljust(8)}  {look.paint('strong', first) if name == 'username' else first}"
        yield from (f"{'':12}{line}" for line in rest)


def _told(step: Step, key: str, explained: Explained) -> Iterator[tuple[str, str]]:
    """What is said of a step, line by line, and how each line is painted."""
    mapped = step.number == _MAPPING_STEP and step.outcome == "passed"
    found = _mapping(step) if mapped else escaped_lines(step.detail)
    found[0] = f"{key}: {found[0]}" if key else found[0]
    yield from (("bad" if step.outcome == "failed" else "", line) for line in found)
    # A refusal quotes the expression in Kubernetes' own text already.
    quoted = step.outcome == "failed" and f"'{step.expression}'" in step.detail
    where = " ".join(part for part in (step.rule, "" if quoted else step.expression) if part)
    if where:
        yield from (("aside", line) for line in escaped_lines(where))
    if step.number == _TIMES_STEP:
        yield from (("aside", line) for line in _times(step, explained))
    elif step.number != _MAPPING_STEP:
        for name, value in step.inputs.items():
            yield "aside", f"{escaped(name)}: {escaped(_plain(value))}"
    for name, value in (step.saw or {}).items():
        yield "", f"{escaped(name)}: {'absent' if value is ABSENT else escaped(_plain(value), _LONGEST_VALUE)}"
    if step.hint:
        first, *rest = escaped_lines(step.hint)
        yield "note", f"hint: {first}"
        yield from (("note", f"      {line}") for line in rest)


def _mapping(step: Step) -> list[str]:
    if step.cel is not None:
        kind = "any" if step.cel.type == _ANY else step.cel.type
        return [f"{escaped(shown(step.cel.value), _LONGEST_VALUE)}  ({kind}, cost {step.cel.cost})"]
    if step.expression:  # the value of an extra key that was not mapped
        return escaped_lines(step.detail)
    claim = step.inputs.get("claim")
    return [f"{escaped(step.detail, _LONGEST_VALUE)}{f'  (claim {escaped(claim)})' if claim else ''}"]


def _times(step: Step, explained: Explained) -> Iterator[str]:
    """In words, seen from the moment that counts."""
    claims = explained.claims()
    for name, said in (("iat", "issued"), ("nbf", "valid from")):
        moment = _number(claims, name)
        if moment is not None:
            away = duration(moment - explained.now)
            yield f"{name}: {said} {away} ago" if moment <= explained.now else f"{name}: {said} in {away}"
    moment = _number(claims, "exp")
    if moment is not None and step.outcome != "passed":  # else the step has said it
        yield f"exp: {time_left(moment, explained.now)}"


def _number(claims: dict[str, Any], name: str) -> float | None:
    value = dict.get(claims, name)
    return value if isinstance(value, float) and abs(value) < 1e12 else None


def _plain(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)
