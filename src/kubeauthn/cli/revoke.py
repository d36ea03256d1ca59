"""Revoke a token, the tokens of a subject, or those of an issuer: in the file or the Redis that `serve` reads.

An extension of ours: kube-apiserver knows no revocation. See docs/serve-extensions.md.
"""

from __future__ import annotations

from kubeauthn.cli.failure import YES
from kubeauthn.errors import EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn._core.revocation import Revocation
    from kubeauthn.cli.world import World

HELP = "revokes a token, a subject's tokens or an issuer's, for serve"


def add_arguments(parser: ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--file", metavar="FILE", help="the list that serve reads; made if it is not there")
    where.add_argument("--redis", metavar="URL-FILE", help="a file with the address of the Redis that serve asks")
    parser.add_argument("--token-id", default="", metavar="JTI", help="this one token")
    parser.add_argument("--issuer", default="", metavar="URL", help="of this issuer; alone: all that it issued")
    parser.add_argument("--subject", default="", metavar="SUB", help="what the issuer issued to this subject")
    parser.add_argument("--issued-until", default="", metavar="TIME", help="up to this RFC 3339 time (now)")
    parser.add_argument("--keep-days", type=int, metavar="N", help="let Redis forget it after so many days")


def run(arguments: Namespace, world: World) -> int:
    entry = _entry(arguments, world)
    if arguments.file:
        if arguments.keep_days is not None:
            raise UsageError("--keep-days needs --redis")
        _add_to_file(arguments.file, entry)
        world.say("revoked; a server that reads the file knows within about a second")
        return YES
    if arguments.keep_days is not None and not 1 <= arguments.keep_days <= 36_500:
        raise UsageError("--keep-days expects a number from 1 to 36500")
    from kubeauthn.server.extensions import redis_address
    from kubeauthn.server.revocation_redis import add_revocation

    keep = None if arguments.keep_days is None else arguments.keep_days * 86_400
    add_revocation(redis_address(arguments.redis), entry, keep_seconds=keep)
    world.say("revoked; every server that asks this Redis knows from now on")
    return YES


def _entry(arguments: Namespace, world: World) -> Revocation:
    from kubeauthn._core import rfc3339
    from kubeauthn._core.revocation import checked

    if not arguments.token_id and not arguments.issuer:
        also = ": a subject is one of an issuer's" if arguments.subject else ""
        raise UsageError(f"give --token-id JTI, or --issuer URL{also}")
    if arguments.token_id and (arguments.subject or arguments.issued_until):
        raise UsageError("--token-id is one token: --subject and --issued-until are for many")
    until = arguments.issued_until or ("" if arguments.token_id else rfc3339.format(world.clock()))
    try:
        return checked(arguments.token_id, arguments.issuer, arguments.subject, until, "the revocation")
    except ValueError as error:
        raise UsageError(str(error)) from None


def _add_to_file(path: str, entry: Revocation) -> None:
    from kubeauthn._core.revocation import FILE_BYTES, read_list, write_list
    from kubeauthn._io.files import Problem, read_text_or_problem, write_atomically

    text = read_text_or_problem(path, FILE_BYTES)
    if isinstance(text, Problem):
        if not text.missing:
            raise EnvironmentFailure(f"{path}: {text.reason}")
        text = ""
    try:
        entries = read_list(text)
    except ValueError as error:
        raise EnvironmentFailure(f"{path}: {error}", hint="the list is left as it is") from None
    if entry not in entries:
        entries.append(entry)
    content = write_list(entries).encode()
    if len(content) > FILE_BYTES:
        raise EnvironmentFailure(f"{path}: would be larger than {FILE_BYTES} bytes, which serve does not read")
    write_atomically(path, content)
