"""CEL's values: equality across types, order, maps with keys of many types, sizes."""

from __future__ import annotations

import copy
import math
import pickle

import pytest

from kubeauthn.cel.errors import EvalError
from kubeauthn.cel.library.ip import string_to_ip
from kubeauthn.cel.library.quantity_value import parse_quantity
from kubeauthn.cel.values import (
    MISSING,
    NONE,
    CelMap,
    Duration,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    compare,
    equals,
    is_zero,
    make_map,
    map_find,
    size_of,
    type_name,
)

NAN = float("nan")
ADDRESS = string_to_ip("1.2.3.4")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (1, 1.0),
        (UInt(1), 1),
        (1.0, UInt(1)),
        ([1, 2.0], (UInt(1), 2)),
        ({"a": 1}, {"a": 1.0}),
        (CelMap([(1, "x")]), CelMap([(UInt(1), "x")])),
        (None, None),
        (b"a", b"a"),
        (Timestamp(5), Timestamp(5, 7200)),
        (Duration(5), Duration(5)),
        (TypeValue("int"), TypeValue("int")),
        (NONE, Optional()),
        (Optional(1), Optional(1.0)),
        (ADDRESS, string_to_ip("1.2.3.4")),
        # An integer meets a double as the nearest double.
        (9007199254740993, 9007199254740992.0),
        ({}, CelMap()),
    ],
)
def test_equal(left, right) -> None:
    assert equals(left, right)
    assert equals(right, left)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (True, 1),
        (False, 0.0),
        ("1", 1),
        ("a", b"a"),
        (None, 0),
        (None, False),
        (NAN, NAN),
        ([NAN], [NAN]),
        ([1], [1, 2]),
        ({"a": 1}, {"b": 1}),
        (CelMap([(True, "x")]), CelMap([(1, "x")])),
        (Timestamp(5), Duration(5)),
        (Optional(1), 1),
        (Optional(1), NONE),
        (-1, UInt((1 << 64) - 1)),
        (float(1 << 63), (1 << 63) - 1 - 1024),
    ],
)
def test_different(left, right) -> None:
    assert not equals(left, right)
    assert not equals(right, left)


def test_an_opaque_value_on_the_left_meets_its_own_kind_only() -> None:
    with pytest.raises(EvalError, match="^no such overload$"):
        equals(ADDRESS, 1)
    assert not equals(1, ADDRESS)
    # Inside a list such a pair does not make the difference.
    assert equals([ADDRESS], [1])


def test_kubernetes_does_not_take_a_sum_on_the_right() -> None:
    total = parse_quantity("1").plus(parse_quantity("1"))
    assert equals(total, parse_quantity("2"))
    with pytest.raises(EvalError):
        equals(parse_quantity("2"), total)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (1, 2),
        (1, 1.5),
        (-1, UInt(0)),
        (0.5, UInt(1)),
        (UInt(5), 1e300),
        (-1e300, -(1 << 63)),
        ("Z", "a"),
        ("a", "é"),
        ("\uffff", "\U00010000"),
        (b"a", b"ab"),
        (False, True),
        (Timestamp(1), Timestamp(2, 3600)),
        (Duration(-1), Duration(0)),
    ],
)
def test_order(low, high) -> None:
    assert compare(low, high) == -1
    assert compare(high, low) == 1
    assert compare(low, low) == 0


@pytest.mark.parametrize(("left", "right"), [(1, "1"), (True, 1), ([1], [1]), (None, None), ("a", b"a"), (1, None)])
def test_no_order(left, right) -> None:
    with pytest.raises(EvalError, match="^no such overload$"):
        compare(left, right)


@pytest.mark.parametrize(("left", "right"), [(NAN, 1), (1, NAN), (NAN, NAN), (UInt(1), NAN), (NAN, "a")])
def test_not_a_number_has_no_order(left, right) -> None:
    with pytest.raises(EvalError, match="^NaN values cannot be ordered$"):
        compare(left, right)


def test_numeric_keys_find_each_other_and_bool_is_no_number() -> None:
    mapping = make_map([(1, "one"), (True, "yes"), (UInt(2), "two"), ("1", "text")])
    assert [map_find(mapping, key) for key in (1, UInt(1), 1.0)] == ["one"] * 3
    assert [map_find(mapping, key) for key in (2, UInt(2), 2.0)] == ["two"] * 3
    assert map_find(mapping, True) == "yes"
    assert map_find(mapping, "1") == "text"
    assert [map_find(mapping, key) for key in (False, 0, 1.5, NAN, None, [])] == [MISSING] * 6


def test_a_map_keeps_the_types_of_its_keys() -> None:
    mapping = make_map([(1, "a"), (UInt(1), "b"), (1, "c")])
    assert [(type(key), value) for key, value in mapping.items()] == [(int, "c"), (UInt, "b")]
    assert map_find(mapping, UInt(1)) == "b"


def test_a_map_of_strings_is_a_dict() -> None:
    assert type(make_map([("a", 1), ("a", 2)])) is dict
    assert map_find({"1": "x"}, 1) is MISSING


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "bool"),
        (1, "int"),
        (UInt(1), "uint"),
        (1.0, "double"),
        ("", "string"),
        (b"", "bytes"),
        (None, "null_type"),
        ([], "list"),
        ((), "list"),
        ({}, "map"),
        (CelMap(), "map"),
        (Duration(1), "google.protobuf.Duration"),
        (Timestamp(1), "google.protobuf.Timestamp"),
        (TypeValue("int"), "type"),
        (NONE, "optional_type"),
        (ADDRESS, "net.IP"),
    ],
)
def test_type_names(value, name) -> None:
    assert type_name(value) == name


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("é😀", 2),
        (b"\xc3\xa9", 2),
        ([1, 2, 3], 3),
        ({"a": 1}, 1),
        (CelMap([(1, 2)]), 1),
        (7, 1),
        (None, 1),
        (ADDRESS, 4),
        (string_to_ip("::1"), 16),
        (Optional("abc"), 3),
        (NONE, 1),
    ],
)
def test_sizes(value, size) -> None:
    assert size_of(value) == size


@pytest.mark.parametrize("value", [None, 0, 0.0, UInt(0), "", b"", False, [], {}, CelMap(), Duration(0)])
def test_zero_values(value) -> None:
    assert is_zero(value)


@pytest.mark.parametrize("value", [1, NAN, "0", [0], {"a": 0}, True, Duration(1), Timestamp(0), NONE, ADDRESS])
def test_values_that_are_something(value) -> None:
    assert not is_zero(value)


def test_infinity_is_beyond_every_integer() -> None:
    assert compare(math.inf, (1 << 63) - 1) == 1
    assert compare(UInt((1 << 64) - 1), math.inf) == -1


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])  # noqa: S301  our own bytes
def test_a_value_that_is_absent_stays_so_when_it_is_copied(again):
    assert not again([NONE])[0].present
    assert again(MISSING) is MISSING
    assert again([Optional(1)])[0].value == 1
