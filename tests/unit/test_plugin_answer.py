"""What an author's function may return."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

import pytest

from kubeauthn._secret import Secret
from kubeauthn.errors import KubeauthnError, UsageError
from kubeauthn.plugin import credential

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN EC PRIVATE KEY-----\nSECRET\n-----END EC PRIVATE KEY-----\n"

NOON = datetime(2040, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        NOON.astimezone(timezone(timedelta(hours=5, minutes=30))),
        NOON.timestamp(),
        int(NOON.timestamp()),
    ],
    ids=["UTC", "another zone", "float", "int"],
)
def test_expires_at(moment: datetime | float):
    assert credential.Token("t", expires_at=moment).expires_at == NOON.timestamp()


def test_expires_in_counts_from_now():
    before = time.time()
    expires_at = credential.Token("t", expires_in=60).expires_at
    assert expires_at is not None
    assert before + 60 <= expires_at <= time.time() + 60


def test_without_an_expiry_there_is_none():
    assert credential.Token("t").expires_at is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"expires_at": datetime(2040, 1, 1)}, "expires_at is a datetime without a time zone"),
        ({"expires_at": "2040-01-01T00:00:00Z"}, "expires_at must be a datetime or unix seconds, not a str"),
        ({"expires_at": True}, "expires_at must be a datetime or unix seconds, not a bool"),
        ({"expires_at": float("nan")}, "expires_at must be unix seconds before the year 10000, not nan"),
        ({"expires_at": float("inf")}, "expires_at must be unix seconds before the year 10000, not inf"),
        ({"expires_at": -1}, "expires_at must be unix seconds before the year 10000, not -1"),
        ({"expires_at": 2_208_988_800_000}, "before the year 10000, not 2208988800000"),
        ({"expires_in": 0}, "expires_in must be a number of seconds above 0, not 0"),
        ({"expires_in": float("nan")}, "expires_in must be a number of seconds above 0, not nan"),
        ({"expires_in": float("inf")}, "before the year 10000, not inf"),
        ({"expires_in": timedelta(hours=1)}, "expires_in must be a number of seconds above 0, not a timedelta"),
        ({"expires_in": 5, "expires_at": NOON}, "give expires_at or expires_in, not both"),
    ],
)
def test_an_expiry_that_says_nothing_is_refused(options: dict[str, object], text: str):
    with pytest.raises(UsageError) as caught:
        credential.Token("t", **options)  # type: ignore[arg-type]
    assert text in str(caught.value)


def test_milliseconds_get_a_hint():
    with pytest.raises(UsageError) as caught:
        credential.Token("t", expires_at=2_208_988_800_000)
    assert caught.value.hint == "are these milliseconds?"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        ("", "the token is empty"),
        (b"bytes", "the token must be a str, not bytes"),
        (None, "a credential needs a token, or a certificate with its key, or all three"),
        ("abc\n", "the token has characters that no header may carry"),
        ("abc\r\nX-Remote-User: admin", "the token has characters that no header may carry"),
        ("abc\0", "the token has characters that no header may carry"),
        ("schlüssel", "the token has characters that no header may carry"),
    ],
)
def test_a_token_that_no_header_carries_is_refused(token: object, text: str):
    with pytest.raises(UsageError) as caught:
        credential.Token(token)  # type: ignore[arg-type]
    assert str(caught.value) == text
    assert "admin" not in f"{caught.value} {caught.value.hint}"


def test_a_line_end_gets_a_hint():
    with pytest.raises(UsageError) as caught:
        credential.Token("abc\n")
    assert caught.value.hint == "a line end from a file? strip() takes it off"


def test_a_certificate_comes_as_text_or_bytes():
    made = credential.Certificate(CERTIFICATE.encode(), KEY.encode(), expires_at=NOON)
    assert made.certificate == CERTIFICATE
    assert made.key == Secret(KEY)
    assert made.token is None


@pytest.mark.parametrize(
    ("certificate", "key", "text"),
    [
        (KEY, CERTIFICATE, "the certificate is not PEM: it has no line -----BEGIN … CERTIFICATE-----"),
        (CERTIFICATE, CERTIFICATE, "the key is not PEM: it has no line -----BEGIN … PRIVATE KEY-----"),
        (b"\x30\x82\xff", KEY, "the certificate is not PEM: it has no line -----BEGIN … CERTIFICATE-----"),
        ("", KEY, "the certificate is not PEM: it has no line -----BEGIN … CERTIFICATE-----"),
        (7, KEY, "the certificate must be PEM, as str or bytes, not int"),
        (CERTIFICATE, None, "a credential has only the certificate or only the key: give both"),
        (None, KEY, "a credential has only the certificate or only the key: give both"),
    ],
    ids=["swapped", "certificate twice", "DER", "empty", "number", "no key", "no certificate"],
)
def test_a_pair_that_is_none_is_refused(certificate: object, key: object, text: str):
    with pytest.raises(UsageError) as caught:
        credential.Certificate(certificate, key)  # type: ignore[arg-type]
    assert str(caught.value) == text


def test_token_and_certificate_together():
    both = credential.Credential(token="t", certificate=CERTIFICATE, key=KEY)
    assert both.token == Secret("t")
    assert both.certificate == CERTIFICATE


@pytest.mark.parametrize(
    "made",
    [
        credential.Token("SECRET"),
        credential.Token(Secret("SECRET")),
        credential.Certificate(CERTIFICATE, KEY),
        credential.Credential(token="SECRET", certificate=CERTIFICATE, key=KEY, expires_at=NOON),
    ],
)
def test_no_secret_in_the_repr(made: credential.Credential):
    assert "SECRET" not in f"{made!r} {made}"


def test_a_refusal_is_one_of_our_errors():
    refusal = credential.Refuse("not today", hint="come back tomorrow")
    assert isinstance(refusal, KubeauthnError)
    assert refusal.hint == "come back tomorrow"
