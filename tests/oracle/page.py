"""Writes docs/compat/kubernetes.md from runs of the oracle for every minor."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from tests.oracle.compare import RECORDED, Difference
from tests.oracle.meant import DELIBERATE, SET_ASIDE
from tests.oracle.outcome import Outcome, load
from tests.oracle.run import NO_ORACLE, find_oracle, fuzz, replay, say, still_open
from tests.peers.programs import CHECKED_ONLY, MINORS, SIGNATURE_LAST

__all__ = ["page_text", "write_page"]

Runs = list[list[Outcome]]
"""Of each minor the run of the recorded cases, and then those of generated ones."""
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
    """Write the page from the runs of every minor that are kept; what was not run yet is. What is not explained is on
    the page, and makes the exit status 1. A minor whose oracle is not built is left out."""
    built = [minor for minor in (*MINORS, *CHECKED_ONLY) if find_oracle(minor) is not None]
    if not built:
        return NO_ORACLE
    runs = [
        [
            *(load(minor, generated=False) or [replay(minor)]),
            *(load(minor, generated=True) or [fuzz(minor, minutes * 60, seed)]),
        ]
        for minor in built
    ]
    for outcomes in runs:
        for outcome in outcomes:
            outcome.unexplained = still_open(outcome)
    target = root / "docs" / "compat" / "kubernetes.md"
    target.write_text(page_text(runs), encoding="utf-8")
    say(f"written: {target.relative_to(root)}")
    return 1 if any(outcome.unexplained for outcomes in runs for outcome in outcomes) else 0


def page_text(runs: Runs) -> str:
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


def _versions(runs: Runs) -> str:
    lines = [
        "| Kubernetes | " + " | ".join(f"`{name}`" for name in _MODULES) + " |",
        "|---" * (len(_MODULES) + 1) + "|",
    ]
    for first, *_ in runs:
        lines.append(f"| {first.minor} | " + " | ".join(first.versions.get(name, "?") for name in _MODULES) + " |")
    return "\n".join(lines) + "\n"


def _counts(runs: Runs) -> str:
    lines = [
        "| Kubernetes | cases | processor time | compared | meant or set aside | not explained | no answer in 10 s |",
        "|---|---|---|---|---|---|---|",
    ]
    for recorded, *generated in runs:
        lines.append(_row("recorded", [recorded]))
        seeds = ", ".join(str(outcome.seed) for outcome in generated)
        lines.append(_row(f"generated, seed{'s' * (len(generated) > 1)} {seeds}", generated))
    note = (
        "\nProcessor time is that of both sides together. A difference that a run found is asked again when this page "
        "is written, and counts if it is still there. "
        "No answer: expressions on which the reference itself does not end in time. At most 60 generated differences "
        "of a kind are reduced and counted.\n"
    )
    older = ", ".join(first.minor for first, *_ in runs if first.minor in CHECKED_ONLY)
    if older:
        note += (
            f"\nOf {older} only what is said of files and expressions is compared, before a token is looked at: claims "
            "reach its expressions as a plain map, whole numbers as `int`. Nobody is authenticated by its rules here.\n"
        )
    last = " and ".join(first.minor for first, *_ in runs if first.minor in SIGNATURE_LAST)
    if last:
        note += (
            f"\nOf {last} tokens whose claims are elsewhere are compared as far as they are recorded: go-oidc looked "
            "at the signature of what a source gives last then, and told another of two faults.\n"
        )
    return "\n".join(lines) + "\n" + note


def _row(what: str, outcomes: list[Outcome]) -> str:
    cells = (
        outcomes[0].minor,
        what,
        _duration(sum(outcome.processor_seconds or outcome.seconds for outcome in outcomes)),
        sum(outcome.cases for outcome in outcomes),
        sum(sum(outcome.meant.values()) for outcome in outcomes),
        sum(len(outcome.unexplained) for outcome in outcomes),
        sum(outcome.unanswered for outcome in outcomes),
    )
    return f"| {' | '.join(map(str, cells))} |"


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 100 else f"{seconds:.0f} s"


def _unexplained(runs: Runs) -> str:
    parts = ["\n## Not explained yet\n"]
    for outcomes in runs:
        found = [difference for outcome in outcomes for difference in outcome.unexplained]
        parts.append(f"\n### {outcomes[0].minor}\n\n")
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
