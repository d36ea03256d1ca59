"""Makes a case smaller while it still differs in the same way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["reduced"]

LONGEST = 20.0
Case = dict[str, Any]


def reduced(case: Case, still: Callable[[Case], bool], seconds: float = LONGEST) -> Case:
    """The smallest case found within the time for which `still` holds."""
    ends = time.monotonic() + seconds
    shrunk = True
    while shrunk and time.monotonic() < ends:
        shrunk = False
        for smaller in _smaller(case):
            if time.monotonic() > ends:
                break
            if still(smaller):
                case, shrunk = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    if "expr" in case:
        for text in _shorter_texts(case["expr"]):
            yield {**case, "expr": text}
        if case.get("claims"):
            for claims in _fewer_members(case["claims"]):
                yield {**case, "claims": claims}
        return
    for lines in _fewer_lines(case["config"]):
        yield {**case, "config": lines}


def _shorter_texts(text: str) -> Iterator[str]:
    for place, character in enumerate(text):  # what stands in brackets, in place of the whole
        if character in "([{":
            inside = text[place + 1 : _closing(text, place)]
            if inside and len(inside) < len(text):
                yield inside
    size = len(text) // 2
    while size:
        for start in range(0, len(text), size):
            yield text[:start] + text[start + size :]
        size //= 2


def _closing(text: str, opened: int) -> int:
    level = 0
    for place in range(opened, len(text)):
        level += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(text[place], 0)
        if level == 0:
            return place
    return len(text)


def _fewer_members(claims: str) -> Iterator[str]:
    try:
        members = json.loads(claims)
    except ValueError:
        return
    if not isinstance(members, dict):
        return
    if members:
        yield "{}"
    for name in members:
        yield json.dumps({key: value for key, value in members.items() if key != name})


def _fewer_lines(config: str) -> Iterator[str]:
    lines = config.splitlines(keepends=True)
    for size in (8, 4, 2, 1):
        for start in range(0, len(lines), size):
            yield "".join(lines[:start] + lines[start + size :])
