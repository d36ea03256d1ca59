"""An argument parser that speaks through the `World` and fails with an error rather than an exit."""

from __future__ import annotations

import argparse
import os

from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from kubeauthn.cli.world import World


class CommandParser(argparse.ArgumentParser):
    """For one command. Long options are never abbreviated: a script must not break when one is added."""

    def __init__(self, world: World, name: str, **options: Any) -> None:
        width = _width(world)
        super().__init__(
            prog=f"{world.program} {name}".strip(),
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=width),
            **options,
        )
        self.color = False  # newer Pythons would colour the help on a terminal of their own choosing
        self._world = world

    def print_help(self, file: object = None) -> None:
        self._world.stdout.write(self.format_help())

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"{self.format_usage().strip()}\n{self.prog} --help says more")


def _width(world: World) -> int:
    """Said here, because argparse would load half a dozen modules to find out, for every option that is added."""
    columns = world.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal():
        return max(40, int(columns[:6]) - 2)
    try:
        return max(40, os.get_terminal_size(world.stdout.fileno()).columns - 2)
    except (OSError, ValueError):
        return 98
