"""Fuzzes the parser, the checker and the evaluator of `kubeauthn.cel`.

    python -m tests.fuzz.cel [--seconds 60] [--count N] [--seed N] [CASES.jsonl …]

Recorded expressions are mutated, and tokens are thrown together. Whatever comes out may be a fault of the expression
(CompileError) or of the values (EvalError), and nothing else: no other exception, no warning, no hang, no change of
the claims, the same answer twice, and no text of the expression in the generated Python. Prints seed, count and
duration, and each finding; the exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubeauthn.cel import CelError, CompileError, EvalError
from kubeauthn.cel.deep_stack import DeepStack
from kubeauthn.cel.kubernetes import claims_environment, decode_claims, user_environment
from kubeauthn.cel.typed_json import to_typed_json
from tests.fuzz.cel_mutations import mutated, soup
from tests.fuzz.cel_source import foreign_names

ROOT = Path(__file__).resolve().parents[2]
RECORDED = (ROOT / "tests" / "recorded" / "cel.jsonl", ROOT / "tests" / "recorded" / "cel_found.jsonl")
COMPILE_SECONDS = 3.0
EVALUATE_SECONDS = 8.0  # the engine's own limit is 5
DEFAULT_CLAIMS = json.dumps(
    {
        "s": "text", "n": 1.5, "b": True, "z": None, "l": ["a", "b", 3, None, [1, 2]], "m": {"a": {"b": [1]}, "c.d": 1},
        "email": "jane@example.com", "groups": ["dev", "ops"], "big": 1e300, "foo.bar": "dotted", "": "empty",
    }
)  # fmt: skip

Case = dict[str, Any]


class Hang(BaseException):
    """Not an Exception: the code under test must not swallow it."""


def load(files: tuple[Path, ...] = RECORDED) -> list[Case]:
    """Recorded cases: expressions to start from, and data to run them on."""
    cases = [
        json.loads(line)
        for file in files
        if file.exists()
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    if not cases:
        raise SystemExit(f"no recorded cases in {', '.join(map(str, files))}")
    # a few recorded expressions are a hundred thousand characters long: mutating those finds little, slowly
    return [case for case in cases if len(case["expr"]) < 2000]


def inputs(random_source: random.Random, cases: list[Case]) -> Iterator[tuple[str, Case]]:
    """Endless pairs of an expression and the case whose data it runs on."""
    texts = [case["expr"] for case in cases]
    while True:
        case = random_source.choice(cases)
        if random_source.random() < 0.15:
            yield soup(random_source), case
        else:
            yield mutated(random_source, case["expr"], texts), case


def variables_of(case: Case) -> dict[str, object]:
    if case.get("env") == "user":
        return {"user": case["user"]}
    try:
        return {"claims": decode_claims(case.get("claims") or DEFAULT_CLAIMS)}
    except CelError:
        return {"claims": decode_claims(DEFAULT_CLAIMS)}


def examine(text: str, case: Case) -> tuple[str, str | None]:
    """How far the expression came (compile, eval, value), and what is wrong with that, or None."""
    try:
        with warnings.catch_warnings(), DeepStack(text), bounded(COMPILE_SECONDS + EVALUATE_SECONDS + 5):
            warnings.simplefilter("error")
            return _examine(text, case)
    except Hang:
        return "hang", f"hangs\n{traceback.format_exc(limit=-4)}"
    except Exception as error:
        return "crash", f"{type(error).__name__} escaped\n{traceback.format_exc(limit=-4)}"


def _examine(text: str, case: Case) -> tuple[str, str | None]:
    environment = user_environment() if case.get("env") == "user" else claims_environment()
    started = time.monotonic()
    try:
        program = environment.compile(text)
    except CompileError as error:
        if not error.issues or not str(error):
            return "compile", "a compile error without an issue"
        return "compile", _slow(started, COMPILE_SECONDS, "compiling")
    foreign = foreign_names(program.python_source)
    if foreign:
        return "compile", f"the generated source has names of its own: {sorted(foreign)}"
    slow = _slow(started, COMPILE_SECONDS, "compiling")
    if slow:
        return "compile", slow
    variables = variables_of(case)
    before = repr(variables)
    started = time.monotonic()
    first = _outcome(program, variables)
    slow = _slow(started, EVALUATE_SECONDS, "evaluating")
    if slow:
        return first[0], slow
    if repr(variables) != before:
        return first[0], "the evaluation changed its variables"
    if time.monotonic() - started < 0.5 and _outcome(program, variables) != first:
        return first[0], "a second evaluation came to something else"
    return first[0], None


def _outcome(program: Any, variables: dict[str, object]) -> tuple[str, str, int]:
    try:
        value, cost = program.evaluate(variables)
    except EvalError as error:
        return "eval", str(error), 0
    if not isinstance(cost, int) or cost < 0:
        raise AssertionError(f"the cost is {cost!r}")
    try:
        return "value", json.dumps(to_typed_json(value)), cost
    except EvalError as error:  # a value that cannot be shown, such as one nested too deeply
        return "eval", str(error), 0


def _slow(started: float, limit: float, doing: str) -> str | None:
    took = time.monotonic() - started
    return f"{doing} took {took:.1f} s, {limit:g} s are allowed" if took > limit else None


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raises Hang after that time, where signals can be used: in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise Hang

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Report:
    """What a run came to."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.stages: dict[str, int] = {}
        self.findings: list[tuple[str, str]] = []
        self.seconds = 0.0

    @property
    def count(self) -> int:
        return sum(self.stages.values())

    def __str__(self) -> str:
        stages = ", ".join(f"{stage} {count}" for stage, count in sorted(self.stages.items()))
        return (
            f"fuzz cel: seed {self.seed}, {self.count} expressions ({stages}) in {self.seconds:.1f} s, "
            f"{len(self.findings)} findings"
        )


def fuzz(seed: int, *, seconds: float, count: int | None = None, files: tuple[Path, ...] = RECORDED) -> Report:
    """Run until the time is over or the count is reached."""
    report = Report(seed)
    started = time.monotonic()
    for text, case in inputs(random.Random(seed), load(files)):
        if time.monotonic() - started > seconds or (count is not None and report.count >= count):
            break
        stage, finding = examine(text, case)
        report.stages[stage] = report.stages.get(stage, 0) + 1
        if finding is not None:
            report.findings.append((text, finding))
            if len(report.findings) >= 50:
                break
    report.seconds = time.monotonic() - started
    return report


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.cel", description="fuzz kubeauthn.cel")
    parser.add_argument("files", nargs="*", type=Path, default=list(RECORDED), metavar="CASES.jsonl")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--count", type=int, default=None)
    parser.add_argument("--seed", type=int, default=None, help="by default another one each time")
    options = parser.parse_args(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    report = fuzz(seed, seconds=options.seconds, count=options.count, files=tuple(options.files))
    for text, finding in report.findings:
        print(f"{text!r}\n  {finding}")
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
