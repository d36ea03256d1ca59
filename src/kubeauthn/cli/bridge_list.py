"""List the bridges of this user: which cluster, which port, and whether they run."""

from __future__ import annotations

import json

from kubeauthn.cli import failure
from kubeauthn.cli.text import escaped
from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "the bridges of this user, and which of them run"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it (text)")


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.plugins.bridge import control, definition

    rows = []
    for name in definition.names():
        try:
            found = definition.load(name)
        except EnvironmentFailure:
            if name in definition.names():
                raise
            continue  # it was forgotten just now
        rows.append((found, control.ask(name, "status")))
    if arguments.output == "json":
        world.say(
            json.dumps(
                {
                    "version": 1,
                    "bridges": [
                        {
                            "name": found.name,
                            "context": found.context,
                            "server": found.server,
                            "port": found.port,
                            "running": status,
                        }
                        for found, status in rows
                    ],
                },
                indent=1,
            )
        )
        return failure.YES
    table: list[tuple[str, ...]] = [("NAME", "CONTEXT", "SERVER", "PORT", "STATE")]
    for found, status in rows:
        state = f"process {status['pid']}, {status['connections']} connections" if status else "not running"
        table.append((found.name, escaped(found.context), escaped(found.server), str(found.port), state))
    for line in _columns(table):
        world.say(line)
    return failure.YES


def _columns(table: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
