"""Environment, files and service account, through the public door; and the same files given to kubectl."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from kubeauthn._core import limits
from kubeauthn._io import kubeconfig as shell
from kubeauthn.client import kubeconfig
from kubeauthn.errors import KubeconfigError

ONE = """
clusters:
- name: a
  cluster: {server: https://one.example.com, certificate-authority: pki/ca.crt}
users:
- name: u
  user: {token: one, tokenFile: ""}
"""
TWO = """
current-context: two
clusters:
- name: a
  cluster: {server: https://two.example.com, tls-server-name: two}
users:
- name: u
  user: {username: two}
- name: plugin
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}
contexts:
- name: two
  context: {cluster: a, user: plugin}
"""
THREE = "current-context: three\n"


@pytest.fixture
def three_files(tmp_path, monkeypatch):
    for name, text in (("one", ONE), ("two", TWO), ("three", THREE)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config").write_text(text)
    (tmp_path / "one" / "pki").mkdir()
    (tmp_path / "one" / "pki" / "ca.crt").write_text("CA")
    paths = [str(tmp_path / name / "config") for name in ("one", "missing", "two", "three")]
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join([paths[0], "", paths[1], paths[2], paths[0], paths[3]]))
    return paths


def test_list_of_files(three_files, tmp_path):
    config = kubeconfig.load()
    assert config.clusters["a"].server == "https://one.example.com"
    assert config.clusters["a"].tls_server_name == ""
    assert config.users["u"].username == ""
    assert config.current_context == "two"
    assert config.sources == (three_files[0], three_files[2], three_files[3])
    target = kubeconfig.resolve()
    assert target.cluster.certificate_authority_data == b"CA"
    assert target.user.exec is not None
    assert target.user.exec.command == str(tmp_path / "two" / "plugin")
    assert target.sources == config.sources
    assert kubeconfig.resolve(kubeconfig=config) == target


@pytest.mark.needs("kubectl")
def test_kubectl_merges_the_same_way(three_files):
    view = subprocess.run(
        ["kubectl", "config", "view", "--raw", "-o", "json"], capture_output=True, text=True, check=True, timeout=60
    )
    theirs = json.loads(view.stdout)
    ours = kubeconfig.load()
    assert theirs["current-context"] == ours.current_context
    assert {entry["name"]: entry["cluster"]["server"] for entry in theirs["clusters"]} == {
        name: entry.server for name, entry in ours.clusters.items()
    }
    assert {entry["name"]: entry["user"].get("username", "") for entry in theirs["users"]} == {
        name: entry.username for name, entry in ours.users.items()
    }


def test_default_file(own_environment):
    path = own_environment / ".kube" / "config"
    path.parent.mkdir()
    path.write_text(TWO)
    assert kubeconfig.load().sources == (str(path),)


def test_relative_path_is_made_absolute(tmp_path, monkeypatch):
    (tmp_path / "config").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", "config")
    plugin = kubeconfig.load().users["plugin"].exec
    assert plugin is not None
    assert plugin.command == str(tmp_path / "plugin")


def test_explicit_path_counts_alone_and_must_exist(three_files, tmp_path):
    assert kubeconfig.load(three_files[3]).sources == (three_files[3],)
    with pytest.raises(KubeconfigError, match="missing: no such file or directory"):
        kubeconfig.load(tmp_path / "missing")


def test_nothing_at_all(own_environment):
    with pytest.raises(KubeconfigError, match="no kubeconfig was found") as caught:
        kubeconfig.load()
    assert caught.value.hint is not None
    assert str(own_environment / ".kube" / "config") in caught.value.hint


def test_a_directory_called_tilde_is_no_home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "~")
    monkeypatch.delenv("USERPROFILE", raising=False)
    path = tmp_path / "~" / ".kube" / "config"
    path.parent.mkdir(parents=True)
    path.write_text(ONE)
    with pytest.raises(KubeconfigError, match="no kubeconfig was found") as caught:
        kubeconfig.load()
    assert caught.value.hint == "looked for: none, without a home directory; set KUBECONFIG or name a file"
    with pytest.raises(KubeconfigError, match="there is no home directory with a kubeconfig"):
        kubeconfig.edit()


def test_dev_null_is_an_empty_kubeconfig(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", os.devnull)
    with pytest.raises(KubeconfigError, match="no current-context is set"):
        kubeconfig.resolve()


def test_faults_of_all_files_come_together(tmp_path, monkeypatch):
    (tmp_path / "one").write_text("clusters: 5")
    (tmp_path / "two").write_text("a: 1\nusers: [7]")
    (tmp_path / "three").write_bytes(b"\xff")
    (tmp_path / "four").mkdir()
    (tmp_path / "five").symlink_to(tmp_path / "six")
    (tmp_path / "six").symlink_to(tmp_path / "five")
    monkeypatch.setenv(
        "KUBECONFIG", os.pathsep.join(str(tmp_path / name) for name in ("one", "two", "three", "four", "five"))
    )
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig.load()
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/one:1: clusters: expected a list, got a number",
        f"{tmp_path}/two:2: users[0]: expected an object, got a number",
        f"{tmp_path}/three: is not UTF-8 (line 1)",
        f"{tmp_path}/four: is a directory",
        f"{tmp_path}/five: is a loop of symbolic links",
    ]


def test_huge_file(tmp_path, monkeypatch):
    path = tmp_path / "config"
    with path.open("wb") as stream:
        stream.truncate(limits.KUBECONFIG_BYTES + 1)
    with pytest.raises(KubeconfigError, match=f"is larger than {limits.KUBECONFIG_BYTES} bytes"):
        kubeconfig.load(path)


def test_faults_of_the_entries_in_use_have_lines(tmp_path):
    path = tmp_path / "config"
    path.write_text("""\
current-context: x
contexts:
- name: x
  context: {cluster: c, user: u}
clusters:
- name: other
  cluster: {}
- name: c
  cluster:
    proxy-url: gopher://p
    certificate-authority: loop
users:
- name: u
  user:
    client-certificate: gone.crt
    client-key: .
    exec:
      apiVersion: client.authentication.k8s.io/v1
""")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig.resolve(path=path)
    assert str(caught.value).splitlines() == [
        f"{path}:9: clusters[1].cluster.server: no server found for cluster \"c\"",
        f"{path}:10: clusters[1].cluster.proxy-url: invalid 'proxy-url' for cluster \"c\": "
        'unsupported scheme "gopher", must be http, https, or socks5',
        f"{path}:11: clusters[1].cluster.certificate-authority: unable to read certificate-authority "
        f"{tmp_path}/loop for c due to is a loop of symbolic links",
        f"{path}:15: users[0].user.client-certificate: unable to read client-cert {tmp_path}/gone.crt for u "
        "due to no such file or directory",
        f"{path}:16: users[0].user.client-key: unable to read client-key {tmp_path} for u due to is a directory",
        f"{path}:17: users[0].user.exec.command: command must be specified for u to use exec authentication plugin",
        f"{path}:17: users[0].user.exec.interactiveMode: interactiveMode must be specified for u "
        "to use exec authentication plugin",
    ]  # fmt: skip


def test_context_that_is_gone_has_its_line_and_the_hint(tmp_path):
    (tmp_path / "config").write_text("contexts: [{name: a}]\ncurrent-context: b\n")
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig.resolve(path=tmp_path / "config")
    assert str(caught.value) == (
        f"{tmp_path}/config:2: current-context: context was not found for specified context: b"
    )
    assert caught.value.hint == "the contexts are: a"


def test_arguments_of_the_door(tmp_path):
    (tmp_path / "config").write_text(TWO)
    target = kubeconfig.resolve(
        "two",
        path=tmp_path / "config",
        namespace="n",
        server="https://other",
        tls_server_name="name",
        token="t",
        impersonate_user="a",
        impersonate_uid="b",
        impersonate_groups=["c"],
        impersonate_extra={"d": ["e"]},
    )
    assert (target.namespace, target.cluster.server, target.cluster.tls_server_name) == ("n", "https://other", "name")
    assert target.user.token.reveal() == "t"
    assert target.user.impersonation == kubeconfig.Impersonation("a", "b", ("c",), (("d", ("e",)),))
    assert kubeconfig.resolve(path=tmp_path / "config", user="u").user.username == "two"


# -- in a pod -------------------------------------------------------------------------------------

POD = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path):
    directory = tmp_path / "serviceaccount"
    directory.mkdir()
    for name, text in (("token", "t"), ("ca.crt", "CA"), ("namespace", "mine\n")):
        (directory / name).write_text(text)
    return directory


def test_in_a_pod(service_account, own_environment):
    environ = {**POD, "HOME": str(own_environment)}
    config = shell.load(environ=environ, service_account=str(service_account))
    target = shell.resolve(config, environ=environ)
    assert target.cluster.server == "https://[fd00::1]:443"
    assert target.cluster.certificate_authority_data == b"CA"
    assert target.user.token_file == str(service_account / "token")
    assert (target.namespace, target.context_name) == ("mine", "in-cluster")
    assert target.sources == ("the service account of this pod",)


def test_in_a_pod_a_kubeconfig_comes_first(service_account, three_files):
    environ = {**POD, "KUBECONFIG": three_files[2]}
    assert shell.load(environ=environ, service_account=str(service_account)).current_context == "two"


def test_in_a_pod_a_named_file_must_exist(service_account, tmp_path):
    with pytest.raises(KubeconfigError, match="no such file"):
        shell.load(tmp_path / "gone", environ=POD, service_account=str(service_account))


@pytest.mark.parametrize("missing", ["token", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"])
def test_not_quite_a_pod(service_account, own_environment, missing):
    environ = {**POD, "HOME": str(own_environment)}
    if missing == "token":
        (service_account / "token").unlink()
    else:
        del environ[missing]
    with pytest.raises(KubeconfigError, match="no kubeconfig was found"):
        shell.load(environ=environ, service_account=str(service_account))


def test_in_a_pod_without_ca_nothing_is_trusted_instead(service_account, own_environment):
    (service_account / "ca.crt").unlink()
    (service_account / "namespace").unlink()
    environ = {**POD, "HOME": str(own_environment)}
    config = shell.load(environ=environ, service_account=str(service_account))
    with pytest.raises(KubeconfigError, match="unable to read certificate-authority"):
        shell.resolve(config, environ=environ)


# -- scalars --------------------------------------------------------------------------------------

SCALARS = (
    *("yes", "no", "on", "off", "y", "n", "Y", "N", "True", "TRUE", "tRUE", "Yes", "oN", "~", "null", "NULL", "nULL"),
    *("1:30", "2020-01-01", "0o17", "017", "089", "0x1f", "0b11", "1_000", "1e3", ".5", "5.", "-3", "+3", "1e999"),
    *("--", "-x", "1.2.3", "0xzz", "+-3", "1e", "nope", "http://x", "'yes'", '"5"', "!!str 5", "!!int 5", "0", "-0"),
    *("1__0", "_1", "0_7", "0x", "0o8", "00", "1e+3", "1e-3", "+.5", "-.5", ".5e3", "1.5_0", "9223372036854775807"),
)


@pytest.mark.needs("kubectl")
def test_kubectl_reads_the_same_scalars(tmp_path):
    lines = "".join(f"        - {scalar}\n" for scalar in SCALARS)
    path = tmp_path / "config"
    path.write_text(
        "clusters:\n- name: a\n  cluster:\n    extensions:\n"
        f"    - name: client.authentication.k8s.io/exec\n      extension:\n        values:\n{lines}"
    )
    view = subprocess.run(
        ["kubectl", "--kubeconfig", str(path), "config", "view", "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    theirs = json.loads(view.stdout)["clusters"][0]["cluster"]["extensions"][0]["extension"]["values"]
    ours = json.loads(kubeconfig.load(path).clusters["a"].exec_extension)["values"]
    different = {text: (mine, other) for text, mine, other in zip(SCALARS, ours, theirs, strict=True) if mine != other}
    assert different == {}
    assert [type(value) is bool for value in ours] == [type(value) is bool for value in theirs]


@pytest.mark.parametrize(
    "text",
    [
        "clusters:\n" + "".join(f"  k{index}: {{x: 1, x: 2}}\n" for index in range(3000)),
        "current-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: 'https://h.test'}}]\nusers:\n- name: u\n  user:\n    exec:\n"
        "      apiVersion: client.authentication.k8s.io/v1\n      interactiveMode: Never\n      command: x\n"
        "      env:\n" + "      - {name: ''}\n" * 3000,
    ],
    ids=["keys given twice", "variables without a name"],
)
def test_thousands_of_faults_do_not_take_minutes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    started = time.monotonic()
    with pytest.raises(KubeconfigError) as caught:
        shell.resolve(shell.load(path))
    assert len(caught.value.faults) >= 3000
    assert time.monotonic() - started < 10
