"""The libraries' functions, called directly: values and error texts as Kubernetes was recorded to give them."""

from __future__ import annotations

import pytest

from kubeauthn.cel.errors import EvalError, LimitError
from kubeauthn.cel.library import (
    basics,
    bounds,
    comprehensions,
    conversions,
    encoders,
    kubernetes_lists,
    kubernetes_regex,
    lists,
    maths,
    operators,
    optionals,
    sets,
    strings,
    timestamps,
)
from kubeauthn.cel.values import NONE, Duration, Optional, Timestamp, UInt

TABLES = (
    operators.OVERLOADS,
    basics.OVERLOADS,
    conversions.OVERLOADS,
    timestamps.OVERLOADS,
    strings.overloads(3),
    lists.OVERLOADS,
    sets.OVERLOADS,
    optionals.OVERLOADS,
    comprehensions.OVERLOADS,
    kubernetes_lists.OVERLOADS,
    kubernetes_regex.OVERLOADS,
    encoders.OVERLOADS,
    maths.OVERLOADS,
)
ROWS = {row.id: row for table in TABLES for row in table}
MAX, MIN = (1 << 63) - 1, -(1 << 63)
NAN = float("nan")


def call(id: str, *arguments: object) -> object:
    return ROWS[id].implementation(*arguments)


