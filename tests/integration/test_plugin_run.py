"""`credential.run` in real processes: what a client gets, whatever the author's function does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubeauthn._core import execwire
from kubeauthn._core.kubeconfig.model import Cluster, ExecConfig
from kubeauthn.client.exec_source import ExecPlugin
from kubeauthn.testing.apiserver import ApiServer
from kubeauthn.testing.plugins import PluginDirectory

HEAD = "import os, subprocess, sys, time\nfrom kubeauthn.plugin import credential\n"
GOOD = 'credential.Token("SECRET-TOKEN", expires_in=600)'


@pytest.fixture
def directory(tmp_path: Path) -> PluginDirectory:
    return PluginDirectory(tmp_path / "plugins")


def write(directory: PluginDirectory, body: str) -> Path:
    """A plugin whose function has this body; indentation is added."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return directory.python("my-plugin", f"{HEAD}def function(request):\n{lines}credential.run(function)\n")


def run(
    path: Path,
    *,
    info: str | None = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None),
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **environment}
    variables.pop(execwire.VARIABLE, None)
    if info is not None:
        variables[execwire.VARIABLE] = info
    return subprocess.run([path], env=variables, capture_output=True, text=True, timeout=30)


def token_of(result: subprocess.CompletedProcess[str]) -> str:
    """Standard output is exactly one document."""
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("\n") == 1
    assert result.stdout.endswith("}\n")
    token: str = json.loads(result.stdout)["status"]["token"]
    return token


# -- the answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", execwire.VERSIONS)
def test_it_answers_in_the_version_asked_for(directory: PluginDirectory, version: str):
    result = run(
        write(directory, f"return {GOOD}"),
        info=execwire.encode_exec_info(version, interactive=False, cluster=None),
    )
    assert token_of(result) == "SECRET-TOKEN"
    assert result.stderr == ""
    assert execwire.decode_reply(result.stdout.encode(), version, time.time()).expires_at is not None


def test_our_own_client_takes_it(directory: PluginDirectory):
    path = write(directory, "return credential.Token(request.cluster_config['token'], expires_in=600)")
    config = ExecConfig(str(path), execwire.V1, provide_cluster_info=True, interactive_mode="Never")
    cluster = Cluster(server="https://127.0.0.1:1", config='{"token":"from-the-cluster"}')
    made = ExecPlugin(config, cluster).make_credential()
    assert made.token is not None
    assert made.token.reveal() == "from-the-cluster"


def test_an_async_function(directory: PluginDirectory):
    path = directory.python(
        "my-plugin",
        f"{HEAD}import asyncio\n"
        f"async def function(request):\n    await asyncio.sleep(0)\n    return {GOOD}\n"
        "credential.run(function)\n",
    )
    assert token_of(run(path)) == "SECRET-TOKEN"


def test_nothing_after_run_is_reached(directory: PluginDirectory):
    path = directory.python("my-plugin", f"{HEAD}credential.run(lambda request: {GOOD})\nprint('after')\n")
    result = run(path)
    assert token_of(result) == "SECRET-TOKEN"
    assert result.stderr == ""


def test_a_client_for_the_cluster_is_anonymous(directory: PluginDirectory):
    path = write(
        directory,
        "with request.connect() as api:\n"
        "    status = api.get('/version').status_code\n"
        "return credential.Token(f'status-{status}')",
    )
    with ApiServer(allow_anonymous=True) as server:
        cluster = Cluster(server=server.url, certificate_authority_data=server.ca.certificate_pem)
        info = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster)
        assert token_of(run(path, info=info)) == "status-200"
        (request,) = server.requests
    assert request.path == "/version"
    assert request.user is None
    assert "authorization" not in {name.lower() for name, _ in request.headers}


# -- standard output is guarded -------------------------------------------------------------------


