"""Regular expressions: RE2, which takes linear time. The one module that imports google-re2."""

from __future__ import annotations

from typing import Any

from .errors import EvalError

__all__ = ["RegexError", "compile_pattern", "find", "find_all", "matches"]

_CACHE_SIZE = 256
_MOST_REPEATS = 1000
_cache: dict[str, Any] = {}
_options: list[Any] = []

# RE2's words for a fault, and Go's for the same one.
_FAULTS = {
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class": "invalid character class",
    "invalid character class range": "invalid character class range",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid UTF-8": "invalid UTF-8",
    "invalid named capture group": "invalid named capture",
}


class RegexError(EvalError):
    """The text is no regular expression."""


def compile_pattern(pattern: str) -> Any:
    """The compiled pattern. Raises RegexError with the text that Go has for the fault."""
    compiled = _cache.get(pattern)
    if compiled is None:
        compiled = _compile(pattern)
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        _cache[pattern] = compiled
    return compiled


def _compile(pattern: str) -> Any:
    try:
        import re2  # type: ignore[import-untyped]  # it has no annotations
    except ModuleNotFoundError:
        message = "google-re2 is not installed, and patterns need it: pip install 'kubeauthn[cel]'"
        raise ModuleNotFoundError(message, name="re2") from None

    if not _options:
        options = re2.Options()
        options.log_errors = False
        _options.append(options)
    if _uses_single_byte(pattern):
        raise RegexError("error parsing regexp: invalid escape sequence: `\\C`")
    try:
        return re2.compile(pattern, _options[0])
    except re2.error as error:
        raise RegexError("error parsing regexp: " + _go_fault(str(_text(error)), pattern)) from None
    except UnicodeEncodeError:
        raise RegexError("error parsing regexp: invalid UTF-8: ``") from None


def _uses_single_byte(pattern: str) -> bool:
    r"""Whether \C occurs: RE2 takes it, Go does not, and it could cut a character in two."""
    at = pattern.find("\\")
    while at != -1:
        if pattern.startswith("\\Q", at):
            at = pattern.find("\\E", at)
            if at == -1:
                return False
        elif pattern.startswith("\\C", at):
            return True
        at = pattern.find("\\", at + 2)
    return False


def _text(error: Exception) -> str:
    message = error.args[0] if error.args else ""
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _go_fault(message: str, pattern: str) -> str:
    if message.startswith("pattern too large"):
        return f"expression too large: `{pattern}`"
    for fault, text in _FAULTS.items():
        if message == fault:
            return f"{text}: ``"
        if message.startswith("bad repetition operator: ") and _is_bad_count(message[message.rfind("{") :]):
            return f"invalid repeat count: `{message[message.rfind('{') :]}`"  # Go looks at that first
        if message.startswith(fault + ": "):
            return f"{text}: `{message[len(fault) + 2 :]}`"
    return f"{message}: `{pattern}`"


def _is_bad_count(text: str) -> bool:
    """Whether `{2,1}` or `{1001}` is no count."""
    least, comma, most = text.strip("{}?").partition(",")
    numbers = [int(part) for part in (least, most) if part.isascii() and part.isdigit()]
    return any(number > _MOST_REPEATS for number in numbers) or (bool(comma) and numbers != sorted(numbers))


def matches(text: str, pattern: str) -> bool:
    """Whether the pattern is found anywhere in the text."""
    return compile_pattern(pattern).search(_encoded(text)) is not None


def find(text: str, pattern: str) -> str:
    """The first match, or the empty string."""
    found = compile_pattern(pattern).search(_encoded(text))
    return "" if found is None else found.group().decode()


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """Every match that does not overlap another, `limit` at most unless that is negative.

    As in Go, an empty match right after another match does not count.
    """
    compiled = compile_pattern(pattern)
    # Bytes, because positions in a str would have to be counted anew for every match.
    encoded = _encoded(text)
    results: list[str] = []
    at, previous_end = 0, -1
    while at <= len(encoded) and len(results) != limit:
        found = compiled.search(encoded, at)
        if found is None:
            break
        start, end = found.span()
        if start != end or start != previous_end:
            results.append(encoded[start:end].decode())
        previous_end = end
        at = end if end > at else _next_character(encoded, at)
    return results


def _next_character(encoded: bytes, at: int) -> int:
    at += 1
    while at < len(encoded) and encoded[at] & 0xC0 == 0x80:
        at += 1
    return at


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
