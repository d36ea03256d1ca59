"""The text of a token: three parts of canonical base64url, joined by dots.

Canonical means that exactly one text stands for these bytes: no padding, no white space, no stray bits in the last
character. Where many texts mean one token, a list of refused tokens can be walked around.
"""

from __future__ import annotations

from binascii import Error as Base64Error
from binascii import a2b_base64

from kubeauthn._core.jose.limits import TOKEN_CHARACTERS

# Maps the URL alphabet to the one that binascii knows, and everything else but the dot to a character neither knows.
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_STANDARD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_STANDARD = bytes(
    (_STANDARD + b".")[(_ALPHABET + b".").index(code)] if code in _ALPHABET + b"." else ord("!") for code in range(256)
)
_ONLY_STANDARD = bytes(code if code in _STANDARD else ord("!") for code in range(256))
_DOT = ord(".")
# By the number of characters after the last four: what may be the last, so that no bits are left over, and the padding.
_LAST = (frozenset(range(256)), frozenset(range(256)), frozenset(_STANDARD[::16]), frozenset(_STANDARD[::4]))
_PADDING = (b"", b"", b"==", b"=")


class NotCompact(ValueError):
    """The text is no token of three parts."""


def split_compact(token: str) -> tuple[bytes, bytes, bytes, bytes]:
    """What is signed, as it came; then header, payload and signature, in the alphabet that `decode_part` reads.

    Raises NotCompact.
    """
    if len(token) > TOKEN_CHARACTERS:
        raise NotCompact(f"token has {len(token)} characters, at most {TOKEN_CHARACTERS} are read")
    if token[:1] != "e" and token.lstrip()[:1] == "{":  # e is what nearly every token begins with
        raise NotCompact("token is not compact JWT")
    text = token.encode("utf-8", "surrogatepass")  # what no token has is found, and its byte named, by `decode_part`
    if "+" in token or "/" in token or "=" in token:
        standard = text.translate(_TO_STANDARD)
    else:  # as every good token: two replacements take half as long as the table
        standard = text.replace(b"-", b"+").replace(b"_", b"/")
    header, _, rest = standard.partition(b".")
    payload, dot, signature = rest.partition(b".")
    if not dot or _DOT in signature:  # a number is found ten times as fast as a text
        raise NotCompact("malformed token")
    return text[: len(header) + 1 + len(payload)], header, payload, signature


def decode_part(part: bytes) -> bytes:
    """The bytes that a part stands for. Raises ValueError, which says where it is not canonical base64url."""
    excess = len(part) & 3
    if excess and part[-1] not in _LAST[excess]:
        raise ValueError(_fault(part) or f"stray bits in the last character, at input byte {len(part) - 1}")
    try:
        return a2b_base64(part + _PADDING[excess], strict_mode=True)
    except Base64Error:
        # one character is left over, and Go names its place
        raise ValueError(_fault(part) or f"illegal base64 data at input byte {len(part) - 1}") from None


def decode_text(text: str) -> bytes:
    """The bytes that a base64url text stands for, in a key for instance. Raises ValueError."""
    return decode_part(text.encode("ascii").translate(_TO_STANDARD).replace(b".", b"!"))


def _fault(part: bytes) -> str:
    at = part.translate(_ONLY_STANDARD).find(b"!")
    return f"illegal base64 data at input byte {at}" if at >= 0 else ""
