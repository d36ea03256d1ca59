"""Claim validation rules and user validation rules. Each must be met; the first that is not refuses the token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.json_claims import string_claim
from kubeauthn.cel import EvalError
from kubeauthn.errors import ClaimRefused, UserRefused

if TYPE_CHECKING:
    from kubeauthn._core.authentication.compiled import CompiledAuthenticator
    from kubeauthn._core.authentication.expressions import Expressions
    from kubeauthn._core.authentication.model import ClaimValidationRule, UserValidationRule


def check_claim_rules(
    authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions, only: int | None = None
) -> None:
    """All of them, or `only` the one at this index. Raises ClaimRefused."""
    fault = ""
    for rule in authenticator.claim_rules if only is None else authenticator.claim_rules[only : only + 1]:
        if rule.program is None:
            fault = _required_claim_fault(rule.rule, claims)
        else:
            try:
                met = run.value(rule.program)
                if met is True:
                    continue
                fault = f"oidc: error evaluating claim validation expression: {_not_met(met, rule.rule)}"
            except EvalError as error:
                fault = f"oidc: error evaluating claim validation expression: {error.message}"
        if fault:
            place = f"jwt[{authenticator.index}].claimValidationRules[{authenticator.claim_rules.index(rule)}]"
            raise ClaimRefused(fault, rule=place)


def _required_claim_fault(rule: ClaimValidationRule, claims: dict[str, Any]) -> str:
    if rule.claim not in claims:
        return f"oidc: required claim {rule.claim} not present in ID token"
    got, fault = string_claim(claims, rule.claim)
    if fault:
        return f"oidc: parse claim {rule.claim}: {fault}"
    if got != rule.required_value:
        return f"oidc: required claim {rule.claim} value does not match. Got = {got}, want = {rule.required_value}"
    return ""


def check_user_rules(authenticator: CompiledAuthenticator, run: Expressions, only: int | None = None) -> None:
    """All of them, or `only` the one at this index. Raises UserRefused."""
    for rule in authenticator.user_rules if only is None else authenticator.user_rules[only : only + 1]:
        try:
            met = run.value(rule.program)
            if met is True:
                continue
            fault = f"oidc: error evaluating user info validation rule: {_not_met(met, rule.rule)}"
        except EvalError as error:
            fault = f"oidc: error evaluating user info validation rule: {error.message}"
        place = f"jwt[{authenticator.index}].userValidationRules[{authenticator.user_rules.index(rule)}]"
        raise UserRefused(fault, rule=place)


def _not_met(result: object, rule: ClaimValidationRule | UserValidationRule) -> str:
    if result is not False:
        return "validation expression must return a boolean"
    return f"validation expression '{rule.expression}' failed: {rule.message}"
