"""The signed JWT of a user that `/auth` hands to the proxy, its keys, and the checking of it by the service behind.

The key is made at start, once for all workers, or read from a file of PEM keys: then replicas can share it, and it can
be rotated. The first key of the file signs, all are published; the file is read again when it changes.

    verifier = AssertionVerifier(jwks, issuer="kubeauthn", audience="billing")
    user = verifier.verify(request.headers["X-Kubeauthn-Assertion"])      # raises TokenError
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubeauthn._core.assertion import assertion_claims, public_jwk, read_assertion, sign_assertion
from kubeauthn._core.jose.keys import parse_key_set
from kubeauthn._io.files import read_bounded
from kubeauthn.errors import EnvironmentFailure, UsageError
from kubeauthn.server.http_message import Request, Response

if TYPE_CHECKING:
    from kubeauthn._core.authentication.verdict import UserInfo

_log = logging.getLogger("kubeauthn.server")

HEADER = "X-Kubeauthn-Assertion"
KEYS_PATH = "/.well-known/jwks.json"
ISSUER = "kubeauthn"
AUDIENCE = "kubeauthn-upstream"
SECONDS = 60.0
LONGEST_SECONDS = 86_400.0
_KEY_FILE_BYTES = 1 << 16
_LOOK_SECONDS = 10.0
"""Between two looks whether the key file changed."""
_PEM_END = b"-----END "


class AssertionKeys:
    """Private keys: the first signs. `repr` shows ids only."""

    def __init__(self, keys: list[ec.EllipticCurvePrivateKey]) -> None:
        self._signing = keys[0]
        self.jwks = {"keys": [public_jwk(key.public_key()) for key in keys]}
        self.kid = self.jwks["keys"][0]["kid"]

    def __repr__(self) -> str:
        return f"AssertionKeys({', '.join(key['kid'] for key in self.jwks['keys'])})"

    def sign(self, claims: Mapping[str, Any]) -> str:
        return sign_assertion(claims, self._signing, self.kid)

    @classmethod
    def from_pem(cls, pem: bytes) -> AssertionKeys:
        """One or more private keys on P-256, one after the other. Raises UsageError, which quotes nothing of them."""
        keys = []
        for block in _blocks(pem):
            try:
                key = serialization.load_pem_private_key(block, password=None)
            except (ValueError, TypeError):
                raise UsageError("expected private keys in PEM without a passphrase") from None
            if not isinstance(key, ec.EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
                raise UsageError(
                    "expected private keys on the curve P-256",
                    hint="openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256",
                )
            keys.append(key)
        if not keys:
            raise UsageError("expected a private key in PEM")
        return cls(keys)


def new_key_pem() -> str:
    """A key for one run of the server. Made before there are workers, so that all of them have it."""
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(*form).decode()


def given_keys(pem: str) -> Callable[[], AssertionKeys]:
    """Keys that stay as they are."""
    keys = AssertionKeys.from_pem(pem.encode())
    return lambda: keys


class KeyFile:
    """Keys in a file, read again when it changes. A file that went bad changes nothing, and is complained of."""

    def __init__(self, path: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._looked = clock()
        self._text = self._read()
        self._keys = AssertionKeys.from_pem(self._text)

    def __call__(self) -> AssertionKeys:
        now = self._clock()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._look()
        return self._keys

    def _look(self) -> None:
        try:
            text = self._read()
            if text != self._text:
                self._keys, self._text = AssertionKeys.from_pem(text), text
                _log.info("assertion keys were read again: %r", self._keys)
        except (UsageError, EnvironmentFailure) as error:
            _log.warning("assertion keys stay as they were: %s", error)

    def _read(self) -> bytes:
        return read_bounded(self._path, _KEY_FILE_BYTES, pipes=False)


class AssertionSigner:
    """Makes assertions. The first audience is everybody's; the others are for proxies that ask with `?audience=`."""

    def __init__(
        self,
        keys: Callable[[], AssertionKeys],
        *,
        issuer: str = ISSUER,
        audiences: tuple[str, ...] = (AUDIENCE,),
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not audiences or not all(audiences) or not issuer or not 1 <= seconds <= LONGEST_SECONDS:
            raise UsageError("an assertion has an issuer, an audience and a life of a second or more, up to a day")
        self.audiences = audiences
        self._keys = keys
        self._issuer = issuer
        self._seconds = seconds
        self._clock = clock

    def sign(self, user: UserInfo, token_ends: float | None, audience: str = "") -> str:
        claims = assertion_claims(
            user,
            issuer=self._issuer,
            audience=audience or self.audiences[0],
            now=self._clock(),
            seconds=self._seconds,
            token_ends=token_ends,
        )
        return self._keys().sign(claims)

    def stamp(self) -> tuple[AssertionKeys, float]:
        """Of an assertion made now, for `is_fresh`."""
        return self._keys(), self._clock()

    def is_fresh(self, stamp: tuple[AssertionKeys, float]) -> bool:
        """May an assertion be handed out again? With the same key, and in the first part of its life."""
        keys, made = stamp
        return keys is self._keys() and 0 <= self._clock() - made < self._seconds / 6

    def keys_response(self, request: Request) -> Response:
        """The public keys, for whoever verifies."""
        if request.method not in ("GET", "HEAD"):
            return Response(405, [("allow", "GET, HEAD")])
        headers = [("content-type", "application/jwk-set+json"), ("cache-control", "public, max-age=60")]
        return Response(200, headers, json.dumps(self._keys().jwks).encode())


class AssertionVerifier:
    """For the service behind the proxy. `jwks` is what `/.well-known/jwks.json` answers, or a function that gets it.

    Given a function, it is called again when an assertion names a key that is not there, at most every 10 seconds.
    """

    def __init__(
        self,
        jwks: Mapping[str, Any] | bytes | str | Callable[[], Mapping[str, Any] | bytes | str],
        *,
        audience: str = AUDIENCE,
        issuer: str = ISSUER,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._fetch = jwks if callable(jwks) else None
        self._keys = parse_key_set(jwks() if callable(jwks) else jwks)
        self._fetched = clock()
        self._audience = audience
        self._issuer = issuer
        self._clock = clock

    def verify(self, assertion: str) -> UserInfo:
        """Raises TokenError."""
        from kubeauthn.errors import SignatureRefused

        now = self._clock()
        try:
            return self._read(assertion, now)
        except SignatureRefused as error:
            if not error.newer_keys_may_help or self._fetch is None or now - self._fetched < _LOOK_SECONDS:
                raise
        self._fetched = now
        self._keys = parse_key_set(self._fetch())
        return self._read(assertion, now)

    def _read(self, assertion: str, now: float) -> UserInfo:
        return read_assertion(assertion, self._keys, issuer=self._issuer, audience=self._audience, now=now)


def _blocks(pem: bytes) -> list[bytes]:
    blocks, lines = [], []
    for line in pem.splitlines(keepends=True):
        lines.append(line)
        if line.startswith(_PEM_END):
            blocks.append(b"".join(lines))
            lines = []
    return blocks
