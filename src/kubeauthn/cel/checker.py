"""Gives every part of an expression its type, resolves names and overloads, and reports what does not fit."""

from __future__ import annotations

from . import well_known
from .ast import Call, Comprehension, Field, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct
from .declarations import Declarations, Signature
from .quirks import SPECIFICATION, Quirks
from .source import Source
from .types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    format_type,
    list_of,
    map_of,
    optional_of,
    parameter,
    type_of_type,
)  # fmt: skip
from .unify import Bindings, assignable, assignable_all, is_dyn, is_dyn_or_error, most_general, substitute
from .values import UInt

__all__ = ["check"]

_LITERALS: dict[type, Type] = {
    type(None): NULL, bool: BOOL, int: INT, UInt: UINT, float: DOUBLE, str: STRING, bytes: BYTES,
}  # fmt: skip
_FIELDLESS = frozenset(("bool", "bytes", "double", "int", "list", "string", "uint"))


def check(
    source: Source,
    node: Node,
    declarations: Declarations,
    *,
    homogeneous: bool = False,
    quirks: Quirks = SPECIFICATION,
) -> Node:
    """The checked tree. Faults go to the source. `homogeneous`: literals may not mix types."""
    checker = _Checker(source, declarations, homogeneous, quirks)
    root = checker.check(node)
    checker.settle()
    return root


