"""`kubeauthn plugin check` on plugins of every kind: good ones, and a set of hostile ones."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeauthn._core import execwire
from kubeauthn.testing.pki import CertificateAuthority
from kubeauthn.testing.plugins import PluginDirectory
from tests.integration.checked_plugin import SECRET, check, invoke

HEAD = "import os, subprocess, sys, time\nfrom kubeauthn.plugin import credential\n"
GOOD = f"return credential.Token({SECRET!r}, expires_in=600)"
DOCUMENT = (
    '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
    f'"status":{{"token":"{SECRET}","expirationTimestamp":"2049-01-01T00:00:00Z"}}}}'
)


@pytest.fixture
def directory(tmp_path: Path) -> PluginDirectory:
    return PluginDirectory(tmp_path / "plugins")


def write(directory: PluginDirectory, body: str) -> Path:
    """A plugin written with the SDK, whose function has this body."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return directory.python("my-plugin", f"{HEAD}def function(request):\n{lines}credential.run(function)\n")


# -- good ones ------------------------------------------------------------------------------------


def test_a_good_plugin_passes_every_check(directory: PluginDirectory):
    checked = check(write(directory, GOOD), options=("--all-versions",))
    assert checked.code == 0
    assert set(checked.results.values()) == {"ok"}, checked.report
    assert list(checked.results) == [
        "start",
        "speed",
        "v1",
        "v1 with cluster",
        "v1beta1",
        "v1beta1 with cluster",
        "v1alpha1",
        "no terminal",
        "second run",
        "standard output",
        "standard error",
        "expiry",
        "processes",
    ]
    assert checked.report["runs"] == 6
    assert 0 < checked.report["fastestSeconds"] < 10


def test_the_text_is_an_aligned_list(directory: PluginDirectory):
    path = write(directory, GOOD)
    code, out, _ = invoke("--", path)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"ok   start                  {path}"
    assert lines[-1] == f"{path}: 0 faults, 0 notes in 5 runs"
    assert all(line.startswith("ok   ") for line in lines[:-2])


def test_a_certificate_and_a_token(directory: PluginDirectory):
    leaf = CertificateAuthority().issue_client("jane")
    path = write(
        directory,
        f"return credential.Credential(token={SECRET!r}, certificate={leaf.chain_pem!r}, "
        f"key={leaf.key_pem!r}, expires_in=600)",
    )
    checked = check(path)
    assert checked.code == 0
    assert checked.reasons["certificate"] == "fits its key, valid until 2049-12-31T00:00:00Z"
    assert checked.reasons["v1"].startswith("token and certificate until ")


def test_arguments_environment_and_cluster_reach_the_plugin(directory: PluginDirectory):
    path = write(
        directory,
        "assert sys.argv[1:] == ['--flag', '--', 'x'], sys.argv\n"
        "assert os.environ['AUDIENCE'] == 'a=b'\n"
        "assert not request.interactive\n"
        "assert request.cluster is None or (request.cluster.server, request.cluster_config) "
        "== ('https://127.0.0.1:1', {'a': [1]})\n" + GOOD,
    )
    options = ("--env", "AUDIENCE=a=b", "--server", "https://127.0.0.1:1", "--cluster-config", '{"a": [1]}')
    checked = check(path, "--flag", "--", "x", options=options)
    assert checked.faults == []


def test_arguments_are_not_shown(directory: PluginDirectory):
    checked = check(write(directory, GOOD), "--client-secret=SECRET-ARGUMENT")
    assert "SECRET-ARGUMENT" not in json.dumps(checked.report)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (f"return credential.Token({SECRET!r})", "none given"),
        (f"return credential.Token({SECRET!r}, expires_in=90000)", "in 25 hours"),
        (f"return credential.Token({SECRET!r}, expires_in=30)", "the plugin will run for nearly every request"),
    ],
    ids=["none", "long", "short"],
)
def test_an_expiry_worth_a_note(directory: PluginDirectory, answer: str, reason: str):
    checked = check(write(directory, answer))
    assert checked.code == 0
    assert checked.notes == ["expiry"]
    assert reason in checked.reasons["expiry"]


