"""Kubeconfig text to entries, and every fault at once."""

from __future__ import annotations

import json
import random

import pytest

from kubeauthn._core.kubeconfig.decode import decode
from kubeauthn._core.kubeconfig.faults import FAULTS_SHOWN, locate
from kubeauthn._core.kubeconfig.model import ExecConfig, Impersonation
from kubeauthn.errors import KubeconfigError

PATH = "/home/me/.kube/config"

EVERYTHING = """
apiVersion: v1
kind: Config
preferences: {colors: true}
current-context: prod
clusters:
- name: prod
  cluster:
    server: https://prod.example.com:6443
    tls-server-name: api
    insecure-skip-tls-verify: false
    certificate-authority: pki/ca.crt
    certificate-authority-data: Y2E=
    proxy-url: socks5://proxy:1080
    disable-compression: true
    unknown: [kept, by, edit]
    extensions:
    - name: other
      extension: 5
    - name: client.authentication.k8s.io/exec
      extension: {z: 1, a: [yes, null, 1.5, "é"]}
users:
- name: all
  user:
    client-certificate: ../me.crt
    client-certificate-data: Y2VydA==
    client-key: /abs/me.key
    client-key-data: a2V5
    token: t0ken
    tokenFile: ./token
    username: me
    password: s3cret
    as: other
    as-uid: uid
    as-groups: [a, b]
    as-user-extra: {k: [v, w], n: null}
    auth-provider: {name: oidc, config: {id-token: x, idp: null}}
- name: plugin
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: bin/plugin
      args: [a, --b]
      env: [{name: A, value: b}, {name: C}]
      installHint: get it
      provideClusterInfo: true
      interactiveMode: Never
contexts:
- name: prod
  context: {cluster: prod, user: all, namespace: shop}
"""


def test_everything():
    config = decode(EVERYTHING, PATH)
    cluster = config.clusters["prod"]
    assert cluster.server == "https://prod.example.com:6443"
    assert cluster.tls_server_name == "api"
    assert cluster.certificate_authority == "/home/me/.kube/pki/ca.crt"
    assert cluster.certificate_authority_data == b"ca"
    assert cluster.proxy_url == "socks5://proxy:1080"
    assert cluster.disable_compression is True
    assert cluster.exec_extension == '{"z":1,"a":[true,null,1.5,"é"]}'
    assert cluster.origin.path == PATH
    user = config.users["all"]
    assert user.client_certificate == "/home/me/me.crt"
    assert user.client_certificate_data == b"cert"
    assert user.client_key == "/abs/me.key"
    assert user.client_key_data.reveal() == "key"
    assert user.token.reveal() == "t0ken"
    assert user.token_file == "/home/me/.kube/token"
    assert (user.username, user.password.reveal()) == ("me", "s3cret")
    assert user.impersonation == Impersonation("other", "uid", ("a", "b"), (("k", ("v", "w")), ("n", ())))
    assert user.auth_provider is not None
    assert user.auth_provider.config == (("id-token", "x"), ("idp", ""))
    assert config.users["plugin"].exec == ExecConfig(
        command="/home/me/.kube/bin/plugin",
        api_version="client.authentication.k8s.io/v1",
        args=("a", "--b"),
        env=(("A", "b"), ("C", "")),
        install_hint="get it",
        provide_cluster_info=True,
        interactive_mode="Never",
    )
    context = config.contexts["prod"]
    assert (context.cluster, context.user, context.namespace) == ("prod", "all", "shop")
    assert config.current_context == "prod"
    assert config.current_context_origin.path == PATH


def exec_of(fields, path=PATH):
    user = {"name": "u", "user": {"exec": fields}}
    plugin = decode(json.dumps({"users": [user]}), path).users["u"].exec
    assert plugin is not None
    return plugin


@pytest.mark.parametrize(
    ("command", "path", "expected"),
    [
        ("aws", PATH, "aws"),
        ("./aws", PATH, "/home/me/.kube/aws"),
        ("../bin/aws", PATH, "/home/me/bin/aws"),
        ("bin/../../aws", PATH, "/home/me/aws"),
        ("/usr/bin/aws", PATH, "/usr/bin/aws"),
        ("./aws", None, "./aws"),
        ("", PATH, ""),
    ],
)
def test_command_is_relative_to_its_file_only_with_a_separator(command, path, expected):
    assert exec_of({"command": command}, path).command == expected


@pytest.mark.parametrize(
    ("version", "mode", "expected"),
    [
        ("v1", None, ""),
        ("v1beta1", None, "IfAvailable"),
        ("v1alpha1", None, "IfAvailable"),
        ("v1beta1", "", "IfAvailable"),
        ("v1beta1", "Never", "Never"),
        ("v2", None, ""),
    ],
)
def test_interactive_mode_default_by_version(version, mode, expected):
    plugin = exec_of({"apiVersion": f"client.authentication.k8s.io/{version}", "interactiveMode": mode})
    assert plugin.interactive_mode == expected


