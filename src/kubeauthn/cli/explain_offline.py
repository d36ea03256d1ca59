"""`explain --jwks`: with the keys of a file, and with the claims that the token brings along in a token of its own."""

from __future__ import annotations

from typing import Any

from kubeauthn._core.authentication.authenticate import authenticate
from kubeauthn._core.authentication.claims import ClaimNeeded
from kubeauthn._core.authentication.compiled import compile_configuration
from kubeauthn._core.authentication.explain import explain
from kubeauthn._core.jose.keys import parse_key_set
from kubeauthn.errors import KubeauthnError, NotMine, TokenError
from kubeauthn.server.authenticator import GivenKeys
from kubeauthn.server.distributed import ClaimSourceResolver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn._core.authentication.trace import Trace
    from kubeauthn.server.distributed import SourcesOfToken


def explain_offline(
    config: AuthenticationConfiguration,
    keys: dict[str, dict[str, Any]],
    token: str,
    now: float,
    version: str,
    *,
    show_claims: bool,
) -> tuple[Trace, dict[str, Any]]:
    """The trace, and the claims of aggregated sources that are in it."""
    configuration = compile_configuration(config, version)
    sets = {url: parse_key_set(document) for url, document in keys.items()}
    fetched: dict[str, Any] = {}
    problem = ""
    sources: SourcesOfToken | None = None
    while not problem:
        try:
            authenticate(configuration, token, now, sets.get, fetched)
        except ClaimNeeded as needed:
            if sources is None:
                issuer = configuration.by_issuer[needed.issuer].config.issuer
                resolver = ClaimSourceResolver(issuer, GivenKeys(sets[needed.issuer]))
                sources = resolver.for_token(needed.claims, now)
            try:
                fetched[needed.name] = sources.value_at_hand(needed.name)
            except KubeauthnError as error:
                problem = str(error)
        except (NotMine, TokenError):
            break
        else:
            break
    trace = explain(configuration, token, now, sets.get, fetched, show_claims=show_claims)
    return (trace._replace(reason=problem) if problem else trace), fetched
