"""Recorded cases as files for a kube-apiserver: hundreds of one-issuer configurations packed into a few.

A file may name an issuer once, and nearly all cases are about the same one. So the cases that have a configuration in
common keep their recorded tokens, and the others get an issuer of their own: the same text with another name of
the same length, signed anew. Every token is used once, because kube-apiserver remembers for ten seconds whom it saw.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import re2
import yaml

from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.server import load_configuration
from kubeauthn.testing._signing import SigningKey, base64url

__all__ = ["FAULTY", "File", "Group", "Plan", "keys", "plan", "resigned"]

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "cases" / "upstream" / "authn.jsonl"
MOST_ISSUERS = 64
NAMES = re2.compile(r"[a-z]{4}[a-z.]*\.example(\.com)?")
"""Issuers whose name is not what the case is about."""
PLAIN_URL = re2.compile(r"[-A-Za-z0-9._~:/?#@!$&'()*+,;=%<>\[\]]*")
FAULTY = "the configuration is faulty"

Case = dict[str, Any]


@dataclass
class Group:
    """Cases of one configuration and one key set."""

    cases: list[Case]
    entries: list[dict[str, Any]]
    issuers: frozenset[str]
    """Every issuer that the configuration or one of the tokens names, without `https://`, which Google leaves out.

    No other group of the file may name one of them.
    """
    number: str = ""
    """Where the tokens are signed anew: what the names of its issuers then begin with."""

    @property
    def tokens(self) -> set[str]:
        return {case["token"] for case in self.cases}

    @property
    def anew(self) -> bool:
        return bool(self.number)

    @property
    def may_be_signed_anew(self) -> bool:
        named = all(NAMES.fullmatch(url.removesuffix("/")) for url in self.issuers)
        return named and all(_is_plainly_signed(case) for case in self.cases)

    @property
    def origins(self) -> list[str]:
        return sorted({"https://" + url.removesuffix("/") for url in self.issuers})

    def renames(self, claim_sources: str) -> dict[str, str]:
        """What is another text when it is signed anew: the numbers of the keys, and the names of the issuers.

        A name gets one of the same length, or, for a claim source, one that can be asked.
        """
        if not self.anew:
            return {}
        sources = {url for case in self.cases for url in case.get("http", ())}
        new = {old: old.replace("://", f"://{self.number}", 1) for old in self.origins}
        new = {old: name[: len("https://1234")] + old[len("https://1234") :] for old, name in new.items()}
        at_sources = {old: f"{claim_sources}/{self.number}" for old in map(_origin, sources)}
        return own_numbers() | new | at_sources


@dataclass
class File:
    """What one kube-apiserver reads."""

    groups: list[Group] = field(default_factory=list)
    issuers: set[str] = field(default_factory=set)

    @property
    def entries(self) -> int:
        return sum(len(group.entries) for group in self.groups)

    def has_room_for(self, group: Group) -> bool:
        fits = self.entries + len(group.entries) <= MOST_ISSUERS
        return fits and (group.anew or not self.issuers & group.issuers)

    def add(self, group: Group) -> None:
        self.groups.append(group)
        if not group.anew:
            self.issuers |= group.issuers


@dataclass
class Plan:
    files: list[File]
    faulty: list[Case]
    left_out: Counter[str]
    recorded_left_out: int
    """Without those that the oracle has found, many of which are about odd times."""

    def summary(self) -> str:
        exact, anew = (
            sum(len(group.cases) for file in self.files for group in file.groups if group.anew is kind)
            for kind in (False, True)
        )
        reasons = ", ".join(f"{number} {reason}" for reason, number in self.left_out.most_common())
        return (
            f"recorded cases on the wire: {exact} with their own token, {anew} signed anew, in {len(self.files)} files;"
            f" {len(self.faulty)} faulty configurations; not {self.left_out.total()}: {reasons}"
        )


@cache
def plan() -> Plan:
    left_out: Counter[str] = Counter()
    recorded_left_out = 0
    faulty: list[Case] = []
    groups: dict[str, Group] = {}
    for case in _cases():
        reason, entries = _served(case)
        if reason == FAULTY:
            faulty.append(case)
        elif entries is None:
            left_out[reason] += 1
            recorded_left_out += not case["name"].startswith("found/")
        else:
            # a claim source is at an address of its own
            own = case["name"] if "http" in case else ""
            key = json.dumps([case["config"], case.get("jwks"), case.get("jwksByIssuer"), own])
            urls = frozenset(entry["issuer"]["url"].removeprefix("https://") for entry in entries)
            group = groups.setdefault(key, Group([], entries, urls))
            group.cases.append(case)
            group.issuers |= _named_issuers(case["token"])
    return Plan(_packed(list(groups.values()), left_out), faulty, left_out, recorded_left_out)


def _packed(groups: list[Group], left_out: Counter[str]) -> list[File]:
    groups.sort(key=lambda group: (group.may_be_signed_anew, -len(group.cases)))
    files = [File() for _ in range(-(-sum(len(group.entries) for group in groups) // MOST_ISSUERS))]
    used: set[str] = set()
    numbers = iter(range(1000, 9999))
    for group in groups:
        needs_claim_source = any("http" in case for case in group.cases)
        fresh = not used & group.tokens and not needs_claim_source
        file = next((file for file in files if file.has_room_for(group)), None) if fresh else None
        if file is None and group.may_be_signed_anew:
            group.number = str(next(numbers))
            file = next((file for file in files if file.has_room_for(group)), None)
        elif not fresh:
            left_out["share a token that cannot be changed"] += len(group.cases)
            continue
        if file is None:
            file = File()
            files.append(file)
        file.add(group)
        used |= set() if group.anew else group.tokens
    return files


def _cases() -> Iterator[Case]:
    for file in (RECORDED / "authn.jsonl", RECORDED / "authn_found.jsonl", SHARED):
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                yield json.loads(line)


def _served(case: Case) -> tuple[str, list[dict[str, Any]] | None]:
    """The `jwt` entries of a case that can be served, or why it cannot."""
    if case.get("kubernetes"):
        return "are about another version", None
    if case["expect"].get("strictDecodeError") or case["expect"].get("configErrors"):
        return ("need other service account issuers", None) if case.get("disallowedIssuers") else (FAULTY, None)
    if not case.get("token"):
        return "have no token", None
    if "now" in case:
        return "need another time of day", None
    try:
        text = case["config"]
        entries = yaml.safe_load(text)["jwt"] or []
        again = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": entries}
        if load_configuration(yaml.safe_dump(again)).jwt != load_configuration(text).jwt:
            return "are about the text of the file", None
    except (AuthenticationConfigError, yaml.YAMLError, KeyError, TypeError):
        return "are about the text of the file", None
    if any(entry["issuer"].get("egressSelectorType") for entry in entries):
        return "need an egress proxy", None
    if not all(PLAIN_URL.fullmatch(entry["issuer"]["url"]) for entry in entries):
        # kube-apiserver looks for the address as the file has it, and Go asks for it as RFC 3986 has it
        return "have an issuer whose discovery kube-apiserver cannot redirect", None
    return "", entries


def _named_issuers(token: str) -> frozenset[str]:
    """The issuer of a token, or what somebody might take for it."""
    try:
        payload = token.split(".")[1]
        text = base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
        claims = json.loads(text).items()
    except (IndexError, binascii.Error, ValueError, RecursionError, AttributeError):
        return frozenset()
    named = {value for name, value in claims if name.lower() == "iss" and isinstance(value, str)}
    return frozenset(value.removeprefix("https://") for value in named)


def _origin(url: str) -> str:
    return "/".join(url.split("/")[:3])


def _is_plainly_signed(case: Case) -> bool:
    if case.get("tamper") or case.get("headerRaw") or case.get("signKey") not in keys() or not case.get("claims"):
        return False
    if not isinstance(case.get("header"), dict):
        return False
    given = case.get("jwks")
    if given not in (None, "default") and case["expect"]["authenticated"]:
        listed = json.dumps(given)
        if not any(number in listed for number in own_numbers()):
            return False  # the key is written in another way than everywhere else
    # made again with the recorded parts it must be the recorded token, up to the signature
    signed, _, _ = case["token"].rpartition(".")
    return signed == _signed_part(case["header"], case["claims"])


def _signed_part(header: dict[str, Any], claims: str) -> str:
    head = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    return f"{base64url(head)}.{base64url(claims.encode())}"


# -- keys of our own, with the names of the recorded ones ----------------------------------------------


@cache
def recorded_keys() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((RECORDED / "jwks.json").read_text(encoding="utf-8"))
    return document


@cache
def keys() -> dict[str, SigningKey]:
    """For every recorded key, whose private half nobody has, one of the same kind and name."""
    curves = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
    return {
        key["kid"]: SigningKey.new(key["kid"], curves.get(key.get("crv"), "RS256"))
        for key in recorded_keys()["keys"]
        if key["kty"] in ("RSA", "EC") and key.get("crv", "P-256") in curves
    }


@cache
def own_numbers() -> dict[str, str]:
    """A number of a recorded key → that of our own key of the same name."""
    return {
        key[name]: keys()[key["kid"]].jwk()[name]
        for key in recorded_keys()["keys"]
        for name in ("n", "x", "y")
        if key["kid"] in keys() and name in key
    }


def resigned(header: dict[str, Any], claims: str, name: str, alg: str | None) -> str:
    """A token over exactly these texts, with our own key of this name."""
    key = keys()[name]
    signer = SigningKey(name, alg or header.get("alg") or key.alg, key.private)
    signed = _signed_part(header, claims)
    return f"{signed}.{base64url(signer._signature(signed.encode()))}"
