"""Editing: what is asked for changes, everything else stays, and kubectl agrees."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading

import pytest

from kubeauthn._io.kubeconfig_edit import KubeconfigEdit
from kubeauthn.client import kubeconfig
from kubeauthn.errors import EnvironmentFailure, KubeconfigError, MissingExtra, UsageError

FILE = """\
# top comment
apiVersion: v1
kind: Config
# the clusters
clusters:
# first
- name: a   # after a
  cluster:
    server: "https://a"   # after server
    unknown: 0x1f

# second
- name: b
  cluster: {server: https://b}
# the users
users:
- name: u
  user:
    token: 'abc'
    exec:
      command: x
      args:
      - a
# about v
- name: v
  user:
    token: def
current-context: ""
contexts:
- context:
    cluster: a
    user: u
  name: c
# about d
- name: d
  context: {}
# the end
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "config"
    path.write_text(FILE)
    path.chmod(0o600)
    return path


def removed(text: str, *lines: str) -> str:
    """The text without these lines, which follow one another."""
    block = "".join(line + "\n" for line in lines)
    assert text.count(block) == 1
    return text.replace(block, "")


CHANGES = {
    "set a field": (
        lambda edit: edit.set_cluster("a", {"server": "https://z"}),
        FILE.replace('"https://a"', '"https://z"'),
    ),
    "add a field": (
        lambda edit: edit.set_cluster("a", {"tls-server-name": "name"}),
        FILE.replace("0x1f\n", "0x1f\n    tls-server-name: name\n"),
    ),
    "add a field before a comment": (
        lambda edit: edit.set_user("u", {"tokenFile": "/t"}),
        FILE.replace("      - a\n# about v", "      - a\n    tokenFile: /t\n# about v"),
    ),
    "what kubectl would not read as text is quoted": (
        lambda edit: edit.set_context("c", {"namespace": "on"}),
        FILE.replace("    user: u\n", '    user: u\n    namespace: "on"\n'),
    ),
    "take a field away": (
        lambda edit: edit.set_user("u", {"exec": None}),
        removed(FILE, "    exec:", "      command: x", "      args:", "      - a"),
    ),
    "replace an object": (
        lambda edit: edit.set_user("u", {"exec": {"command": "new", "args": ["1_0", "b"]}}),
        FILE.replace("command: x\n      args:\n      - a\n", 'command: new\n      args:\n      - "1_0"\n      - b\n'),
    ),
    "add entries": (
        lambda edit: (edit.set_cluster("new", {"server": "https://n"}), edit.set_user("new", {"token": "t"})),
        FILE.replace("# the users", "- name: new\n  cluster:\n    server: https://n\n# the users").replace(
            "current-context", "- name: new\n  user:\n    token: t\ncurrent-context"
        ),
    ),
    "fill an empty entry": (
        lambda edit: edit.set_context("d", {"cluster": "b"}),
        FILE.replace("  context: {}\n", "  context:\n    cluster: b\n"),
    ),
    "remove the first entry": (
        lambda edit: edit.remove_user("u"),
        removed(FILE, *FILE[FILE.index("- name: u") : FILE.index("# about v")].splitlines()),
    ),
    "remove the last entry": (
        lambda edit: edit.remove_cluster("b"),
        removed(FILE, "- name: b", "  cluster: {server: https://b}"),
    ),
    "current-context": (
        lambda edit: edit.set_current_context("c"),
        FILE.replace('current-context: ""', 'current-context: "c"'),
    ),
    "nothing": (lambda edit: edit.remove_user("nobody"), FILE),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=list(CHANGES))
def test_only_what_was_asked_for_changes(path, change, expected):
    with kubeconfig.edit(path) as edit:
        change(edit)
    assert path.read_text() == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["config"]


def test_remove_says_whether_it_was_there(path):
    with kubeconfig.edit(path) as edit:
        assert edit.remove_context("c") is True
        assert edit.remove_context("c") is False
        assert edit.remove_context("d") is True
    assert kubeconfig.load(path).contexts == {}
    assert "contexts: []" in path.read_text()
    assert "# the end" in path.read_text()


BLOCK = "clusters:\n- name: a\n  cluster:\n    server: x\n"
STYLES = {
    "indented lists": "clusters:\n    - name: a\n      cluster:\n          server: x\n",
    "document start": "---\n" + BLOCK,
    "long lines": BLOCK + "    certificate-authority-data: " + "QUJD" * 2000 + "\n",
    "folded and literal": BLOCK + "    x: |\n      a\n\n      b\n    y: >-\n      c\n      d\n",
}


@pytest.mark.parametrize("text", STYLES.values(), ids=list(STYLES))
def test_the_style_of_the_file_stays(path, text):
    path.write_text(text)
    with kubeconfig.edit(path) as edit:
        edit.set_cluster("a", {"server": "z"})
    assert path.read_text() == text.replace("server: x", "server: z")


def test_json_stays_json(path):
    path.write_text('{"clusters": [{"name": "a", "cluster": {"server": "x"}}]}')
    with kubeconfig.edit(path) as edit:
        edit.set_user("u", {"token": "t", "as-groups": ["a"]})
    document = json.loads(path.read_text())
    assert document["users"] == [{"name": "u", "user": {"token": "t", "as-groups": ["a"]}}]


def test_an_alias_does_not_carry_the_change_to_others(path):
    path.write_text("users:\n- name: a\n  user: &shared\n    token: t\n- name: b\n  user: *shared\n")
    with kubeconfig.edit(path) as edit:
        edit.set_user("b", {"token": "new"})
    users = kubeconfig.load(path).users
    assert (users["a"].token.reveal(), users["b"].token.reveal()) == ("t", "new")


def test_each_entry_in_the_file_it_came_from(tmp_path, monkeypatch):
    (tmp_path / "one").write_text("users: [{name: a, user: {token: one}}]\n")
    (tmp_path / "two").write_text(
        "users: [{name: a, user: {token: two}}, {name: b, user: {token: two}}]\ncurrent-context: x\n"
    )
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(str(tmp_path / name) for name in ("gone", "one", "two")))
    with kubeconfig.edit() as edit:
        edit.set_user("a", {"token": "new-a"})
        edit.set_user("b", {"token": "new-b"})
        edit.set_user("c", {"token": "new-c"})
        edit.set_current_context("y")
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "one").read_text() == (
        "users: [{name: a, user: {token: new-a}}, {name: c, user: {token: new-c}}]\n"
    )
    assert (tmp_path / "two").read_text() == (
        'users: [{name: a, user: {token: two}}, {name: b, user: {token: new-b}}]\ncurrent-context: "y"\n'
    )
    assert kubeconfig.load().current_context == "y"
    with kubeconfig.edit() as edit:
        edit.set_current_context("")
        edit.remove_user("a")
    assert kubeconfig.load().current_context == ""
    assert kubeconfig.load().users["a"].token.reveal() == "two"


