"""How people write which object of a token they mean: `2`, `0x0102`, `01:02`, or a label."""

from __future__ import annotations

_HEXADECIMAL = "0123456789abcdefABCDEF"


def readings(text: str) -> tuple[bytes | str, ...]:
    """Every way to read it, the likeliest first: bytes are a CKA_ID, a text is a label.

    A decimal number below 256 is one byte, as the design's first implementation has it.
    """
    found: list[bytes | str] = []
    if text.isascii() and text.isdecimal() and len(text) <= 3 and int(text) < 256 and str(int(text)) == text:
        found.append(bytes((int(text),)))
    digits = text[2:] if text[:2] in ("0x", "0X") else text.replace(":", "").replace("%", "")
    if digits and len(digits) % 2 == 0 and all(digit in _HEXADECIMAL for digit in digits):
        found.append(bytes.fromhex(digits))
    found.append(text)
    return tuple(dict.fromkeys(found))