@pytest.mark.parametrize(
    "noise",
    [
        "print('NOISE')",
        "print('NOISE', flush=True)",
        "sys.stdout.write('NOISE')",
        "sys.__stdout__.write('NOISE')",
        "os.write(1, b'NOISE')",
        "subprocess.run(['echo', 'NOISE'])",
        "os.system('echo NOISE')",
        "import ctypes; libc = ctypes.CDLL(None); libc.puts(b'NOISE'); libc.fflush(None)",
        "import atexit; atexit.register(print, 'NOISE')",
        "import threading; threading.Thread(target=lambda: (time.sleep(0.2), print('NOISE'))).start()",
    ],
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_what_the_author_prints_goes_to_standard_error(directory: PluginDirectory, noise: str, unbuffered: str):
    result = run(write(directory, f"{noise}\nreturn {GOOD}"), PYTHONUNBUFFERED=unbuffered)
    assert token_of(result) == "SECRET-TOKEN"
    assert "NOISE" in result.stderr


def test_what_was_printed_before_run_and_is_still_in_the_buffer_goes_there_too(directory: PluginDirectory):
    path = directory.python("my-plugin", f"{HEAD}print('NOISE')\ncredential.run(lambda request: {GOOD})\n")
    result = run(path, PYTHONUNBUFFERED="")
    assert token_of(result) == "SECRET-TOKEN"
    assert "NOISE" in result.stderr


def test_a_question_is_seen_before_it_is_answered(directory: PluginDirectory):
    """print without flush: in a buffer nobody would see it, and the person would never answer."""
    path = write(directory, f"print('open the page and log in')\nsys.stdin.readline()\nreturn {GOOD}")
    info = execwire.encode_exec_info(execwire.V1, interactive=True, cluster=None)
    environment = {**os.environ, execwire.VARIABLE: info, "PYTHONUNBUFFERED": ""}
    with subprocess.Popen(
        [path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"open the page and log in\n"
        out, _ = process.communicate(b"\n", timeout=50)
    assert json.loads(out)["status"]["token"] == "SECRET-TOKEN"


def test_standard_error_that_is_closed_does_not_become_the_output(directory: PluginDirectory):
    path = write(directory, f"os.write(1, b'NOISE')\nos.system('echo NOISE')\nreturn {GOOD}")
    result = subprocess.run(
        ["sh", "-c", 'exec "$0" 2>&-', path],
        env={**os.environ, execwire.VARIABLE: execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None)},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert token_of(result) == "SECRET-TOKEN"


@pytest.mark.parametrize(
    "stay",
    ["subprocess.Popen(['sleep', '30'])", "(os.fork() == 0) and (time.sleep(30), os._exit(0))"],
    ids=["started", "forked"],
)
def test_a_child_that_stays_does_not_hold_the_output(directory: PluginDirectory, stay: str):
    """Else the client would wait for the end of the output, and refuse the credential."""
    path = write(directory, f"{stay}\nreturn {GOOD}")
    environment = {
        **os.environ,
        execwire.VARIABLE: execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None),
    }
    process = subprocess.Popen(
        [path], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        assert process.stdout is not None
        started = time.monotonic()
        assert json.loads(process.stdout.read())["status"]["token"] == "SECRET-TOKEN"
        assert process.wait(20) == 0
        assert time.monotonic() - started < 20
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()


# -- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "lines"),
    [
        (
            "raise credential.Refuse('the login has ended', hint='my-plugin login')",
            1,
            ["my-plugin: error: the login has ended", "my-plugin: hint: my-plugin login"],
        ),
        ("raise credential.Refuse('no')", 1, ["my-plugin: error: no"]),
        (
            "raise OSError('no\\nnetwork\\x1b[31m')",
            1,
            ["my-plugin: error: OSError: no network [31m", "my-plugin: hint: KUBEAUTHN_DEBUG=1 shows where"],
        ),
        (
            "pass",
            1,
            [
                "my-plugin: error: function returned None, "
                "expected a Token, Certificate or Credential of kubeauthn.plugin.credential",
                "my-plugin: hint: is there a way through the function without a return?",
            ],
        ),
        (
            "return credential.Token('SECRET\\n')",
            1,
            [
                "my-plugin: error: the token has characters that no header may carry",
                "my-plugin: hint: a line end from a file? strip() takes it off",
            ],
        ),
        (
            "return credential.Credential(certificate='x')",
            1,
            ["my-plugin: error: a credential has only the certificate or only the key: give both"],
        ),
        ("sys.exit()", 1, ["my-plugin: error: the function ended the program before it returned a credential"]),
        ("sys.exit(0)", 1, ["my-plugin: error: the function ended the program before it returned a credential"]),
        ("sys.exit(7)", 7, ["my-plugin: error: the function ended the program before it returned a credential"]),
        ("sys.exit('log in first')", 1, ["my-plugin: error: log in first"]),
        ("raise KeyboardInterrupt", 130, []),
        (
            "raise BaseException('odd')",
            1,
            ["my-plugin: error: BaseException: odd", "my-plugin: hint: KUBEAUTHN_DEBUG=1 shows where"],
        ),
    ],
    ids=[
        "refuse with hint",
        "refuse",
        "exception",
        "nothing returned",
        "token with a line end",
        "certificate alone",
        "sys.exit",
        "sys.exit(0)",
        "sys.exit(7)",
        "sys.exit(text)",
        "interrupted",
        "BaseException",
    ],
)
def test_a_failure_is_told_in_a_line_or_two(directory: PluginDirectory, body: str, code: int, lines: list[str]):
    result = run(write(directory, body), KUBEAUTHN_DEBUG="")
    assert result.returncode == code
    assert result.stdout == ""
    assert result.stderr.splitlines() == lines


def test_a_credential_that_has_expired_is_not_sent(directory: PluginDirectory):
    result = run(write(directory, "return credential.Token('t', expires_at=time.time() - 90)"))
    assert result.returncode == 1
    assert result.stdout == ""
    error, hint = result.stderr.splitlines()
    assert error.startswith("my-plugin: error: the credential is of no use: it expired 9")  # 90, or a little more
    assert hint == "my-plugin: hint: was it taken from a cache unchecked?"


def test_the_traceback_is_there_for_those_who_ask(directory: PluginDirectory):
    result = run(write(directory, "raise OSError('no network')"), KUBEAUTHN_DEBUG="1")
    assert result.returncode == 1
    assert result.stdout == ""
    assert "Traceback" in result.stderr
    assert "in function" in result.stderr


@pytest.mark.parametrize("info", [None, ""], ids=["unset", "empty"])
def test_started_by_hand_it_says_how_to_try_it(directory: PluginDirectory, info: str | None):
    result = run(write(directory, f"return {GOOD}"), info=info)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "my-plugin: error: KUBERNETES_EXEC_INFO env var is unset or empty",
        "my-plugin: hint: a client sets it; to try a plugin by hand: kubeauthn plugin check -- COMMAND",
    ]


def test_without_standard_output_there_is_nobody_to_answer(directory: PluginDirectory):
    result = subprocess.run(
        ["sh", "-c", 'exec "$0" >&-', write(directory, f"return {GOOD}")], capture_output=True, text=True, timeout=30
    )
    assert result.returncode == 1
    assert result.stderr == "my-plugin: error: standard output is closed: there is nobody to give a credential to\n"


def test_a_client_that_has_gone_away(directory: PluginDirectory):
    """The read end is closed before the plugin answers."""
    path = write(directory, f"sys.stdin.readline()\nreturn {GOOD}")
    info = execwire.encode_exec_info(execwire.V1, interactive=True, cluster=None)
    with subprocess.Popen(
        [path],
        env={**os.environ, execwire.VARIABLE: info},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, errors = process.communicate(b"\n", timeout=50)
    assert process.returncode == 1
    assert errors == b"my-plugin: error: standard output cannot be written: Broken pipe\n"


def test_ctrl_c_while_it_waits(directory: PluginDirectory):
    path = write(directory, f"print('waiting')\ntime.sleep(30)\nreturn {GOOD}")
    environment = {
        **os.environ,
        execwire.VARIABLE: execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None),
    }
    with subprocess.Popen([path], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"waiting\n"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=50)
    assert process.returncode == 130
    assert (out, errors) == (b"", b"")


def test_sigterm_ends_it_as_it_ends_any_program(directory: PluginDirectory):
    path = write(directory, f"os.kill(os.getpid(), 15)\ntime.sleep(30)\nreturn {GOOD}")
    result = run(path)
    assert result.returncode == -signal.SIGTERM
    assert result.stdout == ""


def test_this_python_runs_the_plugins(directory: PluginDirectory):
    """The others above would otherwise test another installation."""
    path = write(directory, "return credential.Token(sys.prefix)")
    assert token_of(run(path)) == sys.prefix
