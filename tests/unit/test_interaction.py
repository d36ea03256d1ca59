from __future__ import annotations

import pytest

from kubeauthn._core.interaction import gets_the_terminal
from kubeauthn.errors import InteractionRequired


@pytest.mark.parametrize(
    ("mode", "terminal", "taken", "expected"),
    [
        ("Never", True, None, False),
        ("Never", False, None, False),
        ("IfAvailable", True, None, True),
        ("IfAvailable", False, None, False),
        ("IfAvailable", True, "used by -f -", False),
        ("IfAvailable", True, "", False),
        ("Always", True, None, True),
    ],
)
def test_who_gets_the_terminal(mode: str, terminal: bool, taken: str | None, expected: bool) -> None:
    assert gets_the_terminal(mode, stdin_is_terminal=terminal, stdin_taken=taken) is expected


@pytest.mark.parametrize(
    ("terminal", "taken", "text"),
    [
        (False, None, "standard input is not a terminal"),
        (True, "", "standard input is unavailable"),
        (True, "used by -f -", "standard input is unavailable: used by -f -"),
    ],
)
def test_always_without_a_terminal_is_an_error(terminal: bool, taken: str | None, text: str) -> None:
    with pytest.raises(InteractionRequired) as caught:
        gets_the_terminal("Always", stdin_is_terminal=terminal, stdin_taken=taken)
    assert str(caught.value) == f"exec plugin cannot support interactive mode: {text}"
