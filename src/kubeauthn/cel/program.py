"""An expression that is ready to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import BadArgumentError, BadKeyError, CelError, EvalError, LimitError

if TYPE_CHECKING:
    from .ast import Node
    from .types import Type

__all__ = ["Evaluation", "Program"]


Run = Callable[[Mapping[str, object]], tuple[Any, int]]


class Evaluation(NamedTuple):
    """What an evaluation came to, and what it cost in cel-go's units."""

    value: object
    cost: int


class Inlined(NamedTuple):
    """A program as statements of a larger function, indented by four."""

    lines: list[str]
    value: str
    """A Python expression for what it comes to."""
    cost: str
    """A number; or `c`, to which it adds: `writer.COUNTERS` have to stand before the first that does."""
    variables: dict[str, str]
    """The Python names under which it expects the values of its CEL variables."""
    names: dict[str, object]
    """The global names that it needs."""


_new = tuple.__new__  # of a tuple that is there already: half of what calling the class takes


class Program:
    """A compiled expression. It keeps nothing between calls, so threads may share it."""

    __slots__ = ("ast", "output_type", "python_source", "run", "text")

    def __init__(
        self,
        text: str,
        ast: Node,
        output_type: Type,
        run: Run,
        python_source: str,
    ) -> None:
        self.text = text
        self.ast = ast
        self.output_type = output_type
        self.python_source = python_source
        self.run = run
        """The compiled function itself, for callers who count microseconds: value and cost. It may raise `UNEXPECTED`
        errors beside EvalError; `evaluate` says of each what it means."""

    def __call__(self, /, **variables: object) -> object:
        """The value for these variables. Raises EvalError."""
        try:
            return self.run(variables)[0]
        except CelError:
            raise
        except UNEXPECTED as error:
            raise _as_eval_error(error) from error

    def evaluate(self, variables: Mapping[str, object]) -> Evaluation:
        """The same for variables whose names are no Python names; also says what it cost."""
        try:
            return _new(Evaluation, self.run(variables))
        except BadKeyError as error:
            raise EvalError(_named_by_origin(error, variables)) from None
        except BadArgumentError as error:
            raise LimitError(_named_by_origin(error, variables)) from None
        except CelError:
            raise
        except UNEXPECTED as error:
            raise _as_eval_error(error) from error

    def __repr__(self) -> str:
        return f"Program({self.text!r}, output_type={str(self.output_type)!r})"


# Values that are not what their variable's type says can make any operation fail; data can be too deep or too large.
UNEXPECTED = (
    TypeError, AttributeError, ValueError, ArithmeticError, LookupError, RecursionError, MemoryError,
)  # fmt: skip


def _named_by_origin(error: BadKeyError | BadArgumentError, variables: Mapping[str, object]) -> str:
    """The text of the error; Kubernetes has types of its own for the lists and maps inside the claims."""
    claims = variables.get("claims")
    kind = type(error.value)
    if not isinstance(claims, dict) or (kind is not list and kind is not dict):
        return error.message
    waiting = list(dict.values(claims))  # of those that cannot be read, too
    while waiting:
        value = waiting.pop()
        if value is error.value:
            text = error.message.replace("*types.baseList", "*oidc.unescapeLister")
            return text.replace("*types.baseMap", "*oidc.unescapeMapper")
        if type(value) is dict:
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)
    return error.message


def _as_eval_error(error: BaseException) -> EvalError:
    if isinstance(error, RecursionError):
        return EvalError("a value is nested too deeply")
    if isinstance(error, MemoryError):
        return EvalError("not enough memory")
    return EvalError(f"a value is not of its declared type: {error}")
