"""The plugin policy in kubectl's preferences file."""

from __future__ import annotations

import pytest

from kubeauthn._core.kuberc import decode_policy
from kubeauthn._core.policy import PluginPolicy
from kubeauthn._io.kuberc import read_policy
from kubeauthn.errors import KubercError

BETA = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"
ALPHA = "apiVersion: kubectl.config.k8s.io/v1alpha1\nkind: Preference\n"
PATH = "/home/me/.kube/kuberc"

POLICIES = {
    "empty file": ("", PluginPolicy()),
    "only comments": ("# x\n---\n", PluginPolicy()),
    "nothing about plugins": (BETA + "defaults: [{command: get}]\naliases: []\nunknown: 5\n", PluginPolicy()),
    "AllowAll": (BETA + "credentialPluginPolicy: AllowAll\n", PluginPolicy()),
    "empty policy": (BETA + 'credentialPluginPolicy: ""\ncredentialPluginAllowlist: null\n', PluginPolicy()),
    "DenyAll": (BETA + "credentialPluginPolicy: DenyAll\n", PluginPolicy("DenyAll")),
    "Allowlist": (
        BETA
        + "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist:\n- {command: aws, x: y}\n- command: /bin/p\n",
        PluginPolicy("Allowlist", ("aws", "/bin/p")),
    ),
    "v1alpha1 has no policy": (ALPHA + "credentialPluginPolicy: DenyAll\n", PluginPolicy()),
    "first known document": (
        "apiVersion: kubectl.config.k8s.io/v9\nkind: Preference\n---\n" + BETA + "credentialPluginPolicy: DenyAll\n"
        "---\n" + ALPHA,
        PluginPolicy("DenyAll"),
    ),
}


@pytest.mark.parametrize(("text", "policy"), POLICIES.values(), ids=list(POLICIES))
def test_policy(text, policy):
    found = decode_policy(text, PATH)
    assert (found.mode, found.allowlist, found.origin) == (policy.mode, policy.allowlist, PATH)


FAULTS = {
    "policy unknown": ("credentialPluginPolicy: Maybe", [':3: credentialPluginPolicy: unknown plugin policy: "Maybe"']),
    "wrong types": (
        "credentialPluginPolicy: [x]\ncredentialPluginAllowlist:\n- 5\n- command: 6\n- {command: ok}",
        [
            ":3: credentialPluginPolicy: expected a string",
            ":5: credentialPluginAllowlist[0]: expected an object",
            ":6: credentialPluginAllowlist[1].command: expected a string",
        ],
    ),
    "list as object": ("credentialPluginAllowlist: {}", [":3: credentialPluginAllowlist: expected a list"]),
    "allowlist absent": (
        "credentialPluginPolicy: Allowlist",
        [':3: credentialPluginPolicy: credential plugin policy set to "Allowlist", but allowlist is unspecified'],
    ),
    "allowlist empty": (
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: []",
        [
            ':4: credentialPluginAllowlist: credential plugin policy set to "Allowlist", '
            'but allowlist is empty; use "DenyAll" policy instead'
        ],
    ),
    "allowlist with another policy": (
        "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: [{command: x}]",
        [
            ":4: credentialPluginAllowlist: misconfigured credential plugin allowlist: "
            'plugin policy is "DenyAll" but allowlist is non-nil'
        ],
    ),
    "entry not normalized": (
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: a/../b}, {}]",
        [
            ':4: credentialPluginAllowlist: non-normalized file path: "a/../b" vs "b"',
            ":4: credentialPluginAllowlist: misconfigured credential plugin allowlist: empty allowlist entry #2",
        ],
    ),
    "key twice": (
        "credentialPluginPolicy: DenyAll\ncredentialPluginPolicy: AllowAll",
        [":4: credentialPluginPolicy: is given twice"],
    ),
    "a tab": (
        "a:\n\tb: c",
        [":4: not YAML: found character that cannot start any token: a tab, perhaps, where spaces belong"],
    ),
    "not YAML": ("a: b: c", [":3: not YAML: mapping values are not allowed in this context"]),
}


@pytest.mark.parametrize(("text", "expected"), FAULTS.values(), ids=list(FAULTS))
def test_faults(text, expected):
    with pytest.raises(KubercError) as caught:
        decode_policy(BETA + text + "\n", PATH)
    assert str(caught.value).splitlines() == [PATH + line for line in expected]


@pytest.mark.parametrize(
    "text",
    [
        "kind: Preference\n",
        BETA.replace("v1beta1", "v9") + "credentialPluginPolicy: DenyAll\n",
        BETA.replace("Preference", "Config"),
        "[]",
        "5",
    ],
    ids=["no version", "a newer version", "another kind", "a list", "a number"],
)
def test_a_file_of_nothing_known_does_not_lift_the_policy(text):
    with pytest.raises(KubercError, match="no document is a Preference"):
        decode_policy(text)


# -- where it is ----------------------------------------------------------------------------------


def test_no_file_allows_all(own_environment):
    assert read_policy() == PluginPolicy()


def test_default_place(own_environment):
    path = own_environment / ".kube" / "kuberc"
    path.parent.mkdir()
    path.write_text(BETA + "credentialPluginPolicy: DenyAll\n")
    assert read_policy() == PluginPolicy("DenyAll", None, str(path))
    assert read_policy(environ={"KUBERC": "off", "HOME": str(own_environment)}) == PluginPolicy()


def test_a_directory_called_tilde_is_no_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "~" / ".kube" / "kuberc"
    path.parent.mkdir(parents=True)
    path.write_text(BETA + "credentialPluginPolicy: DenyAll\n")
    assert read_policy(environ={"HOME": "~"}) == PluginPolicy()


def test_named_file(tmp_path, monkeypatch):
    monkeypatch.setenv("KUBERC", str(tmp_path / "rc"))
    with pytest.raises(KubercError, match="rc: no such file or directory"):
        read_policy()
    (tmp_path / "rc").write_text(BETA + "credentialPluginPolicy: DenyAll\n")
    assert read_policy().mode == "DenyAll"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff", "is not UTF-8"), (b"x" * (1 << 20) + b"x", "is larger than 1048576 bytes")],
    ids=["not UTF-8", "huge"],
)
def test_unreadable_file_is_an_error_and_not_a_free_pass(own_environment, content, message):
    path = own_environment / ".kube" / "kuberc"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(KubercError, match=message):
        read_policy()
