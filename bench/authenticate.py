"""A token, checked from text to user, beside kube-apiserver's own code, the bare signature check and JWT libraries.

No cache, except where a row says so; one core. What is compared is processor time. kube-apiserver's code gets the same
configuration, keys and tokens; the libraries do the same checks of signature, issuer, audience and times, without any
CEL.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from bench import peer
from bench.measure import Row, above_row, cpu_per_call, growth_rows, in_turns, ratio_row
from bench.tokens import (
    AUDIENCE,
    EXAMPLE,
    ISSUER,
    PLAIN,
    each_in_turn,
    for_kubernetes,
    issuers,
    signed,
)
from kubeauthn._core.authentication.verdict import Authenticated
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.server.cache import CachedResults
from kubeauthn.testing._signing import SigningKey

KUBERNETES = "kube-apiserver's code"
BARE = "cryptography's bare check"
BARE_GOALS = {"RS256": 1.5, "ES256": 1.25}
KUBERNETES_GOALS = {"RS256": 1 / 2, "ES256": 1 / 1.3}
LIBRARY_GOALS = {"RS256": 0.5}
ABOVE_GOAL = 1 / 3
SIZES = (1, 10, 100, 1000)

Readers = dict[str, Callable[[], float]]


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    calls, rounds = (100, 5) if quick else (800, 41)
    limits = physical_limits()
    with peer.started() as kubernetes:
        for algorithm in ("RS256", "PS256", "ES256"):
            yield from _algorithm_rows(algorithm, kubernetes, calls, rounds, limits)
        for name, text, groups in (
            ("plain mappings", PLAIN, 3),
            ("200 groups", EXAMPLE, 200),
            ("64 issuers", issuers(64), 3),
        ):
            key = SigningKey.new("key-1", "RS256")
            tokens = signed(key, groups=groups, listed=text is PLAIN)
            readers = {"ours": ours(text, key, tokens, calls)}
            if kubernetes:
                readers[KUBERNETES] = theirs(kubernetes, name, text, key, tokens, calls)
            if name == "64 issuers":
                readers["one issuer"] = ours(EXAMPLE, key, tokens, calls)
            readings = in_turns(readers, rounds)
            for other in readers.keys() - {"ours"}:
                goal = 1.05 if other == "one issuer" else 0.5
                pair = (readings["ours"], readings[other])
                yield ratio_row(f"authenticate: RS256, {name}", pair, peer_name=other, goal=goal)
        yield from _cache_rows(kubernetes, calls * 20, rounds)
    yield from _growing(quick)


def _algorithm_rows(
    algorithm: str, kubernetes: peer.Peer | None, calls: int, rounds: int, limits: dict[str, float]
) -> Iterator[Row]:
    key = SigningKey.new("key-1", algorithm)
    tokens = signed(key)
    readers: Readers = {
        "ours": ours(EXAMPLE, key, tokens, calls),
        BARE: cpu_per_call(each_in_turn(lambda check: check(), [bare_check(key, t, algorithm) for t in tokens]), calls),
    }
    checks = libraries(key, algorithm)
    for name, check in checks.items():
        readers[name] = cpu_per_call(each_in_turn(check, tokens), calls)
    if kubernetes:
        readers[KUBERNETES] = theirs(kubernetes, algorithm, EXAMPLE, key, tokens, calls)
    readings = in_turns(readers, rounds)
    mine, title = readings["ours"], f"authenticate: {algorithm}"
    if kubernetes:
        goal = KUBERNETES_GOALS.get(algorithm)
        yield ratio_row(title, (mine, readings[KUBERNETES]), peer_name=KUBERNETES, goal=goal)
    yield ratio_row(title, (mine, readings[BARE]), peer_name=BARE, goal=BARE_GOALS.get(algorithm))
    if algorithm in limits:
        limit = [limits[algorithm]] * len(mine)
        yield ratio_row(title, (mine, limit), peer_name="openssl speed, a verification", goal=None)
    for name in checks:
        goal = LIBRARY_GOALS.get(algorithm)
        yield ratio_row(title, (mine, readings[name]), peer_name=f"{name}, without CEL", goal=goal)
        yield above_row(
            f"{title}, above the bare check",
            mine,
            readings[name],
            readings[BARE],
            peer_name=f"{name}, without CEL",
            goal=ABOVE_GOAL,
        )
    # What no checking in Python can go below: beside it, half of a library's time may leave nothing for the rest.
    fastest = min(checks, key=lambda name: statistics.median(readings[name]))
    alone = (readings[BARE], readings[fastest])
    yield ratio_row(f"{title}, the bare check alone", alone, peer_name=f"{fastest}, the fastest library", goal=None)


def ours(text: str, key: SigningKey, tokens: list[str], calls: int) -> Callable[[], float]:
    authenticator = Authenticator(load_configuration(text), keys={ISSUER: {"keys": [key.jwk()]}})
    assert authenticator.authenticate(tokens[0]).username
    return cpu_per_call(each_in_turn(authenticator.authenticate, tokens), calls)


def theirs(
    kubernetes: peer.Peer, name: str, text: str, key: SigningKey, tokens: list[str], calls: int, *, cache: bool = False
) -> Callable[[], float]:
    keys = {"keys": [key.jwk()]}
    config = for_kubernetes(text)
    kubernetes.order("prepare authenticate", name=name, config=config, keys=keys, tokens=tokens, cache=cache)
    return kubernetes.cpu_per_call(name, calls)


def bare_check(key: SigningKey, token: str, algorithm: str) -> Callable[[], None]:
    from base64 import urlsafe_b64decode

    written, _, encoded = token.rpartition(".")
    signature = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
    public: Any = key.private.public_key()
    message = written.encode()
    if algorithm == "RS256":
        return lambda: public.verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
    if algorithm == "PS256":
        how = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.DIGEST_LENGTH)
        return lambda: public.verify(signature, message, how, hashes.SHA256())
    half = len(signature) // 2
    der = encode_dss_signature(int.from_bytes(signature[:half]), int.from_bytes(signature[half:]))
    return lambda: public.verify(der, message, ec.ECDSA(hashes.SHA256()))


def libraries(key: SigningKey, algorithm: str) -> dict[str, Callable[[str], object]]:
    import warnings

    import jwt

    with warnings.catch_warnings():
        import authlib.deprecate  # it turns its warnings on when it is loaded

        warnings.simplefilter("ignore")  # Authlib recommends its successor, which is the other peer
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
        "PyJWT": lambda token: jwt.decode(token, public, algorithms=[algorithm], issuer=ISSUER, audience=AUDIENCE),
        "joserfc": lambda token: rules.validate(joserfc_jwt.decode(token, joserfc_keys, algorithms=[algorithm]).claims),
        "Authlib": lambda token: authlib.decode(token, authlib_keys, claims_options=options).validate(),
    }


def physical_limits() -> dict[str, float]:
    """Seconds for one verification as `openssl speed` measures it, without JOSE, JSON or Python."""
    openssl = shutil.which("openssl")
    if openssl is None:
        print("      there is no openssl command: the rows beside its speed are left out", flush=True)
        return {}
    found = {}
    for algorithm, name in (("RS256", "rsa2048"), ("ES256", "ecdsap256")):
        command = [openssl, "speed", "-mr", "-seconds", "1", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        # +F2:number:bits:seconds per signature:seconds per verification, or with rates; the larger is the rate
        fields = next(line for line in done.stdout.splitlines() if line.startswith(("+F2:", "+F4:"))).split(":")
        value = float(fields[4])
        found[algorithm] = 1 / value if value > 1 else value
    return found


def _cache_rows(kubernetes: peer.Peer | None, calls: int, rounds: int) -> Iterator[Row]:
    """Tokens that were seen a moment ago. Both remember for seconds only, so both are filled before each reading."""
    if kubernetes is None:
        return
    key = SigningKey.new("key-1", "RS256")
    tokens = signed(key)
    authenticator = Authenticator(load_configuration(EXAMPLE), keys={ISSUER: {"keys": [key.jwk()]}})
    results = [Authenticated(authenticator.authenticate(token), ISSUER, time.time() + 3600) for token in tokens]
    cache = CachedResults()
    found = cpu_per_call(each_in_turn(lambda token: cache.find(token, time.time()), tokens), calls)

    def ours_filled() -> float:
        for token, result in zip(tokens, results, strict=True):
            cache.remember(token, result, time.time(), cache.generation)
        return found()

    asked = theirs(kubernetes, "cache", EXAMPLE, key, tokens, calls, cache=True)

    def theirs_filled() -> float:
        kubernetes.order("time", name="cache", count=len(tokens))
        return asked()

    readings = in_turns({"ours": ours_filled, KUBERNETES: theirs_filled}, rounds)
    pair = (readings["ours"], readings[KUBERNETES])
    yield ratio_row("authenticate: a cache hit", pair, peer_name=KUBERNETES, goal=None)


def _growing(quick: bool) -> Iterator[Row]:
    """Ten times the groups may take at most about ten times the time; with few, the signature is most of it."""
    key = SigningKey.new("key-1", "RS256")
    readings = {}
    for size in SIZES:
        reading = ours(EXAMPLE, key, signed(key, 8, size), max(20, 4000 // (size + 20)))
        readings[size] = [reading() for _ in range(5 if quick else 15)]
    yield from growth_rows("authenticate: groups", readings, 11)
