"""What is hidden in arguments and addresses, and what is not."""

from __future__ import annotations

import pytest

from kubeauthn.cli.arguments import may_be_token
from kubeauthn.cli.redaction import HIDDEN, redacted_arguments, redacted_url


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--token", "abc"], ["--token", HIDDEN]),
        (["--token=abc"], [f"--token={HIDDEN}"]),
        (["--client-secret", "abc", "--region", "x"], ["--client-secret", HIDDEN, "--region", "x"]),
        (["--oidc_client_secret=abc"], [f"--oidc_client_secret={HIDDEN}"]),
        (["-password", "abc"], ["-password", HIDDEN]),
        (["API_KEY=abc"], [f"API_KEY={HIDDEN}"]),
        (["--token", "--other"], ["--token", "--other"]),
        (["eyJhbGciOiJub25lIn0.e30.sig"], [HIDDEN]),
        (["ghp_abcdef"], [HIDDEN]),
        (["--x=0123456789abcdef0123456789abcdef"], [f"--x={HIDDEN}"]),
        (["https://jane:pa55@host/path"], [f"https://{HIDDEN}@host/path"]),
        (["--proxy=http://jane:pa55@host"], [f"--proxy=http://{HIDDEN}@host"]),
        (["--header", "Authorization: Bearer abc"], ["--header", HIDDEN]),
        (["-c", 'echo {"token":"abc"}'], ["-c", HIDDEN]),
        (["https://host/path?code=abc"], [f"https://host/path?{HIDDEN}"]),
        (["--url=https://host/path?code=abc"], [f"--url=https://host/path?{HIDDEN}"]),
        # what must stay readable, or the doctor explains nothing
        (["eks", "get-token", "--cluster-name", "prod"], ["eks", "get-token", "--cluster-name", "prod"]),
        (["oidc-login", "get-token"], ["oidc-login", "get-token"]),
        (["--token-cache-dir", "/tmp/x"], ["--token-cache-dir", "/tmp/x"]),
        (["--oidc-issuer-url=https://issuer.test/a"], ["--oidc-issuer-url=https://issuer.test/a"]),
        (["/usr/local/lib/some/rather/long/path/v1234567"], ["/usr/local/lib/some/rather/long/path/v1234567"]),
        (["a-rather-long-cluster-name-in-europe-west1-2345"], ["a-rather-long-cluster-name-in-europe-west1-2345"]),
    ],
)
def test_arguments(arguments: list[str], shown: list[str]):
    assert redacted_arguments(arguments) == shown


@pytest.mark.parametrize(
    ("word", "hidden"),
    [
        ("eyJhbGciOiJub25lIn0.e30.sig", True),
        ("ewogImFsZyI6ICJub25lIn0.e30.sig", True),  # a line break after the brace
        ("eyAiYWxnIjogIm5vbmUifQ.e30.sig", True),
        ("viewoptions-of-a-long-name", False),
        ("eyJ", False),
    ],
)
def test_tokens_among_the_words_of_a_command_line(word: str, hidden: bool):
    assert may_be_token(word) is hidden


def test_an_address_without_a_user_stays():
    assert redacted_url("http://proxy.test:3128/@x") == "http://proxy.test:3128/@x"
