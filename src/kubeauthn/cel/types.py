"""CEL's static types. Equal types are one object, so `is` compares them."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import CelError

__all__ = [
    "ANY", "BOOL", "BYTES", "DOUBLE", "DURATION", "DYN", "ERROR", "INT", "NULL", "STRING", "TIMESTAMP", "TYPE", "UINT",
    "Type", "format_type", "list_of", "map_of", "opaque", "optional_of", "parameter", "parse_type", "struct",
    "type_of_type", "with_structs", "wrapper_of",
]  # fmt: skip


class Type:
    """A type: its kind, its name as a running expression sees it, and the types it is made of."""

    __slots__ = ("_text", "has_parameters", "kind", "name", "nullable", "params")

    def __init__(self, kind: str, name: str, params: tuple[Type, ...], nullable: bool) -> None:
        self.kind = kind
        self.name = name
        self.params = params
        self.nullable = nullable  # a wrapper of a scalar: google.protobuf.StringValue and its like
        self.has_parameters: bool = kind == "parameter" or any(p.has_parameters for p in params)
        shown = f"wrapper({name})" if nullable else f"<{name}>" if kind == "parameter" else name
        self._text: str = f"{shown}({', '.join([part._text for part in params])})" if params else shown

    def __str__(self) -> str:
        """As cel-go's `String()`: the form of `Program.output_type` and of library tables."""
        return self._text

    def __repr__(self) -> str:
        return f"Type({str(self)!r})"


_interned: dict[tuple[str, str, tuple[Type, ...], bool], Type] = {}


def _intern(kind: str, name: str, params: tuple[Type, ...] = (), nullable: bool = False) -> Type:
    key = (kind, name, params, nullable)
    found = _interned.get(key)
    if found is None:
        # setdefault is atomic: two threads that race get the same object
        found = _interned.setdefault(key, Type(kind, name, params, nullable))
    return found


ANY = _intern("any", "google.protobuf.Any")
BOOL = _intern("bool", "bool")
BYTES = _intern("bytes", "bytes")
DOUBLE = _intern("double", "double")
DURATION = _intern("duration", "google.protobuf.Duration")
DYN = _intern("dyn", "dyn")
ERROR = _intern("error", "*error*")
INT = _intern("int", "int")
NULL = _intern("null", "null_type")
STRING = _intern("string", "string")
TIMESTAMP = _intern("timestamp", "google.protobuf.Timestamp")
TYPE = _intern("type", "type")
UINT = _intern("uint", "uint")


def list_of(element: Type) -> Type:
    return _intern("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return _intern("map", "map", (key, value))


def opaque(name: str, params: tuple[Type, ...] = ()) -> Type:
    return _intern("opaque", name, params)


def optional_of(value: Type) -> Type:
    return _intern("opaque", "optional_type", (value,))


def parameter(name: str) -> Type:
    return _intern("parameter", name)


def struct(name: str) -> Type:
    """The type of an object with declared fields."""
    return _intern("struct", name)


def type_of_type(inner: Type) -> Type:
    return _intern("type", "type", (inner,))


def wrapper_of(scalar: Type) -> Type:
    return _intern(scalar.kind, scalar.name, scalar.params, nullable=True)


_NAMED = {
    "any": ANY, "bool": BOOL, "bytes": BYTES, "double": DOUBLE, "duration": DURATION, "dyn": DYN, "int": INT,
    "null": NULL, "null_type": NULL, "string": STRING, "timestamp": TIMESTAMP, "type": TYPE, "uint": UINT,
    "google.protobuf.Any": ANY, "google.protobuf.Duration": DURATION, "google.protobuf.Timestamp": TIMESTAMP,
    "google.protobuf.Value": DYN, "google.protobuf.ListValue": list_of(DYN),
    "google.protobuf.Struct": map_of(STRING, DYN), "google.protobuf.NullValue": NULL,
    "google.protobuf.BoolValue": wrapper_of(BOOL), "google.protobuf.BytesValue": wrapper_of(BYTES),
    "google.protobuf.DoubleValue": wrapper_of(DOUBLE), "google.protobuf.FloatValue": wrapper_of(DOUBLE),
    "google.protobuf.Int64Value": wrapper_of(INT), "google.protobuf.Int32Value": wrapper_of(INT),
    "google.protobuf.UInt64Value": wrapper_of(UINT), "google.protobuf.UInt32Value": wrapper_of(UINT),
    "google.protobuf.StringValue": wrapper_of(STRING),
}  # fmt: skip
_parsed: dict[str, Type] = {}


def parse_type(text: str) -> Type:
    """The type that a text names: `int`, `list(string)`, `map(string, dyn)`, `<A>`, `my.Type`."""
    found = _NAMED.get(text) or _parsed.get(text)
    if found is None:
        found, end = _parse(text, 0)
        if end != len(text):
            raise CelError(f"not a type: {text!r}")
        _parsed[text] = found
    return found


def with_structs(of: Type, structs: Mapping[str, Type]) -> Type:
    """The type with the objects that are declared in the place of the names that stand for them, however deep."""
    if of.kind == "opaque" and not of.params:
        return structs.get(of.name, of)
    params = tuple(with_structs(part, structs) for part in of.params)
    return of if params == of.params else _intern(of.kind, of.name, params, of.nullable)


def _parse(text: str, at: int) -> tuple[Type, int]:
    end = at
    while end < len(text) and text[end] not in "(),":
        end += 1
    name = text[at:end].strip()
    params: list[Type] = []
    if end < len(text) and text[end] == "(":
        while True:
            inner, end = _parse(text, end + 1)
            params.append(inner)
            if end >= len(text) or text[end] not in "),":
                raise CelError(f"not a type: {text!r}")
            if text[end] == ")":
                end += 1
                break
    if not name:
        raise CelError(f"not a type: {text!r}")
    if name.startswith("<"):
        return parameter(name[1:-1]), end
    if name == "list" and len(params) <= 1:
        return list_of(params[0] if params else DYN), end
    if name == "map" and len(params) in (0, 2):
        return (map_of(params[0], params[1]) if params else map_of(DYN, DYN)), end
    if name == "type":
        return (type_of_type(params[0]) if params else TYPE), end
    if name == "optional_type" and not params:
        return optional_of(DYN), end
    if name == "wrapper" and len(params) == 1:
        return wrapper_of(params[0]), end
    return _NAMED.get(name) or opaque(name, tuple(params)), end


_SHORT = {"any": "any", "duration": "duration", "error": "!error!", "null": "null", "timestamp": "timestamp"}


def format_type(of: Type) -> str:
    """As the type checker's messages print it."""
    short = _SHORT.get(of.kind)
    if short is not None:
        return short
    if of.kind == "parameter":
        return of.name
    if not of.params:
        return f"wrapper({of.name})" if of.nullable else of.name
    return f"{of.name}({', '.join(format_type(p) for p in of.params)})"