def test_the_default_file_is_made_for_its_owner_only(own_environment):
    with kubeconfig.edit() as edit:
        edit.set_cluster("a", {"server": "https://a"})
        edit.set_current_context("a")
    directory = own_environment / ".kube"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE((directory / "config").stat().st_mode) == 0o600
    assert (directory / "config").read_text() == (
        "apiVersion: v1\nkind: Config\nclusters:\n- name: a\n  cluster:\n    server: https://a\ncurrent-context: a\n"
    )
    assert os.listdir(directory) == ["config"]


def test_a_file_of_comments_keeps_them(path):
    path.write_text("# mine")
    with kubeconfig.edit(path) as edit:
        edit.set_current_context("a")
    assert path.read_text() == "# mine\napiVersion: v1\nkind: Config\ncurrent-context: a\n"


def test_links_are_followed_and_both_names_locked(tmp_path, path):
    link = tmp_path / "link"
    link.symlink_to(path)
    with kubeconfig.edit(link) as edit:
        edit.set_current_context("c")
        assert {"link.lock", "config.lock"} <= set(os.listdir(tmp_path))
    assert link.is_symlink()
    assert kubeconfig.load(path).current_context == "c"
    assert sorted(os.listdir(tmp_path)) == ["config", "link"]


def test_an_exception_leaves_everything_as_it_was(path):
    def fail_halfway():
        with kubeconfig.edit(path) as edit:
            edit.remove_user("u")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert path.read_text() == FILE
    assert os.listdir(path.parent) == ["config"]


