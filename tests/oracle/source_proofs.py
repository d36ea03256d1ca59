"""Proofs for tokens whose claims are elsewhere: what a case becomes when a meant difference cannot show in it.

Where the claims have to be changed for that, the token is signed anew, with a key that joins the issuer's. `ask` is
Kubernetes' answer to a case.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import cache
from http import HTTPStatus
from itertools import product
from typing import Any, NamedTuple

from kubeauthn._core.authentication.claim_sources import NAMES, OWN_CLAIMS, SOURCES
from kubeauthn.server.distributed import _phrase
from kubeauthn.testing._signing import SigningKey
from tests.oracle.proofs import canonical, document_of, with_document
from tests.oracle.token_texts import signed

__all__ = ["Cure", "cures", "in_our_words", "is_of_unavailable_claim", "with_status_number"]

Case = dict[str, Any]
Ask = Callable[[Case], Case]
_EXPANDING = "oidc: could not expand distributed claims: "
_STATUS = "error while getting distributed claim JWT: "
_INSIDE = "https://inside.example/"
_MEMBERS = ("endpoint", "access_token", "jwt")
_FILLINGS = ('"x"', "[]", "true", "null")
"""For claims that cannot be had, where what they are must not matter."""


class Cure(NamedTuple):
    """A case in which a meant difference cannot show. Only the answer of one side may have changed by that."""

    name: str
    case: Case
    changes_theirs: bool


class _Number(str):
    """As it is written."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """The members of an object as they are written, also those that are there twice."""


def cures(case: Case, ask: Ask) -> Iterator[Cure]:
    """The case without one meant difference, for each that it has."""
    members = _members(case)
    if members is None:
        return
    exact = _exact(members)
    if exact != members:
        yield Cure("exact claims", _signed_anew(case, exact), changes_theirs=True)
        return
    claims = dict(members)
    inner = _inner_tokens(claims)
    if inner:
        yield Cure("claim sources", _outside(case, claims, inner), changes_theirs=True)
        return
    replies = case.get("http") or {}
    for url, reply in replies.items():
        if (plain := _plain(reply)) != reply:
            yield Cure("canonical", {**case, "http": {**replies, url: plain}}, changes_theirs=False)
    if any(_ends_now(reply, case) for reply in replies.values()):
        yield Cure("exact claims", {**case, "now": case["now"] - 1}, changes_theirs=False)
    without = _without_own_groups(case, claims)
    if without is not None:
        yield Cure("claim sources", without, changes_theirs=True)
    for inlined in _inlined(case, claims, ask):
        yield Cure("claim sources", inlined, changes_theirs=True)


def is_of_unavailable_claim(case: Case, ours: Case, ask: Ask) -> bool:
    """We refuse the token because a claim that the configuration uses cannot be had, and Kubernetes says the very same
    where it is the groups' claim."""
    members = _members(case)
    if members is None or not str(ours.get("error")).startswith(_EXPANDING):
        return False
    used = [name for name in _object(dict(members).get(NAMES)) if _is_used(name, document_of(case))]
    return any(ask(_asked_for(case, name)).get("error") == ours["error"] for name in used)


def _is_used(name: str, part: Any) -> bool:
    """Whether a part of the configuration names the claim; an address that is a name asks whether it is verified."""
    if isinstance(part, dict):
        return any(_is_used(name, inner) for inner in part.values())
    if isinstance(part, list):
        return any(_is_used(name, inner) for inner in part)
    if name == "email_verified" and part == "email":
        return True
    return isinstance(part, str) and (name in part or json.dumps(name, ensure_ascii=False) in part)


def in_our_words(case: Case, ours: Case) -> Case:
    """Our answer about what an endpoint gave, where it was a token in the token before the cure."""
    error = str(ours.get("error"))
    for url in case.get("http") or ():
        if url.startswith(_INSIDE):
            error = error.replace(f"endpoint {url} failed", "token in the token failed")
            error = error.replace(f'distributed claim endpoint "{url}"', "aggregated claim source")
    return {**ours, "error": error} if "error" in ours else ours


def with_status_number(case: Case, answer: Case) -> Case:
    """The oracle's network says a status in words alone, where the wire has the number before them. Words that are not
    ours stay as they are, and differ."""
    before, told, words = str(answer.get("error")).partition(_STATUS)
    if not told or not before.startswith(_EXPANDING):
        return answer
    for reply in (case.get("http") or {}).values():
        status = int(reply.get("status") or 200)
        if status > HTTPStatus.IM_USED and words == _phrase(status):
            return {**answer, "error": f"{before}{_STATUS}{status} {words}".rstrip()}
    return answer


# -- the token's own claims ------------------------------------------------------------------------------


def _members(case: Case) -> _Members | None:
    """Of a token that says where claims are, in whatever letters."""
    text = str(case.get("claims"))
    if (
        not any(name in text.casefold() for name in (NAMES, SOURCES))
        or not case.get("token")
        or not isinstance(case.get("jwks"), dict)
    ):
        return None
    found = _read(text)
    return found if isinstance(found, _Members) else None


def _read(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_Members, parse_int=_Number, parse_float=_Number)
    except ValueError:
        return None


def _written(value: Any) -> str:
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, _Members):
        return "{" + ", ".join(f"{json.dumps(name)}: {_written(inner)}" for name, inner in value) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(value)


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, _Members) else {}


