"""Revocations: what a list names, how a file is read, and what a store holds."""

from __future__ import annotations

import json

import pytest

from kubeauthn._core.revocation import (
    BY_ID,
    BY_ISSUER,
    BY_SUBJECT,
    Revocation,
    RevocationList,
    TokenIdentity,
    identity_of,
    read_list,
    reason_in_store,
    store_key,
    store_keys,
    store_value,
    write_list,
)

ISSUER, OTHER = "https://login.test", "https://other.test"
JANE = TokenIdentity(ISSUER, "id-1", "jane", 1000.0)

CASES = {
    "its id, of its issuer": (Revocation(ISSUER, token_id="id-1"), JANE, BY_ID),
    "its id, of any issuer": (Revocation(token_id="id-1"), JANE, BY_ID),
    "its id, of another issuer": (Revocation(OTHER, token_id="id-1"), JANE, ""),
    "another id": (Revocation(ISSUER, token_id="id-2"), JANE, ""),
    "an id in other letters": (Revocation(ISSUER, token_id="ID-1"), JANE, ""),
    "its subject, later": (Revocation(ISSUER, subject="jane", issued_until=2000.0), JANE, BY_SUBJECT),
    "its subject, in that second": (Revocation(ISSUER, subject="jane", issued_until=1000.0), JANE, BY_SUBJECT),
    "its subject, before": (Revocation(ISSUER, subject="jane", issued_until=999.0), JANE, ""),
    "its subject, for ever": (Revocation(ISSUER, subject="jane"), JANE, BY_SUBJECT),
    "its subject at another issuer": (Revocation(OTHER, subject="jane"), JANE, ""),
    "its issuer": (Revocation(ISSUER, issued_until=1000.0), JANE, BY_ISSUER),
    "its issuer, before": (Revocation(ISSUER, issued_until=999.0), JANE, ""),
    "another issuer": (Revocation(OTHER), JANE, ""),
    "no iat: nobody knows, so revoked": (
        Revocation(ISSUER, subject="jane", issued_until=1.0),
        TokenIdentity(ISSUER, "", "jane"),
        BY_SUBJECT,
    ),
    "part of a second": (
        Revocation(ISSUER, issued_until=1000.0),
        TokenIdentity(ISSUER, issued_at=1000.9),
        BY_ISSUER,
    ),
    "no jti, and an id is revoked": (Revocation(token_id="id-1"), TokenIdentity(ISSUER, "", "jane", 1.0), ""),
    "a name with the separator": (
        Revocation(ISSUER, token_id="a\0b"),
        TokenIdentity(ISSUER + "\0a", "b", "jane", 1.0),
        "",
    ),
}


@pytest.mark.parametrize(("entry", "identity", "reason"), CASES.values(), ids=CASES)
def test_what_a_list_says_and_what_a_store_says(entry: Revocation, identity: TokenIdentity, reason: str):
    assert RevocationList([entry]).reason(identity) == reason
    if "\0" not in identity.issuer:  # no configured issuer has one: it is a URL
        stored = {store_key(entry, "p:"): store_value(entry).encode()}
        assert reason_in_store(identity, [stored.get(key) for key in store_keys(identity, "p:")]) == reason


def test_of_two_entries_the_later_end_counts():
    entries = [Revocation(ISSUER, subject="jane", issued_until=until) for until in (5000.0, 10.0)]
    assert RevocationList(entries).reason(JANE) == BY_SUBJECT
    assert RevocationList(entries[::-1]).reason(JANE) == BY_SUBJECT


def test_of_two_lists_the_later_end_counts_whichever_comes_first():
    until = [
        RevocationList([Revocation(ISSUER, subject="jane", issued_until=end), Revocation(OTHER, issued_until=end)])
        for end in (999.0, 1000.0)
    ]
    until.append(RevocationList([Revocation(token_id="id-2")]))
    for one, other in ((until[0], until[1]), (until[1], until[0])):
        both = one.with_more(other).with_more(until[2])
        assert both.reason(JANE) == BY_SUBJECT
        assert both.reason(TokenIdentity(OTHER, issued_at=1000.0)) == BY_ISSUER
        assert both.reason(TokenIdentity(ISSUER, "id-2")) == BY_ID
        assert len(both) == 3
    assert until[0].reason(JANE) == ""


