from __future__ import annotations

import pytest

from kubeauthn._core import rfc3339


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("2023-11-15T00:13:20+02:00", 1_700_000_000),
        ("2023-11-14T17:43:20-04:30", 1_700_000_000),
        ("2023-11-14T22:13:20.5Z", 1_700_000_000.5),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000.123456789),
    ],
)
def test_reads_what_kubernetes_reads(text: str, seconds: float) -> None:
    assert rfc3339.parse(text) == pytest.approx(seconds, abs=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "1700000000",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-11-14 22:13:20Z",
        "2023-11-14t22:13:20z",
        "2023-11-14T22:13:20.Z",
        "2023-11-14T22:13:20+0200",
        "2023-11-14T22:13:20Z ",
        "2023-13-14T22:13:20Z",
        "2023-02-30T22:13:20Z",
        "2023-11-14T24:00:00Z",
        "+023-11-14T22:13:20Z",
        "٢٠٢٣-11-14T22:13:20Z",  # other scripts' digits are digits to int()
        "2023-11-14T22:13:2_Z",
        "9999-12-31T23:59:59-23:59",
        "20231114T221320Z",
    ],
)
def test_refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match="."):
        rfc3339.parse(text)


def test_writes_whole_seconds_in_utc() -> None:
    assert rfc3339.format(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert rfc3339.format(rfc3339.parse("0001-01-01T00:00:00Z")) == "0001-01-01T00:00:00Z"
