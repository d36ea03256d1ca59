"""How claims become a user: name, groups, uid and extra, each by a claim or by an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.json_claims import string_claim, strings_claim, true_claim
from kubeauthn.cel import EvalError
from kubeauthn.cel.go_text import quote
from kubeauthn.errors import MappingFailed

if TYPE_CHECKING:
    from kubeauthn._core.authentication.compiled import CompiledAuthenticator, CompiledExtra
    from kubeauthn._core.authentication.expressions import Expressions

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_STRINGS = "expression must return a string or a list of strings"


def map_user(authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions) -> dict[str, Any]:
    """The user as expressions over `user` see it. Raises MappingFailed."""
    return {
        "username": map_username(authenticator, claims, run),
        "uid": map_uid(authenticator, claims, run),
        "groups": map_groups(authenticator, claims, run),
        "extra": map_extra(authenticator, claims, run),
    }


def map_username(authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions) -> str:
    """Never empty. Raises MappingFailed."""
    if authenticator.username is not None:
        try:
            name = run.value(authenticator.username)
        except EvalError as error:
            raise _failed(
                authenticator, "username", f"error evaluating username claim expression: {error.message}"
            ) from None
        if type(name) is not str:
            text = "error evaluating username claim expression: username claim expression must return a string"
            raise _failed(authenticator, "username", text)
        if not name:
            raise _failed(authenticator, "username", "empty username via CEL expression is not allowed")
        return name
    mapping = authenticator.config.claim_mappings.username
    name, fault = string_claim(claims, mapping.claim)
    if fault:
        raise _failed(authenticator, "username", f"parse username claims {quote(mapping.claim)}: {fault}")
    if mapping.claim == "email":
        _check_verified(authenticator, claims)
    if not name:
        # a prefix alone is no name either; kube-apiserver lets both through
        raise _failed(authenticator, "username", f"empty username via claim {quote(mapping.claim)} is not allowed")
    return f"{mapping.prefix}{name}" if mapping.prefix else name


def _check_verified(authenticator: CompiledAuthenticator, claims: dict[str, Any]) -> None:
    """An address that the issuer itself does not vouch for names nobody (OpenID Connect Core 5.1)."""
    if "email_verified" not in claims:
        return
    verified, fault = true_claim(claims, "email_verified")
    if fault:
        raise _failed(authenticator, "username", f"parse 'email_verified' claim: {fault}")
    if not verified:
        raise _failed(authenticator, "username", "email not verified")


def map_uid(authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions) -> str:
    """ "" where nothing maps to it. Raises MappingFailed."""
    if authenticator.uid is not None:
        try:
            uid = run.value(authenticator.uid)
        except EvalError as error:
            raise _failed(authenticator, "uid", f"error evaluating uid claim expression: {error.message}") from None
        if type(uid) is not str:
            text = "error evaluating uid claim expression: uid claim expression must return a string"
            raise _failed(authenticator, "uid", text)
        return uid
    claim = authenticator.config.claim_mappings.uid.claim
    if not claim:
        return ""
    uid, fault = string_claim(claims, claim)
    if fault:
        raise _failed(authenticator, "uid", f"parse uid claim {quote(claim)}: {fault}")
    return uid


def map_groups(authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions) -> list[str]:
    """Raises MappingFailed."""
    if authenticator.groups is not None:
        try:
            return strings_of(run.value(authenticator.groups))
        except EvalError as error:
            raise _failed(
                authenticator, "groups", f"error evaluating group claim expression: {error.message}"
            ) from None
    mapping = authenticator.config.claim_mappings.groups
    if not mapping.claim or mapping.claim not in claims:
        return []
    groups, fault = strings_claim(claims, mapping.claim)
    if fault:
        raise _failed(authenticator, "groups", f"parse groups claim {quote(mapping.claim)}: {fault}")
    return [f"{mapping.prefix}{group}" for group in groups] if mapping.prefix else groups


def map_extra(authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions) -> dict[str, list[str]]:
    """The token's id, if it has one, and the mapped keys that have a value. Raises MappingFailed."""
    extra = {}
    identity, _ = string_claim(claims, "jti")
    if identity:
        extra[CREDENTIAL_ID] = [f"JTI={identity}"]
    for mapping in authenticator.extra:
        values = _extra_values(mapping, authenticator, run)
        if values:
            extra[mapping.key] = values
    return extra


def _extra_values(mapping: CompiledExtra, authenticator: CompiledAuthenticator, run: Expressions) -> list[str]:
    try:
        value = run.value(mapping.program)
    except EvalError as error:
        # kube-apiserver says no more here
        raise _failed(authenticator, _extra_place(mapping, authenticator), error.message, prefix="") from None
    try:
        return strings_of(value)
    except EvalError as error:
        text = f"error evaluating extra claim expression: {mapping.program.text}: {error.message}"
        raise _failed(authenticator, _extra_place(mapping, authenticator), text) from None


def _extra_place(mapping: CompiledExtra, authenticator: CompiledAuthenticator) -> str:
    return f"extra[{authenticator.extra.index(mapping)}]"


def strings_of(value: object) -> list[str]:
    """A text or a list of them; empty texts are left out, and null is none. Raises EvalError for anything else.

    An object stands for the names of its fields, as in a loop of CEL: `claims.o` is what `dyn(claims.o).map(r, r)` is.
    kube-apiserver refuses it, as it refuses the lists that `split` makes.
    """
    if type(value) is str:
        return [value] if value else []
    if value is None:
        return []
    if type(value) is not list and type(value) is not dict:
        raise EvalError(_STRINGS)
    texts = []
    for entry in value:
        if type(entry) is not str:
            raise EvalError(_STRINGS)
        if entry:
            texts.append(entry)
    return texts


def _failed(authenticator: CompiledAuthenticator, field: str, text: str, prefix: str = "oidc: ") -> MappingFailed:
    return MappingFailed(f"{prefix}{text}", rule=f"jwt[{authenticator.index}].claimMappings.{field}")
