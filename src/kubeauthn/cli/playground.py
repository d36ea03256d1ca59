"""Try a configuration on a token or on claims, in a page of your own machine.

The page is served on loopback, asks nobody and keeps nothing: what you type goes to this command and no further.
"""

from __future__ import annotations

from contextlib import suppress

from kubeauthn.cli import failure
from kubeauthn.cli.config_file import read
from kubeauthn.errors import EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.playground_server import PlaygroundServer
    from kubeauthn.cli.world import World

HELP = "a local page to try a configuration on a token"
PORT = 8866
"""The same each time, so that an address with a state in it can be kept."""
CLAIMS_BYTES = 1 << 20
_LARGEST_PORT = 65535


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE", help="begin with this AuthenticationConfiguration; - is standard input"
    )
    parser.add_argument("--claims", metavar="FILE", help="begin with these claims")
    parser.add_argument(
        "--port", type=int, metavar="N", help=f"listen there, 0 for any free one ({PORT}, or any if that is taken)"
    )
    parser.add_argument("--no-browser", action="store_true", help="only print the address")


def run(arguments: Namespace, world: World) -> int:
    if arguments.port is not None and not 0 <= arguments.port <= _LARGEST_PORT:
        raise UsageError(f"--port is a number from 0 to {_LARGEST_PORT}, not {arguments.port}")
    server = _listen(arguments.port, world, _start(arguments, world))
    try:
        world.say(f"the playground is at {server.url}")
        world.say("Ctrl-C ends it")
        world.stdout.flush()
        if not arguments.no_browser:
            open_browser(server.url)
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
    return failure.YES


def _start(arguments: Namespace, world: World) -> dict[str, str]:
    """What the page begins with."""
    from kubeauthn._core.authentication.decode import TEXT_BYTES

    if arguments.file == arguments.claims == "-":
        raise UsageError("standard input can be read once")
    start = {}
    if arguments.file:
        start["configuration"] = read(arguments.file, TEXT_BYTES, world).decode("utf-8", "replace")
    if arguments.claims:
        start["claims"] = read(arguments.claims, CLAIMS_BYTES, world).decode("utf-8", "replace")
    return start


def open_browser(url: str) -> None:
    """Where there is a window for it. Elsewhere Python's own way would hand this terminal to a browser made for one."""
    from kubeauthn.plugins.oidc import browser

    with suppress(UsageError):  # BROWSER cannot be read: the address is printed, and the page is served
        browser.open_browser(url)


def _listen(port: int | None, world: World, start: dict[str, str]) -> PlaygroundServer:
    from kubeauthn.cli.playground_server import PlaygroundServer

    try:
        return PlaygroundServer(PORT if port is None else port, world.clock, start)
    except OSError as error:
        if port is not None:
            reason = (error.strerror or str(error)).lower()
            hint = "without --port it takes one that is free"
            raise EnvironmentFailure(f"cannot listen on port {port}: {reason}", hint=hint) from None
    return PlaygroundServer(0, world.clock, start)
