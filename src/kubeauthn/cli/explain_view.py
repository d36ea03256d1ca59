"""A trace, shown: for people as steps in columns, for programs as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubeauthn._core.authentication.claims import with_sources
from kubeauthn._core.authentication.token import read_token
from kubeauthn.cli.cel_value import shown
from kubeauthn.cli.text import duration, escaped, escaped_lines, time_left
from kubeauthn.errors import NotMine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubeauthn._core.authentication.trace import Step, Trace

WORDS = {"passed": "ok", "failed": "refused", "skipped": "skipped"}
_COLOURS = {"ok": "\x1b[32m", "refused": "\x1b[31m", "skipped": "\x1b[33m"}
_NO_COLOUR = "\x1b[0m"
_MAPPING_STEP = 9
_LONGEST_VALUE = 2000
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


def text_lines(explained: Explained, *, colour: bool = False) -> Iterator[str]:
    trace = explained.trace
    if explained.from_claims:
        yield "the claims are taken as verified: nobody has looked at a signature"
        if explained.assumed:
            yield f"not given, and taken to be as they must be: {', '.join(explained.assumed)}"
    steps = list(explained.steps())
    width = max((len(step.name) for step in steps), default=0)
    for step in steps:
        word = WORDS[step.outcome]
        mark = f"{_COLOURS[word]}{word.ljust(7)}{_NO_COLOUR}" if colour else word.ljust(7)
        first, *rest = _told(step, explained)
        yield f"{step.number:>2}  {mark}  {escaped(step.name).ljust(width)}  {first}".rstrip()
        for line in rest:
            yield f"{'':{width + 15}}{line}".rstrip()
    if trace.issuer and not explained.signed and not explained.from_claims:
        yield "what comes after step 6 is about claims that are not verified: anybody may have written them"
    yield ""
    yield from _verdict(trace)
    if trace.claims is not None:
        yield ""
        known = explained.from_claims or explained.signed
        yield "claims" if known else "claims, not verified: anybody may have written them"
        for name, value in trace.claims.items():
            yield f"  {escaped(name)}  {escaped(_plain(value), _LONGEST_VALUE)}"


def _verdict(trace: Trace) -> Iterator[str]:
    if trace.user is None:
        first, *rest = escaped_lines(trace.reason)
        yield f"{trace.verdict}: {first}"
        yield from (f"  {line}" for line in rest)
        return
    yield trace.verdict
    yield f"  username  {escaped(trace.user.username)}"
    if trace.user.uid:
        yield f"  uid       {escaped(trace.user.uid)}"
    yield f"  groups    {escaped(_plain(list(trace.user.groups)), _LONGEST_VALUE)}"
    for key, values in trace.user.extra.items():
        yield f"  extra     {escaped(key)}: {escaped(_plain(list(values)), _LONGEST_VALUE)}"


def _told(step: Step, explained: Explained) -> list[str]:
    """What is said of a step, line by line."""
    mapped = step.number == _MAPPING_STEP and step.outcome == "passed"
    lines = _mapping(step) if mapped else escaped_lines(step.detail)
    where = " ".join(part for part in (step.rule, step.expression) if part)
    if where:
        lines += escaped_lines(where)
    if step.number == _TIMES_STEP:
        lines += list(_times(explained))
    elif step.number != _MAPPING_STEP:
        lines += [f"{escaped(name)}: {escaped(_plain(value))}" for name, value in step.inputs.items()]
    lines += [f"{escaped(name)}: {escaped(_plain(value), _LONGEST_VALUE)}" for name, value in (step.saw or {}).items()]
    if step.hint:
        first, *rest = escaped_lines(step.hint)
        lines += [f"hint: {first}", *(f"      {line}" for line in rest)]
    return lines


def _mapping(step: Step) -> list[str]:
    if step.cel is not None:
        return [f"{escaped(shown(step.cel.value), _LONGEST_VALUE)}  ({step.cel.type})"]
    if step.expression:  # the value of an extra key that was not mapped
        return escaped_lines(step.detail)
    claim = step.inputs.get("claim")
    return [f"{escaped(step.detail, _LONGEST_VALUE)}{f'  (claim {escaped(claim)})' if claim else ''}"]


def _times(explained: Explained) -> Iterator[str]:
    """In words, seen from the moment that counts."""
    claims = explained.claims()
    for name, said in (("iat", "issued"), ("nbf", "valid from")):
        moment = _number(claims, name)
        if moment is not None:
            away = duration(moment - explained.now)
            yield f"{name}: {said} {away} ago" if moment <= explained.now else f"{name}: {said} in {away}"
    moment = _number(claims, "exp")
    if moment is not None:
        yield f"exp: {time_left(moment, explained.now)}"


def _number(claims: dict[str, Any], name: str) -> float | None:
    value = dict.get(claims, name)
    return value if isinstance(value, float) and abs(value) < 1e12 else None


def _plain(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)
