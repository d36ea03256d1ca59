"""Names, selects and indexes: `a`, `a.b`, `a[0]`, `a.?b`, `a[?0]`, `has(a.b)`.

cel-go reckons a name with everything selected from it as one step: 1 for the whole and 1 for each select or index
that was tried; after an optional one, for each that found something.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ast import Call, Ident, Literal, Node, Select
from .errors import EvalError
from .escaping import unescape_or_none
from .folding import NOT_CONSTANT, fold
from .runtime import go_type, is_key
from .types import BOOL, DYN, INT, STRING, Type, optional_of

if TYPE_CHECKING:
    from .codegen import Generator, Value

__all__ = ["attribute", "conditional", "is_attribute", "is_from_outside", "optional_raw"]

_INDEXES = frozenset(("_[_]", "_[?_]", "_?._"))
_NEVER_OPTIONAL = frozenset((
    "bool", "bytes", "double", "duration", "int", "list", "map", "null", "string", "struct", "timestamp", "type",
    "uint",
))  # fmt: skip


def is_attribute(node: Node) -> bool:
    """Whether cel-go plans it as an attribute: such a branch of a conditional costs 1 less."""
    if isinstance(node, Ident):
        return not node.type_value
    if isinstance(node, Select):
        return not node.test_only
    return isinstance(node, Call) and (node.function in _INDEXES or node.function == "_?_:_")


def is_from_outside(g: Generator, node: Node) -> bool:
    """Whether a value is part of a lazy variable."""
    root, steps = _steps(node)
    return bool(steps) and isinstance(root, Ident) and root.is_global and root.name in g.lazy


class _Step:
    """One select or index: `key` is a string that is known now, or `node` computes it. `found`: the type of what is
    there, as the checker has it."""

    __slots__ = ("found", "key", "node", "optional", "test")

    def __init__(
        self, found: Type | None, key: str | None, node: Node | None, optional: bool, test: bool = False
    ) -> None:
        self.found = found
        self.key = key
        self.node = node
        self.optional = optional
        self.test = test


def _steps(node: Node) -> tuple[Node, list[_Step]]:
    steps: list[_Step] = []
    while True:
        if isinstance(node, Select):
            steps.append(_Step(node.type, node.field, None, optional=False, test=node.test_only))
            node = node.operand
        elif isinstance(node, Call) and node.function in _INDEXES and len(node.args) == 2 and node.target is None:
            key = node.args[1]
            optional = node.function != "_[_]"
            if isinstance(key, Literal) and type(key.value) is str:
                steps.append(_Step(node.type, key.value, None, optional))
            else:
                steps.append(_Step(node.type, None, key, optional))
            node = node.args[0]
        else:
            steps.reverse()
            return node, steps


def attribute(g: Generator, node: Node, *, top: bool) -> Value:
    """A whole chain. `top`: it stands for itself, not as a branch or an index, and costs 1 more."""
    value, raw, _ = _chain(g, node, top=top)
    if raw:
        return g.store(f"optional({value[0]})"), optional_of(DYN)
    return value


def optional_raw(g: Generator, node: Node) -> str | None:
    """The value of an optional chain or MISSING, without the object around it; None if the node is no such chain."""
    if not isinstance(node, (Call, Select)) or not is_attribute(node) or getattr(node, "function", "") == "_?_:_":
        return None
    if not any(step.optional for step in _steps(node)[1]):
        return None
    return _chain(g, node, top=True)[0][0]


def _tested_part(g: Generator, node: Node) -> tuple[Value, str] | None:
    """`has` as a branch or an index, and see `_opened`; None for what is not that.

    cel-go asks a chain in such a place for its value, so that of an optional chain the optional comes, not a bool.
    """
    if not g.cel_go or not isinstance(node, Select) or not node.test_only:
        return None
    value, raw, flag = _chain(g, node, top=False, is_part=True)
    return ((g.store(f"optional({value[0]})"), optional_of(DYN)) if raw else value), flag


def _chain(g: Generator, node: Node, *, top: bool, is_part: bool = False) -> tuple[Value, bool, str]:
    """The value, whether it is the raw form of an optional, and see `_opened`. `is_part`: see `_tested_part`."""
    root, steps = _steps(node)
    testing = bool(steps) and steps[-1].test
    lazy_type = opened = ""
    is_condition = isinstance(root, Call) and root.function == "_?_:_"
    charge = (0 if is_condition else int(top)) - int(testing and g.free_has and not is_part)
    if g.absorbing:
        g.charge(charge)  # paid even if the root fails
    if isinstance(root, Ident) and not root.type_value:
        value, lazy_type = _root(g, root)
    elif isinstance(root, Call) and is_condition:
        value, opened = (conditional(g, root), "") if _is_object(g, root.type) else _conditional_root(g, root)
    else:
        value = g.value(root)
        if not value[0].isidentifier() or value[0] in ("True", "False", "None"):
            value = g.store(value[0]), value[1]  # Python warns of looking into a literal
    if not g.absorbing:
        g.charge(charge)
    if lazy_type and not steps:
        made = g.hand_over(g.declarations.object_class(lazy_type, lazy=True))
        return (g.store(f"{made}({value[0]})"), DYN), False, ""
    if g.old_cel_go and not lazy_type and _may_be_optional(root, value):
        value = _reopened(g, value)
    if not steps:
        return value, False, ""
    if not opened and not lazy_type:
        opened = _opened(g, root, value)
    if opened:
        inside = f"settled({value[0]}.value)" if g.old_cel_go else f"{value[0]}.value"
        value = g.store(f"{inside} if {opened} else {value[0]}"), DYN
    raw = False
    if not opened:
        value = _as_object(g, value, root.type)
    for step in steps:
        if step.test and opened and not raw and is_part:
            return _found_or_tested(g, value, step, opened), False, opened
        if step.test and not (raw and is_part):
            return _test(g, value, step, raw, opened, lazy_type), False, "False"
        raw = raw or step.optional
        if raw or opened:
            value = _find_if_there(g, value, step, "" if raw else opened, lazy_type)
        else:
            value = _as_object(g, _qualify(g, value, step, lazy_type), step.found)
        lazy_type = ""
    if opened and not raw:
        return (g.store(f"optional({value[0]}) if {opened} else {value[0]}"), DYN), False, opened
    return value, raw, "True" if raw else "False"


def _as_object(g: Generator, value: Value, checked: Type | None) -> Value:
    """A value that the checker has for an object: `read_field` looks whether it is one."""
    return (value[0], checked) if value[1] is DYN and checked is not None and _is_object(g, checked) else value


def _is_object(g: Generator, of: Type | None) -> bool:
    """Whether it is a type that a user declared by its fields."""
    if of is None or of.kind != "struct":
        return False
    return of.name in g.declarations.fields and of.name not in g.lazy.values()


def _reopened(g: Generator, value: Value) -> Value:
    return g.store(f"{'outside.' if g.tracks_origin else ''}reopened({value[0]})"), DYN


def _opened(g: Generator, root: Node, value: Value) -> str:
    """A name for whether the root is an optional, into which a chain looks as if each of its steps were optional; an
    empty text where it cannot be one. An optional further on in the chain is opaque: cel-go looks at the root alone.
    """
    return g.store(f"type({value[0]}) is Optional") if _may_be_optional(root, value) else ""


def _may_be_optional(node: Node, value: Value) -> bool:
    if value[1] is not DYN:
        return False
    # the check takes the value of something dynamic for what is done with it
    guessed = isinstance(node, Call) and node.function == "value"
    return guessed or node.type is None or node.type.kind not in _NEVER_OPTIONAL


def _find_if_there(g: Generator, value: Value, step: _Step, opened: str, lazy_type: str) -> Value:
    """An optional step: where the way has ended before, its key is not computed. `opened`: see `_opened`."""
    if lazy_type or value[1].kind == "struct":
        return _find(g, value, step, lazy_type)
    result = g.temporary()
    g.emit(f"{result} = MISSING")
    g.open(f"if {value[0]} is not MISSING:")
    found = _find_or_qualify(g, value, step, opened) if opened else _find(g, value, step, "")
    g.emit(f"{result} = {found[0]}")
    g.close()
    return result, DYN


def _find_or_qualify(g: Generator, value: Value, step: _Step, opened: str) -> Value:
    key, _ = _key(g, step, lazy=False)
    g.may_fail()
    atom = value[0]
    if step.key is not None:
        key = repr(step.key)
    found = "find_unescaped" if g.unescape else "find" if g.cel_go else "find_strict"
    must = "qualify_unescaped" if g.unescape else "qualify"
    result = g.temporary()
    g.emit(f"if not {opened}: c += 1")
    g.emit(f"{result} = {found}({atom}, {key}) if {opened} else {must}({atom}, {key})")
    g.emit(f"if {opened} and {result} is not MISSING: c += 1")
    return result, DYN


def _root(g: Generator, node: Ident) -> tuple[Value, str]:
    if g.cel_go and node.type is not None and node.type.kind == "type":
        # cel-go takes every name of type `type` for the name of a type
        raise EvalError(f"reference to undefined type: {node.name}")
    if not node.is_global:
        local = g.local(node.name)
        if local is not None:
            g.ensure(local[0])
            return local, ""
    name = node.name.removeprefix(".")
    known = g.declarations.variables.get(name, DYN)
    python = g.variable(name)
    lazy_type = g.lazy.get(name, "")
    return (python, DYN if known.kind == "any" else known), lazy_type


def _key(g: Generator, step: _Step, *, lazy: bool) -> tuple[str, Type]:
    if step.key is not None:
        if not g.unescape:
            return g.constant(step.key), STRING
        key = unescape_or_none(step.key)
        if key is None:
            # claims themselves have nothing under a wrongly escaped name; a map inside them may
            return ("MISSING" if lazy else g.constant(step.key)), STRING
        return g.constant(key), STRING
    assert step.node is not None  # noqa: S101 - one of the two is given
    node = step.node
    folded = fold(node)
    if g.cel_go and folded is not NOT_CONSTANT and not is_key(folded):
        raise EvalError(f"invalid qualifier type: {go_type(folded)}")
    if folded is NOT_CONSTANT and is_attribute(node):
        return attribute(g, node, top=False)
    tested = _tested_part(g, node)
    return g.value(node) if tested is None else tested[0]


def _qualify(g: Generator, value: Value, step: _Step, lazy_type: str) -> Value:
    """A step that must find something."""
    atom, known = value
    g.charge(1)  # paid even if the key fails
    key, key_type = _key(g, step, lazy=bool(lazy_type))
    g.may_fail()
    if known.kind == "struct":
        return _field(g, atom, known, step), _field_type(g, known, step)
    result = g.temporary()
    if known.kind == "list" and key_type is INT:
        g.emit(f"{result} = {atom}[{key}] if 0 <= {key} < len({atom}) else qualify({atom}, {key})")
        return result, known.params[0] if known.params[0].kind != "any" else DYN
    if key_type is STRING and (lazy_type or known.kind == "map"):
        if step.key is None and g.unescape:  # what the key turns out to be may be an escape
            g.emit(f"{result} = {'claim' if lazy_type else 'qualify_unescaped'}({atom}, {key})")
        else:
            g.emit(f"try: {result} = {atom}[{key}]")
            g.emit(f"except KeyError: raise no_key({key if step.key is None else repr(step.key)}) from None")
        return result, known.params[1] if known.kind == "map" and known.params[1].kind != "any" else DYN
    if step.key is not None:
        g.emit(f"try: {result} = {atom}[{key}] if type({atom}) is dict else qualify({atom}, {step.key!r})")
        g.emit(f"except KeyError: raise no_key({step.key!r}) from None")
    else:
        must = "claim" if lazy_type else "qualify_unescaped" if g.unescape else "qualify"
        g.emit(f"{result} = {must}({atom}, {key})")
    return result, DYN


def _find(g: Generator, value: Value, step: _Step, lazy_type: str) -> Value:
    """A step that may find nothing; `value` may be MISSING already."""
    atom, known = value
    key, _ = _key(g, step, lazy=bool(lazy_type))
    g.may_fail()
    result = g.temporary()
    if known.kind == "struct":
        g.charge(1)
        return _field(g, atom, known, step), DYN
    if lazy_type:
        g.emit(
            f"{result} = {atom}.get({key}, MISSING)"
            if step.key is not None
            else f"{result} = find_claim({atom}, {key})"
        )
    else:
        finder = "find" if g.cel_go else "find_strict"
        if g.unescape and (step.key is None or "__" in step.key):
            finder, key = "find_unescaped", key if step.key is None else repr(step.key)
        g.emit(f"{result} = {finder}({atom}, {key})")
    g.flush()
    g.emit(f"if {result} is not MISSING: c += 1")
    return result, DYN


def _test(g: Generator, value: Value, step: _Step, raw: bool, opened: str, lazy_type: str) -> Value:
    atom, known = value
    key, _ = _key(g, step, lazy=bool(lazy_type))
    g.may_fail()
    present = f"is_present({atom}, {key})"
    if lazy_type:
        present = f"{atom}.get({key}, MISSING) is not MISSING"
    elif g.unescape and step.key is not None and "__" in step.key:
        present = f"find_unescaped({atom}, {step.key!r}) is not MISSING"
    if raw or opened:
        if not raw:
            g.flush()
            g.emit(f"if not {opened}: c += 1")  # paid even if it fails
        found = g.store(present)
        g.flush()
        g.emit(f"if {found}: c += 1" if raw else f"if {opened} and {found}: c += 1")
        return found, BOOL
    g.charge(1)
    if g.absorbing:
        g.flush()
    if known.kind == "struct":
        # a declared field of a lazy object is always there; of an object of one's own, when it was given
        return g.store(f"has_field({atom}, {key})" if known.name not in g.lazy.values() else _is_there(atom, key)), BOOL
    return g.store(present), BOOL


def _found_or_tested(g: Generator, value: Value, step: _Step, opened: str) -> Value:
    """`has` of something that may be an optional (`opened`), where the optional itself is asked for."""
    result = g.temporary()
    g.open(f"if {opened}:")
    found = _find(g, value, step, "")
    g.emit(f"{result} = optional({found[0]})")
    g.close()
    g.open("else:")
    tested = _test(g, value, step, False, "", "")
    g.flush()
    g.emit(f"{result} = {tested[0]}")
    g.close()
    return result, DYN


def _is_there(atom: str, key: str) -> str:
    return f"{key} in {atom}.fields if hasattr({atom}, 'fields') else True"


def _field_type(g: Generator, known: Type, step: _Step) -> Type:
    of = g.declarations.fields.get(known.name, {}).get(step.key or "", DYN)
    return DYN if of.kind == "any" or of.nullable else of


def _field(g: Generator, atom: str, known: Type, step: _Step) -> str:
    """A declared field; one that was not given has its type's zero value."""
    for variable, fields in g.fields_at_hand.items():
        if step.key is not None and step.key in fields and g.variables.get(variable) == atom:
            return fields[step.key]
    of = g.declarations.fields.get(known.name, {}).get(step.key or "", DYN)
    default = {
        "string": "''",
        "int": "0",
        "double": "0.0",
        "bool": "False",
        "bytes": "b''",
        "list": "[]",
        "map": "{}",
        "uint": "UInt(0)",
    }
    zero = "None" if of.nullable else default.get(of.kind, "None")
    if not atom.isidentifier():
        return g.store(f"read_field({atom}, {step.key!r}, {zero})")
    # A plain dict that has the field is what nearly everybody gives.
    field = g.store(f"{atom}.get({step.key!r}) if type({atom}) is dict else None")
    g.emit(f"if {field} is None: {field} = read_field({atom}, {step.key!r}, {zero})")
    return field


