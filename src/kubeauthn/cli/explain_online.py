"""`explain --online`: the keys of the token's issuer are fetched, and the claims that another source holds."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from kubeauthn._core.authentication.authenticate import authenticate
from kubeauthn._core.authentication.claims import ClaimNeeded
from kubeauthn._core.authentication.compiled import compile_configuration
from kubeauthn._core.authentication.explain import explain
from kubeauthn.cli.progress import waiting_for
from kubeauthn.cli.text import escaped
from kubeauthn.errors import EnvironmentFailure, KubeauthnError, NotMine, TokenError
from kubeauthn.server.distributed import ClaimSourceResolver
from kubeauthn.server.keysets import DiscoveredKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.compiled import CompiledConfiguration
    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn._core.authentication.trace import Trace
    from kubeauthn._core.jose.keys import KeySet
    from kubeauthn.cli.progress import Waiting
    from kubeauthn.cli.world import World


def explain_online(
    config: AuthenticationConfiguration, token: str, now: float, version: str, world: World, *, show_claims: bool
) -> tuple[Trace, dict[str, Any]]:
    """The trace, and the claims that were fetched for it. EnvironmentFailure if the issuer cannot be asked."""
    # What goes wrong is in the error or in the trace; without a handler it would be printed as well, and unescaped.
    logging.getLogger("kubeauthn.server").addHandler(logging.NullHandler())
    with waiting_for(world, "the issuer's keys") as waiting:
        return asyncio.run(_explain(compile_configuration(config, version), token, now, show_claims, waiting))


async def _explain(
    configuration: CompiledConfiguration, token: str, now: float, show_claims: bool, waiting: Waiting
) -> tuple[Trace, dict[str, Any]]:
    fetched: dict[str, Any] = {}
    keys = await _keys(configuration, token, waiting)
    problem = "" if keys is None else await _fetch_claims(configuration, token, now, keys, fetched, waiting)
    key_set = None if keys is None else keys.keys_at_hand()
    trace = explain(configuration, token, now, lambda _: key_set, fetched, show_claims=show_claims)
    return (trace._replace(reason=problem) if problem else trace), fetched


async def _keys(configuration: CompiledConfiguration, token: str, waiting: Waiting) -> DiscoveredKeys | None:
    """Those of the issuer that the token names; None where it names none of ours."""
    from kubeauthn._core.authentication.token import read_token, untrusted_issuer

    try:
        named = untrusted_issuer(read_token(token).untrusted_claims)
    except NotMine:
        return None
    authenticator = configuration.by_issuer.get(named)
    if authenticator is None:
        return None
    waiting.so_far(f"the keys of {escaped(named)}")
    keys = DiscoveredKeys(authenticator.config.issuer)
    if await keys.newer_keys(None) is None:
        raise EnvironmentFailure(f"keys of issuer {named} were not fetched: {keys.status.failure}")
    return keys


async def _fetch_claims(
    configuration: CompiledConfiguration,
    token: str,
    now: float,
    keys: DiscoveredKeys,
    fetched: dict[str, Any],
    waiting: Waiting,
) -> str:
    """As the path asks for them, one after another, until it needs no more; why, if one cannot be had."""

    def keys_of(_: str) -> KeySet | None:
        return keys.keys_at_hand()

    sources = None
    while True:
        try:
            authenticate(configuration, token, now, keys_of, fetched)
        except ClaimNeeded as needed:
            if sources is None:
                # The other issuers of the file vouch for claims with the CA and the address that they have there.
                known = {url: DiscoveredKeys(one.config.issuer) for url, one in configuration.by_issuer.items()}
                issuer = configuration.by_issuer[needed.issuer].config.issuer
                sources = ClaimSourceResolver(issuer, keys, known=known).for_token(needed.claims, now)
            waiting.so_far(f"the claim {escaped(needed.name)}, which another source has")
            try:
                fetched[needed.name] = await sources.value(needed.name)
            except KubeauthnError as error:
                return str(error)
        except (NotMine, TokenError):
            return ""
        else:
            return ""
