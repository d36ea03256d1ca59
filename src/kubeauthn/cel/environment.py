"""What an expression may use, and how it is compiled.

env = Environment(variables={"x": "list(int)"}, libraries=["strings"])
program = env.compile("x.all(n, n > 0)")
program(x=[1, 2])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import well_known
from .ast import Node
from .checker import check
from .codegen import Generator, generate
from .deadline import new_tick
from .declarations import Declarations
from .deep_stack import DeepStack
from .errors import CelError, CompileError, EvalError, Issue
from .grown_lists import grows_lists
from .libraries import load
from .limits import CLOCK_STRIDE, COST_LIMIT, TIME_LIMIT
from .macros import Expander, MacroKey
from .outside import shows_origin
from .overloads import Overload
from .own_declarations import check_name, own_function, own_type
from .parser import parse
from .program import Inlined, Program
from .quirks import SPECIFICATION, Quirks
from .resolver import resolve
from .runtime import namespace
from .source import Source
from .spec_overloads import as_specified
from .types import DYN, Type, list_of, map_of, opaque, optional_of, parameter, parse_type, struct
from .validators import validate

__all__ = ["COST_LIMIT", "TIME_LIMIT", "Environment"]


_TYPE_PARAMETERS: dict[str, Type] = {
    "list": list_of(DYN), "map": map_of(DYN, DYN), "optional_type": optional_of(DYN),
}  # fmt: skip
_OLD_TYPE_PARAMETERS: dict[str, Type] = {
    "list": list_of(parameter("A")), "map": map_of(parameter("A"), parameter("B")),
    "optional_type": opaque("optional_type"),
}  # fmt: skip


class Environment:
    """Variables, functions, types and rules for expressions. Made once, used by any number of threads."""

    def __init__(
        self,
        variables: Mapping[str, str] | None = None,
        libraries: Iterable[str] = (),
        *,
        functions: Iterable[Overload] = (),
        types: Mapping[str, Mapping[str, str]] | None = None,
        container: str = "",
        checked: bool = True,
        strict_literals: bool = False,
        validate_literals: bool = False,
        cross_type_comparisons: bool = True,
        cost_limit: int = COST_LIMIT,
        time_limit: float = TIME_LIMIT,
        quirks: Quirks = SPECIFICATION,
    ) -> None:
        """`variables` and `types` name types as texts: "int", "map(string, dyn)", or a type of `types`.

        `libraries`: see `libraries.py`; the standard one is always there. `functions`: Python functions of your own,
        as `Overload` rows. `types`: objects by their fields; values are dicts or objects with such attributes.
        `container`: the name space in which names are sought first. `checked=False`: no type check, everything is
        looked at when it runs. `strict_literals`: lists and maps may not mix types. `validate_literals`: constant
        durations, timestamps and patterns have to be good ones. `quirks`: see there.
        """
        table: dict[str, tuple[Overload, ...]] = {}
        type_names: dict[str, Type] = {}
        self._macros: dict[MacroKey, Expander] = {}
        if isinstance(libraries, str):
            raise CelError("`libraries` is a list of names, not one name")
        names = tuple(libraries)
        for library in (load(name) for name in (names if "standard" in names else ("standard", *names))):
            for row in library.overloads:
                if cross_type_comparisons or not _is_cross_type(row):
                    _add_overload(table, row if quirks.cel_go else as_specified(row))
            for type_name in library.types:
                named = _OLD_TYPE_PARAMETERS if quirks.old_cel_go else _TYPE_PARAMETERS
                type_names[type_name] = named.get(type_name) or parse_type(type_name)
            self._macros.update(library.macros)
        self._optional_syntax = any(name.partition("@")[0] == "optional" for name in names)
        for row in quirks.overloads:
            _add_overload(table, row)
        # A well-known type can be made; only with cel-go its name alone is of no use.
        undefined = {name: of for name, of in well_known.TYPES.items() if name not in type_names}
        if not quirks.cel_go:
            type_names.update(undefined)
            undefined = {}
        undefined.update(quirks.undefined_types)
        for name in quirks.hidden_types:
            type_names.pop(name, None)
        fields: dict[str, Mapping[str, Type]] = {}
        declared = {name: struct(name) for name in types or {}}
        for name, members in (types or {}).items():
            type_names[name] = declared[name]
            fields[name] = {field: own_type(text, declared, type_names) for field, text in members.items()}
        for name in variables or {}:
            check_name(name, "variable")
        for row in functions:
            _add_overload(table, own_function(row, table, declared, type_names))
        self._declarations = Declarations(
            {name: own_type(text, declared, type_names) for name, text in (variables or {}).items()},
            table,
            type_names,
            fields,
            container,
            undefined,
        )
        self._checked = checked
        self._strict_literals = strict_literals
        self._validate_literals = validate_literals
        self._quirks = quirks
        self.libraries = names
        self._first_limit = min(cost_limit, CLOCK_STRIDE)
        self._names: dict[str, Any] = {
            **namespace(),
            "tick": new_tick(cost_limit, time_limit),
            "first_limit": self._first_limit,
        }

    @property
    def functions(self) -> Mapping[str, tuple[Overload, ...]]:
        """Every function with its overloads."""
        return self._declarations.functions

    @property
    def macros(self) -> Iterable[MacroKey]:
        """Name, number of arguments and whether it is called on a receiver, for every macro."""
        return tuple(self._macros)

    @property
    def variables(self) -> Mapping[str, Type]:
        return self._declarations.variables

    def compile(self, text: str) -> Program:
        """A program, or CompileError with every fault."""
        if not isinstance(text, str):
            raise TypeError(f"an expression is a str, not {type(text).__name__}")
        if not text.isascii():
            # half of a surrogate pair is no character: Go has U+FFFD in its place
            text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if _has_surrogates(text) else text
        source = Source(text)
        with DeepStack(text):
            try:
                return self._compile(source)
            except RecursionError:
                source.report(-1, "max recursion depth exceeded")
                raise _faults(source) from None

    def _compile(self, source: Source) -> Program:
        node = parse(
            source, self._macros, optional_syntax=self._optional_syntax, escaped_identifiers=not self._quirks.old_cel_go
        )
        if node is None:
            raise _faults(source)
        declarations = self._declarations
        if self._checked:
            node = check(source, node, declarations, homogeneous=self._strict_literals, quirks=self._quirks)
            if not source.issues and self._validate_literals:
                validate(source, node)
            if source.issues:
                raise _faults(source)
        else:
            node = resolve(node, declarations)
        return self._generate(source.text, node)

    def inline(
        self, program: Program, prefix: str, fields: Mapping[str, Mapping[str, str]] | None = None
    ) -> Inlined | None:
        """The statements of a program of this environment, for a function that holds several; None if it is not simple.

        Their temporaries begin with `prefix`; other names of theirs may stand for something else in the next part. The
        variables have to be there, but for those of which only `fields` are read: by variable and field, the Python
        names of values that are of the fields' types.
        """
        if shows_origin(program.ast) or (self._quirks.cel_go and grows_lists(program.ast)):
            return None  # where a value came from, and lists that grow, are not known to such a function
        with DeepStack(program.text):
            generator = Generator(self._declarations, self._quirks, self._first_limit, prefix)
            generator.seen.update(self._declarations.variables)
            generator.fields_at_hand = fields or {}
            body, value, cost = generator.body(generator.value(program.ast))
        if generator.functions or generator.needs_variables():
            return None
        used = {
            name: python
            for name, python in generator.variables.items()
            if any(python in line for line in (*body, value))
        }
        return Inlined(body, value, cost, used, {**self._names, **generator.names})

    def _generate(self, text: str, node: Node) -> Program:
        generator = Generator(self._declarations, self._quirks, self._first_limit)
        try:
            python = generate(generator, node)
        except EvalError as error:
            # what cel-go finds out while it plans the program
            raise CompileError(
                (Issue(1, 1, error.message),), f"program instantiation failed: {error.message}", node.type or DYN
            ) from None
        # Most programs share one scope, and none is part of its own: then they go when the last who knows them goes.
        scope = {**self._names, **generator.names} if generator.names else self._names
        made: dict[str, Any] = {}
        # The source holds own names and the reprs of constants only: nothing of the expression's text is code.
        exec(compile(python, "<cel>", "exec"), scope, made)  # noqa: S102
        return Program(text, node, node.type or DYN, made["run"], python)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _faults(source: Source) -> CompileError:
    issues = source.sorted_issues()
    text = "\n".join(str(issue) for issue in issues)
    if source.truncated:
        text += f"\n{source.truncated} more errors were truncated"
    return CompileError(issues, text)


def _add_overload(table: dict[str, tuple[Overload, ...]], row: Overload) -> None:
    rows = table.get(row.function, ())
    for other in rows:
        if other.id == row.id and other.params != row.params:
            raise CelError(f"overload {row.id!r} of {row.function!r} has several definitions")
    table[row.function] = (*(other for other in rows if other.id != row.id), row)


def _is_cross_type(row: Overload) -> bool:
    return row.function in ("_<_", "_<=_", "_>_", "_>=_") and row.params[0] != row.params[1]
