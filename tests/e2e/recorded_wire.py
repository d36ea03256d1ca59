"""A file of recorded cases, made ready for the wire: issuers that answer, one configuration, a token for each case."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

import yaml

from kubeauthn._core.jose.keys import KeySet
from kubeauthn.errors import KeySetError
from tests.e2e.canned_issuers import CannedIssuers
from tests.e2e.recorded_cases import Case, File, Group, recorded_keys, resigned

__all__ = ["Ready", "prepare"]


@dataclass(frozen=True)
class Ready:
    """What is asked and what was recorded, the names of the issuers exchanged in both."""

    token: str
    expected: list[dict[str, Any]]
    """The recorded answer; several where the real one varied."""
    ours: dict[str, Any] | None
    """What we say instead, on purpose."""
    has_keys: bool
    """Whether each issuer has a key that we use: a set without one is no key set to us, and is asked for again."""


def prepare(file: File, issuers: CannedIssuers) -> tuple[str, dict[str, Ready]]:
    """The configuration, and what to ask, by the name of the case."""
    entries: list[dict[str, Any]] = []
    ready: dict[str, Ready] = {}
    for number, group in enumerate(file.groups):
        names = group.renames(f"{issuers.url}/source")
        for index, entry in enumerate(group.entries):
            entries.append(_reachable(entry, group, names, issuers, f"/{id(file)}/{number}/{index}"))
        for case in group.cases:
            _put_claim_sources(case, names, issuers)
            has_keys = all(_is_usable(_published(entry, case)) for entry in group.entries)
            ready[case["name"]] = _ready(case, group.anew, names, has_keys)
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": entries}
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True), ready


def _reachable(
    entry: dict[str, Any], group: Group, names: dict[str, str], issuers: CannedIssuers, path: str
) -> dict[str, Any]:
    """The same entry, with an issuer that can be asked."""
    jwks = _renamed(_published(entry, group.cases[0]), names)
    changed = _renamed(entry, names)
    at = issuers.put_issuer(path, changed["issuer"]["url"], jwks)
    where = {"discoveryURL": at, "certificateAuthority": issuers.ca.certificate_pem.decode()}
    return {**changed, "issuer": {**changed["issuer"], **where}}


def _published(entry: dict[str, Any], case: Case) -> Any:
    given = (case.get("jwksByIssuer") or {}).get(entry["issuer"]["url"], case.get("jwks"))
    return recorded_keys() if given in (None, "default") else given


def _is_usable(jwks: Any) -> bool:
    try:
        return len(KeySet.from_dict(jwks)) > 0
    except KeySetError:
        return False


def _ready(case: Case, anew: bool, names: dict[str, str], has_keys: bool) -> Ready:
    variants = case.get("variants") or case["expect"].get("variants") or []
    expected = [case["expect"], *(json.loads(one) if isinstance(one, str) else one for one in variants)]
    token = case["token"]
    if anew:
        token = resigned(case["header"], _renamed(case["claims"], names), case["signKey"], case.get("signAlg"))
    return Ready(token, _renamed(expected, names), _renamed(case.get("ours"), names), has_keys)


def _put_claim_sources(case: Case, names: dict[str, str], issuers: CannedIssuers) -> None:
    for url, reply in case.get("http", {}).items():
        path = _renamed(url, names).removeprefix(issuers.url)
        body = str(reply.get("body", ""))
        if url in case.get("httpSign", {}):
            head = body.split(".")[0]
            header = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
            body = resigned(header, _renamed(case["httpSign"][url], names), header["kid"], None)
        content_type = reply.get("contentType") or "application/json"
        issuers.put(path, _renamed(body, names), content_type, reply.get("status") or 200)


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in names.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, dict):
        return {_renamed(key, names): _renamed(one, names) for key, one in value.items()}
    return [_renamed(one, names) for one in value] if isinstance(value, list) else value
