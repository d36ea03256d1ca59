"""What generated code calls where it cannot say a thing in a line of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .errors import BadArgumentError, BadKeyError, EvalError, LimitError
from .escaping import unescape_or_none
from .grown_lists import Grown
from .library.indexing import display_key, index, position_of
from .map_building import (
    check_hashable,
    insert,
    insert_all,
    inserted,
    new_map,
    new_map_escaped,
    new_map_strict,
    protect,
)
from .objects import LazyObject, has_field, lazy_values, read_field, value_under
from .old_optionals import reopened, settled
from .outside import Outside
from .overloads import CostFunction
from .values import (
    MISSING,
    NONE,
    CelMap,
    Duration,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    equals,
    is_zero,
    map_find,
    size_of,
    type_name,
)  # fmt: skip

__all__ = ["ABSORBED", "LazyObject", "go_type", "is_key", "namespace"]

# What && and || may forget. The Python errors are for values that lie about their declared type.
ABSORBED = (EvalError, TypeError, AttributeError, ValueError, ArithmeticError, LookupError)


def is_key(value: object) -> bool:
    """Whether something can be looked up with this value."""
    return type(value) in _KEYS


def no_overload() -> EvalError:
    return EvalError("no such overload")


def missing_variable(name: str) -> EvalError:
    return EvalError(f"no such attribute(s): {name}")


def wrong_variable(name: str, value: object, declared: str) -> EvalError:
    if value is MISSING:
        return missing_variable(name)
    given = type_name(value)
    if given == declared:
        return EvalError(f"variable '{name}' is declared {declared}, which has 64 bits")
    return EvalError(f"variable '{name}' is declared {declared} and was given {given}")


def claim(claims: Any, key: Any) -> object:
    """The claim of a name that is computed."""
    found = find_claim(claims, key)
    if found is MISSING:
        raise no_key(key)
    return found


def find_claim(claims: Any, key: Any) -> object:
    """The same, MISSING if there is none. Claims themselves have nothing under a wrongly escaped name."""
    if type(key) is not str:
        if type(key) in _KEYS:
            raise no_overload()
        return find(claims, key)
    name = unescape_or_none(key)
    return MISSING if name is None else claims.get(name, MISSING)


def text_of_type(value: object) -> object:
    """What a pattern that was compiled before looks at: of a type, its name."""
    return value.name if type(value) is TypeValue else value


def no_key(key: object) -> EvalError:
    return EvalError(f"no such key: {display_key(key)}")


def qualify(container: Any, key: Any) -> object:
    """container[key] or container.key for anything."""
    if type(key) not in _KEYS:
        raise BadKeyError(f"invalid qualifier type: {go_type(key)}", key)
    if isinstance(container, LazyObject):
        return _lazy_field(container, key)
    if type(container) is Optional:
        raise no_key(key)
    return index(container, key)


def _lazy_field(container: LazyObject, key: object) -> object:
    if type(key) is not str:
        raise no_overload()
    value = container.fields.get(key, MISSING)
    if value is MISSING:
        raise no_key(key)
    return value


def qualify_unescaped(container: Any, key: Any) -> object:
    """`qualify` where names are escaped as Kubernetes escapes them."""
    if type(key) is str and "__" in key and (type(container) is dict or isinstance(container, LazyObject)):
        found = find_unescaped(container, key)
        if found is MISSING:
            raise no_key(key)
        return found
    return qualify(container, key)


def find_unescaped(container: Any, key: Any) -> object:
    """`find` where names are escaped as Kubernetes escapes them."""
    if type(key) is str and "__" in key:
        name = unescape_or_none(key)
        if type(container) is dict:
            return container.get(key if name is None else name, MISSING)
        if isinstance(container, LazyObject):
            return MISSING if name is None else container.fields.get(name, MISSING)
    return find(container, key)


def find(container: Any, key: Any) -> object:
    """The same where the way may end: MISSING if there is nothing there."""
    if type(key) not in _KEYS:
        raise BadKeyError(f"invalid qualifier type: {go_type(key)}", key)
    kind = type(container)
    if kind is dict or kind is CelMap:
        return map_find(container, key)
    if container is MISSING:
        return MISSING
    if kind is list or kind is tuple:
        position = position_of(key)
        return container[position] if 0 <= position < len(container) else MISSING
    if isinstance(container, LazyObject):
        if type(key) is not str:
            raise no_overload()
        return container.fields.get(key, MISSING)
    return MISSING


def find_strict(container: Any, key: Any) -> object:
    """`find` by the specification: only in a map, a list, an object or an optional can something be missing."""
    if container is not MISSING and find(container, key) is MISSING and type(container) in _SCALARS:
        raise no_key(key)
    return find(container, key)


_SCALARS = frozenset((type(None), bool, int, UInt, float, str, bytes))


def is_present(container: Any, key: Any) -> bool:
    """has(container.key)"""
    if type(container) is dict:
        return key in container
    return find(container, key) is not MISSING


def optional(found: object) -> Optional:
    return NONE if found is MISSING else Optional(found)


def raw_optional(value: object) -> object:
    """What an optional holds, or MISSING."""
    if type(value) is Optional:
        return value.value
    raise no_overload()


def raw_or_self(value: object) -> object:
    """What an optional holds, or MISSING; what is no optional, itself."""
    return value.value if type(value) is Optional else value


_GO_TYPES = {str: "types.String", bool: "types.Bool", int: "types.Int", UInt: "types.Uint", float: "types.Double",
             bytes: "types.Bytes", type(None): "types.Null", Timestamp: "types.Timestamp", Duration: "types.Duration",
             Optional: "*types.Optional", TypeValue: "*types.Type", list: "*types.baseList", tuple: "*types.baseList",
             dict: "*types.baseMap", CelMap: "*types.baseMap"}  # fmt: skip
_KEYS = frozenset((str, int, UInt, bool, float))


def go_type(value: object) -> str:
    """The name of the Go type that Kubernetes has for a value: some texts show it."""
    if isinstance(value, LazyObject):
        return "*lazy.MapValue"
    return _GO_TYPES.get(type(value)) or f"cel.{type(value).__name__}"


class Raised:
    """The error of a part that is computed once and used often."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def iterate(value: Any) -> Iterator[object]:
    """The elements of a list, the keys of a map."""
    kind = type(value)
    if kind is list or kind is tuple or kind is dict or kind is CelMap:
        return iter(value)
    if isinstance(value, LazyObject):
        return lazy_values(value.fields)
    raise EvalError(f"got '{go_type(value)}', expected iterable type")


