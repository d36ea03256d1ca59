"""What can go wrong with an expression.

CelError
├── CompileError   the text is no valid expression, or its types do not fit: whoever wrote it must act
└── EvalError      a valid expression met values it has no answer for, or ran into a limit
    ├── BadKeyError  a list or a map, say, was used as a key
    └── LimitError   it cost too much or took too long
        └── BadArgumentError  an argument on which cel-go itself fails
"""

from __future__ import annotations

from collections.abc import Iterable

TYPE_CHECKING = False  # typing itself takes longer to import than all of this package's surface
if TYPE_CHECKING:
    from .types import Type

__all__ = ["BadArgumentError", "BadKeyError", "CelError", "CompileError", "EvalError", "Issue", "LimitError"]


class CelError(Exception):
    """The root of every error of this package."""


class Issue:
    """One fault of an expression. `line` starts at 1, `column` at 1 as printed; `caret` shows the place."""

    __slots__ = ("caret", "column", "line", "message")

    def __init__(self, line: int, column: int, message: str, caret: str = "") -> None:
        self.line = line
        self.column = column
        self.message = message
        self.caret = caret

    def __str__(self) -> str:
        return f"ERROR: <input>:{self.line}:{self.column}: {self.message}{self.caret}"

    def __repr__(self) -> str:
        return f"Issue({self.line}, {self.column}, {self.message!r})"


class CompileError(CelError):
    """The expression is not valid. `issues` holds every fault that was found, in the order of the text.

    `line` and `column` are those of the first fault, and 1, 1 where the expression as a whole is at fault.
    `output_type` is the expression's type where it has one: the text was good, and no program could be made of it.
    """

    def __init__(self, issues: Iterable[Issue], message: str = "", output_type: Type | None = None) -> None:
        self.issues = tuple(issues)
        self.line, self.column = (self.issues[0].line, self.issues[0].column) if self.issues else (1, 1)
        self.output_type = output_type
        super().__init__(message or "\n".join(str(issue) for issue in self.issues))


class EvalError(CelError):
    """The expression has no value for these variables."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadKeyError(EvalError):
    """A value that can be no key was used as one. What the text calls it depends on where it came from."""

    def __init__(self, message: str, value: object) -> None:
        super().__init__(message)
        self.value = value


class LimitError(EvalError):
    """The evaluation was stopped: it cost too much or took too long."""


class BadArgumentError(LimitError):
    """A value of the wrong type, on which cel-go itself fails. What the text calls it depends on where it came from."""

    def __init__(self, message: str, value: object) -> None:
        super().__init__(message)
        self.value = value
