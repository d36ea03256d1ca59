"""Runs recorded cases: what the real kube-apiserver answered, case by case, against what we answer.

    python -m kubeauthn.testing.recorded cel FILE…
    python -m kubeauthn.testing.recorded cel-spec FILE…
    python -m kubeauthn.testing.recorded authn FILE… --jwks FILE

Each mismatch is printed, and last `N passed, M failed`. Differences that are known are listed with their reason in a
TOML file (`--known`, by default tests/recorded/known.toml if it is there), one table per kind, name = "reason"; they
count as passed, and are counted. A mismatch that is not listed makes the exit status 1. For `authn` only the text of a
refusal can be listed: another verdict or another user is never a known difference.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Mismatch", "main", "run"]

_DEFAULT_KNOWN = Path("tests/recorded/known.toml")
# kind of file → module and function: (case) → mismatches, as (what, expected, found)
_JUDGES = {"cel": ("recorded_cel", "judge"), "cel-spec": ("recorded_cel_spec", "judge")}
_KINDS = ("authn", *_JUDGES)
_LISTABLE = {"authn": {"text"}}
"""Which differences may be known; all, where nothing is said."""

Mismatch = tuple[str, str, str]
Judge = Callable[[dict[str, Any]], list[Mismatch]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kubeauthn.testing.recorded", description="run recorded cases")
    parser.add_argument("kind", choices=_KINDS)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--known", type=Path, default=None, help="TOML file with the differences that are known")
    parser.add_argument("--jwks", type=Path, default=None, help="the key set that authn cases mean by `default`")
    options = parser.parse_args(arguments)
    if options.kind == "authn" and options.jwks is None:
        parser.error("authn needs --jwks FILE")
    judge = find_judge(options.kind, options.jwks)
    known_file = options.known or (_DEFAULT_KNOWN if _DEFAULT_KNOWN.exists() else None)
    known = tomllib.loads(known_file.read_text(encoding="utf-8")).get(options.kind, {}) if known_file else {}
    failed = 0
    for file in options.files:
        failed += run(options.kind, file, known, _print, judge)
    return 1 if failed else 0


def _print(text: str) -> None:
    print(text.encode("utf-8", "backslashreplace").decode())  # noqa: T201 - this is a command


def find_judge(kind: str, jwks: Path | None = None) -> Judge:
    """What judges the cases of a kind; for `authn` with the key set of this file."""
    if kind == "authn":
        from kubeauthn.testing.recorded_authn import Judge as AuthnJudge

        return AuthnJudge(json.loads(jwks.read_text(encoding="utf-8")) if jwks else {"keys": []})
    module_name, function = _JUDGES[kind]
    judge: Judge = getattr(import_module(f"kubeauthn.testing.{module_name}"), function)
    return judge


def run(kind: str, file: Path, known: dict[str, str], say: Callable[[str], object], judge: Judge | None = None) -> int:
    """Judge every case of a file; returns how many failed."""
    judge = judge or find_judge(kind)
    listable = _LISTABLE.get(kind)
    passed = failed = listed = 0
    counts: dict[str, int] = {}
    for name, case in _cases(file):
        mismatches = judge(case)
        if not mismatches:
            passed += 1
            continue
        is_known = name in known and all(listable is None or what in listable for what, _, _ in mismatches)
        for what, expected, found in mismatches:
            counts[what] = counts.get(what, 0) + 1
            mark = f"known: {known[name]}" if is_known else "MISMATCH"
            about = f": {case['expr'][:200]!r}" if "expr" in case else ""
            say(f"{name}: {what}{about}\n  {mark}\n  expected {expected}\n  found    {found}")
        if is_known:
            passed += 1
            listed += 1
        else:
            failed += 1
    kinds = "".join(f", {count} differ in {what}" for what, count in sorted(counts.items()))
    say(f"{file.name}: {passed + failed} cases{kinds}; {listed} of the differences are listed as known")
    say(f"{passed} passed, {failed} failed")
    return failed


def _cases(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                case = json.loads(line)
                yield str(case.get("name") or case.get("id") or f"{file.name}:{number}"), case


if __name__ == "__main__":
    sys.exit(main())
