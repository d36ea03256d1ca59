"""How many characters a pattern waits for at once, at most.

RE2's time is linear in the text, but where its automaton does not fit into memory each character of the text takes as
many steps as the pattern has characters, every one counted as often as its repetitions say: `a{0,999}` is a thousand.
"""

from __future__ import annotations

__all__ = ["pattern_size"]

_ENDS_ATOM = frozenset("*+?")


def pattern_size(pattern: str) -> int:
    """An upper bound for a pattern that RE2 takes; for other texts any number."""
    sums = [0]  # of the groups that are open
    last = at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "{" and (bounds := _bounds(pattern, at)) is not None:
            most, at = bounds
            sums[-1] += last * (max(most, 1) - 1)
            last *= max(most, 1)
            continue
        if char == "(":
            sums.append(0)
            at += 1
        elif char == ")":
            last = sums.pop() if len(sums) > 1 else 0
            sums[-1] += last
            at += 1
        elif char in _ENDS_ATOM:
            at += 1
        else:
            at, last = _after_atom(pattern, at)
            sums[-1] += last
    return sum(sums)


def _bounds(pattern: str, at: int) -> tuple[int, int] | None:
    """Of `{n}`, `{n,}` or `{n,m}`: the larger number, and where it ends."""
    end = pattern.find("}", at)
    least, comma, most = pattern[at + 1 : end].partition(",") if end > at else ("", "", "")
    if not (least.isascii() and least.isdigit()) or (most and not (most.isascii() and most.isdigit())):
        return None
    if max(len(least), len(most)) > 4:
        return None  # more than RE2 takes
    return max(int(least) + bool(comma), int(most or 0)), end + 1


def _after_atom(pattern: str, at: int) -> tuple[int, int]:
    """Where the character, escape or class ends that begins here, and how many characters it stands for."""
    if pattern.startswith("\\Q", at):
        end = pattern.find("\\E", at)
        end = len(pattern) if end < 0 else end
        return end + 2, max(end - at - 2, 1)
    if pattern[at] == "\\":
        closing = pattern.find("}", at) if pattern[at + 2 : at + 3] == "{" else at + 1
        return max(closing, at + 1) + 1, 1
    if pattern[at] != "[":
        return at + 1, 1
    end = at + 2 if pattern.startswith("[]", at) else at + 3 if pattern.startswith("[^]", at) else at + 1
    while end < len(pattern) and pattern[end] != "]":
        if pattern.startswith("[:", end) and pattern.find(":]", end) > 0:
            end = pattern.find(":]", end) + 2
        else:
            end += 2 if pattern[end] == "\\" else 1
    return end + 1, 1
