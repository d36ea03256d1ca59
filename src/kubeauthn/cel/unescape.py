"""The value of a string or bytes literal."""

from __future__ import annotations

__all__ = ["unescape_bytes", "unescape_string"]

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"',
    "`": "`", "?": "?",
}  # fmt: skip


def unescape_string(token: str) -> str:
    """Raises ValueError with the message for the user."""
    body, raw = _body(token)
    if raw or "\\" not in body:
        return body
    parts: list[str] = []
    at = 0
    while True:
        slash = body.find("\\", at)
        if slash < 0:
            parts.append(body[at:])
            return "".join(parts)
        parts.append(body[at:slash])
        char = body[slash + 1]
        simple = _SIMPLE.get(char)
        if simple is not None:
            parts.append(simple)
            at = slash + 2
            continue
        code, at = _code(body, slash)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError("invalid unicode code point")
        parts.append(chr(code))


def unescape_bytes(token: str) -> bytes:
    """Raises ValueError with the message for the user."""
    body, raw = _body(token[1:])
    if raw or "\\" not in body:
        return body.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    at = 0
    while True:
        slash = body.find("\\", at)
        if slash < 0:
            parts.append(body[at:].encode("utf-8", "surrogatepass"))
            return b"".join(parts)
        parts.append(body[at:slash].encode("utf-8", "surrogatepass"))
        char = body[slash + 1]
        simple = _SIMPLE.get(char)
        if simple is not None:
            parts.append(simple.encode())
            at = slash + 2
            continue
        if char in "uU":
            raise ValueError("unable to unescape string")
        code, at = _code(body, slash)
        parts.append(bytes((code,)))


def _body(token: str) -> tuple[str, bool]:
    """The text between the quotes, line ends made one kind, and whether it is raw."""
    if "\r" in token:
        token = token.replace("\r\n", "\n").replace("\r", "\n")
    raw = token[0] in "rR"
    if raw:
        token = token[1:]
    triple = len(token) >= 6 and token.startswith(token[0] * 3)
    return (token[3:-3] if triple else token[1:-1]), raw


def _code(body: str, slash: int) -> tuple[int, int]:
    """The number of a \\x, \\u, \\U or octal escape, and the place behind it. The lexer has checked the digits."""
    char = body[slash + 1]
    if char in "0123":
        return int(body[slash + 1 : slash + 4], 8), slash + 4
    end = slash + 2 + {"x": 2, "X": 2, "u": 4, "U": 8}[char]
    return int(body[slash + 2 : end], 16), end
