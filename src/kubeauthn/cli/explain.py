"""Say step by step what becomes of a token: issuer, signature, times, audience, each rule, each mapping, the user.

Every step is tried, also after one that failed. The token is never printed, and its claims only with --show-claims.
"""

from __future__ import annotations

import json

from kubeauthn.cli import failure
from kubeauthn.cli.config_file import checked_version, read, read_configuration, shown_name, with_patterns
from kubeauthn.cli.look import add_color_option
from kubeauthn.errors import EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn.cli.explain_view import Explained
    from kubeauthn.cli.world import World

HELP = "what becomes of a token, step by step, and why"

TOKEN_BYTES = 1 << 20
"""More than any server takes in a header; what is longer is refused by the path itself."""
_HEADER = "authorization:"
_SCHEME = "bearer "
CODES = {"authenticated": failure.YES, "refused": failure.NO, "not mine": failure.NOT_MINE}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the AuthenticationConfiguration; - is standard input")
    parser.add_argument("--token-file", metavar="FILE", help="file with the token, - for standard input")
    parser.add_argument(
        "--claims", metavar="FILE", help="JSON file with claims to be taken as verified, instead of a token"
    )
    parser.add_argument("--jwks", metavar="FILE", help="the issuers' keys: one key set, or one for each issuer URL")
    parser.add_argument("--online", action="store_true", help="fetch keys, and claims that are elsewhere")
    parser.add_argument("--now", metavar="TIME", help="judge as at this time: 2030-01-01T00:00:00Z or Unix seconds")
    parser.add_argument(
        "--show-claims", action="store_true", help="print the claims too, and what each expression saw of them"
    )
    parser.add_argument("--kubernetes", metavar="VERSION", help="expressions as this release has them (newest)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it (text)")
    add_color_option(parser)


def run(arguments: Namespace, world: World) -> int:
    _check_options(arguments)

    from kubeauthn._core.authentication.release import NEWEST
    from kubeauthn.cli.explain_view import as_json, text_lines

    version = checked_version(arguments.kubernetes) if arguments.kubernetes else NEWEST
    now = _moment(arguments.now) if arguments.now else world.clock()
    with with_patterns():
        config = read_configuration(arguments.file, world, version)
        judge = _of_claims if arguments.claims else _of_token
        explained = judge(arguments, config, world, now, version)
    if arguments.output == "json":
        world.say(json.dumps(as_json(explained), indent=2, default=str))
    else:
        for line in text_lines(explained, world.look(arguments.color)):
            world.say(line)
        if explained.refused_by_rule and not arguments.show_claims:
            world.say("--show-claims shows the values that each rule saw")
        if explained.needs_fetching and not arguments.online and not arguments.claims:
            world.say("--online fetches claims that are elsewhere")
    return CODES[explained.trace.verdict]


def _check_options(arguments: Namespace) -> None:
    if bool(arguments.token_file) == bool(arguments.claims):
        raise UsageError("give a token (--token-file FILE, - for standard input) or claims (--claims), one of the two")
    if arguments.claims and (arguments.jwks or arguments.online):
        raise UsageError("claims are taken as verified: --jwks and --online are for a token")
    if arguments.jwks and arguments.online:
        raise UsageError("keys are read (--jwks) or fetched (--online), not both")
    if [arguments.file, arguments.token_file, arguments.claims, arguments.jwks].count("-") > 1:
        raise UsageError("standard input can be read once")


def _moment(text: str) -> float:
    from kubeauthn._core import rfc3339

    try:
        return float(text) if text.lstrip("-").replace(".", "", 1).isdecimal() else rfc3339.parse(text)
    except ValueError:
        raise UsageError(f"--now takes a time such as 2030-01-01T00:00:00Z, or Unix seconds, not {text}") from None


def _bare(text: str) -> str:
    """The token alone, where it was copied with the header, or with its scheme."""
    token = text.strip()
    for before in (_HEADER, _SCHEME):
        if token[: len(before)].lower() == before:
            token = token[len(before) :].strip()
    return token


def _of_claims(
    arguments: Namespace, config: AuthenticationConfiguration, world: World, now: float, version: str
) -> Explained:
    from kubeauthn.cli.explain_view import Explained
    from kubeauthn.cli.verified_claims import ClaimsSigner
    from kubeauthn.server.authenticator import Authenticator

    signer = ClaimsSigner(config)
    try:
        token, assumed = signer.token(read(arguments.claims, TOKEN_BYTES, world), now)
    except UsageError as error:
        raise EnvironmentFailure(f"{shown_name(arguments.claims)}: {error}", hint=error.hint) from None
    authenticator = Authenticator(config, keys=signer.keys, kubernetes=version)
    trace = authenticator.explain(token, now, show_claims=arguments.show_claims)
    return Explained(trace, token, now, version, from_claims=True, assumed=assumed)


def _of_token(
    arguments: Namespace, config: AuthenticationConfiguration, world: World, now: float, version: str
) -> Explained:
    from kubeauthn.cli.explain_view import Explained

    token = _bare(read(arguments.token_file, TOKEN_BYTES, world).decode("utf-8", "replace"))
    if not arguments.jwks and not arguments.online:  # said last, so that a file that is missing is named first
        hint = "--jwks FILE reads them from a file, --online fetches them from the issuer"
        raise UsageError("a token needs the issuer's keys", hint=hint)
    if arguments.online:
        from kubeauthn.cli.explain_online import explain_online

        trace, fetched = explain_online(config, token, now, version, world, show_claims=arguments.show_claims)
        return Explained(trace, token, now, version, fetched=fetched)
    from kubeauthn.cli.explain_offline import explain_offline
    from kubeauthn.cli.issuer_keys import FILE_BYTES, keys_by_issuer

    keys = keys_by_issuer(read(arguments.jwks, FILE_BYTES, world), shown_name(arguments.jwks), config)
    trace, fetched = explain_offline(config, keys, token, now, version, show_claims=arguments.show_claims)
    return Explained(trace, token, now, version, fetched=fetched)