def iterate_pairs(value: Any) -> Iterator[tuple[object, object]]:
    """Index and element, or key and value."""
    kind = type(value)
    if kind is list or kind is tuple:
        return enumerate(value)
    if kind is dict or kind is CelMap:
        return iter(value.items())
    if isinstance(value, LazyObject):
        # its iterator yields values, which then serve as keys
        return iter([(element, value_under(value.fields, element)) for element in lazy_values(value.fields)])
    raise EvalError(f"unsupported comprehension range type: {go_type(value)}")


def optional_element(value: object) -> object:
    """The value of `[?x]`, or MISSING."""
    if type(value) is Optional:
        return value.value
    raise EvalError(f"cannot initialize optional list element from non-optional value {display_key(value)}")


def optional_entry(key: object, value: object) -> object:
    """The value of `{?k: x}`, or MISSING."""
    if type(value) is Optional:
        return value.value
    raise EvalError(
        f"cannot initialize optional entry '{display_key(key)}' from non-optional value {display_key(value)}"
    )


def detached(value: Any, copies: dict[int, object] | None = None) -> object:
    """A copy of a result that may hold constants of the program: the caller may change what it gets.

    `copies`: by the original's id. What stands in several places is copied once, else a small expression could make
    a copy without end.
    """
    kind = type(value)
    if kind is not list and kind is not tuple and kind is not dict and kind is not CelMap and kind is not Optional:
        return value
    if copies is None:
        copies = {}
    copy = copies.get(id(value))
    if copy is not None:
        return copy
    if kind is list or kind is tuple:
        copy = [detached(element, copies) for element in value]
    elif kind is dict:
        copy = {key: detached(element, copies) for key, element in value.items()}
    elif kind is CelMap:
        copy = CelMap([(key, detached(element, copies)) for key, element in value.items()])
    else:
        copy = value if value.value is MISSING else Optional(detached(value.value, copies))
    copies[id(value)] = copy
    return copy