def test_a_certificate_that_ends_before_the_expiry_is_worth_a_note(directory: PluginDirectory):
    leaf = CertificateAuthority().issue_client("jane", not_after=datetime.now(UTC) + timedelta(minutes=5))
    answer = f"return credential.Certificate({leaf.chain_pem!r}, {leaf.key_pem!r}, expires_in=3600)"
    checked = check(write(directory, answer))
    assert checked.notes == ["certificate"]


def test_a_plugin_that_needs_the_cluster_says_so_with_an_exit_code(directory: PluginDirectory):
    checked = check(write(directory, "if request.cluster is None: raise credential.Refuse('which cluster?')\n" + GOOD))
    assert checked.code == 0
    assert {"v1", "v1beta1"} <= set(checked.notes)
    assert "which cluster?" in checked.reasons["v1"]
    assert "provideClusterInfo: true" in checked.reasons["v1"]


def test_a_plugin_that_knows_its_cluster_may_refuse_a_made_up_one_but_not_the_one_that_was_named(
    directory: PluginDirectory,
):
    body = "if request.cluster and request.cluster.server != 'https://mine.test': raise credential.Refuse('not mine')\n"
    plugin = write(directory, body + GOOD)
    checked = check(plugin)
    assert checked.code == 0
    assert checked.notes == ["v1 with cluster", "v1beta1 with cluster"]
    assert "not mine" in checked.reasons["v1 with cluster"]
    assert checked.reasons["v1 with cluster"].endswith("--server names one that is there")
    assert check(plugin, options=("--server", "https://mine.test")).notes == []
    assert check(plugin, options=("--server", "https://other.test")).faults == checked.notes


def test_a_version_may_be_refused_with_an_exit_code(directory: PluginDirectory):
    body = "if request.api_version != credential.V1: raise credential.Refuse('only v1 is known')\n" + GOOD
    checked = check(write(directory, body))
    assert checked.code == 0
    assert checked.notes == ["v1beta1", "v1beta1 with cluster"]
    assert checked.reasons["v1beta1"].endswith("the kubeconfig entry must name another version")


# -- hostile ones ---------------------------------------------------------------------------------


def test_rubbish_before_the_document(directory: PluginDirectory):
    path = directory.script("my-plugin", f"echo 'Loading token {SECRET}'\necho '{DOCUMENT}'")
    checked = check(path, options=("--api-version", "v1"))
    assert checked.code == 1
    assert checked.faults == ["standard output"]
    assert checked.reasons["standard output"] == '"Loading token …" before the document: a client refuses it'


def test_rubbish_after_the_document_from_a_child(directory: PluginDirectory):
    path = directory.python(
        "my-plugin", f"import subprocess\nprint({DOCUMENT!r}, flush=True)\nsubprocess.run(['echo', 'token stored'])"
    )
    checked = check(path, options=("--api-version", "v1"))
    assert checked.faults == ["standard output"]
    assert '"token stored" after the document' in checked.reasons["standard output"]


def test_a_second_document_is_never_shown(directory: PluginDirectory):
    path = directory.script("my-plugin", f"echo '{DOCUMENT}'\necho '{DOCUMENT.replace(SECRET, 'ANOTHER')}'")
    checked = check(path, options=("--api-version", "v1"))
    assert checked.faults == ["standard output"]
    assert "ANOTHER" not in json.dumps(checked.report)


def test_the_version_is_ignored(directory: PluginDirectory):
    checked = check(directory.script("my-plugin", f"echo '{DOCUMENT}'"))
    assert checked.code == 1
    assert checked.faults == ["v1beta1", "v1beta1 with cluster"]
    assert checked.reasons["v1beta1"] == (
        "exec plugin is configured to use API version client.authentication.k8s.io/v1beta1, "
        "plugin returned version client.authentication.k8s.io/v1"
    )


def test_a_child_that_keeps_standard_output(directory: PluginDirectory):
    path = directory.script("my-plugin", f"echo '{DOCUMENT}'\nsleep 300 &")
    checked = check(path, options=("--api-version", "v1"))
    assert checked.code == 1
    assert set(checked.faults) == {"v1", "v1 with cluster", "processes"}
    assert "keeps its standard output open" in checked.reasons["v1"]


