"""Keys and certificates in a token's header. They are never used; but kube-apiserver refuses a token whose header has
one that cannot be read, in these words."""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64
from typing import Any

from kubeauthn._core.jose.compact import decode_text
from kubeauthn._core.jose.go_json import kind

_TEXTS = ("use", "kty", "kid", "crv", "alg", "x5t", "x5t#S256")
_NUMBERS = ("k", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi")
_DIGEST_SIZES = {"x5t": 20, "x5t#S256": 32}
_SIZES = {"P-256": 32, "P-384": 48, "P-521": 66}
_STANDARD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n")
MALFORMED_CERTIFICATE = "x509: malformed certificate"


def key_fault(jwk: object) -> str:
    """What is wrong with a `jwk`, or ""."""
    if not isinstance(jwk, dict):
        return f"json: cannot unmarshal {kind(jwk)} into Go value of type jose.rawJSONWebKey"
    return _member_fault(jwk) or _kind_fault(jwk)


def is_no_public_key(jwk: dict[str, Any]) -> bool:
    """One that can be read, and that nobody may show, or that is none."""
    return jwk.get("kty") == "oct" or jwk.get("d") is not None or "" in (jwk.get("n"), jwk.get("e"))


def chain_fault(chain: object) -> str:
    """What is wrong with an `x5c`, or ""."""
    fault = _list_fault(chain)
    if fault or not isinstance(chain, list):
        return fault
    return next(filter(None, (_certificate_fault(entry or "") for entry in chain)), "")


def _list_fault(chain: object) -> str:
    if not isinstance(chain, list):
        return f"json: cannot unmarshal {kind(chain)} into Go value of type []string"
    for entry in chain:
        if entry is not None and type(entry) is not str:
            return f"json: cannot unmarshal {kind(entry)} into Go value of type string"
    return ""


def _member_fault(jwk: dict[str, Any]) -> str:
    for name, value in jwk.items():
        if name == "x5u" and value is not None and not isinstance(value, dict):
            return f"json: cannot unmarshal {kind(value)} into Go value of type url.URL"
        if name == "x5c" and value is not None and (fault := _list_fault(value)):
            return fault
        if value is None or name not in _TEXTS + _NUMBERS:
            continue
        if type(value) is not str:
            return f"json: cannot unmarshal {kind(value)} into Go value of type string"
        fault = _number_fault(value) if name in _NUMBERS else ""
        if fault:
            return fault
    fault = "" if jwk.get("x5c") is None else chain_fault(jwk["x5c"])
    if fault:
        return f"go-jose/go-jose: failed to unmarshal x5c field: {fault}"
    return next(filter(None, (_digest_fault(jwk, name) for name in _DIGEST_SIZES)), "")


def _digest_fault(jwk: dict[str, Any], name: str) -> str:
    """Of a certificate: its bytes, or, as some write it, their hexadecimal digits."""
    text = jwk.get(name)
    if not text:
        return ""
    if _number_fault(text):
        return f"go-jose/go-jose: invalid JWK, {name} header has invalid encoding"
    fits = len(text) * 6 // 8 in (_DIGEST_SIZES[name], 2 * _DIGEST_SIZES[name])
    return "" if fits else f"go-jose/go-jose: invalid JWK, {name} header is of incorrect size"


def _number_fault(text: str) -> str:
    try:
        decode_text(text)
    except UnicodeEncodeError:
        return f"illegal base64 data at input byte {next(at for at, char in enumerate(text) if not char.isascii())}"
    except ValueError as error:
        return str(error) if str(error).startswith("illegal") else ""  # of stray bits Go says nothing
    return ""


def _kind_fault(jwk: dict[str, Any]) -> str:
    sort = jwk.get("kty") or ""
    if sort == "EC":
        return _curve_fault(jwk)
    if sort == "RSA":
        if jwk.get("d") is not None:
            missing = next((name.upper() for name in ("n", "e", "p", "q") if jwk.get(name) is None), "")
            return f"go-jose/go-jose: invalid RSA private key, missing {missing} value(s)" if missing else ""
        complete = jwk.get("n") is not None and jwk.get("e") is not None
        return "" if complete else "go-jose/go-jose: invalid RSA key, missing n/e values"
    if sort == "OKP":
        curve = jwk.get("crv") or ""
        return "" if curve == "Ed25519" and jwk.get("x") is not None else f"go-jose/go-jose: unknown curve {curve}'"
    if sort == "oct":
        return "" if jwk.get("k") is not None else "go-jose/go-jose: invalid OCT (symmetric) key, missing k value"
    return f"go-jose/go-jose: unknown json web key type '{sort}'"


def _curve_fault(jwk: dict[str, Any]) -> str:
    curve = jwk.get("crv") or ""
    if curve not in _SIZES:
        return f"go-jose/go-jose: unsupported elliptic curve '{curve}'"
    if jwk.get("x") is None or jwk.get("y") is None:
        missing = "key, missing x/y" if jwk.get("d") is None else "private key, missing x/y/d"
        return f"go-jose/go-jose: invalid EC {missing} values"
    for name in ("x", "y"):
        if len(jwk[name]) != (_SIZES[curve] * 8 + 5) // 6:
            return f"go-jose/go-jose: invalid EC public key, wrong length for {name}"
    from kubeauthn._core.jose.jwk import UnusableKey, read_key

    try:
        read_key({name: jwk[name] for name in ("kty", "crv", "x", "y")})
    except UnusableKey:
        return "go-jose/go-jose: invalid EC key, X/Y are not on declared curve"
    return ""


def _certificate_fault(text: str) -> str:
    from cryptography.x509 import load_der_x509_certificate  # few tokens bring one

    wrong = next((at for at, character in enumerate(text) if character not in _STANDARD), None)
    if wrong is not None:
        return f"illegal base64 data at input byte {wrong}"
    try:
        load_der_x509_certificate(a2b_base64(text, strict_mode=True) if text else b"")
    except Base64Error:
        return f"illegal base64 data at input byte {len(text) & ~3}"
    except ValueError:
        return MALFORMED_CERTIFICATE
    return ""
