"""Proofs that a difference in the answer to a token is one that is meant.

A proof changes the case so that the meant difference cannot show, and asks again: the two sides have to agree then, to
the letter. `ask` is Kubernetes' answer to a case, `answer` is ours.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._core.authentication.verify import check_audience, check_times, check_types
from kubeauthn.cel import CelError
from kubeauthn.cel.kubernetes import decode_claims
from kubeauthn.errors import AuthenticationConfigError, TokenError

__all__ = [
    "agree",
    "before_expiry",
    "is_another_order",
    "is_empty_name",
    "is_list_of_kind",
    "is_odd_claim",
    "without_stray_bits",
]

Case = dict[str, Any]
Ask = Callable[[Case], Case]
_NEUTRAL = {"username": {"expression": "'x'"}}
_EMAIL_RULE = {"expression": "has(claims.email_verified) || true"}
"""Always kept, and what a name made of an e-mail address needs."""
_TIMES = ("iss", "aud", "exp", "nbf")
_BAD_SIGNATURE = (
    "oidc: verify token: failed to verify signature: ",
    "oidc: verify token: oidc: id token signed with unsupported algorithm, ",
)
_EMPTY_NAME = "oidc: empty username via claim "


def agree(theirs: Case, ours: Case) -> bool:
    """Whether both say the same: the same user, or the same reason."""
    if bool(theirs.get("authenticated")) != bool(ours.get("authenticated")):
        return False
    if not theirs.get("authenticated"):
        return (theirs.get("error") or "") == (ours.get("error") or "")
    return _user(theirs) == _user(ours)


def is_another_order(case: Case, theirs: Case, ours: Case, ask: Ask, answer: Ask) -> bool:
    """Two checks fail, and each side reports another one: alone, each is reported by the other side as well."""
    their_error, our_error = theirs.get("error"), ours.get("error")
    if not their_error or not our_error:
        return False
    before = (_type_fault(case), _time_fault(case), *_audience_faults(case))
    if their_error in before and (our_error in before or our_error.startswith(_BAD_SIGNATURE)):
        return True  # both faults are there; go-oidc until 2.3 looks at the signature last
    variants = [*_one_check_each(case), *_other_times(case)]
    if _time_fault(case) != their_error and not any(
        answer(variant).get("error") == their_error for variant in variants
    ):
        return False
    if our_error.startswith(_EMPTY_NAME):
        return any(is_empty_name(variant, ask(variant), ours) for variant in variants)
    return any(ask(variant).get("error") == our_error for variant in variants)


def is_empty_name(case: Case, theirs: Case, ours: Case) -> bool:
    """The claim of the name is empty or null: they make a name of the prefix alone, we refuse."""
    claim = str(ours.get("error")).removeprefix(_EMPTY_NAME).partition(" is not allowed")[0].strip('"')
    if not str(ours.get("error")).startswith(_EMPTY_NAME) or not theirs.get("authenticated"):
        return False
    mapped = [
        (entry.get("claimMappings") or {}).get("username") or {} for entry in (_document(case) or {"jwt": []})["jwt"]
    ]
    prefixes = {"" if name.get("prefix") in (None, "-") else name["prefix"] for name in mapped} | {"-"}
    return _claims(case).get(claim, "") in ("", None) and theirs["user"]["username"] in prefixes | {""}


def is_list_of_kind(case: Case, theirs: Case, ours: Case, ask: Ask, answer: Ask) -> bool:
    """A list that `split` and the like made: after `.map(r, r)`, which changes nothing else, they agree with us."""
    document = _document(case)
    if document is None or "must return a string or a list of strings" not in str(theirs.get("error")):
        return False
    for places in _mapped_lists(document):
        cured = ask(_with(case, places))
        if (
            agree(cured, ours)
            or is_empty_name(case, cured, ours)
            or is_another_order(_with(case, places), cured, ours, ask, answer)
        ):
            return True
    return False


def before_expiry(case: Case) -> Case | None:
    """The case of a token at its very `exp`, one second before."""
    expiry = _claims(case).get("exp")
    if not isinstance(expiry, (int, float)) or "now" not in case or int(expiry) != case["now"]:
        return None
    return {**case, "now": case["now"] - 1}


def without_stray_bits(case: Case) -> Case | None:
    """The case of a token of which a part has stray bits in its last character, without them."""
    parts = str(case.get("token") or "").split(".")
    try:
        plain = [_encode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts]
    except ValueError:
        return None
    return {**case, "token": ".".join(plain)} if plain != parts else None


def is_odd_claim(case: Case, theirs: Case, ours: Case) -> bool:
    """A registered claim in other letters, or a time as a string, and one side refuses the token for its claims."""
    odd = any(
        (name.lower() in _TIMES and name not in _TIMES) or (name in ("exp", "nbf") and isinstance(value, str))
        for name, value in _claims(case).items()
    )
    errors = (str(theirs.get("error") or ""), str(ours.get("error") or ""))
    return odd and any(error.startswith("oidc: verify token") for error in errors)


def _one_check_each(case: Case) -> Iterator[Case]:
    """The case with all but one of its checks and mappings taken away, for each of them."""
    document = _document(case)
    if document is None:
        return
    for number, entry in enumerate(document["jwt"]):
        mappings = entry.get("claimMappings") or {}
        bare = {"issuer": entry.get("issuer"), "claimMappings": _NEUTRAL}
        alone: list[Case] = [
            {**bare, "claimMappings": {"username": mappings.get("username")}, "claimValidationRules": [_EMAIL_RULE]}
        ]
        alone += [
            {**bare, "claimMappings": {**_NEUTRAL, name: mappings[name]}}
            for name in ("groups", "uid")
            if name in mappings
        ]
        alone += [{**bare, "claimMappings": {**_NEUTRAL, "extra": [one]}} for one in mappings.get("extra") or []]
        alone += [{**bare, "claimValidationRules": [rule]} for rule in entry.get("claimValidationRules") or []]
        alone += [
            {**bare, "claimMappings": used, "claimValidationRules": [_EMAIL_RULE], "userValidationRules": [rule]}
            for rule in entry.get("userValidationRules") or []
            for used in (mappings, _NEUTRAL, {"username": {"expression": json.dumps(_prefix(mappings))}})
        ]
        for one in alone:
            entries = list(document["jwt"])
            entries[number] = one
            yield _with(case, {**document, "jwt": entries})


def _prefix(mappings: Case) -> str:
    prefix = (mappings.get("username") or {}).get("prefix")
    return prefix if isinstance(prefix, str) and prefix not in ("", "-") else "x"


def _other_times(case: Case) -> Iterator[Case]:
    """The case at a time when the token is good, and with the audiences that the token has."""
    claims = _claims(case)
    for name, step in (("exp", -1), ("nbf", 0)):
        if isinstance(claims.get(name), (int, float)) and abs(claims[name]) < 1e12:
            yield {**case, "now": int(claims[name]) + step}
    document = _document(case)
    audiences = claims.get("aud")
    if document is not None and audiences:
        wanted = [audiences] if isinstance(audiences, str) else audiences
        entries = [{**entry, "issuer": {**entry["issuer"], "audiences": wanted}} for entry in document["jwt"]]
        yield _with(case, {**document, "jwt": entries})


def _type_fault(case: Case) -> str:
    """What we would say of the types of the token's claims, if its signature did not come first."""
    try:
        check_types(decode_claims(case.get("claims") or "{}"))
    except (TokenError, CelError) as error:
        return str(error)
    return ""