def conditional(g: Generator, node: Call) -> Value:
    """`a ? b : c`. It costs nothing itself."""
    if g.too_deep():
        return g.moved_out(lambda: _conditional(g, node, ""))
    return _conditional(g, node, "")


def _conditional_root(g: Generator, node: Call) -> tuple[Value, str]:
    """A conditional from which something is selected, and see `_opened`: the chain begins in the branches."""
    opened = g.temporary()
    if g.too_deep():
        return g.moved_out(lambda: _conditional(g, node, opened)), opened
    return _conditional(g, node, opened), opened


def _conditional(g: Generator, node: Call, opened: str) -> Value:
    condition = g.boolean(g.value(node.args[0]))
    result = g.temporary()
    known: list[Type] = []
    for keyword, branch in ((f"if {condition}:", node.args[1]), ("else:", node.args[2])):
        g.open(keyword)
        flag = ""
        folded = fold(branch)
        if folded is NOT_CONSTANT and is_attribute(branch):
            if isinstance(branch, Call) and branch.function == "_?_:_":
                value, flag = _conditional_root(g, branch) if opened else (conditional(g, branch), "")
            else:
                value, raw, flag = _chain(g, branch, top=False)
                if raw:
                    value = g.store(f"optional({value[0]})"), optional_of(DYN)
        elif (tested := _tested_part(g, branch)) is not None:
            value, flag = tested
        else:
            value = g.value(branch)
            if g.old_cel_go and _may_be_optional(branch, value):
                value = _reopened(g, value)
        known.append(value[1])
        g.emit(f"{result} = {value[0]}")
        if opened:
            g.emit(f"{opened} = {flag or f'type({result}) is Optional'}")
        g.close()
    return result, known[0] if known[0] is known[1] else DYN
