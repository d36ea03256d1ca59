"""Keys that sign tokens, and the two forms they are seen in: a JWK, and a signature."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from kubeauthn.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_HASHES: dict[str, type[hashes.SHA256 | hashes.SHA384 | hashes.SHA512]] = {
    "256": hashes.SHA256,
    "384": hashes.SHA384,
    "512": hashes.SHA512,
}
_CURVES: dict[str, tuple[type[ec.EllipticCurve], str, int]] = {
    "ES256": (ec.SECP256R1, "P-256", 32),
    "ES384": (ec.SECP384R1, "P-384", 48),
    "ES512": (ec.SECP521R1, "P-521", 66),
}
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", *_CURVES)


@dataclass(frozen=True)
class SigningKey:
    """A private key for one algorithm, with the id a token names it by."""

    kid: str
    alg: str
    private: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def new(cls, kid: str, alg: str) -> SigningKey:
        if alg not in ALGORITHMS:
            raise UsageError(f"the algorithm is one of {', '.join(ALGORITHMS)}, not {alg!r}")
        if alg in _CURVES:
            return cls(kid, alg, ec.generate_private_key(_CURVES[alg][0]()))
        return cls(kid, alg, rsa.generate_private_key(public_exponent=65537, key_size=2048))

    def jwk(self) -> dict[str, str]:
        """The public half, as a key set lists it."""
        public = self.private.public_key()
        common = {"kid": self.kid, "alg": self.alg, "use": "sig"}
        if isinstance(public, rsa.RSAPublicKey):
            rsa_numbers = public.public_numbers()
            return {"kty": "RSA", **common, "n": _integer(rsa_numbers.n), "e": _integer(rsa_numbers.e)}
        _, curve, size = _CURVES[self.alg]
        numbers = public.public_numbers()
        x, y = numbers.x.to_bytes(size, "big"), numbers.y.to_bytes(size, "big")
        return {"kty": "EC", **common, "crv": curve, "x": base64url(x), "y": base64url(y)}

    def sign(self, claims: Mapping[str, Any], headers: Mapping[str, Any]) -> str:
        """A compact JWS over exactly these claims."""
        head = {"alg": self.alg, "kid": self.kid, "typ": "JWT", **headers}
        signed = f"{_segment(head)}.{_segment(claims)}".encode()
        return f"{signed.decode()}.{base64url(self._signature(signed))}"

    def _signature(self, message: bytes) -> bytes:
        digest = _HASHES[self.alg[2:]]()
        if isinstance(self.private, ec.EllipticCurvePrivateKey):
            size = _CURVES[self.alg][2]
            r, s = decode_dss_signature(self.private.sign(message, ec.ECDSA(digest)))
            return r.to_bytes(size, "big") + s.to_bytes(size, "big")
        if self.alg.startswith("PS"):
            return self.private.sign(message, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
        return self.private.sign(message, padding.PKCS1v15(), digest)


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _segment(document: Mapping[str, Any]) -> str:
    return base64url(json.dumps(document, separators=(",", ":")).encode())


def _integer(number: int) -> str:
    return base64url(number.to_bytes((number.bit_length() + 7) // 8, "big"))