@pytest.mark.parametrize(
    ("id", "arguments", "expected"),
    [
        ("add_int64", (1, 2), 3),
        ("add_string", ("a", "b"), "ab"),
        ("add_list", ([1], (2,)), [1, 2]),
        ("add_timestamp_duration", (Timestamp(5), Duration(1)), Timestamp(6)),
        ("add_duration_timestamp", (Duration(1), Timestamp(5)), Timestamp(6)),
        ("subtract_timestamp_timestamp", (Timestamp(5), Timestamp(6)), Duration(-1)),
        ("subtract_uint64", (UInt(3), UInt(1)), UInt(2)),
        ("multiply_double", (1e300, 1e300), float("inf")),
        ("divide_int64", (-7, 2), -3),
        ("divide_double", (1.0, -0.0), float("-inf")),
        ("modulo_int64", (-7, 2), -1),
        ("negate_int64", (MAX,), -MAX),
        ("less_int64_double", (1, 1.5), True),
        ("not_equals", (NAN, NAN), True),
        ("in_list", (1.0, [UInt(1)]), True),
        ("in_list", (True, [1]), False),
        ("in_map", ("a", {"a": None}), True),
        ("index_list", ([5, 6], 1.0), 6),
        ("size_string", ("é😀",), 2),
        ("matches", ("a\n", "^a$"), False),
        ("matches_string", ("bar", "a"), True),
        ("string_to_bool", ("T",), True),
        ("double_to_int64", (-1.9,), -1),
        ("double_to_string", (1700086400.0,), "1.7000864e+09"),
        ("timestamp_to_int64", (Timestamp(-1),), -1),
        ("bytes_to_string", ("é".encode(),), "é"),
        ("timestamp_to_day_of_week", (Timestamp(0),), 4),
        ("timestamp_to_day_of_year", (Timestamp(951782400 * 10**9),), 59),
        ("timestamp_to_hours_with_tz", (Timestamp(0), "-08:00"), 16),
        ("timestamp_to_year_with_tz", (Timestamp(-62135596800 * 10**9), "-01:00"), 0),
        ("duration_to_minutes", (Duration(-90 * 10**9),), -1),
        ("string_char_at_int", ("abc", 3), ""),
        ("string_index_of_string_int", ("abc", "", 9), 3),
        ("string_last_index_of_string", ("hello mellow", "ello"), 7),
        ("string_last_index_of_string_int", ("hello mellow", "ello", 6), 1),
        ("string_lower_ascii", ("ÀBC",), "Àbc"),
        ("string_replace_string_string_int", ("aaa", "a", "b", 2), "bba"),
        ("string_replace_string_string", ("ab", "", "-"), "-a-b-"),
        ("string_split_string", ("a,b,,c", ","), ["a", "b", "", "c"]),
        ("string_split_string", ("", ""), []),
        ("string_split_string_int", ("abcd", "", 2), ["a", "bcd"]),
        ("string_split_string_int", ("a,b", ",", 0), []),
        ("string_trim", ("\u2003 a\u00a0",), "a"),
        ("list_join_string", (["a", "b"], "-"), "a-b"),
        ("strings_quote", ('a"\n',), '"a\\"\\n"'),
        ("string_reverse", ("é😀a",), "a😀é"),
        ("list_slice", ([1, 2, 3], 1, 2), [2]),
        ("list_flatten_int", ([1, [2, [3, [4]]]], 2), [1, 2, 3, [4]]),
        ("list_int_sort", ([3, 1, 2],), [1, 2, 3]),
        ("list_int_sortByAssociatedKeys", (["c", "a"], [3, 1]), ["a", "c"]),
        ("list_distinct", ([1, 1.0, UInt(1), True, "1", "1"],), [1, True, "1"]),
        ("lists_range", (3,), [0, 1, 2]),
        ("list_sets_equivalent_list", ([1, 2, 2], [2.0, UInt(1)]), True),
        ("list_sets_contains_list", ([1], []), True),
        ("optional_ofNonZeroValue", ("",), NONE),
        ("optional_orValue_value", (Optional(None), 1), None),
        ("optional_unwrapOpt", ([Optional(1), NONE],), [1]),
        ("@mapInsert_map_key_value", ({"a": 1}, "b", 2), {"a": 1, "b": 2}),
        ("list_int_sum_int", ([1, 2],), 3),
        ("list_duration_sum_duration", ([],), Duration(0)),
        ("list_bytes_max_bytes", ([b"b", b"a"],), b"b"),
        ("list_double_min_double", ([2.0, NAN, 1.0],), 1.0),
        ("list_string_is_sorted_bool", (["a", "a", "b"],), True),
        ("list_a_last_index_of_int", ([1, 2, 1.0], 1), 2),
        ("list_includes_dyn_dyn", ("a", "a"), True),
        ("string_find_string", ("jane@example.com", "^[^@]+"), "jane"),
        ("string_find_all_string", ("123 abc 456", "[0-9]*"), ["123", "", "", "", "", "456"]),
        ("string_find_all_string_int", ("123 abc 456", "[0-9]+", 1), ["123"]),
        ("string_find_all_string", ("éaé", "a*"), ["", "a", ""]),
        ("base64_decode_string", ("aGVsbG8",), b"hello"),
        ("base64_encode_bytes", (b"hello",), "aGVsbG8="),
        ("math_round_double", (-1.5,), -2.0),
        ("math_bitShiftRight_int_int", (-1, 63), 1),
        ("math_@max_list_int", ([1, 3, 2],), 3),
        ("math_sign_double", (-0.5,), -1.0),
    ],
)
def test_values(id, arguments, expected) -> None:
    found = call(id, *arguments)
    assert found == expected or found is expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("id", "arguments", "message"),
    [
        ("add_int64", (MAX, 1), "integer overflow"),
        ("add_int64", (1, 1.0), "no such overload"),
        ("add_int64", (None, 1), "no such overload: _+_"),
        ("subtract_uint64", (UInt(0), UInt(1)), "unsigned integer overflow"),
        ("subtract_int64", ("a", 1), "no such overload"),
        ("divide_int64", (1, 0), "division by zero"),
        ("divide_int64", (MIN, -1), "integer overflow"),
        ("modulo_uint64", (UInt(1), UInt(0)), "modulus by zero"),
        ("negate_int64", (MIN,), "integer overflow"),
        ("negate_int64", (UInt(1),), "no such overload: -_"),
        ("less_int64", ([1], [2]), "no such overload: _<_"),
        ("logical_not", (1,), "no such overload"),
        ("add_timestamp_duration", (Timestamp(253402300799 * 10**9), Duration(10**9)), "timestamp overflow"),
        ("index_list", ([1], -1), "index out of bounds: -1"),
        ("index_list", ([1], "0"), "unsupported index type 'string' in list"),
        ("index_map", ({"a": 1}, "b"), "no such key: b"),
        ("size_string", (1,), "no such overload: size"),
        ("matches", ("a", "("), "error parsing regexp: missing closing ): `(`"),
        ("string_to_int64", ("x",), "type conversion error from 'string' to 'int'"),
        ("string_to_timestamp", ("x",), "type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        ("double_to_int64", (float(1 << 63),), "integer overflow"),
        ("double_to_uint64", (-1.0,), "unsigned integer overflow"),
        ("int64_to_timestamp", (253402300800,), "timestamp overflow"),
        ("bytes_to_string", (b"\xff",), "invalid UTF-8 in bytes, cannot convert to string"),
        ("string_substring_int", ("tacocat", 8), "index out of range: 8"),
        ("string_substring_int_int", ("tacocat", 2, 1), "invalid substring range. start: 2, end: 1"),
        ("list_join", (["a", 1],), "join: invalid input: 1"),
        ("list_slice", ([1], -1, 2), "cannot slice(-1, 2), negative indexes not supported"),
        ("list_slice", ([1], 0, 2), "cannot slice(0, 2), list is length 1"),
        ("list_flatten_int", ([1], -1), "level must be non-negative"),
        ("list_int_sortByAssociatedKeys", ([2, 1], [None, None]), "list elements must be comparable"),
        ("list_int_sort", ([1, "a"],), "list elements must have the same type"),
        ("lists_range", (1000001,), "lists.range: size 1000001 exceeds maximum allowed (1000000)"),
        ("optional_value", (NONE,), "optional.none() dereference"),
        ("@mapInsert_map_map", ({"a": 1}, {"a": 2}), "insert failed: key a already exists"),
        ("list_int_min_int", ([],), "min called on empty list"),
        ("string_find_string", ("a", "("), "Illegal regex: error parsing regexp: missing closing ): `(`"),
        ("base64_decode_string", ("a*",), "illegal base64 data at input byte 1"),
        ("math_abs_int", (MIN,), "integer overflow"),
        ("math_bitShiftLeft_int_int", (1, -1), "math.bitShiftLeft() negative offset: -1"),
    ],
)
def test_errors(id, arguments, message) -> None:
    with pytest.raises(EvalError) as caught:
        call(id, *arguments)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "arguments", "expected"),
    [
        ("a double substituted with %%s: %s", [64.2], "a double substituted with %s: 64.2"),
        ("%s", [[1, "a", 2.5, True, None]], '[1, "a", 2.500000, true, null]'),
        ("%s", [{"b": b"x", "a": Duration(10**9)}], '{"a":duration("1s"), "b":b"x"}'),
        ("%f", [1234567.5], "1,234,567.500000"),
        ("%f", ["Infinity"], "∞"),
        ("%.2e", [12345.678], "1.234568×10⁰⁴"),
        ("%.15e", [12.5], "  1.250000×10⁰¹"),
        ("%b %o %x %X", [-5, -8, "é", b"hi?"], "-101 -10 c3a9 68693F"),
        ("%d", [UInt(7)], "7"),
    ],
)
def test_format(text, arguments, expected) -> None:
    assert call("string_format", text, arguments) == expected


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("%s %s", ["a"], "index 1 out of range"),
        ("%", ["a"], "unexpected end of string"),
        ("%é", [1], 'could not parse formatting clause: unrecognized formatting clause "Ã"'),
        ("%d", ["a"], "error during formatting: decimal clause can only be used on integers, was given string"),
        ("%.f", [1.0], 'could not parse formatting clause: error while parsing precision: error while converting '
         'precision to integer: strconv.Atoi: parsing "": invalid syntax'),
    ],
)  # fmt: skip
def test_format_errors(text, arguments, message) -> None:
    with pytest.raises(EvalError) as caught:
        call("string_format", text, arguments)
    assert caught.value.message == message


