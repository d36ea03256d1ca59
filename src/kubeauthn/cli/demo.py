"""Run the whole story on this machine: a provider, a webhook, an API server, a login, a refusal, a signer, a proxy.

Everything happens on loopback and in a temporary directory; nothing is left behind.
"""

from __future__ import annotations

from kubeauthn.cli import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.demo_scene import Scene
    from kubeauthn.cli.demo_words import Words
    from kubeauthn.cli.world import World

HELP = "the whole thing end to end on this machine"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--keep", action="store_true", help="leave it running, with the playground, until Ctrl-C")
    parser.add_argument("--no-browser", action="store_true", help="with --keep: only print the playground's address")


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.cli.demo_ending import Ending
    from kubeauthn.cli.demo_scene import Scene
    from kubeauthn.cli.demo_story import Story
    from kubeauthn.cli.demo_words import INDENT, Words
    from kubeauthn.cli.log import show_warnings

    show_warnings(world)
    words = Words(world, kept=arguments.keep)
    with Ending() as ending, Scene(world.environ, ending.shield) as scene, ending.deaf_afterwards():
        Story(scene, words, world.look().narrower(INDENT)).tell()
        words.text()
        words.text("Every step held." if not words.left_out else "Every step that was not left out held.")
        if arguments.keep:
            _keep(scene, words, world, browser=not arguments.no_browser and world.stdout.isatty())
        else:
            words.text("To look around in it while it runs, with the commands for each step:")
            words.try_next("demo", "--keep")
    if arguments.keep:
        words.text("Stopped; nothing is left behind.")
    return failure.YES


def _keep(scene: Scene, words: Words, world: World, *, browser: bool) -> None:
    from kubeauthn.cli.playground import open_browser
    from kubeauthn.cli.playground_server import PlaygroundServer
    from kubeauthn.cli.text import aligned

    start = {"configuration": scene.configuration.read_text(), "claims": scene.bob_claims()}
    with PlaygroundServer(0, world.clock, start) as playground:
        rows = [
            ("  playground", playground.url),
            ("  identity provider", scene.issuer.url),
            ("  webhook", scene.webhook.url if scene.webhook else "not running"),
            ("  API server", scene.server.url),
            ("  files", str(scene.directory)),
        ]
        words.text("It stays as it is, and the commands above work, until Ctrl-C:")
        for line in aligned(rows):
            words.text(line)
        words.text(f"  export KUBECONFIG={scene.kubeconfig}")
        if browser:
            open_browser(playground.url)
        try:
            playground.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            words.text()
