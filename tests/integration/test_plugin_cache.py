"""`kubeauthn plugin cache`: what is kept, for how long, for whom; many at once; and what lies in its place."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubeauthn._core import execwire, rfc3339
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.errors import PluginDenied
from kubeauthn.plugin import credential
from kubeauthn.plugins.cache.entry import Entry, kept_until
from kubeauthn.plugins.cache.identity import IGNORED, identity
from kubeauthn.plugins.cache.plugin import Settings, credential_function
from kubeauthn.testing import ApiServer, CertificateAuthority
from tests.integration.at_once import start_at_once
from tests.integration.test_plugin_oidc import HEAVY

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
NOBODY = 65534


class Wrapped:
    """A plugin in shell that counts its runs, and prints what the test put into a file."""

    def __init__(self, directory: Path) -> None:
        self.runs_file, self.reply = directory / "runs", directory / "reply.json"
        self.path = directory / "wrapped-plugin"
        self.path.write_text(
            f"#!/bin/sh\necho x >> {self.runs_file}\n[ -e {directory}/slow ] && sleep 1\ncat {self.reply}\n"
        )
        self.path.chmod(0o755)
        self.says(token="t0ken-1", seconds=3600)

    @property
    def runs(self) -> int:
        return len(self.runs_file.read_text().split()) if self.runs_file.exists() else 0

    def says(self, seconds: float | None = None, version: str = execwire.V1, **status: str) -> None:
        names = {"certificate": "clientCertificateData", "key": "clientKeyData"}
        fields = {names.get(name, name): value for name, value in status.items()}
        if seconds is not None:
            fields["expirationTimestamp"] = rfc3339.format(time.time() + seconds)
        self.reply.write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": fields}))

    def fails(self) -> None:
        self.reply.unlink()


@pytest.fixture
def wrapped(tmp_path: Path) -> Wrapped:
    return Wrapped(tmp_path)


def environment(**more: str) -> dict[str, str]:
    cluster = Cluster(server=more.pop("server", "https://one.test"))
    info = execwire.encode_exec_info(
        more.pop("version", execwire.V1), interactive=more.pop("person", "") == "yes", cluster=cluster
    )
    return {**os.environ, execwire.VARIABLE: info, **more}


def run(wrapped: Wrapped, *options: str, words: tuple[str, ...] = (), **more: str) -> subprocess.CompletedProcess[str]:
    command = [KUBEAUTHN, "plugin", "cache", *options, "--", str(wrapped.path), *words]
    return subprocess.run(
        command, env=environment(**more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50
    )


def token(wrapped: Wrapped, *options: str, **more: str) -> str:
    done = run(wrapped, *options, **more)
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["status"].get("token"))


def cache() -> Path:
    return Path(os.environ["HOME"], ".cache", "kubeauthn", "cache")


def kept() -> list[Path]:
    return sorted(cache().glob("*.json"))


# -- what is kept ---------------------------------------------------------------------------------


def test_the_second_command_does_not_run_the_plugin(wrapped: Wrapped):
    first = run(wrapped)
    wrapped.says(token="t0ken-2", seconds=3600)
    second = run(wrapped)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == second.stdout
    assert wrapped.runs == 1
    (file,) = kept()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_it_answers_in_the_version_that_is_asked_for(wrapped: Wrapped):
    token(wrapped)
    done = run(wrapped, version=execwire.V1BETA1)
    assert json.loads(done.stdout)["apiVersion"] == execwire.V1BETA1
    assert wrapped.runs == 1


def test_a_certificate_with_its_key(wrapped: Wrapped):
    leaf = CertificateAuthority("clients").issue_client("jane", ["dev"])
    wrapped.says(certificate=leaf.chain_pem.decode(), key=leaf.key_pem.decode(), seconds=3600)
    for _ in range(2):
        done = run(wrapped)
        assert done.returncode == 0, done.stderr
        status = json.loads(done.stdout)["status"]
        assert status["clientCertificateData"] == leaf.chain_pem.decode()
        assert status["clientKeyData"] == leaf.key_pem.decode()
    assert wrapped.runs == 1


def test_a_credential_without_an_end_is_not_kept_unless_that_is_asked_for(wrapped: Wrapped):
    wrapped.says(token="forever")
    assert (token(wrapped), token(wrapped)) == ("forever", "forever")
    assert (wrapped.runs, kept()) == (2, [])
    assert (token(wrapped, "--max-age=100"), token(wrapped, "--max-age=100")) == ("forever", "forever")
    assert wrapped.runs == 3
    expiry = json.loads(run(wrapped, "--max-age=100").stdout)["status"]["expirationTimestamp"]
    assert rfc3339.parse(expiry) <= time.time() + 100


def test_max_age_shortens_but_never_lengthens(wrapped: Wrapped):
    token(wrapped, "--max-age=50")
    assert json.loads(kept()[0].read_text())["until"] <= time.time() + 50
    kept()[0].unlink()
    token(wrapped, "--max-age=86400")
    assert json.loads(kept()[0].read_text())["until"] <= time.time() + 3540


def test_a_failure_is_not_kept(wrapped: Wrapped):
    wrapped.fails()
    done = run(wrapped)
    assert (done.returncode, done.stdout) == (1, "")
    assert "exec: executable" in done.stderr
    assert "failed with exit code 1" in done.stderr
    assert kept() == []
    wrapped.says(token="later", seconds=3600)
    assert token(wrapped) == "later"


REPLIES = {
    "no JSON": "please log in",
    "no status": json.dumps({"apiVersion": execwire.V1, "kind": "ExecCredential"}),
    "another version": json.dumps(
        {"apiVersion": execwire.V1ALPHA1, "kind": "ExecCredential", "status": {"token": "s3cret"}}
    ),
    "a signer": json.dumps(
        {"apiVersion": execwire.V1, "kind": "ExecCredential", "status": {"externalSigner": {"pathExec": "x"}}}
    ),
    "a proxy": json.dumps(
        {"apiVersion": execwire.V1, "kind": "ExecCredential", "status": {"token": "s3cret", "proxyConfig": {}}}
    ),
    "ended": json.dumps(
        {
            "apiVersion": execwire.V1,
            "kind": "ExecCredential",
            "status": {"token": "s3cret", "expirationTimestamp": "2020-01-01T00:00:00Z"},
        }
    ),
}


@pytest.mark.parametrize("case", REPLIES)
def test_what_is_no_credential_is_neither_kept_nor_handed_on(wrapped: Wrapped, case: str):
    wrapped.reply.write_text(REPLIES[case])
    done = run(wrapped)
    assert (done.returncode, done.stdout) == (1, "")
    assert "s3cret" not in done.stderr
    assert kept() == []


# -- for how long ---------------------------------------------------------------------------------


def test_it_is_asked_again_before_the_end(wrapped: Wrapped):
    token(wrapped)
    document = json.loads(kept()[0].read_text())
    assert document["expiresAt"] - document["until"] == pytest.approx(60)
    kept()[0].write_text(json.dumps({**document, "until": time.time() - 1}))
    token(wrapped)
    assert wrapped.runs == 2


def test_the_margin_of_a_short_life_is_a_tenth_of_it():
    assert kept_until(1000.0, 1100.0, 60.0) == 1090.0
    assert kept_until(1000.0, 4600.0, 60.0) == 4540.0
    assert kept_until(1000.0, 900.0, 60.0) == 900.0


def test_a_clock_that_was_set_back_makes_nothing_young_again():
    entry = Entry(made_at=10_000.0, until=13_000.0, expires_at=13_600.0)
    assert [entry.usable(now) for now in (9_950.0, 10_000.0, 12_999.0)] == [True, True, True]
    assert [entry.usable(now) for now in (9_000.0, 13_000.0, 13_600.0, 20_000.0)] == [False] * 4


def test_what_has_ended_is_removed_when_something_new_comes(wrapped: Wrapped):
    token(wrapped, X_ROLE="one")
    document = json.loads(kept()[0].read_text())
    kept()[0].write_text(json.dumps({**document, "until": 1}))
    old = kept()[0]
    token(wrapped, X_ROLE="two")
    assert not old.exists()
    assert len(kept()) == 1


# -- for whom -------------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"X_ROLE": "admin"}, {"server": "https://two.test"}, {"words": ("--as", "admin")}])
def test_another_command_environment_or_cluster_is_another_credential(wrapped: Wrapped, other: dict[str, str]):
    token(wrapped)
    run(wrapped, **other)  # type: ignore[arg-type]
    assert wrapped.runs == 2


@pytest.mark.parametrize(
    "same", [{"TERM": "vt100"}, {"PWD": "/elsewhere"}, {"SSH_TTY": "/dev/pts/9"}, {"person": "yes"}]
)
def test_another_terminal_is_not(wrapped: Wrapped, same: dict[str, str]):
    token(wrapped)
    token(wrapped, **same)
    assert wrapped.runs == 1


def test_more_can_be_ignored(wrapped: Wrapped):
    for number in "12":
        token(wrapped, "--ignore-env=X_TRACE*", X_TRACE_ID=number)
    assert wrapped.runs == 1


def test_a_relative_command_is_another_one_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    here, bare = identity(["./plugin"], {}, None), identity(["plugin", "--x=y"], {}, None)
    monkeypatch.chdir("/")
    assert identity(["./plugin"], {}, None) != here
    assert identity(["plugin", "--x=y"], {}, None) == bare


def test_the_name_says_nothing_of_the_environment(wrapped: Wrapped):
    token(wrapped, AWS_SECRET_ACCESS_KEY="s3cret-key")
    assert "s3cret-key" not in kept()[0].name + kept()[0].read_text()
    assert len(kept()[0].stem) == 64
    assert "HOME" not in IGNORED
    assert "PATH" not in IGNORED


# -- the policy -----------------------------------------------------------------------------------


def test_the_policy_is_asked_about_the_wrapped_plugin(wrapped: Wrapped, tmp_path: Path):
    assert token(wrapped)
    kuberc = Path(os.environ["HOME"], ".kube", "kuberc")
    kuberc.parent.mkdir()
    kuberc.write_text(
        "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"
        "credentialPluginPolicy: Allowlist\ncredentialPluginAllowlist: [{command: kubeauthn}]\n"
    )
    done = run(wrapped)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not permitted by the credential plugin allowlist" in done.stderr
    assert wrapped.runs == 1
    with pytest.raises(PluginDenied):
        credential.try_out(credential_function(Settings((str(wrapped.path),))))


# -- many at once ---------------------------------------------------------------------------------


def start(wrapped: Wrapped, count: int) -> list[subprocess.Popen[str]]:
    return start_at_once([KUBEAUTHN, "plugin", "cache", "--", str(wrapped.path)], environment(), count)


def test_twenty_at_once_run_the_plugin_once(wrapped: Wrapped):
    processes = start(wrapped, 20)
    answers = [process.communicate(timeout=50) for process in processes]
    assert [process.returncode for process in processes] == [0] * 20, answers
    assert len({out for out, _ in answers}) == 1
    assert wrapped.runs == 1


def test_a_failure_is_shared_by_those_who_waited_and_by_nobody_else(wrapped: Wrapped, tmp_path: Path):
    wrapped.fails()
    (tmp_path / "slow").touch()
    (first,) = start(wrapped, 1)
    while wrapped.runs < 1:
        time.sleep(0.01)
    # These come while the plugin is running, and get what becomes of it.
    others = start(wrapped, 3)
    answers = [process.communicate(timeout=50) for process in (first, *others)]
    assert [process.returncode for process in (first, *others)] == [1] * 4
    waited = sum("another process was getting this credential, and it did not succeed" in err for _, err in answers)
    assert wrapped.runs == 4 - waited
    assert waited >= 1


# -- what lies in its place -----------------------------------------------------------------------


def break_it(file: Path) -> None:
    file.write_bytes(b"\xff{")


def open_it(file: Path) -> None:
    file.chmod(0o644)


def link_it(file: Path) -> None:
    target = file.with_name("elsewhere")
    file.rename(target)
    file.symlink_to(target)


def link_it_hard(file: Path) -> None:
    os.link(file, file.with_name("second"))


@pytest.mark.parametrize("change", [break_it, open_it, link_it, link_it_hard])
def test_a_file_that_is_not_as_we_left_it_is_not_used(wrapped: Wrapped, change: Callable[[Path], None]):
    token(wrapped)
    change(kept()[0])
    wrapped.says(token="t0ken-2", seconds=3600)
    assert token(wrapped) == "t0ken-2"
    assert stat.S_IMODE(kept()[0].lstat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_refused(wrapped: Wrapped, mode: int):
    token(wrapped)
    cache().chmod(mode)
    done = run(wrapped)
    assert (done.returncode, done.stdout) == (1, "")
    assert "others may read or change what is in it" in done.stderr
    assert wrapped.runs == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(wrapped: Wrapped):
    token(wrapped)
    os.chown(cache(), NOBODY, NOBODY)
    assert run(wrapped).returncode == 1


def test_clear_forgets_everything(wrapped: Wrapped):
    token(wrapped, X_ROLE="one")
    token(wrapped, X_ROLE="two")
    (cache() / ".left.behind").touch()
    done = subprocess.run([KUBEAUTHN, "plugin", "cache", "--clear"], capture_output=True, text=True, timeout=50)
    assert (done.returncode, done.stdout) == (0, "forgot 2 credentials\n")
    assert [path.name for path in cache().iterdir()] == ["CACHEDIR.TAG"]


# -- clients --------------------------------------------------------------------------------------


@pytest.mark.needs("kubectl")
def test_kubectl_runs_the_plugin_once_for_many_commands(wrapped: Wrapped, tmp_path: Path):
    wrapped.says(token="good", seconds=3600)
    entry = {
        "apiVersion": execwire.V1, "command": KUBEAUTHN, "args": ["plugin", "cache", "--", str(wrapped.path)],
        "interactiveMode": "Never", "provideClusterInfo": True,
    }  # fmt: skip
    with ApiServer(tokens={"good": "jane"}) as server:
        config = server.write_kubeconfig(tmp_path / "config", {"exec": entry})
        for _ in range(3):
            listed = subprocess.run(
                ["kubectl", "get", "--raw", "/api/v1/namespaces"], env={**os.environ, "KUBECONFIG": str(config)},
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=50,
            )  # fmt: skip
            assert listed.returncode == 0, listed.stderr
        assert {request.user for request in server.requests} == {"jane"}
    assert wrapped.runs == 1


def test_the_plugin_checker_finds_nothing(wrapped: Wrapped):
    checked = subprocess.run(
        [KUBEAUTHN, "plugin", "check", "--api-version=v1", "--", KUBEAUTHN, "plugin", "cache", "--", str(wrapped.path)],
        capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout


def test_the_cached_path_imports_nothing_heavy(wrapped: Wrapped):
    token(wrapped)
    program = (
        "import atexit, sys\n"
        "from kubeauthn.cli.main import main\n"
        "atexit.register(lambda: sys.stderr.write('\\n'.join(sys.modules)))\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, "plugin", "cache", "--", str(wrapped.path)],
        env=environment(), capture_output=True, text=True, timeout=50,
    )  # fmt: skip
    assert wrapped.runs == 1
    assert json.loads(done.stdout)["status"]["token"] == "t0ken-1"
    assert not set(done.stderr.split()) & HEAVY


def test_without_a_command_it_says_how(wrapped: Wrapped):
    done = subprocess.run([KUBEAUTHN, "plugin", "cache"], capture_output=True, text=True, timeout=50)
    assert done.returncode == 2
    assert "kubeauthn plugin cache -- COMMAND" in done.stderr
