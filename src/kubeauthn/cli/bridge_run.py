"""Run a program with a KUBECONFIG that leads through the bridge: helm, k9s, anything that reads one."""

from __future__ import annotations

from kubeauthn.cli.bridged import add_bridge_options, definition_at_hand, run_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "helm, k9s or any program that reads a kubeconfig, through the bridge"


def add_arguments(parser: ArgumentParser) -> None:
    add_bridge_options(parser)
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --, with its arguments")


def run(arguments: Namespace, world: World) -> int:
    with definition_at_hand(arguments) as found:
        return run_program(arguments.command, found, world, by="bridge run")
