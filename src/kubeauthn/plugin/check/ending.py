"""How runs ended, judged alike for every kind of plugin."""

from __future__ import annotations

from collections.abc import Iterable

from kubeauthn._core import limits
from kubeauthn.plugin.check.leftovers import Leftover
from kubeauthn.plugin.check.output import quoted
from kubeauthn.plugin.check.report import FAULT, NOTE, OK, Finding
from kubeauthn.plugin.check.trial import Trial

SLOW_SECONDS = 2.0


def bad_end(trial: Trial, seconds: float, secrets: tuple[str, ...]) -> str:
    """Why a client takes nothing from this run, whatever was printed; empty if it may."""
    if trial.timed_out:
        return f"did not answer within {seconds:g} s and was ended"
    if trial.too_long:
        return f"printed more than {limits.PLUGIN_REPLY_BYTES} bytes and was ended: not a credential"
    if trial.kept_open:
        return "has ended, but a process it started keeps its standard output open"
    if not trial.exit_code:
        return ""
    return with_its_words(trial.exit_code, trial.errors, secrets)


def with_its_words(exit_code: int, errors: bytes, secrets: tuple[str, ...]) -> str:
    ending = f"exit code {exit_code}" if exit_code > 0 else f"signal {-exit_code}"
    said = errors.decode("utf-8", "replace")
    if not said.strip():
        return f"ended with {ending}"
    return f"ended with {ending}, saying {quoted(said, secrets, of_failure=True)}"


def gave_up(trial: Trial) -> bool:
    """It said no by itself, in time: with an exit code."""
    return trial.exit_code is not None and trial.exit_code > 0 and not trial.kept_open


def processes(left: Iterable[Leftover], *, holds_output: bool = False) -> Finding:
    name = "processes"
    if holds_output:
        return Finding(name, FAULT, "one is left behind and holds standard output: a client refuses the answer")
    if names := sorted({leftover.name for leftover in left}):
        shown = ", ".join("".join(c if c.isprintable() else "?" for c in process) for process in names[:5])
        return Finding(name, NOTE, f"left behind: {shown}")
    return Finding(name, OK, "none left behind")


def speed(fastest: float, waits: str = "kubectl waits for it on every call") -> Finding:
    reason = f"{fastest * 1000:.0f} ms in the fastest run"
    if fastest > SLOW_SECONDS:
        return Finding("speed", NOTE, f"{reason}: {waits}")
    return Finding("speed", OK, reason)
