"""A checked tree to Python source.

Each method writes the statements that compute a node and returns an expression for its value (a temporary or a
constant) with what is known about the value's type: `DYN` means that the code has to look. That knowledge is the
generator's own and stricter than the checker's, which takes dyn for whatever is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from . import codegen_attributes as attributes
from . import codegen_calls as calls
from . import codegen_loops as loops
from . import well_known
from .ast import Call, Comprehension, Ident, ListLiteral, MapLiteral, Node, Select, Struct
from .dispatch import bind
from .errors import EvalError
from .folding import NOT_CONSTANT, fold, has_good_keys
from .grown_lists import grows_lists
from .limits import MAX_JOINED_ELEMENTS
from .map_building import protect
from .outside import shows_origin
from .types import BOOL, BYTES, DOUBLE, DYN, INT, NULL, STRING, UINT, Type, format_type, list_of, map_of
from .values import INT_MAX, INT_MIN, UINT_MAX, CelMap, UInt
from .writer import COUNTERS, Writer

if TYPE_CHECKING:
    from .declarations import Declarations
    from .overloads import Implementation, Overload
    from .quirks import Quirks

__all__ = ["Generator", "Value", "generate"]

Value = tuple[str, Type]
KNOWN: dict[type, Type] = {
    type(None): NULL, bool: BOOL, int: INT, UInt: UINT, float: DOUBLE, str: STRING, bytes: BYTES,
}  # fmt: skip
# What a variable of a declared type has to be in Python, as far as that is looked at.
_PYTHON_TYPES = {
    "bool": ("bool",),
    "bytes": ("bytes",),
    "double": ("float",),
    "int": ("int",),
    "list": ("list", "tuple"),
    "string": ("str",),
    "duration": ("Duration",),
    "timestamp": ("Timestamp",),
    "uint": ("UInt",),
}
_BOUNDS = {"int": (INT_MIN, INT_MAX), "uint": (0, UINT_MAX)}
_SCALARS = frozenset((BOOL, BYTES, DOUBLE, INT, NULL, STRING, UINT))
_SAFE_KEYS = frozenset((BOOL, INT, STRING, UINT))
_PATTERNS = frozenset(("matches", "find", "findAll"))
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40


class Generator(Writer):
    """Writes one expression."""

    def __init__(self, declarations: Declarations, quirks: Quirks, first_limit: int, prefix: str = "") -> None:
        super().__init__(prefix)
        self.declarations = declarations
        self.first_limit = first_limit
        self.lazy = quirks.lazy
        self.unescape = quirks.escaped_names
        self.free_has = quirks.free_has
        self.cel_go = quirks.cel_go
        self.old_cel_go = quirks.old_cel_go
        self.names_matches = quirks.names_matches
        self.scopes: list[dict[str, Value]] = []
        self.variables: dict[str, str] = {}
        self.fields_at_hand: Mapping[str, Mapping[str, str]] = {}
        """By variable and field: Python names of what is known to be a value of the field's type."""
        self.seen: set[str] = set()
        self.when_used: dict[str, str] = {}
        self.may_be_errors: set[str] = set()
        self.tracks_origin = False  # see `outside`
        self.grows_lists = False  # see `grown_lists`
        self._bound: dict[tuple[str, tuple[Overload, ...]], Implementation] = {}

    def bound(self, function: str, overloads: tuple[Overload, ...]) -> Implementation:
        """The callable that finds the right overload at run time."""
        key = (function, overloads)
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = bind(function, overloads, self.declarations.fields)
        return found

    def has_constant_pattern(self, node: Call) -> bool:
        return self._pattern(node) is not None

    def _pattern(self, node: Call) -> str | None:
        if node.function not in _PATTERNS:
            return None
        parts = node.args if node.target is None else [node.target, *node.args]
        pattern = fold(parts[1]) if len(parts) > 1 else None
        return pattern if isinstance(pattern, str) else None

    def prepare(self, node: Call) -> None:
        """A pattern that is known now has to be a good one."""
        pattern = self._pattern(node)
        if pattern is not None:
            from .regex import compile_pattern  # google-re2 is only loaded when there is a pattern

            compile_pattern(pattern)

    def value(self, node: Node) -> Value:
        """Write a node. Too deep in Python's blocks it goes into a function of its own."""
        if not self.too_deep() or not node.children():
            return self._value(node)
        return self.moved_out(lambda: self._value(node))

    def moved_out(self, write: Callable[[], Value]) -> Value:
        """A part written into a function of its own."""
        result: list[Value] = []
        self.move_out(lambda: result.append(write()))
        return result[0]

    def _value(self, node: Node) -> Value:
        folded = fold(node) if self.cel_go or not isinstance(node, MapLiteral) or has_good_keys(node) else NOT_CONSTANT
        if folded is not NOT_CONSTANT:
            if self.unescape:
                folded = protect(folded)
            return self.constant(folded), self.known_type(folded)
        if isinstance(node, Call):
            return calls.call(self, node)
        if isinstance(node, (Ident, Select)):
            return attributes.attribute(self, node, top=True)
        if isinstance(node, Comprehension):
            return loops.comprehension(self, node)
        if isinstance(node, ListLiteral):
            return self.list_literal(node)
        if isinstance(node, MapLiteral):
            return self.map_literal(node)
        if isinstance(node, Struct):
            return self.struct(node)
        raise EvalError(f"unsupported expression: {type(node).__name__}")

    @staticmethod
    def known_type(value: object) -> Type:
        known = KNOWN.get(type(value))
        if known is not None:
            return known
        if isinstance(value, list):
            kinds = {KNOWN.get(type(element), DYN) for element in value}
            return list_of(kinds.pop() if len(kinds) == 1 else DYN)
        return map_of(STRING, DYN) if type(value) is dict else DYN

    # --- names

    def local(self, name: str) -> Value | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def compute_when_used(self, name: str, write: Callable[[], str]) -> None:
        """A part in a function of its own that gives a temporary its value; `ensure` calls it. Its cost is noted at
        once, since the first use may be where errors are forgotten."""

        def body() -> None:
            if self.assigned is not None:
                self.assigned.append(name)
            self.emit("try:")
            self.indent += 1
            self.emit(f"{name} = {write()}")
            self.indent -= 1
            self.emit("except LimitError: raise")
            self.emit(f"except ABSORBED as {name}x: {name} = Raised({name}x)")

        self.absorbing += 1
        self.when_used[name] = self.put_aside(body)
        self.absorbing -= 1

    def ensure(self, name: str) -> None:
        """What has to be written before a temporary is read that may not have its value yet."""
        if name in self.may_be_errors:
            self.may_fail()
            self.emit(f"settled({name})")
        function = self.when_used.get(name)
        if function is not None:
            self.may_fail()
            self.emit(f"if {name} is MISSING: {function}()")
            self.emit(f"if type({name}) is Raised: raise {name}.error")

    def variable(self, name: str) -> str:
        """A variable of the caller, read at the start; where it is used it must be there."""
        python = self.variables.get(name)
        if python is None:
            python = f"{self.prefix}v{len(self.variables) + 1}"
            self.variables[name] = python
        self.may_fail()
        declared = self.declarations.variables.get(name, DYN)
        tests = () if declared.nullable else _PYTHON_TYPES.get(declared.kind, ())
        if tests:
            test = " and ".join(f"type({python}) is not {test}" for test in tests)
            if declared.kind in _BOUNDS:
                least, most = _BOUNDS[declared.kind]
                test += f" or not {least} <= {python} <= {most}"
            self.emit(f"if {test}: raise wrong_variable({name!r}, {python}, {format_type(declared)!r})")
        elif name not in self.seen:
            self.emit(f"if {python} is MISSING: raise missing_variable({name!r})")
            if self.indent == 1:  # no block and no other function: from here on it is there
                self.seen.add(name)
        return python

    # --- literals of several parts

    def list_literal(self, node: ListLiteral) -> Value:
        self.charge(LIST_COST)
        parts = [self.value(element) for element in node.elements]
        kinds = {known for _, known in parts}
        known = list_of(kinds.pop() if len(kinds) == 1 else DYN)
        if not node.optional:
            return self.store(f"[{', '.join(atom for atom, _ in parts)}]"), known
        self.may_fail()
        items = [
            f"optional_element({atom})" if index in node.optional else atom for index, (atom, _) in enumerate(parts)
        ]
        return self.store(f"[e for e in ({', '.join(items)},) if e is not MISSING]"), list_of(DYN)

    def map_literal(self, node: MapLiteral) -> Value:
        parts: list[str] = []
        self.charge(MAP_COST)
        for entry in node.entries:
            key, known = self.value(entry.key)
            value = self.value(entry.value)[0]
            if entry.optional:
                self.may_fail()
                value = self.store(f"optional_entry({key}, {value})")
            parts += (key, value)
            if self.cel_go and known not in _SAFE_KEYS and len(node.entries) > 1:
                self.may_fail()
                self.emit(f"check_hashable({key})")  # before the next entry is computed
        if not self.cel_go:
            self.may_fail()
        maker = "new_map_escaped" if self.unescape else "new_map" if self.cel_go else "new_map_strict"
        return self.store(f"{maker}({', '.join(parts)})"), DYN

    def struct(self, node: Struct) -> Value:
        parts: list[str] = []
        self.charge(STRUCT_COST)
        for field in node.fields:
            value = self.value(field.value)[0]
            if field.optional:
                self.may_fail()
                value = self.store(f"optional_entry({field.name!r}, {value})")
            parts.append(f"{field.name!r}: {value}")
        known = node.name in well_known.FIELDS
        if not known and node.name not in self.declarations.fields:
            self.may_fail()
            of_any = node.type is not None and node.type.kind == "any"
            text = (
                "unsupported conversion to ref.Val: (*dynamicpb.Message)" if of_any else f"unknown type '{node.name}'"
            )
            self.emit(f"raise EvalError({text!r})")
            return "None", DYN
        maker = self.hand_over(well_known.make(node.name) if known else self._object_class(node.name))
        self.may_fail()
        return self.store(f"{maker}({{{', '.join(parts)}}})"), DYN

    def _object_class(self, name: str) -> type:
        return self.declarations.object_class(name, lazy=name in self.lazy.values())

    # --- conditions

    def boolean(self, value: Value) -> str:
        """The value, checked to be a bool."""
        atom, known = value
        if known is not BOOL:
            self.may_fail()
            atom = atom if atom.isidentifier() else self.store(atom)
            self.emit(f"if {atom} is not True and {atom} is not False: raise no_overload()")
        return atom

    def finish(self, value: Value) -> str:
        """The source of the function that takes the variables and returns value and cost."""
        body, result, cost = self.body(value)
        head = ["def run(V):"]
        for name, python in self.variables.items():
            head += [f"    try: {python} = V[{name!r}]", f"    except KeyError: {python} = MISSING"]
        if cost == "c":
            head.append("    " + COUNTERS)
        return "\n".join([*head, *body, f"    return {result}, {cost}", ""])

    def needs_variables(self) -> bool:
        """Whether the statements look at the variables as a whole: see `outside`."""
        return any("outside." in line for line in (*self.functions, *self.lines))

    def body(self, value: Value) -> tuple[list[str], str, str]:
        """The statements of such a function but for COUNTERS, and expressions for the value and the cost."""
        shared = any(isinstance(constant, (list, dict, CelMap)) for constant in self.names.values())
        result = f"detached({value[0]})" if shared and value[1] not in _SCALARS else value[0]
        head = []
        if self.functions or any("room" in line or "rounds" in line for line in self.lines):
            head.append(f"    room = {MAX_JOINED_ELEMENTS}; rounds = 0")
        if self.needs_variables():
            head.append("    outside = Outside(V)")
        if self.grows_lists:
            head.append("    grown = Grown()")
        if not self.functions and self.pending <= self.first_limit and not any(map(_counts, self.lines)):
            # what costs the same always, and little, need not count
            return [*head, *self.lines], result, str(self.pending)
        if not self.limit_checked():
            self.flush()
            self.check_limit()
        if self.shared:
            head.append(f"    {' = '.join(self.shared)} = None")
        return [*head, *self.functions, *self.lines], result, "c"


def _counts(line: str) -> bool:
    return "c += " in line or "tick(" in line


def generate(generator: Generator, node: Node) -> str:
    generator.tracks_origin = generator.unescape and shows_origin(node)
    generator.grows_lists = generator.cel_go and grows_lists(node)
    return generator.finish(generator.value(node))
