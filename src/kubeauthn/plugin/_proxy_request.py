"""What a proxy author's function receives and returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kubeauthn._core import http1
from kubeauthn.errors import KubeauthnError, UsageError

if TYPE_CHECKING:
    from kubeauthn._core.kubeconfig.model import Cluster
    from kubeauthn._io.carrier.plan import Asked

_THE_HARNESS_S = frozenset(
    {b"connection", b"content-length", b"expect", b"host", b"transfer-encoding", b"trailer", b"te", b"upgrade"}
)


class Refuse(KubeauthnError):
    """Raise it to answer the client with an error in the server's place; nothing is sent to the server."""

    def __init__(self, message: str, *, status: int = 403, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        if not 400 <= status < 600:
            raise UsageError(f"status must be that of an error, 400 to 599, not {status}")
        self.status = status


class Request:
    """One request on its way to the API server. Header values may be secret, so it does not print them."""

    __slots__ = ("_asked", "_limit", "cluster", "host", "target")

    def __init__(self, asked: Asked, cluster: Cluster, target: str, host: str, limit: int) -> None:
        self._asked = asked
        self._limit = limit
        self.cluster = cluster
        self.target = target
        """Path and query, as they go to the server."""
        self.host = host
        """The `Host` that the server is sent."""

    @property
    def method(self) -> str:
        return self._asked.head.method.decode()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Names in lower case, in order; a name may come again. Those of the hop between client and proxy are out."""
        hop = self._asked.head.hop
        return [
            (name.decode(), value.decode("latin-1"))
            for name, value in self._asked.head.fields
            if name not in hop and name != b"host"
        ]

    def header(self, name: str) -> str | None:
        """The first of this name."""
        value = self._asked.head.value(name.lower().encode("latin-1"))
        return None if value is None else value.decode("latin-1")

    async def body(self) -> bytes:
        """The whole body. The client is told to send it if it waits for that; a body over the limit is a 413."""
        return await self._asked.body(self._limit)

    def __repr__(self) -> str:
        return f"Request({self.method} {self.target.partition('?')[0]})"


class Change:
    """What is to be different: `set` replaces a header, `remove` takes one away, `target` is path and query."""

    __slots__ = ("added", "target", "without")

    def __init__(
        self,
        set: Mapping[str, str] | None = None,
        *,
        remove: Iterable[str] = (),
        target: str | None = None,
    ) -> None:
        added = []
        for name, value in (set or {}).items():
            raw = _value(name, value)
            added.append((_name(name), raw))
        if len({name.lower() for name, _ in added}) < len(added):
            raise UsageError("a header is set twice: upper and lower case make no difference")
        self.added = tuple(added)
        self.without = frozenset([name.lower() for name, _ in added] + [_name(name).lower() for name in remove])
        self.target: bytes | None = None
        if target is not None:
            try:
                self.target = target.encode("ascii")
            except UnicodeEncodeError:
                self.target = b""
            if not http1.is_target(self.target):
                raise UsageError("the target must be a path that begins with /, percent-encoded")

    def __repr__(self) -> str:
        return f"Change({', '.join(sorted(name.decode() for name in self.without))})"


def _name(name: object) -> bytes:
    if not isinstance(name, str):
        raise UsageError(f"a header's name must be a str, not {type(name).__name__}")
    raw = name.encode("latin-1", "replace")
    if not http1.is_token(raw) or name.encode("utf-8", "replace") != raw:
        raise UsageError("a header's name has characters that no header may have")
    if raw.lower() in _THE_HARNESS_S:
        raise UsageError(f"{name} is set by the harness, because it says where a message ends or goes")
    return raw


def _value(name: object, value: object) -> bytes:
    shown = repr(str(name)[:40])
    if not isinstance(value, str):
        raise UsageError(f"the value of {shown} must be a str, not {type(value).__name__}")
    try:
        raw = value.encode("latin-1")
    except UnicodeEncodeError:
        raw = b"\0"
    if not http1.is_field_value(raw):
        # Not the value: it may be a secret.
        raise UsageError(f"the value of {shown} has characters that no header may carry, or blanks at its ends")
    return raw