def test_the_newest_format_has_no_locale() -> None:
    newest = {row.id: row for row in strings.OVERLOADS}["string_format"].implementation
    assert newest("%e %f %s %d", [1052.0, 2, {"k": [b"x", 1e10]}, 1.5]) == (
        "1.052000e+03 2.000000 {k: [x, 10000000000]} 1.5"
    )


@pytest.mark.parametrize(
    ("id", "arguments"),
    [
        ("string_replace_string_string", ("x" * 100_000, "", "y" * 100_000)),
        ("list_join_string", (["x" * 100_000] * 10_000, "")),
        ("string_format", ("%s", [["x" * 100_000] * 10_000])),
        ("string_format", ("%s" * 10_000, ["x" * 100_000] * 10_000)),
    ],
)
def test_no_call_fills_the_memory(id, arguments) -> None:
    with pytest.raises(LimitError):
        call(id, *arguments)


def test_an_enormous_precision_is_refused() -> None:
    with pytest.raises(EvalError, match="precision of more than 100000"):
        call("string_format", "%.999999999f", [1.0])
    assert call("string_format", "%.999999999s", ["a"]) == "a"  # it means nothing to a text


def test_distinct_does_not_compare_a_million_pairs_for_nothing() -> None:
    assert len(call("list_distinct", list(range(200_000)))) == 200_000
    with pytest.raises(LimitError):
        call("list_distinct", [*range(200_000), 0.5])


