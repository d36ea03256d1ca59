"""What `plugin check` makes of a plugin's output, and what it never shows of it."""

from __future__ import annotations

import json

import pytest

from kubeauthn._core import execwire
from kubeauthn.plugin.check.output import quoted, take_apart

DOCUMENT = json.dumps({"apiVersion": execwire.V1, "kind": "ExecCredential", "status": {"token": "SECRET-TOKEN"}})


def test_one_document():
    output = take_apart(f"\n {DOCUMENT}\n".encode())
    assert output.only_the_document
    assert (output.secrets, output.oddity) == (("SECRET-TOKEN",), "")


@pytest.mark.parametrize(
    ("printed", "oddity"),
    [
        (f"apiVersion: {execwire.V1}\nstatus: {{token: SECRET-TOKEN}}\n", "it is YAML, not JSON"),
        (json.dumps({"apiVersion": execwire.V1, "status": {"token": "SECRET-TOKEN"}}), "it does not say its kind"),
    ],
)
def test_what_kubectl_takes_all_the_same(printed: str, oddity: str):
    output = take_apart(printed.encode())
    assert (output.document.decode(), output.oddity) == (printed, oddity)
    assert output.secrets == ("SECRET-TOKEN",)


@pytest.mark.parametrize(
    ("printed", "before", "after"),
    [
        (f"Loading…\n{DOCUMENT}", "Loading…", ""),
        (f"{DOCUMENT}\ndone\n", "", "done"),
        (f'{{"level":"info"}}\n{DOCUMENT}\n{DOCUMENT}', '{"level":"info"}', DOCUMENT),
        (f"{{{{ {DOCUMENT} }}", "{{", "}"),
    ],
    ids=["before", "after", "both, as JSON", "brackets"],
)
def test_text_around_the_document(printed: str, before: str, after: str):
    output = take_apart(printed.encode())
    assert json.loads(output.document) == json.loads(DOCUMENT)
    assert (output.before, output.after) == (before, after)
    assert not output.only_the_document


@pytest.mark.parametrize("printed", [b"", b"rubbish", b"\xff\x00", b"[]", b'{"kind":"Pod"} x', b"{" * 1_000_000])
def test_where_there_is_no_document_all_of_it_is_kept(printed: bytes):
    output = take_apart(printed)
    assert output.document == printed
    assert output.only_the_document


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("starting\nno login\n\n", '"no login"'),
        ("starting\np: error: no login\np: hint: log in\n", '"p: error: no login"'),
        ("Traceback:\n  File x\nValueError: SECRET-TOKEN\n", '"ValueError: …"'),
        ("", '""'),
    ],
)
def test_of_a_failure_the_line_that_tells_why_is_quoted(text: str, shown: str):
    assert quoted(text, ("SECRET-TOKEN",), of_failure=True) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Loading\nmore", '"Loading"'),
        ("\n\n  indented ", '"indented"'),
        ("the token is SECRET-TOKEN.", '"the token is …."'),
        ("got eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.e30.c2ln", '"got <43 characters>"'),
        ("\x1b[31mred", '"?[31mred"'),
        ("word " * 50, f'"{"word " * 24}…"'),
        (DOCUMENT, f"{len(DOCUMENT)} characters that are not shown: they may hold a secret"),
        ("-----BEGIN PRIVATE KEY-----\nabc", "31 characters that are not shown: they may hold a secret"),
    ],
)
def test_a_quotation_holds_no_secret(text: str, shown: str):
    assert quoted(text, ("SECRET-TOKEN",)) == shown