def test_a_child_that_stays_without_holding_anything(directory: PluginDirectory):
    path = directory.script("my-plugin", f"echo '{DOCUMENT}'\nsleep 300 >/dev/null 2>&1 & echo $! >>\"$0.pids\"")
    checked = check(path, options=("--api-version", "v1"))
    assert checked.code == 0
    assert checked.reasons["processes"] == "left behind: sleep"
    pids = [int(pid) for pid in Path(f"{path}.pids").read_text().split()]
    assert len(pids) == 3
    assert_gone(pids)


DAEMON = """\
setsid sh -c 'echo $$ >"$1"; exec sleep 300' - "$0.daemon.$$" >/dev/null 2>&1 &
until test -s "$0.daemon.$$"; do sleep 0.01; done
"""


def test_a_daemon_is_seen_and_left_alone(directory: PluginDirectory):
    path = directory.script("my-plugin", f"{DAEMON}echo '{DOCUMENT}'")
    try:
        checked = check(path, options=("--api-version", "v1"))
        assert checked.reasons["processes"] == "left behind: sleep"
        daemons = [int(file.read_text()) for file in directory.path.glob("*.daemon.*")]
        assert len(daemons) == 3
        assert all(is_running(pid) for pid in daemons)
    finally:
        for file in directory.path.glob("*.daemon.*"):
            os.kill(int(file.read_text()), signal.SIGKILL)


def test_a_hundred_megabytes(directory: PluginDirectory):
    path = directory.python("my-plugin", "import os\nfor _ in range(1600): os.write(1, b'x' * 65536)")
    started = time.monotonic()
    checked = check(path)
    assert checked.code == 1
    assert checked.reasons["v1"] == "printed more than 1048576 bytes and was ended: not a credential"
    assert time.monotonic() - started < 30


def test_endless_standard_error(directory: PluginDirectory):
    """It is read on, so that the plugin does not block, and not kept."""
    path = directory.python(
        "my-plugin", f"import os\nfor _ in range(160): os.write(2, b'chatter\\n' * 8192)\nprint({DOCUMENT!r})"
    )
    checked = check(path, options=("--api-version", "v1"))
    assert checked.code == 0
    assert checked.reasons["standard error"] == 'text, though no person is there: "chatter"'


def test_one_that_hangs_is_ended_and_not_asked_again(directory: PluginDirectory):
    path = directory.script("my-plugin", 'echo $$ >>"$0.pids"\nsleep 300')
    checked = check(path, options=("--timeout", "0.5"))
    assert checked.code == 1
    assert checked.report["runs"] == 1
    assert checked.reasons["v1"] == "did not answer within 0.5 s and was ended"
    assert checked.results["no terminal"] == "fault"
    assert_gone([int(Path(f"{path}.pids").read_text())])


def test_one_that_answers_and_then_does_not_end(directory: PluginDirectory):
    path = directory.script("my-plugin", f"echo '{DOCUMENT}'\nexec >&-\nsleep 300")
    checked = check(path, options=("--timeout", "0.5"))
    assert checked.reasons["v1"] == "did not answer within 0.5 s and was ended"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("exec 3<>/dev/tty\necho 'Password:' >&3\nread answer <&3", "ended with exit code "),
        ("printf 'Password: ' >&2\nread answer || exit 5", 'ended with exit code 5, saying "Password:"'),
    ],
    ids=["/dev/tty", "standard input"],
)
def test_one_that_needs_a_terminal_gets_none(directory: PluginDirectory, body: str, reason: str):
    checked = check(directory.script("my-plugin", f"{body}\necho '{DOCUMENT}'"), options=("--timeout", "10"))
    assert checked.code == 1
    assert checked.reasons["v1"].startswith(reason)
    assert checked.results["no terminal"] == "note"
    assert checked.reasons["no terminal"] == "not judged: no run gave a credential; --interactive lets a person help"
    assert checked.reasons["standard error"] == "not judged: no run gave a credential"


def test_a_prompt_on_standard_error_is_noted(directory: PluginDirectory):
    path = directory.script("my-plugin", f"printf 'Password: ' >&2\necho '{DOCUMENT}'")
    checked = check(path, options=("--api-version", "v1"))
    assert checked.reasons["standard error"] == 'what looks like a prompt, though no person is there: "Password:"'


def test_a_token_on_standard_error_is_a_fault(directory: PluginDirectory):
    checked = check(write(directory, f"print('got', {SECRET!r})\n" + GOOD))
    assert checked.faults == ["standard error"]


