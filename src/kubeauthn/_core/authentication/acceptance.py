"""The short way through rules and mappings, for the token that is accepted.

Most tokens are. For them nobody needs to know which rule would be named, where, and in what words, and leaving that out
halves what rules and mappings cost. Whatever is not plainly in order ends here with None, and the steps with their
reasons decide (`rules`, `mapping`): so this module can only ever say yes, and where it does they would say the same.
A test holds it to that with every recorded token.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.expressions import EXPECTED, TOKEN_COST_LIMIT
from kubeauthn._core.authentication.mapping import CREDENTIAL_ID
from kubeauthn._core.authentication.verdict import NO_EXTRA, UserInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.authentication.compiled import CompiledAuthenticator
    from kubeauthn.cel import Program
    from kubeauthn.cel.program import Run

    Accept = Callable[[dict[str, Any]], UserInfo | None]


def acceptance(authenticator: CompiledAuthenticator) -> Accept:
    """What makes a user of verified claims, or says None."""
    mappings = authenticator.config.claim_mappings
    required = tuple(
        (rule.rule.claim, rule.rule.required_value) for rule in authenticator.claim_rules if rule.program is None
    )
    claim_rules = tuple(rule.program.run for rule in authenticator.claim_rules if rule.program is not None)
    username, groups, uid = map(_run_of, (authenticator.username, authenticator.groups, authenticator.uid))
    name_claim, name_prefix = mappings.username.claim, mappings.username.prefix
    groups_claim, groups_prefix = mappings.groups.claim, mappings.groups.prefix
    uid_claim = mappings.uid.claim
    extra_runs = tuple((extra.key, extra.program.run) for extra in authenticator.extra)
    user_rules = tuple(rule.program.run for rule in authenticator.user_rules)
    vouched = username is None and name_claim == "email"

    def accept(claims: dict[str, Any]) -> UserInfo | None:
        # Anything but a plain dict has claims that are elsewhere or cannot be read.
        if type(claims) is not dict:
            return None
        variables: dict[str, Any] = {"claims": claims}
        cost = 0
        try:
            for claim, value in required:
                if claims[claim] != value:
                    return None
            for run in claim_rules:
                met, spent = run(variables)
                if met is not True:
                    return None
                cost += spent

            if username is None:
                name = claims[name_claim]
                if vouched and claims.get("email_verified", True) is not True:
                    return None
            else:
                name, spent = username(variables)
                cost += spent
            if type(name) is not str or not name:
                return None
            if name_prefix and username is None:
                name = name_prefix + name

            if uid is not None:
                identity, spent = uid(variables)
                cost += spent
            else:
                identity = claims[uid_claim] if uid_claim else ""
            if type(identity) is not str:
                return None

            if groups is not None:
                found, spent = groups(variables)
                cost += spent
            else:
                found = claims.get(groups_claim, ()) if groups_claim else ()
            if type(found) is str:
                found = (found,)
            elif type(found) is not list and found != ():
                return None
            for group in found:
                if type(group) is not str or not group:
                    return None
            member_of = [groups_prefix + group for group in found] if groups_prefix and groups is None else list(found)

            extra: dict[str, list[str]] = {}
            token_id = claims.get("jti")
            if token_id:
                if type(token_id) is not str:
                    return None
                extra[CREDENTIAL_ID] = [f"JTI={token_id}"]
            for key, run in extra_runs:
                values, spent = run(variables)
                cost += spent
                if type(values) is not str or not values:
                    return None
                extra[key] = [values]

            if user_rules:
                variables["user"] = {"username": name, "uid": identity, "groups": member_of, "extra": extra}
                for run in user_rules:
                    met, spent = run(variables)
                    if met is not True:
                        return None
                    cost += spent
        except EXPECTED:
            return None
        if cost > TOKEN_COST_LIMIT:
            return None
        return UserInfo(
            name,
            identity,
            tuple(member_of),
            MappingProxyType({key: tuple(values) for key, values in extra.items()}) if extra else NO_EXTRA,
        )

    return accept


def _run_of(program: Program | None) -> Run | None:
    return None if program is None else program.run
