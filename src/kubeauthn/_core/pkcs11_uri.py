"""PKCS#11 URIs (RFC 7512): `pkcs11:token=My%20Key;id=%01?module-path=/usr/lib/x.so`."""

from __future__ import annotations

from kubeauthn._core.record import field, record
from kubeauthn._secret import Secret
from kubeauthn.errors import UsageError

SCHEME = "pkcs11:"
_NOTHING = Secret("")
_PATH = (
    "token",
    "manufacturer",
    "serial",
    "model",
    "library-manufacturer",
    "library-version",
    "library-description",
    "object",
    "type",
    "id",
    "slot-manufacturer",
    "slot-description",
    "slot-id",
)
_QUERY = ("pin-source", "pin-value", "module-name", "module-path")


@record(frozen=True, slots=True)
class TokenUri:
    """What a URI says. An attribute it does not name is None."""

    token: str | None = None
    manufacturer: str | None = None
    serial: str | None = None
    model: str | None = None
    object_label: str | None = None
    object_id: bytes | None = None
    slot_id: int | None = None
    module_path: str | None = None
    pin_source: str | None = None
    pin: Secret = field(default=_NOTHING)


def parse(text: str) -> TokenUri:
    """Read a URI. An attribute that is unknown, named twice or not encoded as it must be is a `UsageError`."""
    if not text.startswith(SCHEME):
        raise UsageError("a token URI starts with pkcs11:")
    path, _, query = text[len(SCHEME) :].partition("?")
    values = _attributes(path, ";", _PATH) | _attributes(query, "&", _QUERY)
    kind = _text(values, "type")
    if kind not in (None, "private", "cert", "public"):
        raise UsageError(f"a token URI's type is private, cert or public, not {kind}")
    slot = _text(values, "slot-id")
    if slot is not None and not (slot.isascii() and slot.isdecimal() and len(slot) <= 20):
        raise UsageError("a token URI's slot-id is a decimal number")
    return TokenUri(
        token=_text(values, "token"),
        manufacturer=_text(values, "manufacturer"),
        serial=_text(values, "serial"),
        model=_text(values, "model"),
        object_label=_text(values, "object"),
        object_id=values.get("id"),
        slot_id=int(slot) if slot is not None else None,
        module_path=_text(values, "module-path"),
        pin_source=_text(values, "pin-source"),
        pin=Secret(_text(values, "pin-value") or ""),
    )


def _attributes(text: str, separator: str, known: tuple[str, ...]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in text.split(separator) if text else ():
        name, equals, value = part.partition("=")
        if not equals or (name not in known and not name.startswith("x-")):
            # Never the part itself: what stands there may be a PIN.
            raise UsageError(f"a token URI has an attribute that is not known: {name[:40] if equals else 'no name'}")
        if name in found:
            raise UsageError(f"a token URI names {name} twice")
        found[name] = _decoded(name, value)
    return found


def _decoded(name: str, value: str) -> bytes:
    from urllib.parse import unquote_to_bytes

    pieces = value.split("%")[1:]
    if any(len(piece) < 2 or not all(digit in "0123456789abcdefABCDEF" for digit in piece[:2]) for piece in pieces):
        raise UsageError(f"a token URI's {name} has a % that two hexadecimal digits do not follow")
    return unquote_to_bytes(value)


def _text(values: dict[str, bytes], name: str) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise UsageError(f"a token URI's {name} is not UTF-8") from None