def _exact(members: _Members) -> _Members:
    """As we read them: each name once, the last time, and none that is another's in other letters."""
    kept = _last(
        [
            (name, value)
            for name, value in members
            if name in (NAMES, SOURCES) or name.casefold() not in (NAMES, SOURCES)
        ]
    )
    for place, (name, value) in enumerate(kept):
        if name == NAMES and isinstance(value, _Members):
            kept[place] = name, _last(value)
        if name == SOURCES and isinstance(value, _Members):
            kept[place] = name, _Members((source, _exact_source(inner)) for source, inner in _last(value))
    return kept


def _exact_source(source: Any) -> Any:
    if not isinstance(source, _Members):
        return source
    return _last(
        [(name, value) for name, value in source if name.casefold() not in _MEMBERS or name in (*_MEMBERS[:2], "JWT")]
    )


def _last(members: list[tuple[str, Any]]) -> _Members:
    return _Members(dict(members).items())


@cache
def _key() -> SigningKey:
    return SigningKey.new("proof", "ES256")


def _signed_anew(case: Case, claims: _Members | dict[str, Any]) -> Case:
    text = _written(claims if isinstance(claims, _Members) else _Members(claims.items()))
    keys = [one for one in case["jwks"]["keys"] if one.get("kid") != "proof"]
    token = signed(_key(), text, {"alg": "ES256", "kid": "proof"})
    return {**case, "claims": text, "token": token, "jwks": {**case["jwks"], "keys": [*keys, _key().jwk()]}}


# -- what is elsewhere ------------------------------------------------------------------------------------


def _inner_tokens(claims: Case) -> dict[str, str]:
    """The tokens in the token, by their sources."""
    found = {}
    for name, source in _object(claims.get(SOURCES)).items():
        members = _object(source)
        if isinstance(members.get("JWT"), str) and members["JWT"] and not members.get("endpoint"):
            found[name] = members["JWT"]
    return found


def _outside(case: Case, claims: Case, inner: dict[str, str]) -> Case:
    """The case in which these tokens are got from endpoints."""
    http, sources = dict(case.get("http") or {}), _object(claims[SOURCES])
    for number, (name, token) in enumerate(inner.items()):
        url = f"{_INSIDE}{number}"
        http[url] = {"body": token}
        sources[name] = _Members([("endpoint", url)])
    return _signed_anew({**case, "http": http}, {**claims, SOURCES: _Members(sources.items())})


def _without_own_groups(case: Case, claims: Case) -> Case | None:
    """The case without groups, if they are a claim that a token says itself, and this one does not."""
    document = document_of(case)
    asked = [name for name in _object(claims.get(NAMES)) if name in OWN_CLAIMS and name not in claims]
    if document is None or not any(name == _groups_claim(entry) for entry in document["jwt"] for name in asked):
        return None
    entries = []
    for entry in document["jwt"]:
        kept = {field: mapped for field, mapped in entry["claimMappings"].items() if field != "groups"}
        entries.append({**entry, "claimMappings": kept})
    return with_document(case, {**document, "jwt": entries})


def _groups_claim(entry: Case) -> str | None:
    mapping = (entry.get("claimMappings") or {}).get("groups") or {}
    name: str | None = mapping.get("claim")
    return name


def _inlined(case: Case, claims: Case, ask: Ask) -> Iterator[Case]:
    """The case of a token that holds what is elsewhere, but for the claim that Kubernetes gets itself; then with that
    one, too, for the proofs that take the groups' mapping away.

    What cannot be had is filled with one thing or another.
    """
    document = document_of(case)
    if document is None:
        return
    groups = {_groups_claim(entry) for entry in document["jwt"]}
    held: dict[str, Any] = {}
    of_groups: dict[str, Any] = {}
    missing = []
    for name, source in _object(claims.get(NAMES)).items():
        endpoint = _object(_object(claims.get(SOURCES)).get(source)).get("endpoint")
        if name in claims or name in OWN_CLAIMS or not endpoint or not isinstance(endpoint, str):
            continue
        if not str(ask(_asked_for(case, name)).get("error")).startswith(_EXPANDING):
            value = _payload(case["http"][endpoint]).get(name)
            (of_groups if name in groups else held)[name] = value
        elif name not in groups:
            missing.append(name)
    for fillings in product(*(_FILLINGS for _ in missing[:3])):
        filled = {name: _read(filling) for name, filling in zip(missing, fillings, strict=False)}
        if held or filled:
            yield _signed_anew(case, {**claims, **held, **filled})
        if of_groups:
            yield _signed_anew(case, {**claims, **held, **filled, **of_groups})


def _asked_for(case: Case, name: str) -> Case:
    """The case in which this is the groups' claim, and nothing else matters."""
    document = document_of(case) or {"jwt": []}
    mappings = {"username": {"expression": "'x'"}, "groups": {"claim": name, "prefix": ""}}
    entries = [{"issuer": entry.get("issuer"), "claimMappings": mappings} for entry in document["jwt"]]
    return with_document(case, {**document, "jwt": entries})


# -- what sources answer ------------------------------------------------------------------------------------


def _plain(reply: Case) -> Case:
    """With the one text that stands for its token."""
    body = str(reply.get("body", ""))
    plain = canonical({"token": body}) if body.count(".") == 2 else None
    return {**reply, "body": plain["token"]} if plain else reply


def _ends_now(reply: Case, case: Case) -> bool:
    """To the second, which is as fine as both sides read it."""
    ends = _payload(reply).get("exp")
    try:
        return isinstance(ends, _Number) and int(float(ends)) == case.get("now")
    except OverflowError:
        return False


def _payload(reply: Case) -> dict[str, Any]:
    parts = "".join(str(reply.get("body", "")).split()).split(".")
    if len(parts) != 3:
        return {}
    try:
        return _object(_read(base64.urlsafe_b64decode(parts[1] + "===").decode()))
    except ValueError:
        return {}
