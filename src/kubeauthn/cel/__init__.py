"""CEL, the Common Expression Language: parsed, type-checked, compiled to Python, evaluated within limits.

    from kubeauthn import cel

    env = cel.Environment(variables={"x": "list(int)"}, libraries=["strings"])
    program = env.compile("x.all(n, n > 0)")      # raises cel.CompileError: every fault with line and column
    program.output_type                            # bool
    program(x=[1, 2, 3])                           # True; raises cel.EvalError

`cel.kubernetes` has the environments of Kubernetes' structured authentication. This package imports nothing of the
rest of kubeauthn.
"""

from __future__ import annotations

from .errors import CelError, CompileError, EvalError, Issue, LimitError

TYPE_CHECKING = False  # type checkers take it for true; importing it from typing would take longer than all the rest
if TYPE_CHECKING:
    from . import kubernetes
    from .environment import Environment
    from .overloads import Overload
    from .program import Evaluation, Program
    from .values import Duration, Opaque, Optional, Timestamp, TypeValue, UInt

__all__ = [
    "CelError",
    "CompileError",
    "Duration",
    "Environment",
    "EvalError",
    "Evaluation",
    "Issue",
    "LimitError",
    "Opaque",
    "Optional",
    "Overload",
    "Program",
    "Timestamp",
    "TypeValue",
    "UInt",
    "kubernetes",
]

_HOMES = {
    "Environment": "environment", "Evaluation": "program", "Program": "program", "Overload": "overloads",
    "Duration": "values", "Opaque": "values", "Optional": "values", "Timestamp": "values", "TypeValue": "values",
    "UInt": "values",
}  # fmt: skip


def __getattr__(name: str) -> object:
    """The rest is imported when it is first used: starting up is a feature."""
    from importlib import import_module

    if name == "kubernetes":
        return import_module(".kubernetes", __name__)
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value
