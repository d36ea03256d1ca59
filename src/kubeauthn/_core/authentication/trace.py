"""The verdict about a token, step by step: what `explain` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.authentication.verdict import UserInfo

Outcome = Literal["passed", "failed", "skipped"]
Verdict = Literal["authenticated", "not mine", "refused"]

FORMAT = "kubeauthn.explain/v1"
_SIGNS: dict[Outcome, str] = {"passed": "✓", "failed": "✗", "skipped": "-"}


class Evaluated(NamedTuple):
    """What an expression came to."""

    type: str
    value: dict[str, Any]
    """Typed, so that `{"int": "1"}` is not `{"double": "1"}`."""
    cost: int
    """In cel-go's units."""


class Step(NamedTuple):
    """One step. Also after the first that failed: its outcome then says what it would have been."""

    number: int
    name: str
    outcome: Outcome
    detail: str
    """What was found; for a failed step the reason, in kube-apiserver's words."""
    inputs: Mapping[str, Any]
    """What it looked at. Claims in it are unverified until the signature step has passed."""
    rule: str = ""
    """The field of the configuration that the step follows."""
    expression: str = ""
    hint: str = ""
    cel: Evaluated | None = None
    """Of the expression, if it has a value."""
    saw: Mapping[str, Any] | None = None
    """The claims, or parts of the user, that the expression asks for; only where claims are shown."""

    def as_dict(self) -> dict[str, Any]:
        shown = {**self._asdict(), "inputs": dict(self.inputs), "cel": None if self.cel is None else self.cel._asdict()}
        if self.saw is None:
            del shown["saw"]
        return shown


class Trace(NamedTuple):
    """What became of a token and why. It holds no signature, and claims only where they were asked for."""

    verdict: Verdict
    reason: str
    """Why it was refused or is not ours; "" if it is authenticated."""
    issuer: str
    """The configured issuer that the token names, or ""."""
    verified: bool
    """Signature, audience and times are good. If not, the signature step says whether the issuer wrote the claims."""
    user: UserInfo | None
    """Whose token it is; None unless it is authenticated."""
    steps: tuple[Step, ...]
    claims: Mapping[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """A versioned shape, ready for JSON."""
        shown: dict[str, Any] = {
            "format": FORMAT,
            "verdict": self.verdict,
            "reason": self.reason,
            "issuer": self.issuer,
            "verified": self.verified,
            "user": None if self.user is None else self.user.as_dict(),
            "steps": [step.as_dict() for step in self.steps],
        }
        if self.claims is not None:
            shown["claims" if self.verified else "unverifiedClaims"] = dict(self.claims)
        return shown

    def __str__(self) -> str:
        lines = [self.verdict if not self.reason else f"{self.verdict}: {self.reason}"]
        for step in self.steps:
            lines.append(f"{_SIGNS[step.outcome]} {step.number}. {step.name}: {step.detail}")
            lines.extend(f"     {title}: {text}" for title, text in _notes(step) if text)
        if self.claims is not None:
            lines.append("claims:" if self.verified else "claims, not verified:")
            lines.extend(f"     {name}: {value!r}" for name, value in self.claims.items())
        return "\n".join(map(_printable, lines))


def _printable(line: str) -> str:
    """Tokens hold what their makers like: nothing of it may move a cursor, colour a terminal or forge a line."""
    if line.isprintable():
        return line
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)


def _notes(step: Step) -> tuple[tuple[str, str], ...]:
    inputs = ", ".join(f"{name} {value}" for name, value in step.inputs.items())
    return ("rule", step.rule), ("expression", step.expression), ("inputs", inputs), ("hint", step.hint)
