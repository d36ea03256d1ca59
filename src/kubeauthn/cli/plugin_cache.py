"""Keep the credential of any credential plugin on the disk until it ends, so that not every command asks for it.

    kubeauthn plugin cache -- aws-iam-authenticator token -i prod

Write it before the command in the kubeconfig's exec entry. What is kept is readable for this user alone.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.errors import UsageError
from kubeauthn.plugins.cache.entry import MARGIN_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "keeps any plugin's credential on the disk until it ends"

_LONGEST_SECONDS = 86400.0
"""A credential that nobody says the end of is kept for a day at most."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--max-age",
        type=float,
        metavar="SECONDS",
        help="the longest that a credential is kept; with it, one that does not say when it ends is kept too",
    )
    parser.add_argument(
        "--margin",
        type=float,
        default=MARGIN_SECONDS,
        metavar="SECONDS",
        help=f"so long before its end, or a tenth of its life, the plugin is asked again ({MARGIN_SECONDS:g})",
    )
    parser.add_argument(
        "--ignore-env",
        action="append",
        default=[],
        metavar="NAME",
        help="a variable that the credential does not hang on; NAME* for all that begin so; may repeat",
    )
    parser.add_argument("--clear", action="store_true", help="forget what is kept, and run nothing")
    parser.add_argument("command", nargs="*", metavar="COMMAND", help="the plugin and its arguments, after --")


def run(arguments: Namespace, world: World) -> int:
    if arguments.clear:
        return _clear(arguments, world)
    if not arguments.command:
        raise UsageError("there is no plugin to run", hint="kubeauthn plugin cache -- COMMAND …")
    if arguments.max_age is not None and not 0 < arguments.max_age <= _LONGEST_SECONDS:
        raise UsageError(f"--max-age takes seconds, up to {_LONGEST_SECONDS:g}")
    if not 0 <= arguments.margin <= _LONGEST_SECONDS:
        raise UsageError(f"--margin takes seconds, up to {_LONGEST_SECONDS:g}")
    from kubeauthn.plugin import credential
    from kubeauthn.plugins.cache.plugin import Settings, credential_function

    settings = Settings(
        command=tuple(arguments.command),
        max_age=arguments.max_age,
        margin=arguments.margin,
        ignored=tuple(arguments.ignore_env),
    )
    credential.run(credential_function(settings))


def _clear(arguments: Namespace, world: World) -> int:
    from kubeauthn.cli.text import plural
    from kubeauthn.plugins.cache.plugin import open_store
    from kubeauthn.plugins.cache.sweep import clear

    if arguments.command:
        raise UsageError("--clear forgets everything that is kept, and takes no command")
    world.say(f"forgot {plural(clear(open_store()), 'credential')}")
    return failure.YES
