"""Run kubectl through the bridge, so that any user entry works in it: external signers and proxy plugins too.

Options of kubectl come after `--`.
"""

from __future__ import annotations

from kubeauthn.cli.bridged import add_bridge_options, definition_at_hand, run_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "kubectl through the bridge, so that external signers and proxy plugins work in it"


def add_arguments(parser: ArgumentParser) -> None:
    add_bridge_options(parser)
    parser.add_argument("words", nargs="*", metavar="ARGS", help="after --: what kubectl is given")


def run(arguments: Namespace, world: World) -> int:
    with definition_at_hand(arguments) as found:
        return run_program(["kubectl", *arguments.words], found, world, by="kubectl")
