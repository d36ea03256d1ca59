"""What a run came to, kept in build/oracle so that the page can be written from runs of an hour.

The recorded cases have one outcome, the last; generated ones have one for each seed, until build/oracle is removed.
"""

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
    processor_seconds: float = 0.0
    seed: int | None = None
    meant: dict[str, int] = field(default_factory=dict)
    unanswered: int = 0
    unexplained: list[Difference] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


def kept(outcome: Outcome) -> Outcome:
    """The outcome, after it was written down."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    name = "recorded" if outcome.seed is None else f"generated-{outcome.seed}"
    (_KEPT / f"{outcome.minor}-{name}.json").write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    return outcome


def load(minor: str, *, generated: bool) -> list[Outcome]:
    """The runs of a minor that are kept."""
    return [_read(path) for path in sorted(_KEPT.glob(f"{minor}-{'generated-*' if generated else 'recorded'}.json"))]


def _read(path: Path) -> Outcome:
    outcome = Outcome(**json.loads(path.read_text(encoding="utf-8")))
    outcome.unexplained = [Difference(**one) for one in outcome.unexplained]  # type: ignore[arg-type]
    return outcome
