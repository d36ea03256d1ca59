"""An error becomes an exit code, an error line and a hint line. No traceback, and no text that was not meant for it."""

from __future__ import annotations

import os

from kubeauthn import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from kubeauthn.cli.world import World

YES = 0
NO = 1
USAGE = 2
NOT_MINE = 3
ENVIRONMENT = 4
INTERRUPTED = 130
NOBODY_READS = 141
"""What the shell reports for a program that SIGPIPE ended."""


def exit_code(error: BaseException) -> int:
    if isinstance(error, errors.UsageError):
        return USAGE
    if isinstance(error, errors.RequestRefused):
        return NO
    return ENVIRONMENT


def report(error: BaseException, world: World) -> int:
    """Say it on standard error and return the exit code."""
    if world.debug and not isinstance(error, errors.UsageError):
        _report_traceback(error, world)
    if isinstance(error, errors.KubeauthnError):
        world.complain("error", str(error))
        if error.hint:
            world.complain("hint", error.hint)
    elif isinstance(error, OSError):
        name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
        world.complain("error", f"{name}{(error.strerror or type(error).__name__).lower()}")
    else:
        # The text of an error that nobody foresaw may quote anything, a secret included.
        world.complain("error", f"internal error: {type(error).__name__} at {_place(error.__traceback__)}")
        world.complain("hint", "this is a fault of kubeauthn; KUBEAUTHN_DEBUG=1 shows all of it, secrets perhaps too")
    return exit_code(error)


def _report_traceback(error: BaseException, world: World) -> None:
    import traceback

    world.complain("debug", "".join(traceback.format_exception(error)))


def _place(trace: TracebackType | None) -> str:
    place = "an unknown place"
    while trace is not None:
        module = trace.tb_frame.f_globals.get("__name__", "")
        if str(module).startswith("kubeauthn"):
            place = f"{module}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