def test_a_second_run_that_gives_something_else(directory: PluginDirectory):
    leaf = CertificateAuthority().issue_client("jane")
    path = write(
        directory,
        "first = not os.path.exists(sys.argv[0] + '.ran')\n"
        "if request.cluster: open(sys.argv[0] + '.ran', 'w').close()\n"
        f"if not first: return credential.Certificate({leaf.chain_pem!r}, {leaf.key_pem!r}, expires_in=600)\n" + GOOD,
    )
    checked = check(path, options=("--api-version", "v1"))
    assert checked.faults == ["second run"]
    assert checked.reasons["second run"] == "the first one gave a token, the second a certificate"


def test_a_second_run_that_fails(directory: PluginDirectory):
    path = directory.script(
        "my-plugin", f'test ! -e "$0.3" || exit 9\ntest ! -e "$0.2" || touch "$0.3"\ntouch "$0.2"\necho \'{DOCUMENT}\''
    )
    checked = check(path, options=("--api-version", "v1"))
    assert checked.faults == ["second run"]
    assert checked.reasons["second run"] == "the first one gave a token, the second ended with exit code 9"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (":", "decoding stdout: the plugin printed nothing"),
        (f"echo '{DOCUMENT[:-9]}'", "decoding stdout: not a JSON document"),
        (r"printf '\377\000'", "decoding stdout: not"),
        ("kill -9 $$", "ended with signal 9"),
        ("echo 'no login' >&2; exit 3", 'ended with exit code 3, saying "no login"'),
        (f"echo '{DOCUMENT.replace('2049', '2001')}'", "exec plugin returned a credential that expired"),
        (f"echo '{DOCUMENT.replace('token', 'clientKeyData')}'", "exec plugin returned only certificate or key"),
    ],
    ids=["nothing", "half a document", "binary", "signal", "exit code", "expired", "key alone"],
)
def test_no_credential_at_all(directory: PluginDirectory, body: str, reason: str):
    checked = check(directory.script("my-plugin", body), options=("--api-version", "v1"))
    assert checked.code == 1
    assert checked.reasons["v1"].startswith(reason)
    assert checked.reasons["standard error"] == "not judged: no run gave a credential"
    assert checked.reasons["no terminal"].startswith("not judged: ")
    assert "second run" not in checked.results


def test_of_what_a_plugin_says_before_it_fails_the_error_is_quoted(directory: PluginDirectory):
    path = directory.script(
        "my-plugin", "echo starting >&2; echo 'my-plugin: error: no login' >&2; echo bye >&2; exit 1"
    )
    assert check(path).reasons["v1"] == 'ended with exit code 1, saying "my-plugin: error: no login"'
    path = directory.script("my-plugin", "echo starting >&2; echo 'no login' >&2; echo >&2; exit 1")
    assert check(path).reasons["v1"] == 'ended with exit code 1, saying "no login"'


def test_a_plugin_that_needs_the_clusters_configuration_gets_a_note_about_the_option(directory: PluginDirectory):
    path = write(directory, "request.cluster_config['audience']\n" + GOOD)
    checked = check(path)
    assert len(checked.faults) == 4
    assert checked.results["cluster config"] == "note"
    assert "--cluster-config" in checked.reasons["cluster config"]
    checked = check(path, options=("--cluster-config", '{"audience": "prod"}'))
    assert checked.code == 0
    assert "cluster config" not in checked.results
    assert checked.reasons["no terminal"] == "answers without a person"
    assert "cluster config" not in check(path, options=("--cluster-config", "{}")).results


# -- it cannot be started -------------------------------------------------------------------------


def test_a_command_that_is_not_there():
    code, out, _ = invoke("--", "no-such-plugin")
    assert code == 4
    assert out.splitlines()[0] == "fault   start   no-such-plugin: not found on PATH"
    assert check("no-such-plugin").report["started"] is False


def test_a_path_that_is_not_there_or_not_executable(tmp_path: Path):
    path = tmp_path / "plugin"
    assert check(path).reasons == {"start": f"{path}: no such file"}
    path.write_text("#!/bin/sh\n")
    checked = check(path)
    assert checked.code == 4
    assert checked.reasons == {"start": f"{path} is there, but not executable (chmod +x {path})"}
    assert check(tmp_path).reasons == {"start": f"{tmp_path}: is a directory"}