NULLS = {
    "nothing": "",
    "null document": "null",
    "null lists": "{clusters: null, users: ~, contexts: , current-context: null, kind: null, preferences: null}",
    "null items": "{clusters: [null], users: [~]}",
}


@pytest.mark.parametrize("text", NULLS.values(), ids=list(NULLS))
def test_null_is_absent(text):
    config = decode(text)
    assert (config.clusters, config.users, config.contexts, config.current_context) == ({}, {}, {}, "")


def test_null_fields_are_absent():
    plugin = exec_of({"command": "x", "args": None, "env": None, "provideClusterInfo": None, "installHint": None})
    assert plugin == ExecConfig(command="x", api_version="", interactive_mode="")
    config = decode("{clusters: [{name: a, cluster: null}, {name: b}], users: [{name: u, user: {as-groups: null}}]}")
    assert set(config.clusters) == {"a", "b"}
    assert config.users["u"].impersonation == Impersonation()


def test_semantics_are_not_judged_here():
    decode("users: [{name: u, user: {exec: {env: [{value: x}]}, auth-provider: {}, token: a, username: b}}]")


def test_all_faults_at_once_with_line_and_field():
    text = """kind: 5
apiVersion: v2
clusters:
- name: a
  cluster: {server: 5, insecure-skip-tls-verify: "true", certificate-authority-data: "###"}
- name: a
- 7
- name: [x]
  cluster: text
  extensions: ignored here
- name: ext
  cluster:
    extensions:
    - {name: x}
    - {name: x}
    - 5
    - name: client.authentication.k8s.io/exec
      extension: .inf
users:
  - name: u
    user:
      token: 12345
      client-key-data: /w==
      as-groups: [1, ok]
      as-user-extra: {k: v}
      auth-provider: {name: 1, config: {a: 1, b: ok}}
      exec:
        command: [x]
        args: {a: b}
        env:
        - name: x
          name: z
        - 5
        provideClusterInfo: 1
current-context: yes
contexts: {}
preferences: 5
extensions: x
"""
    with pytest.raises(KubeconfigError) as caught:
        decode(text, PATH)
    assert str(caught.value).splitlines() == [
        f"{PATH}:{line}"
        for line in (
            "1: kind: expected a string (quote it), got a number",
            '2: apiVersion: expected "v1"',
            "5: clusters[0].cluster.server: expected a string (quote it), got a number",
            "5: clusters[0].cluster.insecure-skip-tls-verify: expected true or false, got a string",
            "5: clusters[0].cluster.certificate-authority-data: is not base64",
            '6: clusters[1].name: duplicate name "a" in list',
            "7: clusters[2]: expected an object, got a number",
            "8: clusters[3].name: expected a string, got a list",
            "9: clusters[3].cluster: expected an object, got a string",
            '15: clusters[4].cluster.extensions[1].name: duplicate name "x" in list',
            "16: clusters[4].cluster.extensions[2]: expected an object, got a number",
            "18: clusters[4].cluster.extensions[3].extension: holds a number that JSON cannot express",
            "22: users[0].user.token: expected a string (quote it), got a number",
            "23: users[0].user.client-key-data: is base64, but not of text (PEM was expected)",
            "24: users[0].user.as-groups[0]: expected a string, got a number",
            "25: users[0].user.as-user-extra.k: expected a list of strings, got a string",
            "26: users[0].user.auth-provider.name: expected a string (quote it), got a number",
            "26: users[0].user.auth-provider.config.a: expected a string (quote it), got a number",
            "28: users[0].user.exec.command: expected a string, got a list",
            "29: users[0].user.exec.args: expected a list of strings, got an object",
            "32: users[0].user.exec.env[0].name: is given twice",
            "33: users[0].user.exec.env[1]: expected an object, got a number",
            "34: users[0].user.exec.provideClusterInfo: expected true or false, got a number",
            "35: current-context: expected a string (quote it), got a boolean",
            "36: contexts: expected a list, got an object",
            "37: preferences: expected an object, got a number",
            "38: extensions: expected a list, got a string",
        )
    ]
    fault = caught.value.faults[0]
    assert (fault.file, fault.line, fault.field) == (PATH, 1, "kind")


@pytest.mark.parametrize("kind", ['""', "Config", "null"])
def test_kind_may_be_absent(kind):
    decode(f"kind: {kind}\napiVersion: v1\n")


@pytest.mark.parametrize("text", ["[]", "text", "5", "-----BEGIN RSA PRIVATE KEY-----\nc2VjcmV0\n-----END"])
def test_not_an_object(text):
    with pytest.raises(KubeconfigError, match="expected an object") as caught:
        decode(text)
    assert "c2VjcmV0" not in str(caught.value)


def test_extensions_of_users_and_contexts_are_checked_and_not_kept():
    decode("users: [{name: u, user: {extensions: [{name: x, extension: 5}]}}]\ncontexts: [{context: {extensions: []}}]")
    with pytest.raises(KubeconfigError) as caught:
        decode("users: [{user: {extensions: 5}}]\ncontexts: [{context: {extensions: [x]}}]")
    assert [fault.field for fault in caught.value.faults] == [
        "users[0].user.extensions",
        "contexts[0].context.extensions[0]",
    ]


