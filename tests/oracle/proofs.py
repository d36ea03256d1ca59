"""Proofs that a difference in the answer to a token is one that is meant.

A proof changes the case so that the meant difference cannot show, and asks again: the two sides have to agree then, to
the letter. `ask` is Kubernetes' answer to a case, `answer` is ours.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from kubeauthn._core.authentication.json_text import looks_like_json
from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._core.authentication.nodes import Node
from kubeauthn._core.authentication.token import read_token
from kubeauthn._core.authentication.verify import check_audience, check_times, check_types
from kubeauthn._core.authentication.written_times import written_times
from kubeauthn._core.authentication.yaml_text import read_yaml
from kubeauthn.cel import CelError
from kubeauthn.cel.kubernetes import decode_claims
from kubeauthn.errors import AuthenticationConfigError, NotMine, TokenError

__all__ = [
    "agree",
    "before_expiry",
    "canonical",
    "document_of",
    "first_documents",
    "has_comma_in_tag",
    "has_critical_header",
    "is_another_order",
    "is_empty_name",
    "is_list_of_kind",
    "is_odd_claim",
    "with_document",
    "with_readable_keys",
    "without_escaped_names",
    "without_key_rules",
]

Case = dict[str, Any]
Ask = Callable[[Case], Case]
_NEUTRAL = {"username": {"expression": "'x'"}}
_EMAIL_RULE = {"expression": "has(claims.email_verified) || true"}
"""Always kept, and what a name made of an e-mail address needs."""
_REGISTERED = ("iss", "sub", "aud", "exp", "nbf", "iat", "nonce", "at_hash", "_claim_names", "_claim_sources")
_BAD_SIGNATURE = (
    "oidc: verify token: failed to verify signature: ",
    "oidc: verify token: oidc: id token signed with unsupported algorithm, ",
)
_UNREADABLE = "failed to verify signature: fetching keys oidc: failed to decode keys: "
_MARKER = re.compile(r"[\n\r\x85\u2028](?=---|\.\.\.)")
_PROPERTIES = re.compile(r"\A\s*(?:[&!][^\s,\[\]{}]*\s+)+")  # an anchor, a tag
_IN_BRACKETS = re.compile(r"\ufeff?(\s|#.*\n|---)*[\[{]")
_ESCAPED_NAME = re.compile(r'"([^"]*)__(?:dot|dash|slash|underscores)__(?=[^"]*" *:)')
_INDENTED = re.compile(r"( +)[^ \n]")
_MOST_PLACES = 5
_LAST_BRACKETS = 40
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
        (entry.get("claimMappings") or {}).get("username") or {} for entry in (document_of(case) or {"jwt": []})["jwt"]
    ]
    prefixes = {"" if name.get("prefix") in (None, "-") else name["prefix"] for name in mapped} | {"-"}
    return _claims(case).get(claim, "") in ("", None) and theirs["user"]["username"] in prefixes | {""}


def is_list_of_kind(case: Case, theirs: Case, ours: Case, ask: Ask, answer: Ask) -> bool:
    """A list that `split` and the like made: after `.map(r, r)`, which changes nothing else, they agree with us."""
    document = document_of(case)
    if document is None or "must return a string or a list of strings" not in str(theirs.get("error")):
        return False
    for places in _mapped_lists(document):
        cured = ask(with_document(case, places))
        if (
            agree(cured, ours)
            or is_empty_name(case, cured, ours)
            or is_another_order(with_document(case, places), cured, ours, ask, answer)
        ):
            return True
    return False


def before_expiry(case: Case) -> Case | None:
    """The case of a token at its very `exp`, one second before."""
    expiry = _claims(case).get("exp")
    if not isinstance(expiry, (int, float)) or "now" not in case or expiry // 1 != case["now"]:  # it may be infinite
        return None
    return {**case, "now": case["now"] - 1}


def canonical(case: Case) -> Case | None:
    """The case of a token that has white space in it, or stray bits in the last character of a part, without them."""
    if not case.get("token"):
        return None
    parts = "".join(str(case["token"]).split()).split(".")
    try:
        plain = [_encode(_decode(part)) for part in parts]
    except ValueError:
        plain = parts  # something else is wrong with it, which both have to say
    token = ".".join(plain)
    return {**case, "token": token} if token != case.get("token") else None


def has_critical_header(case: Case, ours: Case) -> bool:
    """We refuse every token whose header has `crit`; an empty one, or null, is nothing to Kubernetes."""
    try:
        head = json.loads(_decode(str(case.get("token")).partition(".")[0]))
    except ValueError:
        return False
    return isinstance(head, dict) and "crit" in head and str(ours.get("error")).startswith(_BAD_SIGNATURE[0])


def with_readable_keys(case: Case, ask: Ask) -> Case | None:
    """The case without the keys that Kubernetes cannot read; None if it can read them all.

    One is enough for it to read none. Each is tried alone.
    """
    cured = dict(case)
    for name, one_set in _key_sets(case):
        alone = [(key, _set_keys(case, name, [key])) for key in one_set["keys"]]
        good = [key for key, trial in alone if _UNREADABLE not in str(ask(trial).get("error"))]
        if len(good) < len(alone):
            cured = _set_keys(cured, name, good)
    return cured if cured != case else None


def without_key_rules(case: Case) -> Case | None:
    """The case with keys that do not say what they are for; None if none did."""
    cured = dict(case)
    for name, one_set in _key_sets(case):
        keys = [
            {member: value for member, value in key.items() if member not in ("use", "key_ops", "alg")}
            for key in one_set["keys"]
            if isinstance(key, dict)
        ]
        cured = _set_keys(cured, name, keys)
    return cured if cured != case else None


def _key_sets(case: Case) -> Iterator[tuple[str, Case]]:
    """The key sets of a case, each with the issuer it is for, which is empty for the one for all."""
    named = {"": case.get("jwks"), **(case.get("jwksByIssuer") or {})}
    for name, one_set in named.items():
        if isinstance(one_set, dict) and isinstance(one_set.get("keys"), list):
            yield name, one_set


def _set_keys(case: Case, name: str, keys: list[Any]) -> Case:
    if not name:
        return {**case, "jwks": {"keys": keys}}
    return {**case, "jwksByIssuer": {**case["jwksByIssuer"], name: {"keys": keys}}}


def first_documents(case: Case) -> Iterator[Case]:
    """The case without what may follow its first document: at a marker, after the bracket that closes a document, or
    where a line has less space before it than the first."""
    text = str(case["config"])
    ends = [match.start() + 1 for match in _MARKER.finditer(text)]
    if _IN_BRACKETS.match(_PROPERTIES.sub("", text)):
        ends += [place + 1 for place, character in enumerate(text) if character in "]}"][-_LAST_BRACKETS:]
    indented = _INDENTED.match(text)
    less = re.compile(f"\n {{0,{len(indented[1]) - 1}}}[^ \n]").search(text, indented.end()) if indented else None
    if less:
        ends.append(less.start() + 1)
    return ({**case, "config": text[:end]} for end in ends if text[end:].strip())


def is_odd_claim(case: Case, theirs: Case, ours: Case) -> bool:
    """A registered claim in other letters or given twice, or a time as a string, and one side refuses the token for
    its claims or does not know it."""
    members = _pairs(case)
    names = [name for name, _ in members]
    odd = any(
        (name.casefold() in _REGISTERED and name not in _REGISTERED)
        or (name in ("exp", "nbf") and isinstance(value, str))
        or (name in _REGISTERED and names.count(name) > 1)
        for name, value in members
    )
    errors = (str(theirs.get("error") or ""), str(ours.get("error") or ""))
    return odd and any(error.startswith("oidc: verify token") or not error for error in errors)


def _pairs(case: Case) -> list[tuple[str, Any]]:
    """The members of the claims, also those that are there twice."""
    try:
        found = json.loads(case.get("claims") or "{}", object_pairs_hook=_Members)
    except ValueError:
        return []
    return found if isinstance(found, _Members) else []


class _Members(list[tuple[str, Any]]):
    pass


def without_escaped_names(case: Case) -> Case | None:
    """The case of claims in which a name looks escaped, with another name there."""
    claims, user = str(case.get("claims") or ""), json.dumps(case.get("user"))
    renamed = [_ESCAPED_NAME.sub(r'"\1escaped_', text) for text in (claims, user)]
    if renamed == [claims, user]:
        return None
    return {**case, "claims": renamed[0], "user": json.loads(renamed[1])}


def has_comma_in_tag(case: Case) -> bool:
    return re.search(r"!\S*[],[]", str(case["config"])) is not None


def _one_check_each(case: Case) -> Iterator[Case]:
    """The case with all but one of its checks and mappings taken away, for each of them."""
    document = document_of(case)
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
            for name in ({"username": {"expression": json.dumps(_prefix(mappings))}},)
            for used in (mappings, _NEUTRAL, name, {**mappings, **name})
        ]
        for one in alone:
            entries = list(document["jwt"])
            entries[number] = one
            yield with_document(case, {**document, "jwt": entries})


def _prefix(mappings: Case) -> str:
    prefix = (mappings.get("username") or {}).get("prefix")
    return prefix if isinstance(prefix, str) and prefix not in ("", "-") else "x"


def _other_times(case: Case) -> Iterator[Case]:
    """The case at a time when the token is good, and with the audiences that the token has."""
    claims = _claims(case)
    for name, step in (("exp", -1), ("nbf", 0)):
        if isinstance(claims.get(name), (int, float)) and abs(claims[name]) < 1e12:
            yield {**case, "now": int(claims[name]) + step}
    document = document_of(case)
    audiences = claims.get("aud")
    if document is not None and audiences:
        wanted = [audiences] if isinstance(audiences, str) else audiences
        entries = [{**entry, "issuer": {**entry["issuer"], "audiences": wanted}} for entry in document["jwt"]]
        yield with_document(case, {**document, "jwt": entries})


def _type_fault(case: Case) -> str:
    """What we would say of the types of the token's claims, if its signature did not come first."""
    try:
        check_types(decode_claims(_payload(case)))
    except (TokenError, CelError) as error:
        return str(error)
    return ""


