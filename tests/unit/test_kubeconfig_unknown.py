"""Fields of a kubeconfig that nobody reads are found, each with what may have been meant."""

from __future__ import annotations

import pytest

from kubeauthn._core.kubeconfig.decode import decode
from kubeauthn._core.kubeconfig.unknown import unknown_fields

TEXT = """\
clusters:
- name: a
  cluster: {server: "https://a", sever: "https://b", extensions: []}
- name: b
  clutser: {server: "https://b"}
users:
- null
- name: u
  user:
    exec: {comand: x, apiVersion: v1, qqq: 1, env: [{name: a, value: b}]}
- name: static
  user: {token: t, as-groups: [x]}
contexts:
- name: c
  context: {cluster: a, user: u, namespcae: x}
- name: empty
"""


@pytest.mark.parametrize(
    ("section", "name", "expected"),
    [
        ("clusters", "a", [(("clusters", 0, "cluster", "sever"), "server")]),
        ("clusters", "b", [(("clusters", 1, "clutser"), "cluster")]),
        (
            "users",
            "u",
            [(("users", 1, "user", "exec", "comand"), "command"), (("users", 1, "user", "exec", "qqq"), "")],
        ),
        ("users", "static", []),
        ("contexts", "c", [(("contexts", 0, "context", "namespcae"), "namespace")]),
        ("contexts", "empty", []),
        ("contexts", "not-there", []),
    ],
)
def test_unknown_fields(section: str, name: str, expected: list[object]):
    assert unknown_fields(TEXT, section, name) == expected


def test_such_a_file_can_be_decoded():
    assert decode(TEXT).clusters["a"].server == "https://a"


def test_a_very_long_key_is_not_compared():
    key = "x" * 100_000
    assert unknown_fields(f"clusters: [{{name: a, cluster: {{? {key} : 1}}}}]", "clusters", "a") == [
        (("clusters", 0, "cluster", key), "")
    ]
