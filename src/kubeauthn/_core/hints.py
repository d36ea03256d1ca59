"""How often an install hint is shown."""

from __future__ import annotations

from kubeauthn._core import limits

_HOUR = 3600.0


class HintLimit:
    """Lets a hint through a few times an hour: a controller that retries for ever must not fill the log with it."""

    __slots__ = ("_count", "_since")

    def __init__(self) -> None:
        self._since: float | None = None
        self._count = 0

    def allow(self, hint: str, now: float) -> str | None:
        if not hint:
            return None
        if self._since is None or now - self._since >= _HOUR:
            self._since, self._count = now, 0
        self._count += 1
        return _visible(hint) if self._count <= limits.INSTALL_HINTS_PER_HOUR else None


def _visible(text: str) -> str:
    """Kubernetes' rule: what a terminal would obey is spelled out. A hint stands in tracebacks as it is."""
    from unicodedata import category

    return "".join(
        character if character in "\t\n\v\f\r" or category(character)[0] in "LMNPSZ" else f"U+{ord(character):04X}"
        for character in text
    )
