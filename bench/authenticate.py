"""A token, checked from text to user, beside the bare signature check and the JWT libraries that people use.

No cache. The configuration is the one of the KEP with its mappings and rules in CEL; the libraries do the
same checks of signature, issuer, audience and times, without any CEL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bench.measure import Row, interleaved, ratio_row, seconds_per_call
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing._signing import SigningKey

ISSUER = "https://example.com"
AUDIENCE = "my-app"
CONFIGURATION = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://example.com
    audiences: [my-app, other-app]
    audienceMatchPolicy: MatchAny
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.hd == "example.com"', message: the hd claim must be set to example.com}
  - {expression: claims.exp - claims.nbf <= 86400, message: total token lifetime must not exceed 24 hours}
  claimMappings:
    username: {expression: 'claims.username + ":external-user"'}
    groups: {expression: 'claims.roles.split(",")'}
    uid: {claim: sub}
    extra: [{key: example.com/client-name, valueExpression: claims.some_claim}]
  userValidationRules:
  - {expression: "!user.username.startsWith('system:')", message: 'username cannot use the reserved system: prefix'}
  - {expression: "user.groups.all(group, !group.startsWith('system:'))", message: no reserved groups}
"""


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    calls, rounds = (200, 9) if quick else (1000, 41)
    for algorithm, bare_goal in (("RS256", 1.5), ("ES256", 1.25)):
        key = SigningKey.new("key-1", algorithm)
        token = key.sign(claims(), {})
        authenticator = Authenticator(load_configuration(CONFIGURATION), keys={ISSUER: {"keys": [key.jwk()]}})
        ours = lambda a=authenticator, t=token: a.authenticate(t)  # noqa: E731
        assert ours().username == "jane:external-user"
        bare = bare_check(key, token, algorithm)
        readings = interleaved(seconds_per_call(ours, calls), seconds_per_call(bare, calls), rounds)
        yield ratio_row(f"authenticate: {algorithm}", readings, peer_name="cryptography's bare check", goal=bare_goal)
        for name, check in libraries(key, token, algorithm).items():
            readings = interleaved(seconds_per_call(ours, calls), seconds_per_call(check, calls), rounds)
            goal = 0.5 if algorithm == "RS256" else None
            yield ratio_row(f"authenticate: {algorithm}", readings, peer_name=f"{name}, without CEL", goal=goal)
    yield from _issuers(calls, rounds)


def claims() -> dict[str, Any]:
    now = int(time.time())
    return {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "119abc",
        "exp": now + 3600,
        "nbf": now - 60,
        "hd": "example.com",
        "username": "jane",
        "roles": "admin,dev,ops",
        "some_claim": "cli",
    }


def bare_check(key: SigningKey, token: str, algorithm: str) -> Callable[[], None]:
    from base64 import urlsafe_b64decode

    signed, _, encoded = token.rpartition(".")
    signature = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    public: Any = key.private.public_key()
    message = signed.encode()
    if algorithm == "RS256":
        return lambda: public.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    half = len(signature) // 2
    der = encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))
    return lambda: public.verify(der, message, ec.ECDSA(hashes.SHA256()))


def libraries(key: SigningKey, token: str, algorithm: str) -> dict[str, Callable[[], object]]:
    import warnings

    import jwt

    warnings.filterwarnings("ignore", module="authlib")
    warnings.filterwarnings("ignore", message="authlib")
    from authlib.jose import JsonWebKey, JsonWebToken
    from authlib.jose import KeySet as AuthlibKeySet
    from joserfc import jwt as joserfc_jwt
    from joserfc.jwk import KeySet

    document = {"keys": [key.jwk()]}
    public = jwt.PyJWK(key.jwk()).key
    joserfc_keys = KeySet.import_key_set(json.loads(json.dumps(document)))
    rules = joserfc_jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": ISSUER}, aud={"essential": True, "value": AUDIENCE}, exp={"essential": True}
    )
    authlib_keys: AuthlibKeySet = JsonWebKey.import_key_set(json.loads(json.dumps(document)))
    authlib = JsonWebToken([algorithm])
    options = {"iss": {"essential": True, "value": ISSUER}, "aud": {"essential": True, "value": AUDIENCE}}

    return {
        "PyJWT": lambda: jwt.decode(token, public, algorithms=[algorithm], issuer=ISSUER, audience=AUDIENCE),
        "joserfc": lambda: rules.validate(joserfc_jwt.decode(token, joserfc_keys, algorithms=[algorithm]).claims),
        "Authlib": lambda: authlib.decode(token, authlib_keys, claims_options=options).validate(),
    }


def _issuers(calls: int, rounds: int) -> Iterator[Row]:
    """64 issuers cost a token no more than one."""
    key = SigningKey.new("key-1", "RS256")
    entry = CONFIGURATION[CONFIGURATION.index("- issuer:") :]
    many = CONFIGURATION + "".join(entry.replace(ISSUER, f"{ISSUER}/{number}") for number in range(63))
    token = key.sign(claims(), {})
    keys = {ISSUER: {"keys": [key.jwk()]}}
    one, lots = (Authenticator(load_configuration(text), keys=keys) for text in (CONFIGURATION, many))
    readings = interleaved(
        seconds_per_call(lambda: lots.authenticate(token), calls),
        seconds_per_call(lambda: one.authenticate(token), calls),
        rounds,
    )
    yield ratio_row("authenticate: RS256, 64 issuers", readings, peer_name="one issuer", goal=1.05)
