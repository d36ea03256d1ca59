"""Try a CEL expression on claims, or on a user, as a structured authentication configuration would.

Without an expression it reads one line after another, from a terminal with a prompt.
"""

from __future__ import annotations

from kubeauthn.cli.cel_session import Session
from kubeauthn.cli.config_file import read, with_patterns
from kubeauthn.errors import EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "one CEL expression tried on claims: value, type and cost, or every fault"

DOCUMENT_BYTES = 4 << 20
"""Claims larger than this are no token's."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("expression", nargs="?", metavar="EXPR", help="the expression; without it, lines are read")
    parser.add_argument("--claims", metavar="FILE", help="JSON file with the claims of a token, - for standard input")
    parser.add_argument("--user", metavar="FILE", help="JSON file with a user, for user validation rules")
    parser.add_argument(
        "--kubernetes", metavar="VERSION", help="the environment of this version, such as 1.33 (newest)"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it (text)")
    parser.add_argument("--python", action="store_true", help="show the Python that the expression is compiled to")


def run(arguments: Namespace, world: World) -> int:
    if arguments.claims and arguments.user:
        raise UsageError("--claims and --user are for different rules: give one of them")
    if arguments.expression is None and "-" in (arguments.claims, arguments.user):
        raise UsageError("standard input cannot hold both the data and the expressions")
    if arguments.expression is None and (arguments.output == "json" or arguments.python):
        raise UsageError("--output and --python need an expression")
    with with_patterns():
        session = _session(arguments, world)
        return session.read_lines() if arguments.expression is None else session.try_out(arguments.expression)


def _session(arguments: Namespace, world: World) -> Session:
    from kubeauthn.cel import CelError, kubernetes

    make = kubernetes.user_environment if arguments.user else kubernetes.claims_environment
    try:
        environment = make(arguments.kubernetes) if arguments.kubernetes else make()
    except CelError as error:
        raise UsageError(str(error)) from None
    session = Session(world, environment, "user" if arguments.user else "claims")
    session.as_json = arguments.output == "json"
    session.with_python = arguments.python
    if path := arguments.claims or arguments.user:
        try:
            session.use(_text(path, world), path)
        except UsageError as error:  # a line of the session would be; a file is what the command line names
            raise EnvironmentFailure(str(error), hint=error.hint) from None
    return session


def _text(path: str, world: World) -> str:
    if path == "-":
        text = world.stdin.read(DOCUMENT_BYTES + 1)
        if len(text) > DOCUMENT_BYTES:
            raise EnvironmentFailure(f"standard input holds more than {DOCUMENT_BYTES} characters")
        return text
    try:
        return read(path, DOCUMENT_BYTES, world).decode()
    except UnicodeDecodeError:
        from kubeauthn.cli.claims_text import NOT_UTF_8

        raise EnvironmentFailure(f"{path}: not UTF-8 text", hint=NOT_UTF_8) from None
