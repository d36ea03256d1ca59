"""A short-lived token of a service account, as a credential plugin: another context's user asks for it.

    kubeauthn plugin service-account deployer --namespace ci --context admin

Programs then work with the service account's rights, and not with those of the user who asked.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.plugins.service_account import DEFAULT_SECONDS, SHORTEST_SECONDS, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "a short-lived token of a service account, asked for as another user"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="the service account")
    parser.add_argument("-n", "--namespace", default="", metavar="NAME", help="its namespace; otherwise the context's")
    parser.add_argument("--context", default="", metavar="NAME", help="the context whose user asks for the token")
    parser.add_argument(
        "--kubeconfig", default="", metavar="FILE", help="the file of that context; otherwise as KUBECONFIG says"
    )
    parser.add_argument(
        "--audience", action="append", default=[], metavar="NAME", help="for whom the token is, if not the API server"
    )
    parser.add_argument(
        "--expires",
        type=int,
        default=DEFAULT_SECONDS,
        metavar="SECONDS",
        help=f"how long the token should hold ({DEFAULT_SECONDS}; {SHORTEST_SECONDS} or more)",
    )
    parser.add_argument("--print-kubeconfig", action="store_true", help="print the user entry for the kubeconfig")


def run(arguments: Namespace, world: World) -> int:
    settings = Settings(
        name=arguments.name,
        namespace=arguments.namespace,
        context=arguments.context,
        kubeconfig=arguments.kubeconfig,
        audiences=tuple(arguments.audience),
        seconds=arguments.expires,
    )
    if arguments.print_kubeconfig:
        return _print_entry(settings, world)
    from kubeauthn.plugin import credential
    from kubeauthn.plugins.service_account import credential_function

    credential.run(credential_function(settings))


def _print_entry(settings: Settings, world: World) -> int:
    from kubeauthn.plugins.kubeconfig_entry import exec_entry
    from kubeauthn.plugins.service_account import check, words_of

    check(settings)
    lines = exec_entry(settings.name, words_of(settings), provide_cluster_info=True)
    world.say("# Put this user into your kubeconfig, and let a context of its own name it.")
    for line in lines:
        world.say(line)
    return failure.YES