class _Checker:
    def __init__(self, source: Source, declarations: Declarations, homogeneous: bool, quirks: Quirks) -> None:
        self.source = source
        self.declarations = declarations
        self.homogeneous = homogeneous
        self.cel_go = quirks.cel_go
        self.old_cel_go = quirks.old_cel_go
        self.objects = quirks.hidden_types
        self.bindings: Bindings = {}
        self.scopes: list[dict[str, Type]] = []
        self.unsettled: list[Node] = []
        self.fresh = 0

    def settle(self) -> None:
        """Replace what is still a type parameter, now that everything is known."""
        for node in self.unsettled:
            assert node.type is not None  # noqa: S101 - only typed nodes are put there
            node.type = substitute(self.bindings, node.type, to_dyn=True)

    def set_type(self, node: Node, to: Type) -> Node:
        node.type = to
        if to.has_parameters:
            self.unsettled.append(node)
        return node

    def type_of(self, node: Node) -> Type:
        assert node.type is not None  # noqa: S101 - children are checked before their parents
        return node.type

    def fits(self, one: Type, two: Type) -> bool:
        bindings = assignable(self.bindings, one, two)
        if bindings is None:
            return False
        self.bindings = bindings
        return True

    def fresh_parameter(self) -> Type:
        self.fresh += 1
        return parameter(f"_var{self.fresh - 1}")

    def mismatch(self, node: Node, expected: Type, found: Type) -> None:
        self.source.report(node.offset, f"expected type '{format_type(expected)}' but found '{format_type(found)}'")

    def undeclared(self, node: Node, name: str) -> Node:
        self.source.report(
            node.offset, f"undeclared reference to '{name}' (in container '{self.declarations.container}')"
        )
        return self.set_type(node, ERROR)

    # --- one method per kind of node; each returns the node that takes its place

    def check(self, node: Node) -> Node:
        if isinstance(node, Literal):
            return self.set_type(node, _LITERALS[type(node.value)])
        if isinstance(node, Ident):
            return self.check_ident(node)
        if isinstance(node, Select):
            return self.check_select(node)
        if isinstance(node, Call):
            return self.check_call(node)
        if isinstance(node, ListLiteral):
            return self.check_list(node)
        if isinstance(node, MapLiteral):
            return self.check_map(node)
        if isinstance(node, Comprehension):
            return self.check_comprehension(node)
        assert isinstance(node, Struct)  # noqa: S101 - the last kind there is
        return self.check_struct(node)

    def local(self, name: str) -> Type | None:
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found
        return None

    def global_name(self, name: str) -> tuple[str, Type, bool] | None:
        """Full name, type, and whether it is the name of a type."""
        declarations = self.declarations
        for candidate in declarations.candidates(name):
            found = declarations.variables.get(candidate)
            if found is not None:
                return candidate, found, False
            found = declarations.type_names.get(candidate) or declarations.undefined.get(candidate)
            if found is not None:
                return candidate, type_of_type(found), True
            if candidate in well_known.CONSTANTS:
                return candidate, INT, False
        return None

    def check_ident(self, node: Ident) -> Node:
        name = node.name
        if not name.startswith(".") and not node.is_global:
            local = self.local(name)
            if local is not None:
                return self.set_type(node, local)
        found = self.global_name(name)
        if found is None:
            return self.undeclared(node, name)
        node.name, of, node.type_value = found
        node.is_global = True
        node.undefined = node.type_value and node.name in self.declarations.undefined
        return self.set_type(node, of)

    def check_select(self, node: Select) -> Node:
        if not node.test_only:
            qualified = _qualified_name(node)
            if qualified is not None:
                root = qualified.split(".", 1)[0]
                if not root or self.local(root) is None:
                    found = self.global_name(qualified)
                    if found is not None:
                        ident = Ident(node.offset, found[0])
                        ident.is_global, ident.type_value = True, found[2]
                        ident.undefined = found[2] and found[0] in self.declarations.undefined
                        return self.set_type(ident, found[1])
        node.operand = self.check(node.operand)
        of = self.select_type(node, node.operand, node.field, optional=False)
        return self.set_type(node, BOOL if node.test_only else substitute(self.bindings, of))

    def select_type(self, node: Node, operand: Node, field: str, *, optional: bool) -> Type:
        of = substitute(self.bindings, self.type_of(operand))
        unwrapped = _unwrap_optional(of)
        target = of if unwrapped is None else unwrapped
        result = ERROR
        if target.kind == "map":
            result = target.params[1]
        elif target.kind == "struct":
            found = self.declarations.fields.get(target.name, {}).get(field)
            if found is None:
                self.source.report(node.offset, f"undefined field '{field}'")
            else:
                result = found
        elif target.kind == "parameter":
            self.fits(DYN, target)
            result = DYN
        elif target.name in self.objects:
            # a type of objects, of which nothing but the name is known
            self.source.report(node.offset, f"unexpected failed resolution of '{target.name}'")
        else:
            if not is_dyn_or_error(target):
                self.source.report(node.offset, f"type '{format_type(target)}' does not support field selection")
            result = DYN
        return optional_of(result) if optional or unwrapped is not None else result

    def check_call(self, node: Call) -> Node:
        function = node.function
        if function == "_?._":
            field = node.args[1]
            node.args[0] = self.check(node.args[0])
            self.check(field)
            name = field.value if isinstance(field, Literal) else ""
            of = self.select_type(node, node.args[0], str(name), optional=True)
            node.overloads = ()
            return self.set_type(node, substitute(self.bindings, of))
        declarations = self.declarations
        if function in ("_&&_", "_||_") and (found := declarations.function(function)):
            return self.check_logical(node, found[1])
        args = node.args
        for index, arg in enumerate(args):
            args[index] = self.check(arg)
        if node.target is None:
            found = declarations.function(function)
            if found is None:
                return self.undeclared(node, function)
            node.function = found[0]
            return self.resolve(node, found[1])
        prefix = _qualified_name(node.target)
        if prefix is not None:
            found = declarations.function(f"{prefix}.{function}")
            if found is not None:
                node.function, node.target = found[0], None
                return self.resolve(node, found[1])
        node.target = self.check(node.target)
        found = declarations.function(function)
        if found is None:
            return self.undeclared(node, function)
        return self.resolve(node, found[1])

    def resolve(self, node: Call, signatures: tuple[Signature, ...]) -> Node:
        """Every overload that fits; the first decides the type, a disagreement makes it dyn."""
        types = [self.type_of(arg) for arg in node.args]
        if node.target is not None:
            types.insert(0, self.type_of(node.target))
        member = node.target is not None
        result: Type | None = None
        matched = []
        for signature in signatures:
            if signature.overload.member is member and len(signature.params) != len(types):
                self.fresh += len(signature.generic)  # cel-go names its parameters before it counts them
                continue
            if signature.overload.member is not member:
                continue
            params: tuple[Type, ...] | list[Type] = signature.params
            of = signature.result
            if signature.generic:
                fresh = {generic: self.fresh_parameter() for generic in signature.generic}
                params = [substitute(fresh, part) for part in params]
                of = substitute(fresh, of)
            bindings = assignable_all(self.bindings, types, params)
            if bindings is None:
                continue
            self.bindings = bindings
            matched.append(signature.overload)
            of = substitute(bindings, of)
            if result is None:
                result = of
            elif not is_dyn(result) and of is not result:
                result = DYN
        if result is None:
            shown = [format_type(substitute(self.bindings, of, to_dyn=True)) for of in types]
            text = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
            self.source.report(node.offset, f"found no matching overload for '{node.function}' applied to '{text}'")
            return self.set_type(node, ERROR)
        node.overloads = tuple(matched)
        return self.set_type(node, result)

    def check_logical(self, node: Call, signatures: tuple[Signature, ...]) -> Node:
        node.overloads = (signatures[0].overload,)
        good = self.check_branch(node.args, 0, len(node.args) - 1)
        return self.set_type(node, BOOL if good else ERROR)

    def check_branch(self, operands: list[Node], low: int, high: int) -> bool:
        """Whether the operands right below are bool. A chain is a balanced tree to cel-go, whose order faults have."""
        middle = (low + high) // 2
        halves = (low, middle), (middle + 1, high)
        for first, last in halves:
            if first == last:
                operands[first] = self.check(operands[first])
            else:
                self.check_branch(operands, first, last)
        good = True
        for first, last in halves:
            if first == last and not self.fits(of := self.type_of(operands[first]), BOOL):
                self.mismatch(operands[first], BOOL, of)
                good = False
        return good

    def check_list(self, node: ListLiteral) -> Node:
        elements: Type | None = None
        for index, element in enumerate(node.elements):
            element = node.elements[index] = self.check(element)
            of = self.type_of(element)
            if index in node.optional:
                of = self.optional_element(element, of)
            elements = self.join(element, elements, of)
        return self.set_type(node, list_of(self.fresh_parameter() if elements is None else elements))

    def optional_element(self, node: Node, of: Type) -> Type:
        inner = _unwrap_optional(of)
        if inner is not None:
            return inner
        if not is_dyn(of):
            self.mismatch(node, optional_of(of), of)
        return of

    def join(self, node: Node, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.fits(previous, current):
            if current is NULL and previous.kind == "opaque" and not self.cel_go:
                return previous
            return most_general(previous, current)
        if not self.homogeneous:
            return DYN
        self.mismatch(node, previous, current)
        return ERROR

    def check_map(self, node: MapLiteral) -> Node:
        keys: Type | None = None
        values: Type | None = None
        for entry in node.entries:
            entry.key = self.check(entry.key)
            keys = self.join(entry.key, keys, self.type_of(entry.key))
            entry.value = self.check(entry.value)
            of = self.type_of(entry.value)
            if entry.optional:
                of = self.optional_element(entry.value, of)
            values = self.join(entry.value, values, of)
        if keys is None or values is None:
            keys, values = self.fresh_parameter(), self.fresh_parameter()
        return self.set_type(node, map_of(keys, values))

    def check_struct(self, node: Struct) -> Node:
        found = self.global_name(node.name)
        if found is not None and not found[2] and self.old_cel_go:
            return self.check_struct_of_variable(node, found[0], found[1])
        if found is None or not found[2]:
            return self.undeclared(node, node.name)
        name, of = found[0], found[1].params[0]
        node.name = name
        fields = self.declarations.fields.get(name) or well_known.FIELDS.get(name)
        if fields is None and self.cel_go:
            fields = well_known.fields_of(of)
        message_type = fields is not None
        if fields is None:
            self.source.report(node.offset, f"'{of.name}' is not a message type")
            fields = {}
        for field in node.fields:
            field.value = self.check(field.value)
            expected = fields.get(field.name)
            given = self.type_of(field.value)
            if field.optional:
                given = self.optional_element(field.value, given)
            if expected is None:
                self.unknown_field(field, of, message_type)
            elif not self.fits(expected, given):
                self.source.report(
                    field.offset,
                    f"expected type of field '{field.name}' is '{format_type(expected)}' "
                    f"but provided type is '{format_type(given)}'",
                )
        return self.set_type(node, of if message_type else ERROR)

    def check_struct_of_variable(self, node: Struct, name: str, of: Type) -> Node:
        """`claims{}`, which cel-go until 0.26 takes for a type of that name, at first."""
        self.source.report(node.offset, f"'{of.name}' is not a type")
        for field in node.fields:
            field.value = self.check(field.value)
            self.source.report(field.offset, f"unexpected failed resolution of '{name}'")
        return self.set_type(node, ERROR)

    def unknown_field(self, field: Field, of: Type, message_type: bool) -> None:
        """A field that its type has not. What cel-go says of one of a type that can have none depends on the type."""
        if message_type and of.kind == "null":
            self.source.report(field.offset, "unexpected failed resolution of 'google.protobuf.NullValue'")
        elif message_type or (self.cel_go and of.kind in _FIELDLESS):
            self.source.report(field.offset, f"undefined field '{field.name}'")
        elif self.cel_go and of.kind != "map":
            self.source.report(field.offset, f"unexpected failed resolution of '{of.name}'")

    def check_comprehension(self, node: Comprehension) -> Node:
        node.iter_range = self.check(node.iter_range)
        node.init = self.check(node.init)
        over = substitute(self.bindings, self.type_of(node.iter_range))
        accu = self.type_of(node.init)
        first, second = self.iteration_types(node, over)
        self.scopes.append({node.accu: accu})
        self.scopes.append({node.iter_var2: second, node.iter_var: first} if node.iter_var2 else {node.iter_var: first})
        node.condition = self.check(node.condition)
        self.assert_type(node.condition, BOOL)
        node.step = self.check(node.step)
        self.assert_type(node.step, accu)
        self.scopes.pop()
        node.result = self.check(node.result)
        self.scopes.pop()
        return self.set_type(node, substitute(self.bindings, self.type_of(node.result)))

    def iteration_types(self, node: Comprehension, over: Type) -> tuple[Type, Type]:
        """The types of the one or two iteration variables."""
        if over.kind == "list":
            return (INT, over.params[0]) if node.iter_var2 else (over.params[0], DYN)
        if over.kind == "map":
            return over.params[0], over.params[1]
        if over.kind in ("dyn", "error", "parameter"):
            self.fits(DYN, over)
            return DYN, DYN
        self.source.report(
            node.iter_range.offset,
            f"expression of type '{format_type(over)}' cannot be range of a comprehension "
            "(must be list, map, or dynamic)",
        )
        return ERROR, ERROR

    def assert_type(self, node: Node, expected: Type) -> None:
        if not self.fits(expected, self.type_of(node)):
            self.mismatch(node, expected, self.type_of(node))


def _unwrap_optional(of: Type) -> Type | None:
    return of.params[0] if of.kind == "opaque" and of.name == "optional_type" and of.params else None


def _qualified_name(node: Node) -> str | None:
    """`a.b.c` of selects that end in a name, or None."""
    parts: list[str] = []
    while isinstance(node, Select):
        if node.test_only:
            return None
        parts.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    parts.append(node.name)
    return ".".join(reversed(parts))
