"""What the bridge's log takes from a plugin's standard error."""

from __future__ import annotations

import pytest

from kubeauthn.plugins.bridge.complaints import LINE_CHARACTERS, last_line


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        (b"", ""),
        (b"\n \n", ""),
        (b"error: one\ntwo\n\n", "two"),
        (b"zero\nerror: one\nhint: two\n", "error: one; hint: two"),
        (b"red \x1b[31m text\x07", "red \\x1b[31m text\\x07"),
        (b"\xff broken", "\ufffd broken"),
        (b"token eyJhbGciOiJub25lIn0.eyJzdWIiOiJqYW5lIn0.c2ln refused", "token (left out) refused"),
        (b"GET https://a.example/?access_token=abcdef0123456789abcd", "GET https://a.example/?(left out)"),
        (
            b"pathLib: /usr/lib/x86_64-linux-gnu/no.so: no such file",
            "pathLib: /usr/lib/x86_64-linux-gnu/no.so: no such file",
        ),
    ],
)
def test_the_last_line_is_shown_escaped_and_without_secrets(printed: bytes, line: str):
    assert last_line(printed) == line


def test_a_long_line_is_cut():
    assert last_line(b"a b " * 2000) == ("a b " * 2000)[:LINE_CHARACTERS] + "…"
