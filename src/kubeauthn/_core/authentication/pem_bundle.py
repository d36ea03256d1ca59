"""Whether a text holds CA certificates, judged as Go's PEM and X.509 readers do."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error

from kubeauthn._core.authentication.ca_certificate import certificate_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN, _END, _DASHES = "-----BEGIN ", "\n-----END ", "-----"
_NO_CERTIFICATE = "data does not contain any valid RSA or ECDSA certificates"
_NO_SPACE = {ord(space): None for space in " \t\r\n"}


def bundle_fault(text: str) -> str:
    """Why this is no bundle of certificates, in Go's words; "" if it is one. Blocks of other kinds are passed over."""
    found = False
    for kind, has_headers, data in _blocks(text):
        if kind != "CERTIFICATE" or has_headers:
            continue
        fault = certificate_fault(data)
        if fault:
            return fault
        found = True
    return "" if found else _NO_CERTIFICATE


def _blocks(text: str) -> Iterator[tuple[str, bool, bytes]]:
    """Every well-formed PEM block: its kind, whether it has headers, and what it holds.

    A block is found by its end, and begins at the last line that can begin one: a line without its end is passed over.
    """
    at = 0
    while (end := text.find(_END, at)) >= 0:
        trailer = end + len(_END)
        begin = text.rfind(_BEGIN, at, end)
        begins_a_line = begin == at or text[begin - 1 : begin] == "\n"
        at = trailer
        if begin < 0 or not begins_a_line:
            continue
        line, body = _line(text, begin + len(_BEGIN))
        if not line.endswith(_DASHES):
            continue
        kind = line.removesuffix(_DASHES)
        body, has_headers = _skip_headers(text, body)
        closing = kind + _DASHES
        if (has_headers and end < body) or not text.startswith(closing, trailer):
            continue
        beyond, after = _line(text, trailer + len(closing))
        data = _decoded(text[body : max(body, end)])
        if beyond or data is None:
            continue
        at = after
        yield kind, has_headers, data


def _skip_headers(text: str, at: int) -> tuple[int, bool]:
    found = False
    while at < len(text):
        line, after = _line(text, at)
        if ":" not in line:
            break
        at, found = after, True
    return at, found


def _decoded(text: str) -> bytes | None:
    """Base64 with white space anywhere and padding only, and exactly, where it belongs."""
    packed = text.translate(_NO_SPACE)
    unpadded = packed.rstrip("=")
    if len(packed) % 4 or len(packed) - len(unpadded) > 2 or "=" in unpadded:
        return None
    try:
        return b64decode(packed, validate=True)
    except (Base64Error, ValueError):
        return None


def _line(text: str, start: int) -> tuple[str, int]:
    """The line that begins at `start`, without white space at its end, and where the next one begins."""
    end = text.find("\n", start)
    if end < 0:
        return text[start:].rstrip(" \t"), len(text)
    return text[start:end].removesuffix("\r").rstrip(" \t"), end + 1