def test_sets_of_any_size_are_compared_at_once() -> None:
    texts = [str(number) for number in range(100_000)]
    assert call("list_sets_equivalent_list", texts, texts[::-1]) is True
    assert call("list_sets_intersects_list", texts, ["x"]) is False
    doubles = [float(number) for number in range(10_000)]
    with pytest.raises(LimitError):
        call("list_sets_contains_list", doubles, doubles)


def test_numbers_of_thousands_of_digits() -> None:
    zeros = "0" * 10_000
    assert call("string_to_int64", f"-{zeros}7") == -7
    assert call("string_to_uint64", f"{zeros}7") == UInt(7)
    assert call("string_to_duration", f"{zeros}7ns") == Duration(7)
    assert call("string_to_double", f"{zeros}7") == 7.0
    with pytest.raises(EvalError):
        call("string_to_int64", "1" + zeros)


def test_a_long_text_may_be_built() -> None:
    assert len(call("list_join_string", ["x"] * 1000, "")) == 1000
    assert bounds.join("-", ["a", "b"]) == "a-b"


@pytest.mark.parametrize(
    ("id", "arguments", "cost"),
    [
        ("starts_with_string", ("a" * 100, "b" * 11), 2),
        ("contains_string", ("a" * 100, "b" * 11), 20),
        ("matches", ("", "a" * 8), 2),
        ("equals", ("", "abc"), 0),
        ("equals", (1, 2), 1),
        ("add_string", ("a" * 10, "b"), 2),
        ("in_list", (1, [1, 2, 3]), 3),
        ("string_index_of_string", ("é" * 10, "x"), 2),
        ("string_split_string", ("a" * 6, ","), 2),
        ("list_int_sum_int", ([1, 2, 3],), 3),
        ("list_string_max_string", (["a" * 9, "b" * 10],), 1),
        ("lists_range", (5,), 16),
        ("list_string_sort", (["b", "a"],), 19),
        ("list_flatten_int", ([[1], [2]], 3), 17),
        ("list_sets_equivalent_list", ([1, 2], [1, 2, 3]), 13),
        ("list_join", (["ab", "c"],), 1),
    ],
)
def test_costs(id, arguments, cost) -> None:
    assert ROWS[id].cost(arguments, call(id, *arguments)) == cost
