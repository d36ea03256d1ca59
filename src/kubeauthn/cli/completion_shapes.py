"""What a shell must know of each command, read from the parser that the command itself uses."""

from __future__ import annotations

import argparse
from importlib import import_module

from kubeauthn._core.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.cli.world import World

FILES, FOLDERS, PROGRAMS = "files", "folders", "programs"
"""What the shell itself can complete."""
CONTEXTS, CLUSTERS, USERS = "contexts", "clusters", "users"
"""What the kubeconfig holds."""
NAMES = (CONTEXTS, CLUSTERS, USERS)

_BY_METAVAR = {"FILE": FILES, "URL-FILE": FILES, "PATH": FILES, "SUITE": FILES, "DIR": FOLDERS, "COMMAND": PROGRAMS}
_BY_OPTION = {"--context": CONTEXTS, "--cluster": CLUSTERS, "--user": USERS, "--signer-user": USERS}


@record(frozen=True, slots=True)
class Option:
    """One option in all its spellings. `source` says what its value is completed from, None: nothing is known."""

    spellings: tuple[str, ...]
    help: str
    takes_value: bool
    repeats: bool = False
    choices: tuple[str, ...] = ()
    source: str | None = None


@record(frozen=True, slots=True)
class Shape:
    """One command: its options, and what may stand beside them."""

    help: str
    options: tuple[Option, ...]
    words: tuple[str, ...] = ()
    source: str | None = None


def command_parser(name: str, world: World) -> argparse.ArgumentParser:
    """The parser of one command, as `main` makes it."""
    from kubeauthn.cli.arguments import CommandParser
    from kubeauthn.cli.main import COMMANDS

    module = import_module(f"kubeauthn.cli.{COMMANDS[name][0]}")
    parser = CommandParser(world, name, description=module.__doc__.partition("\n\n")[0] if module.__doc__ else None)
    module.add_arguments(parser)
    return parser


def command_shapes(world: World) -> Mapping[str, Shape]:
    from kubeauthn.cli.main import COMMANDS

    return {name: _shape(command_parser(name, world), line) for name, (_, line) in COMMANDS.items()}


def _shape(parser: argparse.ArgumentParser, line: str) -> Shape:
    options: list[Option] = []
    words: tuple[str, ...] = ()
    source: str | None = None
    for action in parser._actions:
        choices = tuple(str(choice) for choice in action.choices or ())
        if action.option_strings:
            options.append(_option(action, choices))
        else:
            words, source = choices, _BY_METAVAR.get(str(action.metavar))
    return Shape(line, tuple(options), words, source)


def _option(action: argparse.Action, choices: tuple[str, ...]) -> Option:
    text = "this help" if action.dest == "help" else (action.help or "").replace("%%", "%")
    by_metavar = _BY_METAVAR.get(str(action.metavar))
    by_name = next((_BY_OPTION[spelling] for spelling in action.option_strings if spelling in _BY_OPTION), None)
    return Option(
        spellings=tuple(action.option_strings),
        help=text,
        takes_value=action.nargs != 0,
        repeats=isinstance(action, argparse._AppendAction),
        choices=choices,
        source=by_metavar or by_name,
    )
