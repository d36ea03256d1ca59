"""Writes docs/compat/kubernetes.md from runs of the oracle for every minor."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from tests.oracle.compare import RECORDED, Difference
from tests.oracle.meant import DELIBERATE, SET_ASIDE
from tests.oracle.outcome import Outcome, load
from tests.oracle.run import NO_ORACLE, find_oracle, fuzz, replay, say, still_open
from tests.peers.programs import MINORS

__all__ = ["page_text", "write_page"]

MOST_SHOWN = 12
LONGEST_SHOWN = 90
_MODULES = ("k8s.io/apiserver", "github.com/google/cel-go", "github.com/coreos/go-oidc")
_HEAD = """\
# Compared with Kubernetes

What `kubeauthn` says to a configuration, a token or an expression, beside what `k8s.io/apiserver`'s own code says.
This page is written by `python -m tests.oracle --write-page`; [the real cluster](../real-cluster.md) says how the
comparison works and how to run it for longer.

"""

_PROVEN = """
A difference in the answer to a token counts as one of these only if it is proven: the case is changed so that the
difference cannot show, and both sides are asked again and have to agree to the letter. For another order of checks,
each check is tried alone on the other side.
"""
_ASIDE = """
## Other differences that are counted apart

"""


def write_page(root: Path, minutes: float, seed: int | None) -> int:
    """Write the page from the last run of every minor; what was not run yet is. What is not explained is on the page,
    and makes the exit status 1. A minor whose oracle is not built is left out."""
    built = [minor for minor in MINORS if find_oracle(minor) is not None]
    if not built:
        return NO_ORACLE
    runs = [
        (
            load(minor, generated=False) or replay(minor),
            load(minor, generated=True) or fuzz(minor, minutes * 60, seed),
        )
        for minor in built
    ]
    for pair in runs:
        for outcome in pair:
            outcome.unexplained = still_open(outcome)
    target = root / "docs" / "compat" / "kubernetes.md"
    target.write_text(page_text(runs), encoding="utf-8")
    say(f"written: {target.relative_to(root)}")
    return 1 if any(outcome.unexplained for pair in runs for outcome in pair) else 0


def page_text(runs: list[tuple[Outcome, Outcome]]) -> str:
    known = tomllib.loads((RECORDED / "known.toml").read_text(encoding="utf-8"))
    parts = [
        _HEAD,
        "## Versions compared\n\n",
        _versions(runs),
        "\n## Runs\n\n",
        _counts(runs),
        "\n## Deliberate differences\n\n",
    ]
    parts += [f"{number}. {_sentence(text)}\n" for number, text in enumerate(DELIBERATE.values(), 1)]
    parts += [_PROVEN, _ASIDE]
    parts += [f"- {_sentence(text)}\n" for text in SET_ASIDE.values()]
    parts.append("\nRecorded cases whose text differs from the recorded one, each with its reason:\n\n")
    parts += [f"- `{name}`: {reason}\n" for table in known.values() for name, reason in table.items()]
    parts.append(_unexplained(runs))
    return "".join(parts)


def _versions(runs: list[tuple[Outcome, Outcome]]) -> str:
    lines = [
        "| Kubernetes | " + " | ".join(f"`{name}`" for name in _MODULES) + " |",
        "|---" * (len(_MODULES) + 1) + "|",
    ]
    for _, generated in runs:
        lines.append(
            f"| {generated.minor} | " + " | ".join(generated.versions.get(name, "?") for name in _MODULES) + " |"
        )
    return "\n".join(lines) + "\n"


def _counts(runs: list[tuple[Outcome, Outcome]]) -> str:
    lines = [
        "| Kubernetes | cases | for | compared | meant or set aside | not explained | no answer in 10 s |",
        "|---|---|---|---|---|---|---|",
    ]
    for pair in runs:
        for what, outcome in zip(("recorded", "generated"), pair, strict=True):
            shown = f"{what}, seed {outcome.seed}" if outcome.seed is not None else what
            counted = (outcome.cases, sum(outcome.meant.values()), len(outcome.unexplained), outcome.unanswered)
            cells = (outcome.minor, shown, _duration(outcome.seconds), *counted)
            lines.append(f"| {' | '.join(map(str, cells))} |")
    note = (
        "\nA difference that a run found is asked again when this page is written, and counts if it is still there. "
        "No answer: expressions on which the reference itself does not end in time. At most 20 generated differences "
        "of a kind are reduced and counted.\n"
    )
    return "\n".join(lines) + "\n" + note


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 100 else f"{seconds:.0f} s"


def _unexplained(runs: list[tuple[Outcome, Outcome]]) -> str:
    parts = ["\n## Not explained yet\n"]
    for pair in runs:
        found = [difference for outcome in pair for difference in outcome.unexplained]
        parts.append(f"\n### {pair[0].minor}\n\n")
        if not found:
            parts.append("Nothing.\n")
            continue
        kinds: dict[str, int] = {}
        for difference in found:
            kinds[difference.kind] = kinds.get(difference.kind, 0) + 1
        parts.append(
            ", ".join(f"{count} in the {kind}" for kind, count in sorted(kinds.items())) + ". The shortest:\n\n"
        )
        shortest = sorted({_shown(one): one for one in found}.values(), key=lambda one: len(_shown(one)))
        parts.append("```text\n" + "\n".join(_lines(one) for one in shortest[:MOST_SHOWN]) + "\n```\n")
    return "".join(parts)


def _shown(difference: Difference) -> str:
    case = difference.case
    return json.dumps(case.get("expr") or case["config"], ensure_ascii=False)[:LONGEST_SHOWN]


def _lines(difference: Difference) -> str:
    cut = slice(0, LONGEST_SHOWN)
    theirs, ours = difference.theirs[cut], difference.ours[cut]
    return f"{difference.kind}: {_shown(difference)}\n  Kubernetes  {theirs}\n  kubeauthn   {ours}"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."