def _time_fault(case: Case) -> str:
    """What we would say of the token's times, if its audience did not come first."""
    try:
        check_times(decode_claims(case.get("claims") or "{}"), case["now"])
    except (TokenError, CelError, KeyError) as error:
        return str(error)
    return ""


def _audience_faults(case: Case) -> Iterator[str]:
    """What we would say of the token's audience, for each entry of the configuration."""
    try:
        entries = load_configuration(case["config"]).jwt
        claims = decode_claims(case.get("claims") or "{}")
    except (AuthenticationConfigError, CelError):
        return
    for entry in entries:
        try:
            check_audience(claims, entry.issuer)
        except TokenError as error:
            yield str(error)


def _mapped_lists(document: Case) -> Iterator[Case]:
    """The configuration with `.map(r, r)` behind one, or all, of the expressions for groups and extra values."""
    places = [
        (number, name)
        for number, entry in enumerate(document["jwt"])
        for name in ("groups", *range(len((entry.get("claimMappings") or {}).get("extra") or [])))
    ]
    for chosen in (*([place] for place in places), places):
        copy = json.loads(json.dumps(document))
        for number, name in chosen:
            mappings = copy["jwt"][number].get("claimMappings") or {}
            holder, key = (
                (mappings.get("groups") or {}, "expression")
                if name == "groups"
                else (mappings["extra"][name], "valueExpression")
            )
            if holder.get(key):
                holder[key] = f"dyn({holder[key]}).map(r, r)"
        yield copy


def _document(case: Case) -> Case | None:
    try:
        document = yaml.safe_load(case["config"])
    except yaml.YAMLError:
        return None
    good = isinstance(document, dict) and isinstance(document.get("jwt"), list)
    return document if good and all(isinstance(entry, dict) for entry in document["jwt"]) else None


def _with(case: Case, document: Case) -> Case:
    return {**case, "config": json.dumps(document)}


def _claims(case: Case) -> Case:
    try:
        claims = json.loads(case.get("claims") or "{}")
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) else {}


def _user(answer: Case) -> Case:
    user = answer["user"]
    extra = {key: list(values) for key, values in (user.get("extra") or {}).items()}
    return {**user, "uid": user.get("uid") or "", "groups": list(user.get("groups") or []), "extra": extra}


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