def int_overflow() -> EvalError:
    return EvalError("integer overflow")


def no_room() -> LimitError:
    return LimitError("operation cancelled: too many list elements")


def differ(left: object, right: object) -> bool:
    """`!=`. Values that cannot be compared are not equal."""
    try:
        return not equals(left, right)
    except EvalError:
        return True


def cost_before(cost: CostFunction, arguments: tuple[object, ...]) -> int:
    """What a call will cost, when its arguments may be of the wrong type: then the call itself says so."""
    try:
        return cost(arguments, None)
    except ABSORBED:
        return 0


def equality_cost(left: object, right: object) -> int:
    if isinstance(left, Opaque) and not isinstance(left, LazyObject):
        return 1
    return comparison_cost(left, right)


def comparison_cost(left: object, right: object) -> int:
    return (min(size_of(left), size_of(right)) + 9) // 10


def non_zero(value: object) -> Optional:
    """optional.ofNonZeroValue of something that came from outside: no list or map of those counts as zero there."""
    if type(value) is list or type(value) is dict:
        return Optional(value)
    return NONE if is_zero(value) else Optional(value)


def assert_argument(value: object, wanted: str) -> None:
    """Raises where cel-go's reckoning of a call takes the argument for what it is not."""
    if type(value) is not int if wanted == "int" else type(value) is not list and type(value) is not tuple:
        raise wrong_argument(go_type(value), wanted, value)


_WITH_ADD = frozenset(("types.Bytes", "types.Double", "types.Duration", "types.Int", "types.String", "types.Timestamp",
                       "types.Uint"))  # fmt: skip


def wrong_argument(found: str, wanted: str, value: object = None) -> LimitError:
    """Go's panic, which no `||` forgets."""
    if wanted == "int":
        return BadArgumentError(f"internal error: interface conversion: ref.Val is {found}, not types.Int", value)
    missing = "Contains" if found in _WITH_ADD else "Add"
    text = f"internal error: interface conversion: {found} is not traits.Lister: missing method {missing}"
    return BadArgumentError(text, value)


def namespace() -> dict[str, object]:
    """The names that generated code starts with."""
    functions = (
        assert_argument, check_hashable, claim, comparison_cost, cost_before, detached, differ, equality_cost,
        equals, find, find_claim, find_strict, find_unescaped, has_field, insert, insert_all, inserted, int_overflow,
        is_present, iterate, iterate_pairs, missing_variable, new_map, new_map_escaped, new_map_strict, no_key,
        no_overload, no_room, non_zero, optional, optional_element, optional_entry, protect, qualify, qualify_unescaped,
        raw_optional, raw_or_self, read_field, reopened, settled, size_of, text_of_type, wrong_argument, wrong_variable,
    )  # fmt: skip
    return {
        "ABSORBED": ABSORBED,
        "EvalError": EvalError,
        "LimitError": LimitError,
        "MISSING": MISSING,
        "NONE": NONE,
        "Optional": Optional,
        "Grown": Grown,
        "Outside": Outside,
        "Raised": Raised,
        "Duration": Duration,
        "Timestamp": Timestamp,
        "UInt": UInt,
        **{function.__name__: function for function in functions},
    }
