"""A configuration whose expressions are ready to run.

Compiling is the dear part of loading a file, so each expression is compiled once: validation and this module ask the
same memory for the same text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Literal

from kubeauthn._core.authentication.acceptance import acceptance
from kubeauthn._core.authentication.model import (
    AuthenticationConfiguration,
    ClaimValidationRule,
    JWTAuthenticator,
    UserValidationRule,
)
from kubeauthn._core.authentication.release import NEWEST, Release
from kubeauthn._core.record import record, replace
from kubeauthn.cel.kubernetes import claims_environment, user_environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.authentication.acceptance import Accept
    from kubeauthn._core.authentication.verdict import Authenticated
    from kubeauthn.cel import Program

__all__ = [
    "NEWEST",
    "CompiledAuthenticator",
    "CompiledClaimRule",
    "CompiledConfiguration",
    "CompiledExtra",
    "CompiledUserRule",
    "compile_claims_expression",
    "compile_configuration",
    "compile_user_expression",
    "forget_programs",
]

PROGRAMS_KEPT = 2048
"""More than two full files of 64 issuers need."""


@record(frozen=True, slots=True)
class CompiledClaimRule:
    """A claim rule; `program` is None for one that asks for a claim's value."""

    rule: ClaimValidationRule
    program: Program | None


@record(frozen=True, slots=True)
class CompiledUserRule:
    rule: UserValidationRule
    program: Program


@record(frozen=True, slots=True)
class CompiledExtra:
    key: str
    program: Program


@record(frozen=True, slots=True)
class CompiledAuthenticator:
    """One entry of `jwt`. A program is None where the mapping is by claim, or absent."""

    index: int
    config: JWTAuthenticator
    claim_rules: tuple[CompiledClaimRule, ...]
    username: Program | None
    groups: Program | None
    uid: Program | None
    extra: tuple[CompiledExtra, ...]
    user_rules: tuple[CompiledUserRule, ...]
    accept: Accept
    """The steps after the signature at once, for a token that passes them all."""


@record(frozen=True, slots=True)
class CompiledConfiguration:
    configuration: AuthenticationConfiguration
    authenticators: tuple[CompiledAuthenticator, ...]
    by_issuer: Mapping[str, CompiledAuthenticator]
    """By issuer URL, so that many issuers cost a token no more than one."""


def compile_configuration(config: AuthenticationConfiguration, kubernetes: str = NEWEST) -> CompiledConfiguration:
    """The configuration with its programs. If it is one that validation would refuse: cel.CompileError.

    Raises UsageError for a release that is not known.
    """
    Release.named(kubernetes)
    authenticators = tuple(_authenticator(index, entry, kubernetes) for index, entry in enumerate(config.jwt))
    return CompiledConfiguration(config, authenticators, {entry.config.issuer.url: entry for entry in authenticators})


def compile_claims_expression(text: str, kubernetes: str = NEWEST) -> Program:
    """An expression over `claims`. Raises cel.CompileError."""
    return _program("claims", text, kubernetes)


def compile_user_expression(text: str, kubernetes: str = NEWEST) -> Program:
    """An expression over `user`. Raises cel.CompileError."""
    return _program("user", text, kubernetes)


@lru_cache(maxsize=PROGRAMS_KEPT)
def _program(variable: Literal["claims", "user"], text: str, kubernetes: str) -> Program:
    environment = claims_environment if variable == "claims" else user_environment
    return environment(kubernetes).compile(text)


def forget_programs() -> None:
    """For those who measure what the first file takes."""
    _program.cache_clear()


def _authenticator(index: int, entry: JWTAuthenticator, kubernetes: str) -> CompiledAuthenticator:
    def optional(text: str) -> Program | None:
        return compile_claims_expression(text, kubernetes) if text else None

    mappings = entry.claim_mappings
    compiled = CompiledAuthenticator(
        index,
        entry,
        tuple(CompiledClaimRule(rule, optional(rule.expression)) for rule in entry.claim_validation_rules),
        optional(mappings.username.expression),
        optional(mappings.groups.expression),
        optional(mappings.uid.expression),
        tuple(
            CompiledExtra(extra.key, compile_claims_expression(extra.value_expression, kubernetes))
            for extra in mappings.extra
        ),
        tuple(
            CompiledUserRule(rule, compile_user_expression(rule.expression, kubernetes))
            for rule in entry.user_validation_rules
        ),
        _undecided,
    )
    return replace(compiled, accept=acceptance(compiled, kubernetes))


def _undecided(claims: dict[str, Any], now: float) -> Authenticated | None:
    return None
