"""Tokens that count no more although they are signed and have not expired: an extension of ours, not Kubernetes'.

A revocation names one token (`jti`), a subject of an issuer, or a whole issuer; the last two end at a time, so that
what is issued later is good again. What cannot be told, such as when a token without `iat` was issued, is revoked.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, TypeVar

from kubeauthn._core import rfc3339
from kubeauthn._core.record import record
from kubeauthn._core.yaml_document import YamlSyntaxError, parse_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

FILE_BYTES = 8 << 20
"""Some 50,000 tokens. Where more are revoked at a time, revoke the issuer, or use Redis."""

Named = TypeVar("Named")

FOREVER = float("inf")
_FIELDS = frozenset(("tokenID", "issuer", "subject", "issuedUntil"))


@record(frozen=True, slots=True)
class TokenIdentity:
    """What revocations ask about a token that was found good. `issued_at` is None where it does not say."""

    issuer: str
    token_id: str = ""
    subject: str = ""
    issued_at: float | None = None


@record(frozen=True, slots=True)
class Revocation:
    """One entry. With a `token_id`: that token, of `issuer` or, where that is "", of any.

    Without: what `issuer` issued up to and including `issued_until`, to `subject` or, where that is "", to anybody.
    """

    issuer: str = ""
    token_id: str = ""
    subject: str = ""
    issued_until: float = FOREVER


def identity_of(issuer: str, claims: dict[str, Any]) -> TokenIdentity:
    """From verified claims. Raises ValueError: a `jti` that is a number would never be found in a list."""
    # Not the claims' own `get`: that one stops at a claim that cannot be read.
    token_id, subject, issued_at = (dict.get(claims, name) for name in ("jti", "sub", "iat"))
    for name, value in (("jti", token_id), ("sub", subject)):
        if value is not None and type(value) is not str:
            raise ValueError(f"{name} is not a string")
    if issued_at is not None and type(issued_at) is not float:
        raise ValueError("iat is not a number")
    return TokenIdentity(issuer, token_id or "", subject or "", issued_at)


class RevocationList:
    """Entries, ready to be looked up. It cannot be changed."""

    __slots__ = ("_issuers", "_subjects", "_tokens")

    def __init__(self, entries: Iterable[Revocation] = ()) -> None:
        self._tokens: set[tuple[str, str]] = set()
        self._subjects: dict[tuple[str, str], float] = {}
        self._issuers: dict[str, float] = {}
        for entry in entries:
            if entry.token_id:
                self._tokens.add((entry.issuer, entry.token_id))
            elif entry.subject:
                key = (entry.issuer, entry.subject)
                self._subjects[key] = max(entry.issued_until, self._subjects.get(key, entry.issued_until))
            else:
                self._issuers[entry.issuer] = max(
                    entry.issued_until, self._issuers.get(entry.issuer, entry.issued_until)
                )

    def __len__(self) -> int:
        return len(self._tokens) + len(self._subjects) + len(self._issuers)

    def with_more(self, other: RevocationList) -> RevocationList:
        """One that revokes what either of them does."""
        both = RevocationList()
        both._tokens = self._tokens | other._tokens
        both._subjects = _later(self._subjects, other._subjects)
        both._issuers = _later(self._issuers, other._issuers)
        return both

    def reason(self, identity: TokenIdentity) -> str:
        """Why the token counts no more; "" if it does."""
        issuer = identity.issuer
        if identity.token_id and (
            (issuer, identity.token_id) in self._tokens or ("", identity.token_id) in self._tokens
        ):
            return BY_ID
        subjects_end = self._subjects.get((issuer, identity.subject))
        if subjects_end is not None and was_issued_until(identity, subjects_end):
            return BY_SUBJECT
        issuers_end = self._issuers.get(issuer)
        return BY_ISSUER if issuers_end is not None and was_issued_until(identity, issuers_end) else ""


def _later(ends: dict[Named, float], others: dict[Named, float]) -> dict[Named, float]:
    return {**ends, **{named: max(end, ends.get(named, end)) for named, end in others.items()}}


BY_ID = "the token is revoked by its id"
BY_SUBJECT = "the tokens of its subject are revoked"
BY_ISSUER = "the tokens of its issuer are revoked"


def was_issued_until(identity: TokenIdentity, moment: float) -> bool:
    """Also in that very second: `iat` is mostly whole, and a token of a moment before must not slip through."""
    return identity.issued_at is None or int(identity.issued_at) <= moment


# -- the file ---------------------------------------------------------------------------------------------------------


def read_list(text: str) -> list[Revocation]:
    """The entries of a file, JSON or YAML. Raises ValueError that names the entry and its fault, never its values."""
    document = _document(text)
    if document is None:
        return []
    if type(document) is not dict or set(document) - {"revocations"}:
        raise ValueError("expected an object with the field revocations and no other")
    entries = document.get("revocations") or []
    if type(entries) is not list:
        raise ValueError("revocations: expected a list")
    return [_entry(number, entry) for number, entry in enumerate(entries)]


def write_list(entries: Iterable[Revocation]) -> str:
    """The same as JSON, one entry per line: quick to read again, and kind to those who compare versions."""
    lines = ",\n".join(f"  {json.dumps(_fields(entry))}" for entry in entries)
    return f'{{"revocations": [\n{lines}\n]}}\n' if lines else '{"revocations": []}\n'


def _document(text: str) -> Any:
    if text.lstrip(" \t\r\n").startswith("{"):
        try:
            return json.loads(text, object_pairs_hook=_without_duplicates)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except json.JSONDecodeError as error:
            raise ValueError(f"line {error.lineno}: not JSON") from None
    try:
        documents = list(parse_all(text))
    except YamlSyntaxError as error:
        raise ValueError(f"line {error.line}: {error.message}" if error.line else error.message) from None
    if len(documents) > 1:
        raise ValueError("expected one document")
    for document in documents:
        for path, fault in document.faults:
            raise ValueError(f"{'.'.join(map(str, path))} {fault}")
    return documents[0].value if documents else None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a field is given twice")
    return made


def _entry(number: int, entry: object) -> Revocation:
    place = f"revocations[{number}]"
    if not isinstance(entry, dict):
        raise ValueError(f"{place}: expected an object")
    if set(entry) - _FIELDS:
        raise ValueError(f"{place}: expected the fields {', '.join(sorted(_FIELDS))} and no other")
    texts = {}
    for name in _FIELDS:
        value = entry.get(name, "")
        if type(value) is not str or (name in entry and not value):
            raise ValueError(f"{place}.{name}: expected a text that is not empty")
        texts[name] = value
    return checked(texts["tokenID"], texts["issuer"], texts["subject"], texts["issuedUntil"], place)


def checked(token_id: str, issuer: str, subject: str, issued_until: str, place: str) -> Revocation:
    """One entry of texts, "" where there is none. Raises ValueError."""
    if token_id and (subject or issued_until):
        raise ValueError(f"{place}: with tokenID there is no subject and no issuedUntil")
    if not token_id and not issuer:
        raise ValueError(f"{place}: expected a tokenID or an issuer")
    until = FOREVER
    if issued_until:
        try:
            until = rfc3339.parse(issued_until)
        except ValueError:
            raise ValueError(f"{place}.issuedUntil: expected an RFC 3339 time such as 2026-01-31T09:00:00Z") from None
    return Revocation(issuer, token_id, subject, until)


def _fields(entry: Revocation) -> dict[str, str]:
    until = "" if entry.issued_until == FOREVER else rfc3339.format(entry.issued_until)
    fields = {"tokenID": entry.token_id, "issuer": entry.issuer, "subject": entry.subject, "issuedUntil": until}
    return {name: value for name, value in fields.items() if value}


# -- a shared store ---------------------------------------------------------------------------------------------------


def store_keys(identity: TokenIdentity, prefix: str) -> list[str]:
    """Where a store holds what concerns this token, in the order that `reason_in_store` reads."""
    return [
        store_key(Revocation(identity.issuer, token_id=identity.token_id), prefix),
        store_key(Revocation(token_id=identity.token_id), prefix),
        store_key(Revocation(identity.issuer, subject=identity.subject), prefix),
        store_key(Revocation(identity.issuer), prefix),
    ]


def store_key(entry: Revocation, prefix: str) -> str:
    """Hashed, so that names of any length and with any character fit, and who reads the store sees no names."""
    if entry.token_id:
        return f"{prefix}token:{_digest(entry.issuer, entry.token_id)}"
    if entry.subject:
        return f"{prefix}subject:{_digest(entry.issuer, entry.subject)}"
    return f"{prefix}issuer:{_digest(entry.issuer)}"


def store_value(entry: Revocation) -> str:
    """Seconds since 1970, or `all`."""
    return "all" if entry.token_id or entry.issued_until == FOREVER else str(int(entry.issued_until))


def reason_in_store(identity: TokenIdentity, values: list[bytes | None]) -> str:
    """As `RevocationList.reason`, from what a store holds under `store_keys`. A value that cannot be read revokes."""
    of_issuer, of_any, of_subject, of_all = values
    if identity.token_id and (of_issuer is not None or of_any is not None):
        return BY_ID
    if identity.subject and of_subject is not None and was_issued_until(identity, _moment(of_subject)):
        return BY_SUBJECT
    return BY_ISSUER if of_all is not None and was_issued_until(identity, _moment(of_all)) else ""


def _moment(value: bytes) -> float:
    return float(value) if value.isdigit() and len(value) < 16 else FOREVER


def _digest(issuer: str, name: str = "") -> str:
    # An issuer is a URL and holds no NUL, so no two pairs give one text.
    return sha256(f"{issuer}\0{name}".encode("utf-8", "surrogatepass")).hexdigest()