def test_many_faults_are_counted_and_not_all_spelled_out():
    with pytest.raises(KubeconfigError) as caught:
        decode("clusters: [" + "5, " * 5000 + "]")
    assert len(caught.value.faults) == 5000
    lines = str(caught.value).splitlines()
    assert len(lines) == FAULTS_SHOWN + 1
    assert lines[-1] == f"… and {5000 - FAULTS_SHOWN} more"


def test_hostile_names_and_keys_cannot_forge_a_line_of_the_message():
    with pytest.raises(KubeconfigError) as caught:
        decode('users: [{name: "a\\nb", user: {as-user-extra: {"x\\ny\\u001b[2J": 1}}}, {name: "a\\nb"}]')
    assert len(str(caught.value).splitlines()) == 2
    assert "\x1b" not in str(caught.value)


SECRET = "hunter2hunter2"
SECRETIVE = {
    "token in a list": f"users: [{{name: u, user: {{token: [{SECRET}]}}}}]",
    "key that is not base64": f"users: [{{name: u, user: {{client-key-data: '{SECRET}!'}}}}]",
    "password as object": f"users: [{{name: u, user: {{password: {{a: {SECRET}}}}}}}]",
    "config value": f"users: [{{name: u, user: {{auth-provider: {{config: {{s: [{SECRET}]}}}}}}}}]",
    "env value": f"users: [{{name: u, user: {{exec: {{env: [{{name: a, value: [{SECRET}]}}]}}}}}}]",
    "the whole file": SECRET,
    "broken quotes": f"token: '{SECRET}",
    "tab": f"a:\n\t{SECRET}",
    "colons": f"a: {SECRET}: b",
    "tag": f"a: !!int {SECRET}",
}


@pytest.mark.parametrize("text", SECRETIVE.values(), ids=list(SECRETIVE))
def test_no_content_in_messages(text):
    with pytest.raises(KubeconfigError) as caught:
        decode(text, PATH)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.faults)


def test_no_secret_in_repr():
    text = json.dumps(
        {
            "clusters": [{"name": "c", "cluster": {"proxy-url": f"http://me:{SECRET}@proxy"}}],
            "users": [
                {
                    "name": "u",
                    "user": {
                        "token": SECRET,
                        "password": SECRET,
                        "client-key-data": "aHVudGVyMmh1bnRlcjI=",
                        "auth-provider": {"name": "oidc", "config": {"client-secret": SECRET}},
                        "exec": {"args": [SECRET], "env": [{"name": "A", "value": SECRET}]},
                    },
                }
            ],
        }
    )
    assert SECRET not in repr(decode(text))


def test_locate_by_index_and_by_name():
    def line(text):
        return EVERYTHING.splitlines().index(text) + 1

    command = line("      command: bin/plugin")
    assert locate(EVERYTHING, ("users", 1, "user", "exec", "command")) == command
    assert locate(EVERYTHING, ("users", "plugin", "user", "exec", "command")) == command
    assert locate(EVERYTHING, ("users", "plugin", "user", "token")) == line("    exec:") - 1
    assert locate(EVERYTHING, ("users", "nobody", "user")) == line("users:")
    assert locate(EVERYTHING, ("current-context",)) == line("current-context: prod")


FRAGMENTS = (
    *("users", "clusters", "contexts", "name", "user", "cluster", "exec", "args", "env", "extensions", "as-groups"),
    *("token", "client-key-data", "current-context", "kind", "Config", "v1", "apiVersion", "auth-provider", "config"),
    *(":", ": ", "\n", "\n  ", "\n    ", "- ", "[", "]", "{", "}", ",", "&a ", "*a", "<<: ", "!!int ", "!x ", "? "),
    *("|", ">", "'", '"', "#", "---\n", "%YAML 1.1\n", "\t", "\x00", "\\", "é", "\ufeff", "5", "yes", "null", "1e9"),
)


@pytest.mark.parametrize("seed", range(20))
def test_random_text_raises_nothing_else(seed):
    source = random.Random(seed)
    refused = 0
    for _ in range(200):
        text = "".join(source.choices(FRAGMENTS, k=source.randint(1, 60)))
        try:
            decode(text, PATH)
        except KubeconfigError as error:
            refused += 1
            assert error.faults
    assert refused > 50


@pytest.mark.parametrize("seed", range(20))
def test_a_kubeconfig_with_random_damage_raises_nothing_else(seed):
    source = random.Random(seed)
    for _ in range(25):
        text = list(EVERYTHING)
        for _ in range(source.randint(1, 8)):
            text[source.randrange(len(text))] = source.choice(FRAGMENTS)
        try:
            decode("".join(text), PATH)
        except KubeconfigError as error:
            assert "t0ken" not in str(error)
