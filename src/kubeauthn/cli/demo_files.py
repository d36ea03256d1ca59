"""The files that the demo writes: a configuration, a login plugin, a launcher."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_CONFIGURATION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: {url}
    audiences: [kubernetes]
    certificateAuthority: |
{authority}
  claimValidationRules:
  - expression: 'has(claims.team) && claims.team in [{teams}]'
    message: only members of {spoken} may log in
  claimMappings:
    username:
      expression: '"demo:" + claims.sub'
    groups:
      expression: 'has(claims.team) ? ["team:" + claims.team] : []'
"""

LOGIN_PLUGIN = '''\
"""A login plugin written with the SDK: it exchanges a refresh token for an ID token at the identity provider."""

import json
import ssl
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

from kubeauthn.plugin import credential

home = Path(sys.argv[1])


def log_in(request):
    with open(home / "runs", "a") as runs:
        runs.write("run\\n")
    login = json.loads((home / "login.json").read_text())
    form = {
        "grant_type": "refresh_token",
        "client_id": login["client_id"],
        "refresh_token": login["refresh_token"],
    }
    context = ssl.create_default_context(cafile=login["ca"])
    web = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
    try:
        with web.open(login["token_endpoint"], urlencode(form).encode(), timeout=10) as answer:
            granted = json.load(answer)
    except HTTPError:
        raise credential.Refuse("your login has ended, log in again") from None
    return credential.Token(granted["id_token"], expires_in=granted["expires_in"])


credential.run(log_in)
'''

LAUNCHER = """\
import sys

sys.path.insert(0, {found_at!r})
from {module} import main

main()
"""


def configuration_text(url: str, authority: str, teams: Sequence[str]) -> str:
    """One issuer; members of these teams may log in."""
    return _CONFIGURATION.format(
        url=url,
        authority="\n".join(f"      {line}" for line in authority.splitlines()),
        teams=", ".join(f'"{team}"' for team in teams),
        spoken=" and ".join(teams),
    )
