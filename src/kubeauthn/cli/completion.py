"""Print a script that completes kubeauthn's commands, options and values in a shell.

The script holds all the words: completing starts nothing, but for the names of contexts, clusters and users.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.cli.completion_shapes import NAMES
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "a script that completes commands, options and values in bash, zsh or fish"

PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@:/+,")
"""What a name may hold to be offered. A kubeconfig may come from somebody else, and a shell would obey the rest."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=("bash", "zsh", "fish"), help="the shell to print the script for")
    parser.add_argument(
        "--names", choices=NAMES, help="print these of the kubeconfig instead: the scripts ask for them"
    )


def run(arguments: Namespace, world: World) -> int:
    if arguments.names and arguments.shell:
        raise UsageError("--names stands alone: no script is printed with it")
    if arguments.names:
        return _print_names(arguments.names, world)
    if not arguments.shell:
        raise UsageError("which shell: bash, zsh or fish", hint=f'eval "$({world.program} completion bash)"')
    from importlib import import_module

    from kubeauthn.cli.completion_shapes import command_shapes

    writer = import_module(f"kubeauthn.cli.completion_{arguments.shell}")
    world.stdout.write(writer.script(command_shapes(world)))
    return failure.YES


def _print_names(kind: str, world: World) -> int:
    from kubeauthn._io.kubeconfig import load

    config = load(None, environ=world.environ)
    names = {"contexts": [*config.contexts], "clusters": [*config.clusters], "users": [*config.users]}
    for name in sorted(names[kind]):
        if name and not name.startswith("-") and PLAIN.issuperset(name):
            world.say(name)
    return failure.YES
