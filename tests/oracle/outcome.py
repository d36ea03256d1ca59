"""What a run came to, kept in build/oracle so that the page can be written from runs of an hour."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.oracle.compare import Difference

__all__ = ["Outcome", "kept", "load"]

_KEPT = Path(__file__).resolve().parents[2] / "build" / "oracle"


@dataclass
class Outcome:
    """One run. `seed` is None for the recorded cases."""

    minor: str
    cases: int = 0
    seconds: float = 0.0
    seed: int | None = None
    meant: dict[str, int] = field(default_factory=dict)
    unanswered: int = 0
    unexplained: list[Difference] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def kept(outcome: Outcome) -> Outcome:
    """The outcome, after it was written down."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    target = _path(outcome.minor, outcome.seed is not None)
    target.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    return outcome


def load(minor: str, *, generated: bool) -> Outcome | None:
    """The last run of a minor, or None if there was none."""
    path = _path(minor, generated)
    if not path.exists():
        return None
    outcome = Outcome(**json.loads(path.read_text(encoding="utf-8")))
    outcome.unexplained = [Difference(**one) for one in outcome.unexplained]  # type: ignore[arg-type]
    return outcome


def _path(minor: str, generated: bool) -> Path:
    return _KEPT / f"{minor}-{'generated' if generated else 'recorded'}.json"
