"""Python source being written: lines, temporaries, and the cost that has been incurred but not yet noted.

Names in the source: `c` cost so far, `lim` the cost at which to look at clock and limit, `dl` the deadline; `room` and
`rounds` bound what costs little and takes much; `outside` knows what came from the caller; `t1`, `t2` … temporaries;
`k1`, `k2` … objects handed over; `f1` … parts moved out because Python allows only so many nested blocks. Nothing of
the CEL text but `repr`s of its constants gets into the source.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["COUNTERS", "Writer"]

_MAX_BLOCKS = 8  # CPython stops at 20 nested loops and try blocks
_MAX_INDENT = 20  # and at 100 levels of indentation

COUNTERS = "c = 0; lim = first_limit; dl = 0.0"
"""What stands before statements that count: the cost, how high it may come before `tick` is asked, and the time limit.
That runs from the first look at the clock: before it little can have happened."""
_CHECK_LIMIT = "if c > lim: lim, dl = tick(c, dl)"


class Writer:
    """Where the generator writes to."""

    def __init__(self, prefix: str = "") -> None:
        """`prefix` begins the names of temporaries and objects: so several expressions can stand in one function."""
        self.prefix = prefix
        self.lines: list[str] = []
        self.indent = 1
        self.blocks = 0
        self.count = 0
        self.names: dict[str, object] = {}
        self.pending = 0
        self.absorbing = 0  # inside a part whose errors may be forgotten: there every cost is noted at once
        self.can_fail = False
        self.functions: list[str] = []
        self.assigned: list[str] | None = None  # temporaries of the part that is being moved out
        self.shared: list[str] = []
        self._known: dict[int, str] = {}
        self._texts: dict[str, str] = {}

    def emit(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def temporary(self) -> str:
        self.count += 1
        name = f"{self.prefix}t{self.count}"
        if self.assigned is not None:
            self.assigned.append(name)
        return name

    def constant(self, value: object) -> str:
        """An expression for a value that is known now."""
        kind = type(value)
        if isinstance(value, str):
            name = repr(value) if len(value) < 200 else self.hand_over(value)
            self._texts[name] = value
            return name
        return repr(value) if value is None or kind is bool or kind is int else self.hand_over(value)

    def text_of(self, atom: str) -> str | None:
        """The string that a constant stands for."""
        return self._texts.get(atom)

    def hand_over(self, value: object) -> str:
        """A name under which the source can use an object."""
        name = self._known.get(id(value))
        if name is None:
            name = f"{self.prefix}k{len(self.names) + 1}"
            self.names[name] = value
            self._known[id(value)] = name
        return name

    def store(self, expression: str) -> str:
        name = self.temporary()
        self.emit(f"{name} = {expression}")
        return name

    # --- cost

    def charge(self, amount: int) -> None:
        """A cost that is known now."""
        self.pending += amount

    def flush(self) -> None:
        if self.pending:
            self.emit(f"c += {self.pending}")
            self.pending = 0

    def may_fail(self) -> None:
        """What is written next may raise."""
        self.can_fail = True
        if self.absorbing:
            self.flush()

    def charge_run_time(self, expression: str) -> None:
        """A cost that depends on values; it may be large, so the limit is looked at."""
        if self.pending:
            expression = f"{self.pending} + {expression}"
            self.pending = 0
        self.emit(f"c += {expression}")
        self.check_limit()

    def charge_cheap(self, expression: str, paid: int) -> None:
        """A cost that depends on values and is small: the limit is looked at when something larger comes."""
        self.pending -= paid
        self.emit(f"c += {expression}" + (f" + {self.pending}" if self.pending else ""))
        self.pending = 0

    def check_limit(self) -> None:
        self.emit(_CHECK_LIMIT)
        self.can_fail = True

    def limit_checked(self) -> bool:
        """Whether that is the last that was done, and nothing was incurred since."""
        return not self.pending and bool(self.lines) and self.lines[-1] == "    " + _CHECK_LIMIT

    # --- structure

    def open(self, line: str) -> None:
        """A block: the cost so far is noted first, since what follows may not run, or run often."""
        self.flush()
        self.emit(line)
        self.indent += 1

    def close(self) -> None:
        self.flush()
        self.indent -= 1

    def too_deep(self) -> bool:
        return self.blocks >= _MAX_BLOCKS or self.indent >= _MAX_INDENT

    def move_out(self, write: Callable[[], None]) -> None:
        """Let `write` write into a function of its own, and call that here."""
        self.emit(f"{self.put_aside(write)}()")

    def put_aside(self, write: Callable[[], None]) -> str:
        """Let `write` write into a function of its own. Returns its name."""
        self.flush()
        outer = (self.lines, self.indent, self.blocks, self.assigned)
        self.lines, self.indent, self.blocks, self.assigned = [], 2, 0, []
        write()
        self.flush()
        name = f"f{len(self.functions) + 1}"
        shared = ", ".join(["c", "lim", "dl", "room", "rounds", *self.assigned])
        header = [f"    def {name}():", f"        nonlocal {shared}"]
        self.functions.append("\n".join([*header, *self.lines]))
        self.shared.extend(self.assigned)
        self.lines, self.indent, self.blocks, self.assigned = outer
        return name
