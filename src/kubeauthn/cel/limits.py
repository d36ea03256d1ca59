"""Every bound of the engine."""

from __future__ import annotations

__all__ = [
    "CLOCK_STRIDE", "COST_LIMIT", "MAX_CODE_POINTS", "MAX_DEPTH", "MAX_FLAT_ELEMENTS", "MAX_ISSUES",
    "MAX_JOINED_ELEMENTS", "MAX_PATTERN_WORK", "MAX_PRECISION", "MAX_QUANTITY_DIGITS", "MAX_QUANTITY_POWER",
    "MAX_REPEATED_NODES", "MAX_SNIPPET_BYTES", "MAX_TEXT", "MAX_WRITTEN_DEPTH", "MAX_WRITTEN_MEMBERS", "TIME_LIMIT",
]  # fmt: skip

MAX_CODE_POINTS = 100_000
"""Length of an expression."""
MAX_DEPTH = 250
"""Nesting of an expression, as cel-go counts it."""
MAX_REPEATED_NODES = 20_000
"""Nodes that macros add by repeating others: optMap repeats its receiver, so a chain of them doubles with each."""
MAX_ISSUES = 100
"""Faults of one expression that are told; the others are counted."""
MAX_SNIPPET_BYTES = 16_384
"""A longer line is not shown below its fault."""
COST_LIMIT = 1_000_000
"""Cost of one evaluation, in cel-go's units: Kubernetes' limit per call."""
TIME_LIMIT = 5.0
"""Seconds of one evaluation."""
CLOCK_STRIDE = 50_000
"""Cost between two looks at the clock."""
MAX_JOINED_ELEMENTS = 20_000_000
"""Elements of all the lists that `+` makes in one evaluation: each costs 1, however long it is."""
MAX_PATTERN_WORK = 200_000_000
"""Bytes of a text, times what `pattern_size` says of the pattern: RE2 does not stop in the middle."""
MAX_WRITTEN_MEMBERS = 300_000
"""Members of a value that `format` prints, or that is written as typed JSON."""
MAX_WRITTEN_DEPTH = 100
"""Levels of a value that is written as typed JSON."""
MAX_FLAT_ELEMENTS = 1_000_000
"""Elements that `flatten` makes: one list may hold another many times, and that another many times."""
MAX_TEXT = 1 << 26
"""Characters of a text that a function builds: its cost is reckoned after the call, too late for the memory."""
MAX_QUANTITY_POWER = 2_000
"""Power of ten of a quantity. More is beyond any use, and takes too long to calculate with and to write out."""
MAX_QUANTITY_DIGITS = 2_000
"""Digits of a quantity."""
MAX_PRECISION = 100_000
"""Digits that `format` prints of a number: without a bound a short expression could fill the memory."""