def test_a_file_that_is_no_program(tmp_path: Path):
    path = tmp_path / "plugin"
    path.write_bytes(b"\x7fELF rubbish")
    path.chmod(0o755)
    checked = check(path)
    assert checked.code == 4
    assert checked.reasons == {
        "start": "cannot be started: exec format error"
        " (a script begins with #! and its interpreter; a program is made for one kind of machine)"
    }


@pytest.mark.parametrize("kind", ["credential", "signer", "proxy"])
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            b"#!/bin/sh\r\necho hello\r\n",
            "its lines end as on Windows, so its interpreter is not found (sed -i 's/\\r$//' {path})",
        ),
        (b"#!/no/such/interpreter -x\n", "its interpreter is not there: /no/such/interpreter"),
        (
            b"\xef\xbb\xbf#!/bin/sh\n",
            "exec format error: a byte order mark stands before its first line (save it as UTF-8 without it)",
        ),
    ],
    ids=["CRLF", "interpreter", "byte order mark"],
)
def test_a_script_that_the_system_does_not_start(tmp_path: Path, kind: str, content: bytes, reason: str):
    path = tmp_path / "plugin"
    path.write_bytes(content)
    path.chmod(0o755)
    checked = check(path, options=("--kind", kind))
    assert checked.code == 4
    assert checked.reasons == {"start": f"cannot be started: {reason.format(path=path)}"}


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--env", "NAME", "--", "x"),
        ("--timeout", "0", "--", "x"),
        ("--timeout", "nan", "--", "x"),
        ("--cluster-config", "{", "--", "x"),
        ("--api-version", "v2", "--", "x"),
        ("--api-version", "v1", "--all-versions", "--", "x"),
    ],
)
def test_a_wrong_command_line(arguments: tuple[str, ...]):
    code, out, err = invoke(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")


def test_a_cluster_configuration_that_is_no_json_is_told_where():
    _, _, err = invoke("--cluster-config", "{audience:prod}", "--", "x")
    first, second = err.splitlines()
    assert first.startswith("error: --cluster-config takes JSON: expecting property name")
    assert first.endswith("at line 1, column 2")
    assert second == """hint: for example --cluster-config '{"audience": "prod"}'"""


# -- with a person --------------------------------------------------------------------------------

PROGRAM = "import sys; from kubeauthn.cli.main import main; sys.exit(main())"


def test_with_a_person_at_a_real_terminal(directory: PluginDirectory):
    """Every interactive run asks, and one run without a terminal is tried too."""
    path = write(
        directory,
        "if not request.interactive: raise credential.Refuse('nobody there')\n"
        "print('Password:')\n"
        "assert sys.stdin.readline() == 'hunter2\\n'\n" + GOOD,
    )
    master, slave = pty.openpty()
    command = [
        sys.executable,
        "-c",
        PROGRAM,
        "plugin",
        "check",
        "--interactive",
        "--api-version",
        "v1",
        "--",
        str(path),
    ]
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    seen, answered = "", 0
    deadline = time.monotonic() + 30
    try:
        while time.monotonic() < deadline:
            if select.select([master], [], [], 0.1)[0]:
                try:
                    chunk = os.read(master, 4096)
                except OSError:  # the other end is closed
                    break
                seen += chunk.decode()
                if seen.count("Password:") > answered:
                    answered += 1
                    os.write(master, b"hunter2\n")
        assert process.wait(40) == 0, seen
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert answered == 3, seen
    assert "gives up without a person: the kubeconfig entry needs interactiveMode: Always" in seen
    assert "0 faults, 1 note in 4 runs" in seen
    assert SECRET not in seen


def test_with_a_person_needs_a_terminal(directory: PluginDirectory):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "plugin", "check", "--interactive", "--", "true"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 2
    assert "--interactive needs a terminal on standard input" in result.stderr


def assert_gone(pids: list[int], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while running := [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline, f"still running: {running}"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_the_documents_of_these_tests_are_what_they_should_be():
    assert execwire.decode_reply(DOCUMENT.encode(), execwire.V1, time.time()).token is not None
