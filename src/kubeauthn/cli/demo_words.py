"""How the demo speaks: numbered steps, what held, what was left out, what to try. Coloured on a terminal alone."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from kubeauthn.cli.progress import waiting_for
from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kubeauthn.cli.world import World

_BOLD, _GREEN, _YELLOW, _CYAN, _PLAIN = "\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[0m"
INDENT = 5
"""Of a detail below its step."""


class Words:
    """Each line is written at once: plugins and servers write to the same terminal."""

    def __init__(self, world: World, *, kept: bool) -> None:
        self._world = world
        self._kept = kept
        self._program = spoken_program(world)
        self.number = 0
        self.left_out = 0

    def step(self, title: str) -> None:
        self.number += 1
        self._say(self._coloured(_BOLD, f"{self.number}. {title}"))

    def detail(self, text: str) -> None:
        self._say(f"{'':{INDENT}}{text}".rstrip())

    def held(self, condition: bool, claim: str) -> None:
        """Raises EnvironmentFailure if it did not."""
        if not condition:
            raise EnvironmentFailure(f"step {self.number} of the demo did not hold: {claim}")
        self._say(f"  {self._coloured(_GREEN, 'ok')} {claim}")

    def leave_out(self, why: str) -> None:
        self.left_out += 1
        self._say(f"  {self._coloured(_YELLOW, 'left out:')} {why}")

    def try_next(self, *anywhere: str, kept: tuple[object, ...] = (), own_kubeconfig: bool = False) -> None:
        """A command that works on any machine, and the one that works on this very stage while it is kept."""
        on_stage = self._kept and kept
        words = [str(word) for word in kept] if on_stage else list(anywhere)
        label = "try with a kubeconfig of your own:" if own_kubeconfig and not on_stage else "try:"
        self._say(f"  {self._coloured(_CYAN, label)} {shlex.join([self._program, *words])}")

    def text(self, line: str = "") -> None:
        self._say(line)

    def waiting_for(self, what: str) -> AbstractContextManager[object]:
        """Said while it lasts."""
        return waiting_for(self._world, what)

    def _say(self, line: str) -> None:
        self._world.say(line)
        self._world.stdout.flush()

    def _coloured(self, colour: str, text: str) -> str:
        return f"{colour}{text}{_PLAIN}" if self._world.colour else text


def spoken_program(world: World) -> str:
    """What to type: the name if the shell would find this very program by it, else the path it was started with."""
    started = sys.argv[0] if sys.argv else ""
    if os.path.basename(started) != "kubeauthn" or not os.access(started, os.X_OK):
        return world.program
    found = shutil.which("kubeauthn", path=world.environ.get("PATH"))
    return world.program if found and os.path.samefile(found, started) else started
