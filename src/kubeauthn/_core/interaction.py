"""Whether a plugin gets the terminal."""

from __future__ import annotations

from kubeauthn.errors import InteractionRequired

NEVER = "Never"
IF_AVAILABLE = "IfAvailable"
ALWAYS = "Always"
MODES = (NEVER, IF_AVAILABLE, ALWAYS)


def gets_the_terminal(mode: str, *, stdin_is_terminal: bool, stdin_taken: str | None) -> bool:
    """`stdin_taken` is None while standard input is free, else why it is not (may be empty)."""
    if mode == NEVER:
        return False
    if mode == IF_AVAILABLE:
        return stdin_is_terminal and stdin_taken is None
    if not stdin_is_terminal:
        raise InteractionRequired(
            "exec plugin cannot support interactive mode: standard input is not a terminal",
            hint="run it once from a terminal, or use a plugin that needs no person",
        )
    if stdin_taken is not None:
        reason = f": {stdin_taken}" if stdin_taken else ""
        raise InteractionRequired(f"exec plugin cannot support interactive mode: standard input is unavailable{reason}")
    return True
