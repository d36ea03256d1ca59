"""Which objects a request asks for, and the stream of their changes."""

from __future__ import annotations

import contextlib
import json
import socket
from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from kubeauthn.testing._status import ApiError

if TYPE_CHECKING:
    from kubeauthn.testing._resources import ResourceType


@dataclass(frozen=True)
class Selection:
    """A resource type, a namespace (None for all), and the selectors of the query."""

    type: ResourceType
    namespace: str | None
    terms: tuple[tuple[str, str, str | None, bool], ...] = ()

    @classmethod
    def of_query(cls, type: ResourceType, namespace: str | None, query: dict[str, str]) -> Selection:
        labels = [("labels", *term) for term in _terms(query.get("labelSelector", ""))]
        fields = [("fields", *term) for term in _terms(query.get("fieldSelector", ""))]
        for _, key, _, _ in fields:
            if key not in ("metadata.name", "metadata.namespace"):
                raise ApiError(400, f'field label not supported: "{key}"')
        return cls(type, namespace, (*labels, *fields))

    def matches(self, type: ResourceType, item: dict[str, Any]) -> bool:
        metadata = item["metadata"]
        if type != self.type or self.namespace not in (None, metadata.get("namespace")):
            return False
        for source, key, expected, wanted in self.terms:
            if source == "labels":
                actual = (metadata.get("labels") or {}).get(key)
            else:
                actual = metadata.get(key.removeprefix("metadata."))
            found = actual is not None if expected is None else actual == expected
            if found is not wanted:
                return False
        return True


def _terms(text: str) -> list[tuple[str, str | None, bool]]:
    """`a=b`, `a==b`, `a!=b`, `a` and `!a`; sets (`in`, `notin`) are refused rather than misread."""
    terms: list[tuple[str, str | None, bool]] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        if " " in part or "(" in part or ")" in part:
            raise ApiError(400, f"this test server does not know the selector {part!r}")
        key, operator, value = part.partition("!=")
        if operator:
            terms.append((key, value, False))
            continue
        key, operator, value = part.partition("=")
        if operator:
            terms.append((key, value.removeprefix("="), True))
        else:
            terms.append((part.removeprefix("!"), None, not part.startswith("!")))
    return terms


def event_line(event: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": event, "object": item}).encode() + b"\n"


class Watch:
    """A running watch: lines to send, and a socket that becomes readable when there are some."""

    def __init__(self, selection: Selection, initial: list[bytes], *, seconds: float | None) -> None:
        self.selection = selection
        self.seconds = seconds
        self._lock = Lock()
        self._lines = deque(initial)
        self._ended = False
        self.wakeup, self._waker = socket.socketpair()
        self.wakeup.setblocking(False)
        self._waker.setblocking(False)

    def push(self, line: bytes) -> None:
        with self._lock:
            self._lines.append(line)
            self._wake_locked()

    def end(self) -> None:
        """Finish the stream politely once what is queued was sent."""
        with self._lock:
            self._ended = True
            self._wake_locked()

    def take(self) -> tuple[list[bytes], bool]:
        """What is queued, and whether that is the end."""
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                self.wakeup.recv(4096)
            lines = list(self._lines)
            self._lines.clear()
            return lines, self._ended

    def close(self) -> None:
        with self._lock:
            self._ended = True
            self.wakeup.close()
            self._waker.close()

    def _wake_locked(self) -> None:
        # A full buffer is as good as a new byte; a closed watch needs none.
        with contextlib.suppress(OSError):
            self._waker.send(b"x")
