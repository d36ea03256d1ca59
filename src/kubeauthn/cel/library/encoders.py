"""The encoders library: base64. Kubernetes does not have it."""

from __future__ import annotations

from base64 import b64decode, b64encode

from ..errors import EvalError
from ..overloads import Overload

__all__ = ["OVERLOADS", "TYPES"]

TYPES: tuple[str, ...] = ()


def _decode(text: str) -> bytes:
    """Base64 with or without its padding."""
    compact = text.replace("\r", "").replace("\n", "")
    if "=" not in compact:
        compact += "=" * (-len(compact) % 4)
    try:
        return b64decode(compact, validate=True)
    except ValueError:
        raise EvalError(f"illegal base64 data at input byte {_first_fault(text)}") from None


def _first_fault(text: str) -> int:
    """The place of the first byte that is not of the alphabet, or the end."""
    alphabet = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\r\n")
    data = text.encode("utf-8", "replace")
    return next((at for at, byte in enumerate(data) if byte not in alphabet), len(data))


def _encode(data: bytes) -> str:
    return b64encode(data).decode()


OVERLOADS = (
    Overload("base64_decode_string", "base64.decode", ("string",), "bytes", _decode),
    Overload("base64_encode_bytes", "base64.encode", ("bytes",), "string", _encode),
)
