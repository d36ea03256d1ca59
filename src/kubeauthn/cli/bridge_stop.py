"""Stop a bridge, or all of them. The next program that needs one starts it again."""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "ends a bridge, or all"

SECONDS = 5.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="the bridge, as `bridge list` names it")
    parser.add_argument("--all", action="store_true", help="every bridge of this user")
    parser.add_argument(
        "--forget", action="store_true", help="remove what is kept of it too: kubeconfigs that lead to it stop working"
    )


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.plugins.bridge import control, definition

    if bool(arguments.name) == arguments.all:
        raise UsageError("give the name of a bridge, or --all")
    names = definition.names() if arguments.all else [definition.load(arguments.name).name]
    for name in names:
        told = "not running"
        if control.ask(name, "stop") is not None:
            told = "stopped" if _gone(name) else "did not stop yet"
        if arguments.forget and definition.forget(name):
            told += ", forgotten"
        world.say(f"{name}: {told}")
    return failure.YES


def _gone(name: str) -> bool:
    import time

    from kubeauthn.plugins.bridge import control

    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if control.socket_path(name) is None:
            return True
        time.sleep(0.02)
    return False