def _time_fault(case: Case) -> str:
    """What we would say of the token's times, if its audience did not come first."""
    try:
        check_times(written_times(read_token(case["token"])), case["now"])
    except (NotMine, TypeError):  # no token, or none whose times are numbers
        return ""
    except (TokenError, CelError, KeyError) as error:
        return str(error)
    return ""


def _audience_faults(case: Case) -> Iterator[str]:
    """What we would say of the token's audience, for each entry of the configuration."""
    try:
        entries = load_configuration(case["config"]).jwt
        claims = decode_claims(_payload(case))
        check_types(claims)
    except (AuthenticationConfigError, CelError, TokenError):
        return
    for entry in entries:
        try:
            check_audience(claims, entry.issuer)
        except TokenError as error:
            yield str(error)


def _mapped_lists(document: Case) -> Iterator[Case]:
    """The configuration with `.map(r, r)` behind some, or all, of the expressions for groups and extra values."""
    places = range(len(_lists(document)))
    few = places[:_MOST_PLACES]
    for chosen in (*(some for count in range(1, len(few) + 1) for some in combinations(few, count)), places):
        copy = json.loads(json.dumps(document))
        lists = _lists(copy)
        for holder, key in (lists[place] for place in chosen):
            holder[key] = f"dyn({holder[key]}).map(r, r)"
        yield copy


