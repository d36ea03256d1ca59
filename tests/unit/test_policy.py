from __future__ import annotations

import pytest

from kubeauthn._core.policy import PluginPolicy, permitted_path
from kubeauthn.errors import PluginDenied

ON_PATH = {
    "aws": "/usr/bin/aws",
    "/usr/bin/aws": "/usr/bin/aws",
    "/opt/aws": "/opt/aws",
    "./aws": "./aws",
    "/opt/../opt/aws": "/opt/aws",
    # Both are there, and are other files than the text says.
    "/link/../opt/aws": "/link/../opt/aws",
    "/link/../bin/aws": "/link/../bin/aws",
}


def decide(mode: str, allowlist: tuple[str, ...] | None, command: str) -> str | None:
    return permitted_path(PluginPolicy(mode, allowlist), command, ON_PATH.get)


@pytest.mark.parametrize(
    ("mode", "allowlist", "command", "path"),
    [
        ("", None, "aws", "/usr/bin/aws"),
        ("AllowAll", None, "aws", "/usr/bin/aws"),
        ("AllowAll", None, "missing", None),
        ("Allowlist", ("aws",), "aws", "/usr/bin/aws"),
        ("Allowlist", ("/usr/bin/aws",), "aws", "/usr/bin/aws"),
        ("Allowlist", ("aws",), "/usr/bin/aws", "/usr/bin/aws"),
        ("Allowlist", ("/opt/aws",), "/opt/../opt/aws", "/opt/aws"),
        ("Allowlist", ("missing",), "missing", None),
        # Behind a link `..` leads elsewhere than the text says: what runs is the path that was checked.
        ("Allowlist", ("/opt/aws",), "/link/../opt/aws", "/opt/aws"),
        ("Allowlist", ("aws",), "./aws", "/usr/bin/aws"),
    ],
)
def test_allowed(mode: str, allowlist: tuple[str, ...] | None, command: str, path: str | None) -> None:
    assert decide(mode, allowlist, command) == path


@pytest.mark.parametrize(
    ("mode", "allowlist", "command", "text"),
    [
        ("DenyAll", None, "aws", 'plugin "aws" not allowed: policy set to "DenyAll"'),
        (
            "Allowlist",
            ("gcloud",),
            "aws",
            'plugin path "/usr/bin/aws" is not permitted by the credential plugin allowlist',
        ),
        # The same name elsewhere is another program.
        ("Allowlist", ("aws",), "/opt/aws", 'plugin path "/opt/aws" is not permitted'),
        ("Allowlist", ("/opt/aws",), "aws", 'plugin path "/usr/bin/aws" is not permitted'),
        ("Allowlist", ("aws",), "missing", 'plugin path "missing" cannot be resolved'),
        ("Allowlist", ("/bin/aws",), "/link/../bin/aws", 'plugin path "/link/../bin/aws" cannot be resolved'),
        # A policy that is itself wrong never allows.
        ("Allowlist", (), "aws", "invalid plugin policy"),
        ("Allowlist", None, "aws", "invalid plugin policy"),
        ("allowall", None, "aws", "invalid plugin policy"),
    ],
)
def test_denied(mode: str, allowlist: tuple[str, ...] | None, command: str, text: str) -> None:
    with pytest.raises(PluginDenied) as caught:
        decide(mode, allowlist, command)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        (PluginPolicy("Nonsense"), 'unknown plugin policy: "Nonsense"'),
        (PluginPolicy("Allowlist"), "allowlist is unspecified"),
        (PluginPolicy("Allowlist", ()), 'allowlist is empty; use "DenyAll" policy instead'),
        (PluginPolicy("Allowlist", ("aws", "")), "empty allowlist entry #2"),
        (PluginPolicy("Allowlist", ("/usr//bin/aws",)), 'non-normalized file path: "/usr//bin/aws" vs "/usr/bin/aws"'),
        (PluginPolicy("Allowlist", ("//bin/aws",)), 'non-normalized file path: "//bin/aws" vs "/bin/aws"'),
        (PluginPolicy("Allowlist", ("./aws",)), 'non-normalized file path: "./aws" vs "aws"'),
        (PluginPolicy("DenyAll", ("aws",)), 'plugin policy is "DenyAll" but allowlist is non-nil'),
        (PluginPolicy("", ()), "allowlist is non-nil"),
    ],
)
def test_policy_faults(policy: PluginPolicy, fault: str) -> None:
    assert [text for text in policy.faults() if fault in text], policy.faults()


def test_a_right_policy_has_no_faults() -> None:
    for policy in (
        PluginPolicy(),
        PluginPolicy(""),
        PluginPolicy("DenyAll"),
        PluginPolicy("Allowlist", ("aws", "/a/b")),
    ):
        assert policy.faults() == []


def test_all_faults_of_an_allowlist_at_once() -> None:
    assert len(PluginPolicy("Allowlist", ("", "./a", "b")).faults()) == 2