def test_what_would_not_load_is_not_written(path):
    with pytest.raises(KubeconfigError, match=r"users\[0\]\.user\.token: expected a string"):
        with kubeconfig.edit(path) as edit:
            edit.set_user("u", {"token": 5})
    assert path.read_text() == FILE
    assert os.listdir(path.parent) == ["config"]


BROKEN = {
    "faults": ("users: 5", "users: expected a list"),
    "not YAML": ("a: b: c", "not YAML"),
    "two documents": ("a: 1\n---\na: 2\n", "not one single YAML document"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_file_is_not_edited(path, text, message):
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=message), kubeconfig.edit(path):
        pytest.fail("entered")
    assert path.read_text() == text
    assert os.listdir(path.parent) == ["config"]


def test_loop_of_links(tmp_path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(KubeconfigError, match="is a loop of symbolic links"), kubeconfig.edit(tmp_path / "a"):
        pytest.fail("entered")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_somebody_elses_lock_is_waited_for_and_named(path):
    lock = path.parent / "config.lock"
    lock.touch()
    with pytest.raises(EnvironmentFailure, match=r"config\.lock exists: another program") as caught:
        with KubeconfigEdit([str(path)], lock_seconds=0.1):
            pytest.fail("entered")
    assert caught.value.hint is not None
    assert lock.exists()
    timer = threading.Timer(0.1, lock.unlink)
    timer.start()
    with KubeconfigEdit([str(path)], lock_seconds=30) as edit:
        edit.set_current_context("c")
    timer.join()
    assert kubeconfig.load(path).current_context == "c"


def test_two_threads_lose_nothing(path):
    def add(prefix):
        for index in range(5):
            with kubeconfig.edit(path) as edit:
                edit.set_context(f"{prefix}{index}", {"cluster": "a"})

    threads = [threading.Thread(target=add, args=(prefix,)) for prefix in ("x", "z")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {f"{prefix}{index}" for prefix in ("x", "z") for index in range(5)} <= set(kubeconfig.load(path).contexts)


def test_outside_of_with(path):
    with pytest.raises(UsageError, match="use edit"):
        kubeconfig.edit(path).set_current_context("c")


def test_without_the_extra(path):
    program = (
        "import sys; sys.modules['ruamel.yaml'] = None\n"
        "from kubeauthn.client import kubeconfig\n"
        "with kubeconfig.edit(sys.argv[1]): pass\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60)
    assert MissingExtra.__name__ in ended.stderr
    assert "ruamel.yaml is not installed" in ended.stderr
    assert os.listdir(path.parent) == ["config"]


@pytest.mark.needs("kubectl")
def test_kubectl_reads_what_was_written_and_respects_the_lock(path):
    def kubectl(*arguments):
        return subprocess.run(
            ["kubectl", "--kubeconfig", str(path), "config", *arguments], capture_output=True, text=True, timeout=60
        )

    with kubeconfig.edit(path) as edit:
        edit.set_user("yes", {"exec": {"command": "0x1f", "args": ["on", "1e3", "~", "a: b", "#", "two\nlines\n"]}})
        edit.set_context("n", {"user": "yes", "namespace": "0o17"})
        refused = kubectl("set-context", "other", "--namespace=z")
    assert refused.returncode != 0
    assert "config.lock" in refused.stderr
    view = json.loads(kubectl("view", "--raw", "-o", "json").stdout)
    users = {entry["name"]: entry["user"] for entry in view["users"]}
    assert users["yes"]["exec"]["command"] == "0x1f"
    assert users["yes"]["exec"]["args"] == ["on", "1e3", "~", "a: b", "#", "two\nlines\n"]
    contexts = {entry["name"]: entry["context"] for entry in view["contexts"]}
    assert contexts["n"] == {"cluster": "", "user": "yes", "namespace": "0o17"}
    assert kubectl("set-context", "other", "--namespace=z").returncode == 0
    assert kubeconfig.load(path).contexts["other"].namespace == "z"
