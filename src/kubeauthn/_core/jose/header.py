"""The protected header of a token: its algorithm and key id. Everything that would bring its own key is ignored."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from kubeauthn._core.jose.go_json import kind, syntax_error

_PRIVATE_MEMBERS = ("d", "p", "q", "dp", "dq", "qi", "oth", "k")

_SHOWN = 200
"""Characters of a member of the wrong type that a reason shows."""


class Header(NamedTuple):
    algorithm: str
    kid: str
    critical: bool
    """It names extensions that must be understood; none is."""
    ignored: tuple[str, ...]
    """Members that would bring a key or say where to find one: they are never used."""


class BadHeader(ValueError):
    """No header, in the words of the decoder that kube-apiserver uses."""


def read_header(raw: bytes) -> Header:
    """Raises BadHeader."""
    members = _members(raw)
    algorithm = _text(members, "alg", "algorithm")
    kid = _text(members, "kid", "key ID")
    _text(members, "nonce", "nonce")
    _check_embedded_key(members.get("jwk"))
    _check_chain(members.get("x5c"))
    ignored = tuple(name for name in ("jku", "jwk", "x5u", "x5c") if name in members)
    return Header(algorithm, kid, "crit" in members, ignored)


def _members(raw: bytes) -> dict[str, Any]:
    if not raw:
        return {}
    try:
        decoded = _DECODER.decode(raw.decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        raise BadHeader(syntax_error(error)) from None
    except RecursionError:
        raise BadHeader("exceeded max depth") from None
    if decoded is None:
        return {}
    if not isinstance(decoded, dict):
        raise BadHeader(f"json: cannot unmarshal {kind(decoded)} into Go value of type jose.rawHeader")
    return decoded


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadHeader(f"json: duplicate key '{name}' in object")
            seen.add(name)
    return members


def _no_constant(text: str) -> None:
    raise BadHeader(f"invalid character '{text[0]}' looking for beginning of value")


# Floats, because an integer of 100,000 digits would cost much as an int.
_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=float)


def _text(members: dict[str, Any], name: str, title: str) -> str:
    value = members.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        fault = f"json: cannot unmarshal {kind(value)} into Go value of type string: {_go(value)}"
        raise BadHeader(f"failed to unmarshal {title}: {fault}")
    return value


def _check_embedded_key(jwk: object) -> None:
    if jwk is None:
        return
    if not isinstance(jwk, dict):
        raise BadHeader(
            f"failed to unmarshal JWK: json: cannot unmarshal {kind(jwk)} into Go value of type jose.rawJSONWebKey"
        )
    if jwk.get("kty") not in ("RSA", "EC", "OKP", "oct"):
        shown = jwk.get("kty") or ""
        raise BadHeader(f"failed to unmarshal JWK: go-jose/go-jose: unknown json web key type '{shown}': {_go(jwk)}")
    if jwk["kty"] == "oct" or any(name in jwk for name in _PRIVATE_MEMBERS):
        raise BadHeader("go-jose/go-jose: invalid embedded jwk, must be public key")


def _check_chain(chain: object) -> None:
    if chain is None:
        return
    if not isinstance(chain, list) or not all(isinstance(entry, str) for entry in chain):
        fault = f"json: cannot unmarshal {kind(chain)} into Go value of type []string: {_go(chain)}"
        raise BadHeader(f"failed to unmarshal x5c header: {fault}")


def _go(value: object) -> str:
    """The value's JSON as Go's %#v prints it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        text = json.dumps(value, separators=(",", ":"))
    except RecursionError:
        text = "…"
    return json.dumps(text if len(text) <= _SHOWN else text[:_SHOWN] + "…", ensure_ascii=False)