@pytest.mark.parametrize("value", [b"", b"soon", b"-5", b"1" * 20, b"\xff"])
def test_a_stored_value_that_cannot_be_read_revokes(value: bytes):
    assert reason_in_store(JANE, [None, None, value, None]) == BY_SUBJECT


def test_store_keys_show_no_names():
    assert not [key for key in store_keys(JANE, "p:") if "jane" in key or "id-1" in key or "login" in key]


@pytest.mark.parametrize("claims", [{"jti": 5.0}, {"jti": ["a"]}, {"sub": {}}, {"iat": "1000"}, {"iat": True}])
def test_claims_that_cannot_be_looked_up_are_a_fault(claims: dict[str, object]):
    with pytest.raises(ValueError, match=r"is not a (string|number)"):
        identity_of(ISSUER, claims)


FILE = """\
revocations:
- tokenID: id-1
- tokenID: id-2
  issuer: https://login.test
- issuer: https://login.test
  subject: jane
  issuedUntil: 2026-01-31T09:00:00Z
- issuer: https://other.test
"""


def test_a_file_is_read_and_what_is_written_reads_the_same():
    entries = read_list(FILE)
    assert entries == [
        Revocation(token_id="id-1"),
        Revocation(ISSUER, "id-2"),
        Revocation(ISSUER, "", "jane", 1769850000.0),
        Revocation(OTHER),
    ]
    assert read_list(write_list(entries)) == entries
    assert json.loads(write_list([])) == {"revocations": []}


@pytest.mark.parametrize("text", ["", "revocations:\n", '{"revocations": []}', "# none yet\n"])
def test_a_file_may_be_empty(text: str):
    assert read_list(text) == []


FAULTS = {
    "another field": ("revoked: []", "expected an object with the field revocations and no other"),
    "no object": ("- tokenID: a", "expected an object with the field revocations and no other"),
    "no list": ("revocations: {tokenID: a}", "revocations: expected a list"),
    "neither": ("revocations: [{subject: jane}]", "revocations[0]: expected a tokenID or an issuer"),
    "empty entry": ("revocations: [{}]", "revocations[0]: expected a tokenID or an issuer"),
    "null entry": ("revocations: [{tokenID: a}, null]", "revocations[1]: expected an object"),
    "a number": ("revocations: [{tokenID: 5}]", "revocations[0].tokenID: expected a text that is not empty"),
    "an empty text": (
        'revocations: [{issuer: a, subject: ""}]',
        "revocations[0].subject: expected a text that is not empty",
    ),
    "unknown": (
        "revocations: [{jti: a}]",
        "revocations[0]: expected the fields issuedUntil, issuer, subject, tokenID and no other",
    ),
    "both": (
        "revocations: [{tokenID: a, subject: b}]",
        "revocations[0]: with tokenID there is no subject and no issuedUntil",
    ),
    "no time": (
        "revocations: [{issuer: a, issuedUntil: yesterday}]",
        "revocations[0].issuedUntil: expected an RFC 3339 time such as 2026-01-31T09:00:00Z",
    ),
    "two documents": ("revocations: []\n---\nrevocations: []\n", "expected one document"),
    "twice": ('{"revocations": [], "revocations": [{"tokenID": "a"}]}', "a field is given twice"),
    "not JSON": ('{"revocations": [', "line 1: not JSON"),
}


@pytest.mark.parametrize(("text", "fault"), FAULTS.values(), ids=FAULTS)
def test_faults_of_a_file(text: str, fault: str):
    with pytest.raises(ValueError, match="^") as caught:
        read_list(text)
    assert str(caught.value) == fault


def test_deep_nesting_is_a_fault():
    with pytest.raises(ValueError, match="^"):
        read_list('{"revocations": ' + "[" * 100_000)
    with pytest.raises(ValueError, match="^"):
        read_list("[" * 100_000)
