"""The configurations and claims that are measured. Keys and tokens are made afresh in every run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from itertools import cycle
from typing import Any

from kubeauthn.testing._signing import SigningKey

ISSUER = "https://example.com"
AUDIENCE = "my-app"
HEAD = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
"""
EXAMPLE_ENTRY = """\
- issuer:
    url: https://example.com
    audiences: [my-app, other-app]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.hd == "example.com"', message: the hd claim must be set to example.com}
  - {expression: claims.exp - claims.nbf <= 86400, message: total token lifetime must not exceed 24 hours}
  claimMappings:
    username: {expression: 'claims.username + ":external-user"'}
    groups: {expression: 'claims.roles.split(",")'}
    uid: {claim: sub}
    extra: [{key: example.com/client-name, valueExpression: claims.some_claim}]
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: 'username cannot use the reserved system: prefix'}
  - {expression: "user.groups.all(group, !group.startsWith('system:'))", message: no reserved groups}
"""
PLAIN_ENTRY = """\
- issuer:
    url: https://example.com
    audiences: [my-app]
  claimMappings:
    username: {claim: username, prefix: "oidc:"}
    groups: {claim: roles, prefix: "oidc:"}
"""
EXAMPLE = HEAD + EXAMPLE_ENTRY
"""The KEP's example: two mappings, two rules on claims and two on the user in CEL."""
PLAIN = HEAD + PLAIN_ENTRY


def for_kubernetes(text: str) -> str:
    """kube-apiserver refuses a list of `split` as groups, because of its elements' type; a `map` gives them one."""
    return text.replace('split(",")', 'split(",").map(r, r)')


def issuers(count: int) -> str:
    """The example for so many issuers, no two with the same expressions: nothing is compiled once for all."""
    entries = [EXAMPLE_ENTRY]
    for number in range(1, count):
        entry = EXAMPLE_ENTRY.replace(ISSUER, f"{ISSUER}/{number}")
        for old, new in (
            ('== "example.com"', f'== "{number}.example.com"'),
            ("86400", str(86400 + number)),
            (":external-user", f":external-user-{number}"),
            ('split(",")', f'split(",{number}")'),
            ("claims.some_claim", f"claims.some_claim_{number}"),
            ("!user.username.startsWith('system:')", f"!user.username.startsWith('system:{number}')"),
            ("!group.startsWith('system:')", f"!group.startsWith('system:{number}')"),
        ):
            entry = entry.replace(old, new)
        entries.append(entry)
    return HEAD + "".join(entries)


def claims(groups: int = 3, *, listed: bool = False) -> dict[str, Any]:
    """`listed` groups are a JSON list, for plain mappings; the example splits a text."""
    now = int(time.time())
    name = secrets.token_hex(4)
    teams = [f"team-{secrets.token_hex(3)}" for _ in range(groups)]
    return {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": secrets.token_hex(12),
        "exp": now + 7200,
        "nbf": now - 60,
        "hd": "example.com",
        "username": f"jane-{name}",
        "roles": teams if listed else ",".join(teams),
        "some_claim": "cli",
    }


def signed(key: SigningKey, count: int = 64, groups: int = 3, *, listed: bool = False) -> list[str]:
    """So many tokens of so many people. The header holds what issuers put there, `typ` and `kid`."""
    return [key.sign(claims(groups, listed=listed), {}) for _ in range(count)]


def each_in_turn(function: Callable[[Any], object], arguments: list[Any]) -> Callable[[], object]:
    following = cycle(arguments).__next__
    return lambda: function(following())
