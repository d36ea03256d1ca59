"""One row of a library's table: a function's overload, its types, what it does and what it costs."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CostFunction", "Implementation", "Overload"]

Implementation = Callable[..., object]
# (arguments, result) -> the run-time cost of that call, the call itself included
CostFunction = Callable[[tuple[object, ...], object], int]


class Overload:
    """An overload of a CEL function.

    Types are texts as cel-go prints them: "int", "list(<A>)", "map(<K>, <V>)", "optional_type(<V>)", "dyn".
    A text in angle brackets is a type parameter, private to this overload.
    """

    __slots__ = (
        "cost",
        "cost_by_name",
        "function",
        "id",
        "implementation",
        "member",
        "non_strict",
        "params",
        "result",
        "timed",
        "unguarded",
    )

    def __init__(
        self,
        id: str,
        function: str,
        params: tuple[str, ...],
        result: str,
        implementation: Implementation | None = None,
        *,
        member: bool = False,
        cost: CostFunction | None = None,
        non_strict: bool = False,
        unguarded: bool = False,
        cost_by_name: bool = False,
        timed: bool = False,
    ) -> None:
        """`implementation` takes CEL values by position, the receiver first, and raises `EvalError`.

        It is None where the compiler writes the operation itself. `cost` is None for a call that costs 1.
        `non_strict`: the implementation also takes unknown or failed arguments (no ordinary function does).
        `unguarded`: the implementation takes values of any type and refuses what it cannot take with its own error,
        so it may be called without a look at the arguments; any other one relies on `dispatch.bind` where the checker
        saw dyn. `cost_by_name`: the cost holds for every call of the function; if it is false and several overloads
        were possible, cel-go does not know which one ran and takes 1. `timed`: the implementation also takes
        `deadline=`, a reading of `time.monotonic`, and raises `LimitError` when it is still at work after that.
        """
        if isinstance(params, str):
            raise TypeError(f"params of {id!r} is a tuple of types, ({params!r},), not one text")
        self.id = id
        self.function = function
        self.params = tuple(params)
        self.result = result
        self.implementation = implementation
        self.member = member
        self.cost = cost
        self.non_strict = non_strict
        self.unguarded = unguarded
        self.cost_by_name = cost_by_name
        self.timed = timed

    def __repr__(self) -> str:
        return f"Overload({self.id!r}, {self.function!r}, {self.params!r}, {self.result!r}, member={self.member!r})"
