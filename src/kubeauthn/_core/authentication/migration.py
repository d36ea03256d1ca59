"""kube-apiserver's `--oidc-*` flags, turned into the text of a configuration that does the same."""

from __future__ import annotations

import json

from kubeauthn._core.authentication.model import GROUP, KIND
from kubeauthn._core.record import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_USERNAME_CLAIM = "sub"
DEFAULT_ALGORITHMS = ("RS256",)
NO_PREFIX = "-"
ALL_ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512")


@record(frozen=True, slots=True)
class OidcFlags:
    """The flags; None where one is not given, which is not the same as empty."""

    issuer_url: str
    client_id: str
    username_claim: str = DEFAULT_USERNAME_CLAIM
    username_prefix: str | None = None
    groups_claim: str = ""
    groups_prefix: str | None = None
    required_claims: tuple[tuple[str, str], ...] = ()
    ca: str = ""
    """What the CA file holds."""
    signing_algs: tuple[str, ...] = DEFAULT_ALGORITHMS


def username_prefix(flags: OidcFlags) -> str:
    """What stands before a user name, which in the flags depends on the claim."""
    if flags.username_prefix is None:
        return "" if flags.username_claim == "email" else f"{flags.issuer_url}#"
    return "" if flags.username_prefix == NO_PREFIX else flags.username_prefix


def configuration_text(flags: OidcFlags, version: str) -> str:
    """YAML, with comments on what the flags say otherwise."""
    return "\n".join(_lines(flags, version)) + "\n"


def _lines(flags: OidcFlags, version: str) -> Iterator[str]:
    yield from _signing_comment(flags)
    yield f"apiVersion: {GROUP}/{version}"
    yield f"kind: {KIND}"
    yield "jwt:"
    yield "- issuer:"
    yield f"    url: {quoted(flags.issuer_url)}"
    yield "    audiences:"
    yield f"    - {quoted(flags.client_id)}"
    if flags.ca:
        yield "    certificateAuthority: |"
        for line in flags.ca.strip().splitlines():
            yield f"      {line.strip()}".rstrip()
    if flags.required_claims:
        yield "  claimValidationRules:"
        for claim, value in flags.required_claims:
            yield f"  - claim: {quoted(claim)}"
            yield f"    requiredValue: {quoted(value)}"
    yield "  claimMappings:"
    yield "    username:"
    yield f"      claim: {quoted(flags.username_claim)}"
    prefix = username_prefix(flags)
    if flags.username_prefix is None and prefix:
        yield "      # what the flags put before a name where --oidc-username-prefix is not given"
    yield f"      prefix: {quoted(prefix)}"
    if flags.groups_claim:
        yield "    groups:"
        yield f"      claim: {quoted(flags.groups_claim)}"
        if flags.groups_prefix == NO_PREFIX:
            yield "      # a dash, as in the flag: only --oidc-username-prefix takes - for none"
        yield f"      prefix: {quoted(flags.groups_prefix or '')}"
    elif flags.groups_prefix:
        yield f"    # --oidc-groups-prefix={_comment(flags.groups_prefix)} has no effect without --oidc-groups-claim"


def _signing_comment(flags: OidcFlags) -> Iterator[str]:
    if set(flags.signing_algs) == set(ALL_ALGORITHMS):
        return
    named = _comment(", ".join(flags.signing_algs))
    yield f"# The flags allow tokens signed with {named} and no others (--oidc-signing-algs)."
    yield f"# A file has no such field: {', '.join(ALL_ALGORITHMS)} are allowed,"
    yield "# as far as the issuer publishes keys for them."


def quoted(text: str) -> str:
    """A YAML scalar that is this text and nothing else, whatever is in it."""
    quoted_text = json.dumps(text, ensure_ascii=False)
    return "".join(_escaped(character) for character in quoted_text)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _comment(text: str) -> str:
    """On one line: a text must not end the comment it stands in."""
    return "".join(_escaped(character) for character in text)
