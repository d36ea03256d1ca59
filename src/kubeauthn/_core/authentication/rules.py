"""Claim validation rules and user validation rules. Each must be met, else the token is refused.

Of several that are not met one is reported, the same that kube-apiserver names: the first claim that is not as
required, then the first expression that fails, then the first that is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.json_claims import string_claim
from kubeauthn.cel import EvalError
from kubeauthn.errors import ClaimRefused, UserRefused

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubeauthn._core.authentication.compiled import CompiledAuthenticator
    from kubeauthn._core.authentication.expressions import Expressions
    from kubeauthn._core.authentication.model import ClaimValidationRule, UserValidationRule
    from kubeauthn.cel import Program

    AnyRule = ClaimValidationRule | UserValidationRule


def check_claim_rules(
    authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions, only: int | None = None
) -> None:
    """All of them, or `only` the one at this index. Raises ClaimRefused."""
    asked = [(index, rule) for index, rule in enumerate(authenticator.claim_rules) if only is None or index == only]
    for index, rule in asked:
        fault = _required_claim_fault(rule.rule, claims) if rule.program is None else ""
        if fault:
            raise ClaimRefused(fault, rule=_claim_rule(authenticator, index))
    expressions = [(index, rule.rule, rule.program) for index, rule in asked if rule.program is not None]
    unmet = _unmet(expressions, run)
    if unmet is not None:
        index, fault = unmet
        text = f"oidc: error evaluating claim validation expression: {fault}"
        raise ClaimRefused(text, rule=_claim_rule(authenticator, index))


def _claim_rule(authenticator: CompiledAuthenticator, index: int) -> str:
    return f"jwt[{authenticator.index}].claimValidationRules[{index}]"


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
    rules = enumerate(authenticator.user_rules)
    unmet = _unmet([(index, rule.rule, rule.program) for index, rule in rules if only is None or index == only], run)
    if unmet is not None:
        index, fault = unmet
        text = f"oidc: error evaluating user info validation rule: {fault}"
        raise UserRefused(text, rule=f"jwt[{authenticator.index}].userValidationRules[{index}]")


def _unmet(rules: Iterable[tuple[int, AnyRule, Program]], run: Expressions) -> tuple[int, str] | None:
    """The rule to report, and what it says; None if every one is met."""
    first: tuple[int, str] | None = None
    for index, rule, program in rules:
        try:
            met = run.value(program)
        except EvalError as error:
            return index, error.message
        if met is not True and first is None:
            first = index, _not_met(met, rule)
    return first


def _not_met(result: object, rule: AnyRule) -> str:
    if result is not False:
        return "validation expression must return a boolean"
    return f"validation expression '{rule.expression}' failed: {rule.message}"