def _lists(document: Case) -> list[tuple[Case, str]]:
    """Where a configuration has an expression for groups or extra values: the object, and the name of the field."""
    found = []
    for entry in document["jwt"]:
        mappings = entry.get("claimMappings") or {}
        found.append((mappings.get("groups") or {}, "expression"))
        found += [(extra, "valueExpression") for extra in mappings.get("extra") or []]
    return [(holder, key) for holder, key in found if holder.get(key)]


def document_of(case: Case) -> Case | None:
    text = str(case["config"])
    try:
        document = json.loads(text) if looks_like_json(text) else _plain(read_yaml(text).root)
    except (ValueError, AuthenticationConfigError):
        return None
    good = isinstance(document, dict) and isinstance(document.get("jwt"), list)
    return document if good and all(isinstance(entry, dict) for entry in document["jwt"]) else None


def _plain(node: Node) -> Any:
    if node.kind == "object":
        return {entry.key: _plain(entry.value) for entry in node.entries}
    return [_plain(item) for item in node.items] if node.kind == "array" else node.value


def with_document(case: Case, document: Case) -> Case:
    return {**case, "config": json.dumps(document)}


def _payload(case: Case) -> str:
    """The claims as they are written; of a token that came without them, as it has them."""
    if case.get("claims") is not None:
        return str(case["claims"])
    try:
        return _decode(str(case.get("token")).split(".")[1]).decode()
    except (IndexError, ValueError):
        return "{}"


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


def _decode(part: str) -> bytes:
    return base64.b64decode(part + "=" * (-len(part) % 4), b"-_", validate=True)


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
