"""Everything a command may touch beside the kubeconfig and the network: the one seam of the command line.

A test builds a `World` of its own and runs the whole program in it.
"""

from __future__ import annotations

import os
import sys
import time

from kubeauthn.cli.look import Look
from kubeauthn.cli.text import escaped_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal, TextIO

    from kubeauthn.cli.progress import Waiting


class World:
    """Streams, environment and clock. The streams are text streams with a `buffer`, as those of `sys` are."""

    def __init__(
        self,
        *,
        stdin: TextIO,
        stdout: TextIO,
        stderr: TextIO,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        program: str = "kubeauthn",
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.environ = environ
        self.clock = clock
        self.program = program
        self.waiting: Waiting | None = None
        """What stands on the last line of the terminal, to be cleared before anything else is written."""

    def say(self, line: str = "") -> None:
        """One line of the answer. Text that came from elsewhere must be escaped already."""
        if self.waiting is not None:
            self.waiting.clear()
        self.stdout.write(line + "\n")

    def write(self, chunk: bytes) -> None:
        """Bytes of the answer, at once: somebody may be reading along."""
        self.stdout.flush()
        self.stdout.buffer.write(chunk)
        self.stdout.buffer.flush()

    def complain(self, kind: str, text: str) -> None:
        """`error: …`, `hint: …` or `warning: …` on standard error; further lines are indented below the first."""
        first, *rest = escaped_lines(text)
        indent = " " * (len(kind) + 2)
        message = "".join([f"{kind}: {first}\n", *(f"{indent}{line}".rstrip() + "\n" for line in rest)])
        if self.waiting is not None:
            self.waiting.clear()
        try:
            self.stdout.flush()
            self.stderr.write(message)
            self.stderr.flush()
        except OSError:
            pass  # nobody listens; the exit code still tells

    def read_stdin(self, limit: int) -> bytes:
        """Standard input up to `limit` bytes, and one more if there is more."""
        return self.stdin.buffer.read(limit + 1)

    @property
    def debug(self) -> bool:
        return self.environ.get("KUBEAUTHN_DEBUG", "") not in ("", "0")

    @property
    def colour(self) -> bool:
        """On a terminal that can, unless NO_COLOR (no-color.org) says no; FORCE_COLOR says yes for a file or a pipe."""
        if self.environ.get("NO_COLOR"):
            return False
        if self.environ.get("FORCE_COLOR", "") not in ("", "0"):
            return True
        return self.stdout.isatty() and self.environ.get("TERM", "dumb") != "dumb"

    def look(self, wanted: str = "auto") -> Look:
        """How the answer looks; `wanted` is what `--color` says, and the command line wins over the environment."""
        return Look(colour=self.colour if wanted == "auto" else wanted == "always", width=terminal_width(self.stdout))


WIDEST = 120
"""Longer lines are not easier to read."""


def terminal_width(stream: TextIO) -> int | None:
    """In columns; None if it is no terminal."""
    if not stream.isatty():
        return None
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return min(columns or 80, WIDEST)


def real_world() -> World:
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A name that the locale cannot write is shown as an escape rather than as a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    return World(
        stdin=sys.stdin or _nothing("r"),
        stdout=sys.stdout or _nothing("w"),
        stderr=sys.stderr or _nothing("w"),
        environ=os.environ,
        program=program_name(sys.argv[0] if sys.argv else ""),
    )


def program_name(path: str) -> str:
    """How a person starts it: kubectl finds `kubectl-authn` and calls it `kubectl authn`."""
    name = os.path.basename(path)
    stem = name[:-4] if name.lower().endswith(".exe") else name
    return "kubectl authn" if stem == "kubectl-authn" else "kubeauthn"


def _nothing(mode: Literal["r", "w"]) -> TextIO:
    """For a stream that was closed before we started."""
    return open(os.devnull, mode, encoding="utf-8")
