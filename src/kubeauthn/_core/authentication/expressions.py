"""Runs the expressions of one token within one budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn.cel import EvalError
from kubeauthn.cel.environment import COST_LIMIT
from kubeauthn.cel.program import UNEXPECTED

if TYPE_CHECKING:
    from kubeauthn.cel import Program

TOKEN_COST_LIMIT = 5 * COST_LIMIT
"""All expressions of one token together, in cel-go's units. The engine counts about a million of them in a second at
worst, and 5 s is the bound; no clock is needed to keep it."""

_SMALL_COST = 1000
"""What is not counted: some microseconds, of which a file cannot have enough expressions to matter."""

EXPECTED = (EvalError, *UNEXPECTED)
"""All that an expression may raise."""


class Expressions:
    """Evaluates programs over `variables`: the claims, and the user once there is one."""

    __slots__ = ("_left", "variables")

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables
        self._left = TOKEN_COST_LIMIT

    def value(self, program: Program) -> Any:
        """The value of an expression. Raises EvalError, whose text names the expression."""
        try:
            # What `evaluate` calls. Its checks are for the failure, and come below; this is the hot path of a token.
            value, cost = program.run(self.variables)
        except EXPECTED:
            return self._failed(program)
        if cost > _SMALL_COST:
            self._spend(cost, program)
        return value

    def _spend(self, cost: int, program: Program) -> None:
        self._left -= cost
        if self._left < 0:
            raise EvalError(
                f"expression '{program.text}' resulted in error: the expressions of this token cost more than "
                f"{TOKEN_COST_LIMIT} together"
            )

    def _failed(self, program: Program) -> Any:
        """Once more, for the error with its text. (Expressions have no effects, and no memory.)"""
        try:
            return program.evaluate(self.variables).value
        except EvalError as error:
            raise EvalError(f"expression '{program.text}' resulted in error: {error.message}") from None
