"""Real plugins in real processes: what they are given, and what becomes of the bad ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeauthn._core import execwire, limits
from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn._core.policy import PluginPolicy
from kubeauthn._io.process import run_plugin
from kubeauthn.client import metrics
from kubeauthn.client.exec_source import ExecOptions, ExecPlugin
from kubeauthn.errors import (
    CredentialError,
    EnvironmentFailure,
    InteractionRequired,
    KubeauthnError,
    KubeconfigError,
    PluginDenied,
    PluginFailed,
    PluginNotFound,
    PluginReplyError,
    PluginTimeout,
)
from kubeauthn.testing.clock import FakeClock
from kubeauthn.testing.pki import CertificateAuthority
from kubeauthn.testing.plugins import PluginDirectory, ScriptedPlugin

CLUSTER = Cluster(server="https://127.0.0.1:6443", tls_server_name="api", config='{"audience":"x"}')
TOKEN_REPLY = json.dumps({"apiVersion": execwire.V1, "kind": "ExecCredential", "status": {"token": "SECRET-TOKEN"}})


@pytest.fixture
def directory(tmp_path: Path) -> PluginDirectory:
    return PluginDirectory(tmp_path / "plugins")


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedPlugin:
    plugin = ScriptedPlugin(tmp_path / "scripted")
    plugin.reply(token="SECRET-TOKEN")
    return plugin


def entry(command: str | Path, **fields: object) -> ExecConfig:
    values: dict[str, object] = {"api_version": execwire.V1, "interactive_mode": "Never"} | fields
    return ExecConfig(command=str(command), **values)  # type: ignore[arg-type]


def run(
    command: str | Path,
    *,
    policy: PluginPolicy = PluginPolicy(),
    seconds: float | None = 10.0,
    is_terminal: Callable[[], bool] = lambda: False,
    **fields: object,
) -> Credential:
    options = ExecOptions(policy=policy, seconds=seconds)
    return ExecPlugin(entry(command, **fields), CLUSTER, options, is_terminal=is_terminal).make_credential()


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether the process ends within the time: it is not there, or a zombie nobody has fetched yet."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


# -- what a plugin is given -----------------------------------------------------------------------


def test_environment_is_ours_then_the_entrys_then_the_document(
    scripted: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "1")
    monkeypatch.setenv("BOTH", "ours")
    monkeypatch.setenv("KUBERNETES_EXEC_INFO", "stale")
    run(
        scripted.path,
        args=("get", "a b", ""),
        env=(("BOTH", "entry"), ("EMPTY", ""), ("KUBERNETES_EXEC_INFO", "forged")),
    )
    environment = scripted.environment()
    assert (environment["OURS"], environment["BOTH"], environment["EMPTY"]) == ("1", "entry", "")
    assert scripted.exec_info() == {
        "apiVersion": execwire.V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    assert scripted.arguments() == ["get", "a b", ""]


@pytest.mark.parametrize("version", execwire.VERSIONS)
def test_each_version_is_sent_and_expected_back(
    scripted: ScriptedPlugin, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    scripted.reply(token="t", api_version=version)
    run(scripted.path, api_version=version, provide_cluster_info=True)
    info = scripted.exec_info()
    assert info["apiVersion"] == version
    assert ("cluster" in info["spec"]) is (version != execwire.V1ALPHA1)
    assert ("no longer accept" in caplog.text) is (version == execwire.V1ALPHA1)


def test_cluster_information_only_when_asked_for(scripted: ScriptedPlugin) -> None:
    run(scripted.path)
    assert "cluster" not in scripted.exec_info()["spec"]
    run(scripted.path, provide_cluster_info=True)
    assert scripted.exec_info()["spec"]["cluster"] == {
        "server": "https://127.0.0.1:6443",
        "tls-server-name": "api",
        "config": {"audience": "x"},
    }


def test_working_directory_is_not_changed(directory: PluginDirectory, tmp_path: Path) -> None:
    where = tmp_path / "where"
    run(directory.script("where", f"pwd >{where}\necho '{TOKEN_REPLY}'\n"))
    assert where.read_text().strip() == os.getcwd()


def test_bare_name_goes_through_path(directory: PluginDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    directory.script("my-plugin", f"echo '{TOKEN_REPLY}'\n")
    monkeypatch.setenv("PATH", f"{directory.path}:{os.environ['PATH']}")
    assert run("my-plugin").token


def test_path_entries_relative_to_the_current_directory_are_not_used(
    directory: PluginDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.script("my-plugin", f"echo '{TOKEN_REPLY}'\n")
    monkeypatch.chdir(directory.path)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    with pytest.raises(PluginNotFound):
        run("my-plugin")


def test_standard_input_is_empty_where_nobody_types(directory: PluginDirectory) -> None:
    plugin = directory.script("asks", f"if read answer; then exit 9; fi\necho '{TOKEN_REPLY}'\n")
    assert run(plugin).token


# -- the bad ones ---------------------------------------------------------------------------------


def test_missing_executable_shows_the_install_hint() -> None:
    with pytest.raises(PluginNotFound) as caught:
        run("/nowhere/kubelogin", install_hint="brew install kubelogin")
    assert str(caught.value) == "exec: executable /nowhere/kubelogin not found"
    assert caught.value.hint == "brew install kubelogin"
    assert caught.value.__notes__ == ["brew install kubelogin"]


def test_install_hint_ten_times_an_hour() -> None:
    clock = FakeClock()
    plugin = ExecPlugin(entry("/nowhere/x", install_hint="hint"), CLUSTER, clock=clock)
    hints = []
    for _ in range(12):
        with pytest.raises(PluginNotFound) as caught:
            plugin.make_credential()
        hints.append(caught.value.hint)
    assert hints == ["hint"] * 10 + [None] * 2
    clock.advance(3601)
    with pytest.raises(PluginNotFound) as caught:
        plugin.make_credential()
    assert caught.value.hint == "hint"


def test_not_executable(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    with pytest.raises(PluginNotFound) as caught:
        run(plain, install_hint="brew install plain")
    assert str(caught.value) == f"exec: executable {plain} is not executable: Permission denied"
    assert caught.value.hint == f"chmod +x {plain}"
    assert not hasattr(caught.value, "__notes__")


def test_not_executable_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain").write_text("#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(PluginNotFound, match="exec: executable plain is not executable") as caught:
        run("plain")
    assert caught.value.hint == f"chmod +x {tmp_path / 'plain'}"


def test_a_script_whose_interpreter_is_missing_is_not_a_matter_of_its_mode(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(PluginNotFound, match="not found: its interpreter is not there: /no/such/interpreter") as caught:
        run(script, install_hint="reinstall it")
    assert caught.value.hint == "reinstall it"


def test_a_script_with_the_line_endings_of_windows(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_bytes(b"#!/bin/sh\r\necho hello\r\n")
    script.chmod(0o755)
    with pytest.raises(PluginNotFound, match="not found: its lines end as on Windows") as caught:
        run(script, install_hint="reinstall it")
    assert caught.value.hint == f"sed -i 's/\\r$//' {script}"
    assert not hasattr(caught.value, "__notes__")


def test_not_a_program(tmp_path: Path) -> None:
    rubbish = tmp_path / "rubbish"
    rubbish.write_bytes(b"\x00\x01\x02 not a program")
    rubbish.chmod(0o755)
    with pytest.raises(PluginNotFound, match="exec format error"):
        run(rubbish)


def test_a_directory_is_not_a_plugin(tmp_path: Path) -> None:
    with pytest.raises(PluginNotFound):
        run(tmp_path)


def test_nul_in_an_argument(scripted: ScriptedPlugin) -> None:
    with pytest.raises(PluginNotFound, match="null"):
        run(scripted.path, args=("a\0b",))


@pytest.mark.parametrize("code", [1, 2, 127, 255])
def test_exit_code(scripted: ScriptedPlugin, code: int) -> None:
    scripted.fail(code, stderr="")
    with pytest.raises(PluginFailed) as caught:
        run(scripted.path)
    assert str(caught.value) == f"exec: executable {scripted.path} failed with exit code {code}"
    assert caught.value.exit_code == code


def test_ended_by_a_signal(scripted: ScriptedPlugin) -> None:
    scripted.fail(-signal.SIGKILL)
    with pytest.raises(PluginFailed, match="was ended by signal 9"):
        run(scripted.path)


def test_a_good_document_with_a_bad_exit_code_is_a_failure(directory: PluginDirectory) -> None:
    with pytest.raises(PluginFailed, match="exit code 3"):
        run(directory.script("p", f"echo '{TOKEN_REPLY}'\nexit 3\n"))


def test_prints_nothing(scripted: ScriptedPlugin) -> None:
    scripted.raw(b"")
    with pytest.raises(PluginReplyError, match="printed nothing"):
        run(scripted.path)


def test_prints_a_hundred_megabytes(directory: PluginDirectory, tmp_path: Path) -> None:
    plugin = directory.script("loud", f"echo $$ >{tmp_path}/pid\nhead -c 100000000 /dev/zero\nsleep 60\n")
    with pytest.raises(PluginReplyError, match=f"more than {limits.PLUGIN_REPLY_BYTES} bytes"):
        run(plugin)
    assert gone(int((tmp_path / "pid").read_text()))


def test_hangs(scripted: ScriptedPlugin) -> None:
    scripted.hang()
    with pytest.raises(PluginTimeout, match=r"did not answer within 0\.\d s"):
        run(scripted.path, seconds=0.3)


def test_the_time_limit_ends_everything_the_plugin_started(directory: PluginDirectory, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    plugin = directory.script("family", f"sleep 600 & echo $! >>{pids}\n(sleep 600 & echo $! >>{pids}; wait) &\nwait\n")
    with pytest.raises(PluginTimeout):
        run(plugin, seconds=0.5)
    children = [int(line) for line in pids.read_text().split()]
    assert len(children) == 2
    assert all(gone(pid) for pid in children)


def test_closes_its_output_and_hangs(directory: PluginDirectory) -> None:
    with pytest.raises(PluginTimeout):
        run(directory.script("p", f"echo '{TOKEN_REPLY}'\nexec >&-\nsleep 600\n"), seconds=0.4)


def test_a_child_that_keeps_standard_output_open(directory: PluginDirectory, tmp_path: Path) -> None:
    plugin = directory.script("p", f"sleep 600 & echo $! >{tmp_path}/child\necho '{TOKEN_REPLY}'\n")
    with pytest.raises(PluginReplyError, match="keeps its standard output open"):
        run(plugin)
    assert gone(int((tmp_path / "child").read_text()))


def test_a_child_that_dribbles_into_standard_output(directory: PluginDirectory) -> None:
    plugin = directory.script("p", f"(for i in $(seq 200); do echo; sleep 0.05; done) &\necho '{TOKEN_REPLY}'\n")
    with pytest.raises(PluginReplyError, match="keeps its standard output open"):
        run(plugin)


def test_a_child_with_its_own_output_may_stay(directory: PluginDirectory, tmp_path: Path) -> None:
    plugin = directory.script("p", f"sleep 600 >/dev/null & echo $! >{tmp_path}/child\necho '{TOKEN_REPLY}'\n")
    assert run(plugin).token
    child = int((tmp_path / "child").read_text())
    os.kill(child, signal.SIGKILL)


def test_ca_too_large_for_an_environment(scripted: ScriptedPlugin) -> None:
    huge = Cluster(server="https://127.0.0.1", certificate_authority_data=b"x" * 200_000)
    plugin = ExecPlugin(entry(scripted.path, provide_cluster_info=True), huge)
    with pytest.raises(EnvironmentFailure) as caught:
        plugin.make_credential()
    assert "provideClusterInfo" in str(caught.value.hint)
    assert scripted.runs == 0


def test_unknown_api_version() -> None:
    with pytest.raises(KubeconfigError, match='exec plugin: invalid apiVersion "client.authentication.k8s.io/v2"'):
        ExecPlugin(entry("x", api_version="client.authentication.k8s.io/v2"), CLUSTER)


def test_always_interactive_without_a_terminal_is_not_run(scripted: ScriptedPlugin) -> None:
    with pytest.raises(InteractionRequired, match="standard input is not a terminal"):
        run(scripted.path, interactive_mode="Always")
    assert scripted.runs == 0


def test_denied_by_the_policy_is_not_run(scripted: ScriptedPlugin) -> None:
    with pytest.raises(PluginDenied, match="not permitted by the credential plugin allowlist"):
        run(scripted.path, policy=PluginPolicy("Allowlist", ("other",)))
    assert scripted.runs == 0


def test_an_allowlist_by_name_does_not_admit_the_same_name_elsewhere(
    directory: PluginDirectory, scripted: ScriptedPlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.script(scripted.path.name, f"echo '{TOKEN_REPLY}'\n")
    monkeypatch.setenv("PATH", f"{directory.path}:{os.environ['PATH']}")
    allowed = PluginPolicy("Allowlist", (scripted.path.name,))
    assert run(scripted.path.name, policy=allowed).token
    with pytest.raises(PluginDenied):
        run(scripted.path, policy=allowed)


def test_no_secret_in_any_message(directory: PluginDirectory) -> None:
    broken = directory.script("p", 'printf \'%s\' \'{"kind":"ExecCredential","status":{"token":"SECRET-TOKEN"\'\n')
    with pytest.raises(KubeauthnError) as caught:
        run(broken)
    error: BaseException | None = caught.value
    while error is not None:
        assert "SECRET" not in f"{error!r} {error} {error.args} {getattr(error, '__notes__', '')}"
        error = error.__cause__


def test_every_failure_is_a_credential_error(scripted: ScriptedPlugin) -> None:
    """So that `except CredentialError` is all that a program needs to know that nothing was sent."""
    for raised in (PluginNotFound, PluginFailed, PluginTimeout, PluginReplyError, PluginDenied, InteractionRequired):
        assert issubclass(raised, CredentialError)


FORKS_DURING_A_RUN = """
import os, sys, threading, time
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecPlugin
command, begun = sys.argv[1:]
config = ExecConfig(command, "client.authentication.k8s.io/v1", interactive_mode="Never")
plugin = ExecPlugin(config, Cluster(server="https://127.0.0.1"))
runner = threading.Thread(target=lambda: print(plugin.make_credential()))
runner.start()
deadline = time.monotonic() + 10
while not os.path.exists(begun) and time.monotonic() < deadline:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
runner.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_that_ends_does_not_end_its_parents_plugin(directory: PluginDirectory, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    slow = directory.script("slow", f"touch {begun}\nsleep 1\necho '{TOKEN_REPLY}'\n")
    ended = subprocess.run(
        [sys.executable, "-c", FORKS_DURING_A_RUN, slow, begun], capture_output=True, text=True, timeout=30
    )
    assert ended.stdout == "Credential(token, authorization, expires_at=None)\n", ended.stderr


# -- what the metrics are told --------------------------------------------------------------------


class Heard:
    def __init__(self) -> None:
        self.calls: list[tuple[int, str]] = []
        self.policy: list[str] = []
        self.expiry: list[float | None] = []
        self.ages: list[float] = []

    def certificate_expires(self, at: float | None) -> None:
        self.expiry.append(at)

    def certificate_rotated(self, age: float) -> None:
        self.ages.append(age)

    def plugin_called(self, code: int, status: str) -> None:
        self.calls.append((code, status))

    def policy_decided(self, result: str) -> None:
        self.policy.append(result)


@pytest.fixture
def heard() -> object:
    listener = Heard()
    before = metrics.listener()
    metrics.install(listener)
    yield listener
    metrics.install(before)


def test_calls_are_counted_by_outcome(scripted: ScriptedPlugin, heard: Heard, directory: PluginDirectory) -> None:
    run(scripted.path)
    scripted.fail(3)
    with pytest.raises(PluginFailed):
        run(scripted.path)
    with pytest.raises(PluginNotFound):
        run("/nowhere/x")
    with pytest.raises(PluginDenied):
        run(scripted.path, policy=PluginPolicy("DenyAll"))
    scripted.hang()
    with pytest.raises(PluginTimeout):
        run(scripted.path, seconds=0.2)
    scripted.fail(-signal.SIGKILL)
    with pytest.raises(PluginFailed):
        run(scripted.path)
    scripted.raw(b"x" * (limits.PLUGIN_REPLY_BYTES + 1))
    with pytest.raises(PluginReplyError):
        run(scripted.path)
    assert heard.calls == [
        (0, "no_error"),
        (3, "plugin_execution_error"),
        (1, "plugin_not_found_error"),
        (1, "plugin_execution_error"),
        (-1, "plugin_execution_error"),
        (1, "client_internal_error"),
    ]
    assert heard.policy == ["allowed", "allowed", "allowed", "denied", "allowed", "allowed", "allowed"]


def test_certificates_are_told_by_their_end_and_by_their_age_at_rotation(
    scripted: ScriptedPlugin, heard: Heard
) -> None:
    authority = CertificateAuthority()
    clock = FakeClock()
    start = datetime.fromtimestamp(clock(), UTC)
    first = authority.issue_client("jane", not_before=start, not_after=start + timedelta(hours=4))
    second = authority.issue_client("jane", not_before=start, not_after=start + timedelta(hours=8))
    plugin = ExecPlugin(entry(scripted.path), CLUSTER, ExecOptions(), clock=clock, is_terminal=lambda: False)

    scripted.reply(certificate=first)
    plugin.make_credential()
    assert heard.expiry[-1] == first.not_after.timestamp()
    clock.advance(3600)
    scripted.reply(certificate=first, token="new")  # the same one again is no rotation
    plugin.make_credential()
    assert heard.ages == []
    scripted.fail(1)  # nor is a failed run
    with pytest.raises(PluginFailed):
        plugin.make_credential()
    assert (heard.ages, heard.expiry[-1]) == ([], first.not_after.timestamp())

    scripted.reply(certificate=second)
    plugin.make_credential()
    assert heard.ages == [3600]
    assert heard.expiry[-1] == second.not_after.timestamp()
    clock.advance(1800)
    scripted.reply(token="only-a-token")
    plugin.make_credential()
    assert heard.ages == [3600, 5400]
    assert heard.expiry[-1] != second.not_after.timestamp()  # it is no more among those that count


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_descriptor_is_left_behind(scripted: ScriptedPlugin, directory: PluginDirectory) -> None:
    run(scripted.path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        run(scripted.path)
    scripted.hang()
    for _ in range(3):
        with pytest.raises(PluginTimeout):
            run(scripted.path, seconds=0.1)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # that is the point of it
def test_a_plugin_that_may_not_be_ended_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sudo` makes it another user's: the system then refuses to end it."""
    pids: list[int] = []

    def refused(group: int, _: int) -> None:
        pids.append(group)
        raise PermissionError("operation not permitted")

    started = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(os, "killpg", refused)
        with pytest.raises(PluginTimeout):
            run_plugin("/bin/sleep", ["sleep", "20"], {}, interactive=False, seconds=0.2)
    took = time.monotonic() - started
    os.killpg(pids[0], signal.SIGKILL)
    assert took < 5
