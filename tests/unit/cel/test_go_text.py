"""Numbers, strings and times as Go prints and reads them."""

from __future__ import annotations

import pytest

from kubeauthn.cel.errors import EvalError
from kubeauthn.cel.go_text import format_fixed, go_format_double, parse_bool, parse_double, parse_int, parse_uint, quote
from kubeauthn.cel.go_time import (
    _why_unknown,
    civil,
    days_from_civil,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
    zone_offset,
)
from kubeauthn.cel.values import Duration


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1"),
        (-0.0, "-0"),
        (42.0, "42"),
        (3.5, "3.5"),
        (0.1 + 0.2, "0.30000000000000004"),
        (0.001, "0.001"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1e-7, "1e-07"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (123456789.0, "1.23456789e+08"),
        (1700086400.0, "1.7000864e+09"),
        (9007199254740992.0, "9.007199254740992e+15"),
        (1e21, "1e+21"),
        (1e100, "1e+100"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles(number, text) -> None:
    assert go_format_double(number) == text


@pytest.mark.parametrize(("number", "text"), [(1e21, "1" + "0" * 21), (1e-7, "0.0000001"), (1.5, "1.5"), (-2.0, "-2")])
def test_doubles_without_exponent(number, text) -> None:
    assert format_fixed(number) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("0x1p4", 16.0),
        ("1_000", 1000.0),
        ("-Inf", -float("inf")),
        ("infinity", float("inf")),
        ("1e-400", 0.0),
    ],
)
def test_read_doubles(text, number) -> None:
    assert parse_double(text) == number


@pytest.mark.parametrize("text", ["", ".", "1e", " 1", "1 ", "1e400", "0x1", "_1", "1__0", "１", "+nan", "0b1", "one"])
def test_no_doubles(text) -> None:
    assert parse_double(text) is None


def test_read_integers() -> None:
    assert [parse_int(text) for text in ("0", "-7", "+7", "-9223372036854775808")] == [0, -7, 7, -(1 << 63)]
    assert [parse_int(text) for text in ("", "-", "1.0", "1_0", "９", "9223372036854775808", "9" * 5000)] == [None] * 7
    assert [parse_uint(text) for text in ("0", "18446744073709551615")] == [0, (1 << 64) - 1]
    assert [parse_uint(text) for text in ("+1", "-0", "18446744073709551616")] == [None] * 3


def test_read_truth() -> None:
    assert parse_bool("T") is True
    assert parse_bool("FALSE") is False
    assert parse_bool("yes") is None


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a", '"a"'),
        ('a"b\\', '"a\\"b\\\\"'),
        ("\n\x00\x7f", '"\\n\\x00\\x7f"'),
        ("é😀", '"é😀"'),
        ("\u200b\u00a0", '"\\u200b\\u00a0"'),
    ],
)
def test_quoted(text, quoted) -> None:
    assert quote(text) == quoted


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("1ns", 1),
        ("1µs", 1000),
        ("1μs", 1000),
        ("1.s", 10**9),
        (".5s", 5 * 10**8),
        ("+1h", 3600 * 10**9),
        ("1h1h", 7200 * 10**9),
        ("-1.5s", -15 * 10**8),
        ("2562047h47m16.854775807s", (1 << 63) - 1),
        ("-2562047h47m16.854775808s", -(1 << 63)),
    ],
)
def test_durations(text, nanoseconds) -> None:
    assert parse_duration(text) == Duration(nanoseconds)


@pytest.mark.parametrize("text", ["", "s", "1", "1d", "--1s", "1h-1m", "1e3s", ".s", "2562048h", "9" * 30 + "s", "1 s"])
def test_no_durations(text) -> None:
    assert parse_duration(text) is None


@pytest.mark.parametrize(
    ("nanoseconds", "text"), [(5400 * 10**9, "5400s"), (15 * 10**8, "1.5s"), (-1, "-0.000000001s"), (0, "0s")]
)
def test_printed_durations(nanoseconds, text) -> None:
    assert format_duration(Duration(nanoseconds)) == text


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("2023-11-14T22:13:20.5Z", None),
        ("0001-01-01T00:00:00Z", None),
        ("9999-12-31T23:59:59.999999999Z", None),
        ("2020-02-29T12:00:00+05:30", None),
        ("2023-01-01T5:00:00Z", "2023-01-01T05:00:00Z"),
        ("2023-01-01T00:00:00,5Z", "2023-01-01T00:00:00.5Z"),
        ("2023-01-01T00:00:00.1234567899Z", "2023-01-01T00:00:00.123456789Z"),
        ("1969-12-31T23:59:59.999Z", None),
    ],
)
def test_timestamps(text, printed) -> None:
    timestamp = parse_timestamp(text)
    assert timestamp is not None
    assert format_timestamp(timestamp) == (printed or text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2023-01-01",
        "2021-02-29T00:00:00Z",
        "2023-13-01T00:00:00Z",
        "2023-01-01T24:00:00Z",
        "2023-01-01T00:00:60Z",
        "2023-01-01t00:00:00Z",
        "2023-01-01T00:00:00",
        "2023-01-01T00:00:00.Z",
        "2023-01-01T00:00:00Zx",
        "２023-01-01T00:00:00Z",
    ],
)
def test_no_timestamps(text) -> None:
    assert parse_timestamp(text) is None


@pytest.mark.parametrize("text", ["0000-12-31T23:59:59Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"])
def test_timestamps_out_of_range(text) -> None:
    with pytest.raises(EvalError, match="^timestamp overflow$"):
        parse_timestamp(text)


def test_the_calendar_goes_both_ways() -> None:
    for days in (-719528, -719162, -1, 0, 59, 60, 11016, 11017, 2932896, 2932897):
        assert days_from_civil(*civil(days)) == days
    assert civil(0) == (1970, 1, 1)
    assert civil(11016) == (2000, 2, 29)


@pytest.mark.parametrize(
    ("zone", "offset"),
    [
        ("", 0),
        ("UTC", 0),
        ("+02:00", 7200),
        ("-08:30", -30600),
        ("05:30", 19800),
        ("-00:30", -1800),
        ("Europe/Berlin", 3600),
        ("./Europe//Berlin", 3600),
        ("+9223372036854775807:00", -3600),
    ],
)
def test_time_zones(zone, offset) -> None:
    assert zone_offset(1700000000, zone) == offset


@pytest.mark.parametrize(
    ("zone", "fault"),
    [
        ("Foo/Bar", "unknown time zone Foo/Bar"),
        ("../x", "time: invalid location name"),
        ("a:b", 'strconv.Atoi: parsing "a": invalid syntax'),
    ],
)
def test_no_time_zones(zone, fault) -> None:
    with pytest.raises(EvalError) as caught:
        zone_offset(0, zone)
    assert caught.value.message == fault


def test_summer_time_begins_and_ends() -> None:
    assert zone_offset(1679792399, "Europe/Berlin") == 3600
    assert zone_offset(1679792400, "Europe/Berlin") == 7200


def test_what_became_of_the_file_of_a_zone(tmp_path) -> None:
    (tmp_path / "America").mkdir()
    (tmp_path / "zone.tab").write_text("no zone")
    places = (str(tmp_path / "absent"), str(tmp_path))
    assert _why_unknown("America", places) == "is a directory"
    assert _why_unknown("zone.tab/x", places) == "not a directory"
    assert _why_unknown("zone.tab", places) == "malformed time zone information"
    assert _why_unknown("x" * 300, places) == "file name too long"
    assert _why_unknown("Foo", places) == "unknown time zone Foo"
    assert _why_unknown("\ud800", places) == "unknown time zone \ud800"
