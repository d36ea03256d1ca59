"""Key sets as issuers publish them, and as they should not."""

from __future__ import annotations

import random
from typing import Any

from kubeauthn.testing._signing import SigningKey, base64url

__all__ = ["odd_key_set"]


def odd_key_set(source: random.Random, keys: list[SigningKey]) -> dict[str, Any]:
    """The public halves of these keys, of which one or two may be odd, among others."""
    jwks: list[Any] = [key.jwk() for key in keys]
    for _ in range(source.choice((1, 1, 2))):
        place = source.randrange(len(jwks))
        jwks[place] = _odder(source, dict(jwks[place]))
    if source.random() < 0.3:
        jwks.insert(source.randint(0, len(jwks)), source.choice(_STRANGERS))
    if source.random() < 0.1:
        jwks.append(jwks[0])
    source.shuffle(jwks)
    made: dict[str, Any] = {"keys": jwks}
    if source.random() < 0.1:
        made |= source.choice(({"foo": 1}, {"Keys": []}, {"keys": []}, {"keys": None}, {"kid": "k1"}))
    return made


def _odder(source: random.Random, jwk: dict[str, Any]) -> dict[str, Any]:
    number = "n" if "n" in jwk else source.choice("xy")
    if not isinstance(jwk.get(number), str):
        return jwk  # odd enough
    return source.choice(
        (
            _without(jwk, "kid"),
            _without(jwk, "alg"),
            _without(jwk, "use"),
            {**jwk, "kid": ""},
            {**jwk, "kid": "other"},
            {**jwk, "kid": "k2"},
            {**jwk, "kid": None},
            {**jwk, "use": "enc"},
            {**jwk, "use": ""},
            {**jwk, "use": None},
            {**jwk, "use": "x"},
            {**jwk, "key_ops": ["verify"]},
            {**jwk, "key_ops": ["sign"]},
            {**jwk, "key_ops": []},
            {**jwk, "alg": "RS512"},
            {**jwk, "alg": "RSA-OAEP"},
            {**jwk, "alg": ""},
            {**jwk, "alg": None},
            {**jwk, "x5t": "AAAA"},
            {**jwk, "x5u": "https://x.example"},
            {**jwk, "x5c": []},
            {**jwk, "ext": True},
            {**jwk, "foo": [1]},
            {**jwk, "KID": "other"},
            {**jwk, number: "A" + jwk[number]},
            {**jwk, number: "AA" + jwk[number]},
            {**jwk, number: jwk[number] + "="},
            {**jwk, number: jwk[number][:-1]},
            {**jwk, number: ""},
            {**jwk, number: None},
            {**jwk, number: 1},
            _without(jwk, number),
            {**jwk, "kty": "oct"},
            {**jwk, "kty": "rsa"},
            {**jwk, "kty": ""},
            _without(jwk, "kty"),
            {**jwk, "crv": "P-521"},
            {**jwk, "crv": "P-256K"},
            {**jwk, "crv": None},
            {**jwk, "e": "AQ"},
            {**jwk, "e": "Aw"},
            {**jwk, "e": ""},
            {**jwk, "e": "AAEAAQ"},
            {**jwk, "e": "AQAAAAE"},
            {**jwk, "kid": 1},
            {**jwk, "kid": "k1\u0000"},
        )
    )


def _without(jwk: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in jwk.items() if key != name}


_STRANGERS: tuple[Any, ...] = (
    {"kty": "oct", "kid": "s1", "k": base64url(b"secret")},
    {"kty": "OKP", "crv": "Ed25519", "kid": "o1", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    {"kty": "OKP", "crv": "X25519", "kid": "o2", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
    {"kty": "EC", "crv": "secp256k1", "kid": "e9", "x": "AA", "y": "AA"},
    {"kty": "AKP", "alg": "ML-DSA-44", "kid": "a1", "pub": "AA"},
    {"kty": "RSA", "kid": "small", "n": "AQ", "e": "AQAB"},
    {"kty": "RSA", "kid": "none"},
    {},
    None,
    "k",
    1,
    [],
)
