"""The libraries' tables against the recorded environment: every function, overload, signature and member flag."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kubeauthn.cel.library import (
    authz,
    authz_selectors,
    basics,
    cidr,
    comprehensions,
    conversions,
    ip,
    kubernetes_lists,
    kubernetes_regex,
    lists,
    named_formats,
    operators,
    optionals,
    quantity,
    semver,
    sets,
    strings,
    timestamps,
    urls,
)

ENVIRONMENT = Path(__file__).resolve().parents[2] / "recorded" / "cel_env.json"

ROWS = (
    *operators.OVERLOADS,
    *operators.HIDDEN,
    *basics.OVERLOADS,
    *conversions.OVERLOADS,
    *timestamps.OVERLOADS,
    *strings.overloads(2),
    *sets.OVERLOADS,
    *lists.overloads(3),
    *optionals.overloads(2),
    *comprehensions.OVERLOADS,
    *urls.OVERLOADS,
    *kubernetes_regex.OVERLOADS,
    *kubernetes_lists.overloads(1),
    *quantity.OVERLOADS,
    *ip.OVERLOADS,
    *cidr.OVERLOADS,
    *named_formats.OVERLOADS,
    *semver.overloads(1),
    *authz.OVERLOADS,
    *authz_selectors.OVERLOADS,
)
# What the compiler writes itself, and the authorizer, which authentication does not have.
WITHOUT_IMPLEMENTATION = {
    "conditional",
    "logical_and",
    "logical_or",
    "not_strictly_false",
    "__not_strictly_false__",
    *(row.id for row in (*authz.OVERLOADS, *authz_selectors.OVERLOADS)),
}


def recorded() -> dict[tuple[str, str], tuple[tuple[str, ...], str, bool]]:
    functions = json.loads(ENVIRONMENT.read_text())["functions"]
    return {
        (function, row["id"]): (tuple(row["args"] or ()), row["result"], row["member"])
        for function, rows in functions.items()
        for row in rows
    }


def test_the_tables_are_the_recorded_environment() -> None:
    ours = {(row.function, row.id): (row.params, row.result, row.member) for row in ROWS}
    assert ours == recorded()


def test_no_overload_is_declared_twice() -> None:
    assert len(ROWS) == len({(row.function, row.id) for row in ROWS})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.function} {row.id}")
def test_every_overload_can_be_called(row) -> None:
    assert (row.implementation is None) == (row.id in WITHOUT_IMPLEMENTATION)


@pytest.mark.parametrize(
    ("module", "version", "present", "absent"),
    [
        (strings, 0, "join", "format"),
        (strings, 1, "strings.quote", "reverse"),
        (strings, 3, "reverse", "nothing"),
        (lists, 0, "slice", "flatten"),
        (lists, 1, "flatten", "sort"),
        (lists, 2, "sort", "nothing"),
        (optionals, 1, "orValue", "first"),
        (optionals, 2, "first", "nothing"),
        (kubernetes_lists, 0, "sum", "includes"),
    ],
)
def test_older_versions_lack_what_came_later(module, version, present, absent) -> None:
    functions = {row.function for row in module.overloads(version)}
    assert present in functions
    assert absent not in functions


def test_semver_took_its_flag_in_version_1() -> None:
    assert {row.id for row in semver.overloads(1)} - {row.id for row in semver.overloads(0)} == {
        "string_bool_to_semver",
        "is_semver_string_bool",
    }


def test_before_version_3_lists_were_priced_by_the_call() -> None:
    assert all(row.cost is None for row in lists.overloads(2))
    assert all(row.cost is not None for row in lists.overloads(3))
