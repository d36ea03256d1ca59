"""Regular expressions: RE2, which takes linear time. The one module that imports google-re2."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from .deadline import NEVER, look_at_clock
from .errors import EvalError, LimitError
from .limits import MAX_PATTERN_WORK
from .pattern_size import pattern_size
from .unicode_classes import Classes, Part, as_the_user_wrote, ends_a_range, go_classes

__all__ = ["RegexError", "compile_pattern", "find", "find_all", "matches"]

_CACHE_SIZE = 256
_MOST_REPEATS = 1000
_MOST_ADDED = 200_000
"""Characters that names of Unicode classes may come to in a pattern, beyond what is written."""
_MATCHES_BETWEEN_LOOKS = 32
_cache: dict[str, tuple[Any, int]] = {}
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
_NAMELESS = ("invalid escape sequence: `\\p`", "invalid escape sequence: `\\P`")
_AT_THE_END = (": missing closing ", ": trailing backslash at end of expression")
"""Faults of a pattern that is cut off: Go has not come to them yet."""


class RegexError(EvalError):
    """The text is no regular expression."""


def compile_pattern(pattern: str) -> Any:
    """The compiled pattern. Raises RegexError with the text that Go has for the fault."""
    return _compiled(pattern)[0]


def _compiled(pattern: str) -> tuple[Any, int]:
    """The compiled pattern, and the length of text that it may be tried on."""
    found = _cache.get(pattern)
    if found is None:
        found = _compile(pattern), MAX_PATTERN_WORK // max(pattern_size(pattern), 1)
        if len(_cache) >= _CACHE_SIZE:
            _cache.clear()
        _cache[pattern] = found
    return found


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
    single_byte = _single_byte(pattern)
    if single_byte >= 0 and not _fails_before_its_end(pattern[:single_byte]):
        raise RegexError("error parsing regexp: invalid escape sequence: `\\C`")
    written, parts = pattern, None
    try:
        if "\\p" in pattern or "\\P" in pattern:
            parts = go_classes(pattern, _KNOWN)
            written = "".join(made for _, made in parts)
            if len(written) > len(pattern) + _MOST_ADDED:
                raise RegexError(f"error parsing regexp: expression too large: `{pattern}`")
        return re2.compile(written, _options[0])
    except re2.error as error:
        fault = _go_fault(str(_text(error)), written)
        if parts is not None:
            if fault in _NAMELESS and not ends_a_range(parts):
                fault = fault.replace("escape sequence", "character class range")
            fault = _with_names(fault, parts, written)
        raise RegexError("error parsing regexp: " + fault) from None
    except UnicodeEncodeError:
        raise RegexError("error parsing regexp: invalid UTF-8: ``") from None


@lru_cache(_CACHE_SIZE)
def _is_class(name: str) -> bool:
    """Whether RE2 knows a Unicode class."""
    import re2

    try:
        re2.compile(rf"\p{{{name}}}", _options[0])
    except re2.error:
        return False
    return True


@cache
def _unassigned() -> str:
    """What is in no class that RE2 knows, as ranges."""
    import re2

    everything = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    runs = re2.findall(r"[^\pC\pL\pM\pN\pP\pS\pZ]+", everything, _options[0])
    return "".join(rf"\x{{{ord(run[0]):X}}}-\x{{{ord(run[-1]):X}}}" for run in runs)


_KNOWN = Classes(_is_class, _unassigned)


def _with_names(fault: str, parts: list[Part], written: str) -> str:
    """The fault with what it shows of the pattern as the user wrote it."""
    kind, _, shown = fault.partition(": `")
    shown = shown.removesuffix("`")
    start = len(written) - len(shown) if written.endswith(shown) else written.find(shown)
    if start < 0 or not shown:
        return fault
    return f"{kind}: `{as_the_user_wrote(parts, start, start + len(shown))}`"


def _single_byte(pattern: str) -> int:
    r"""Where \C occurs, or -1: RE2 takes it, Go does not, and it could cut a character in two."""
    at = pattern.find("\\")
    while at != -1:
        if pattern.startswith("\\Q", at):
            at = pattern.find("\\E", at)
            if at == -1:
                return -1
        elif pattern.startswith("\\C", at):
            return at
        at = pattern.find("\\", at + 2)
    return -1


def _fails_before_its_end(beginning: str) -> bool:
    """Whether a pattern that begins so has a fault that Go finds, and RE2 too, before it reads on."""
    try:
        _compile(beginning)
    except RegexError as error:
        return not any(text in str(error) for text in _AT_THE_END)
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
    compiled, longest = _compiled(pattern)
    return compiled.search(_encoded(text, longest)) is not None


def find(text: str, pattern: str) -> str:
    """The first match, or the empty string."""
    compiled, longest = _compiled(pattern)
    found = compiled.search(_encoded(text, longest))
    return "" if found is None else found.group().decode()


def find_all(text: str, pattern: str, limit: int = -1, *, deadline: float = NEVER) -> list[str]:
    """Every match that does not overlap another, `limit` at most unless that is negative.

    As in Go, an empty match right after another match does not count.
    """
    compiled, longest = _compiled(pattern)
    # Bytes, because positions in a str would have to be counted anew for every match.
    encoded = _encoded(text, longest)
    results: list[str] = []
    at, previous_end, rounds = 0, -1, 0
    while at <= len(encoded) and len(results) != limit:
        rounds += 1
        if not rounds % _MATCHES_BETWEEN_LOOKS:
            look_at_clock(deadline)
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


def _encoded(text: str, longest: int) -> bytes:
    encoded = text.encode("utf-8", "replace")
    if len(encoded) > longest:
        raise LimitError("operation cancelled: text and pattern are too large for each other")
    return encoded
