"""Text to tokens.

A token is (kind, text, offset). The kind of an operator, bracket or keyword is its text; the others are IDENT, ESC,
INT, UINT, FLOAT, STRING, BYTES and EOF. A place where no token begins is reported and skipped.
"""

from __future__ import annotations

from .source import Source

__all__ = ["Token", "tokenize"]

Token = tuple[str, str, int]

_SPACE = frozenset("\t \r\n\x0c")
_DIGITS = frozenset("0123456789")
_HEX = frozenset("0123456789abcdefABCDEF")
_NAME_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_NAME = _NAME_START | _DIGITS
_ESCAPED_NAME = _NAME | frozenset(".-/ ")
_SINGLE = frozenset("[]{}().,-?:+*/%")
_DOUBLED = {"=": "=", "&": "&", "|": "|"}  # valid only as a pair
_MAYBE_EQUALS = frozenset("!<>")
_KEYWORDS = frozenset(("in", "true", "false", "null"))
_SIMPLE_ESCAPES = frozenset("abfnrtv\"'\\?`")


def tokenize(source: Source) -> list[Token]:
    """Every token of the text, then EOF. Faults go to the source."""
    text = source.text
    size = len(text)
    tokens: list[Token] = []
    at = 0
    while at < size:
        char = text[at]
        if char in _SPACE:
            at += 1
            continue
        start = at
        if char in _NAME_START:
            if char in "rRbB":
                end = _prefixed_string(text, at)
                if end:
                    tokens.append(("BYTES" if char in "bB" else "STRING", text[start:end], start))
                    at = end
                    continue
            at += 1
            while at < size and text[at] in _NAME:
                at += 1
            name = text[start:at]
            tokens.append((name if name in _KEYWORDS else "IDENT", name, start))
        elif char == '"' or char == "'":
            end, failed = _string(text, at)
            if end:
                tokens.append(("STRING", text[start:end], start))
                at = end
            else:
                at = _unrecognised(source, start, failed)
        elif char in _DIGITS or (char == "." and at + 1 < size and text[at + 1] in _DIGITS):
            kind, at = _number(text, at)
            tokens.append((kind, text[start:at], start))
        elif char == "/" and text.startswith("//", at):
            at = text.find("\n", at)
            if at < 0:
                break
        elif char in _SINGLE:
            tokens.append((char, char, start))
            at += 1
        elif char in _MAYBE_EQUALS:
            at += 2 if text.startswith("=", at + 1) else 1
            tokens.append((text[start:at], text[start:at], start))
        elif char in _DOUBLED:
            if text.startswith(_DOUBLED[char], at + 1):
                at += 2
                tokens.append((text[start:at], text[start:at], start))
            else:
                at = _unrecognised(source, start, at + 1)
        elif char == "`":
            at += 1
            while at < size and text[at] in _ESCAPED_NAME:
                at += 1
            if at < size and text[at] == "`" and at > start + 1:
                at += 1
                tokens.append(("ESC", text[start:at], start))
            else:
                at = _unrecognised(source, start, at)
        else:
            at = _unrecognised(source, start, at)
    tokens.append(("EOF", "<EOF>", size))
    return tokens


def _unrecognised(source: Source, start: int, failed: int) -> int:
    """Report the text up to and with the character at which every token failed, and go on behind it."""
    source.report_syntax(start, f"token recognition error at: '{source.text[start : failed + 1]}'", start)
    source.unrecognised.append((start, failed + 1))
    return failed + 1


def _number(text: str, at: int) -> tuple[str, int]:
    size = len(text)
    start = at
    if text.startswith("0x", at) and at + 2 < size and text[at + 2] in _HEX:
        at += 2
        while at < size and text[at] in _HEX:
            at += 1
        return ("UINT", at + 1) if at < size and text[at] in "uU" else ("INT", at)
    at = _digits(text, at)
    kind = "INT"
    if at + 1 < size and text[at] == "." and text[at + 1] in _DIGITS:
        kind, at = "FLOAT", _digits(text, at + 1)
    if at < size and text[at] in "eE":
        exponent = at + 1
        if exponent < size and text[exponent] in "+-":
            exponent += 1
        end = _digits(text, exponent)
        if end > exponent:
            return "FLOAT", end
    if kind == "INT" and at > start and at < size and text[at] in "uU":
        return "UINT", at + 1
    return kind, at


def _digits(text: str, at: int) -> int:
    size = len(text)
    while at < size and text[at] in _DIGITS:
        at += 1
    return at


def _prefixed_string(text: str, at: int) -> int:
    """The end of a string with b, r or br before it, 0 when it is none."""
    if text[at] in "bB":
        at += 1
    raw = at < len(text) and text[at] in "rR"
    if raw:
        at += 1
    if at >= len(text) or text[at] not in "\"'":
        return 0
    return _raw_string(text, at) if raw else _string(text, at)[0]


def _raw_string(text: str, at: int) -> int:
    quote = text[at]
    if text.startswith(quote * 3, at):
        end = text.find(quote * 3, at + 3)
        return end + 3 if end >= 0 else at + 2
    end = text.find(quote, at + 1)
    if end < 0 or "\n" in text[at:end] or "\r" in text[at:end]:
        return 0
    return end + 1


def _string(text: str, at: int) -> tuple[int, int]:
    """The end of a quoted string, or 0 and the place of the character that no string can have there."""
    quote = text[at]
    size = len(text)
    if text.startswith(quote * 3, at):
        end = _until(text, at + 3, quote, triple=True)[0]
        return (end, end) if end else (at + 2, 0)  # unterminated: the empty string, and another quote
    end, failed = _until(text, at + 1, quote, triple=False)
    return end, min(failed, size)


def _until(text: str, at: int, quote: str, *, triple: bool) -> tuple[int, int]:
    size = len(text)
    while at < size:
        char = text[at]
        if char == "\\":
            after = _escape(text, at)
            if after < 0:
                return 0, -after
            at = after
        elif char == quote and not triple:
            return at + 1, 0
        elif char == quote and text.startswith(quote * 3, at):
            return at + 3, 0
        elif not triple and char in "\n\r":
            return 0, at
        else:
            at += 1
    return 0, size


def _escape(text: str, at: int) -> int:
    """The place behind an escape, or minus the place of the character that does not belong to one."""
    size = len(text)
    at += 1
    if at >= size:
        return -size
    char = text[at]
    if char in _SIMPLE_ESCAPES:
        return at + 1
    if char in "0123":
        allowed, count = frozenset("01234567"), 2
    elif char in "xXuU":
        allowed, count = _HEX, {"x": 2, "X": 2, "u": 4, "U": 8}[char]
    else:
        return -at
    for index in range(at + 1, at + 1 + count):
        if index >= size or text[index] not in allowed:
            return -index
    return at + 1 + count
