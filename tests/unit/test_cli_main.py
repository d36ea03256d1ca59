"""The frame of the command line: dispatch, errors, exit codes, and how little is loaded for it."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kubeauthn import __version__, errors
from kubeauthn.cli import failure
from kubeauthn.cli.completion_shapes import command_parser
from kubeauthn.cli.examples import EXAMPLES, example_line
from kubeauthn.cli.main import COMMANDS, PROGRAMS, main
from kubeauthn.cli.world import World, program_name

PLUGIN = """\
#!/bin/sh
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t0ken"}}'
"""
KUBECONFIG = """\
current-context: c
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users:
- name: u
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}
"""


class Terminal(io.TextIOWrapper):
    """A text stream over memory, as `World` wants them."""

    def __init__(self, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", write_through=True)

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def headless(stdin: bytes = b"", program: str = "kubeauthn", **environ: str) -> World:
    return World(
        stdin=Terminal(stdin),
        stdout=Terminal(),
        stderr=Terminal(),
        environ={**os.environ, **environ},
        clock=lambda: 1_700_000_000.0,
        program=program,
    )


def run(*argv: str, world: World | None = None) -> tuple[int, str, str]:
    world = world or headless()
    code = main(argv, world)
    return code, world.stdout.text(), world.stderr.text()  # type: ignore[attr-defined]


@pytest.fixture
def with_command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], int]], None]:
    """Gives the program a command `try` that does what the test says."""

    def install(action: Callable[[], int]) -> None:
        import types

        module = types.ModuleType("kubeauthn.cli.try_command", "A test's own.")
        module.add_arguments = lambda parser: None  # type: ignore[attr-defined]
        module.run = lambda arguments, world: action()  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(COMMANDS, "try", ("try_command", "tries"))

    return install


def raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


# -- the table ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_modules_say(name: str):
    module, line = COMMANDS[name]
    assert line == import_module(f"kubeauthn.cli.{module}").HELP


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_and_the_right_name_in_it(name: str):
    code, out, err = run(*name.split(), "--help", world=headless(program="kubectl authn"))
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: kubectl authn {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_ends_with_examples_that_the_command_takes(name: str):
    _, out, _ = run(*name.split(), "--help", world=headless(program="kubectl authn"))
    lines = [line.strip() for line in out.partition("\nexample")[2].splitlines()[1:]]
    assert lines == [example_line(name, words, "kubectl authn") for words in EXAMPLES[name]]
    assert all(f"kubectl authn {name}" in line for line in lines)
    assert lines
    for words in EXAMPLES[name]:
        command_parser(name, headless()).parse_args(shlex.split(words))  # raises UsageError


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_programs_beside_us_answer_help(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (start,) = entry_points(group="console_scripts", name=program)
    monkeypatch.setattr(sys, "argv", [f"/bin/{program}", "--help"])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ending:
        start.load()()
    told = capsys.readouterr()
    assert (ending.value.code, told.err) == (0, "")
    assert told.out.startswith(f"usage: {program} [-h]")
    assert told.out.count(program) > 1, "and says what it is"
    assert max(map(len, told.out.splitlines())) <= 80


def test_the_list_names_every_program_that_is_installed():
    installed = {start.name for start in entry_points(group="console_scripts") if start.module.startswith("kubeauthn.")}
    assert installed == {"kubeauthn", "kubectl-authn", *PROGRAMS}
    _, out, _ = run("--help")
    assert all(f"\n  {program} " in out for program in PROGRAMS)


def test_version():
    assert run("--version") == (0, f"kubeauthn {__version__}\n", "")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/usr/bin/kubeauthn", "kubeauthn"),
        ("/usr/bin/kubectl-authn", "kubectl authn"),
        ("kubectl-authn.exe", "kubectl authn"),
        ("/x/kubeauthn/__main__.py", "kubeauthn"),
        ("", "kubeauthn"),
    ],
)
def test_the_program_is_called_as_the_person_called_it(path: str, name: str):
    assert program_name(path) == name


def test_help_follows_the_width_it_is_given():
    _, out, _ = run("raw", "--help", world=headless(COLUMNS="60"))
    assert max(map(len, out.splitlines())) <= 75  # the usage line is ours and is not wrapped
    _, wide, _ = run("raw", "--help", world=headless(COLUMNS="200"))
    assert len(wide.splitlines()) < len(out.splitlines())


# -- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.UsageError("x"), 2),
        (errors.RequestRefused("x", status=403), 1),
        (errors.EnvironmentFailure("x"), 4),
        (errors.KubeconfigError("x"), 4),
        (errors.PluginDenied("x"), 4),
        (errors.PluginFailed("x", exit_code=1), 4),
        (ValueError("x"), 4),
    ],
)
def test_the_class_of_an_error_gives_the_exit_code(error: Exception, code: int):
    assert failure.exit_code(error) == code


def test_error_and_hint_are_apart_and_keep_their_lines(with_command):
    with_command(raising(errors.PluginNotFound("exec: executable p not found", hint="first\n  then this\n\nthat\n")))
    assert run("try") == (
        4,
        "",
        "error: exec: executable p not found\nhint: first\n        then this\n\n      that\n",
    )


def test_an_error_nobody_foresaw_tells_its_place_and_not_its_text(with_command):
    with_command(lambda: int("s3cret"))
    code, out, err = run("try")
    assert (code, out) == (4, "")
    assert err.startswith("error: internal error: ValueError at kubeauthn.cli.main:")
    assert "s3cret" not in err


def test_debug_shows_the_traceback(with_command):
    with_command(raising(errors.EnvironmentFailure("x")))
    _, _, err = run("try", world=headless(KUBEAUTHN_DEBUG="1"))
    assert "Traceback" in err
    assert err.endswith("error: x\n")


def test_an_os_error_names_the_file(with_command):
    with_command(raising(PermissionError(13, "Permission denied", "/etc/x\x1b")))
    assert run("try") == (4, "", "error: /etc/x\\x1b: permission denied\n")


def test_an_interrupt_is_quiet(with_command):
    with_command(raising(KeyboardInterrupt()))
    assert run("try") == (130, "", "")


def test_a_reader_that_went_away_is_quiet(with_command):
    with_command(raising(BrokenPipeError()))
    assert run("try") == (141, "", "")


# -- start-up -------------------------------------------------------------------------------------

FOREIGN = ("httpx2", "httpx", "ssl", "cryptography", "logging", "asyncio", "email", "http", "concurrent", "tempfile")
AFTERWARDS = "import sys; from kubeauthn.cli.main import main; code = main(sys.argv[1:]); "


def loaded_by(home: Path, *argv: str) -> set[str]:
    (home / "plugin").write_text(PLUGIN)
    (home / "plugin").chmod(0o755)
    (home / "config").write_text(KUBECONFIG)
    script = (
        AFTERWARDS + "print(code, *{name.partition('.')[0] for name in sys.modules}, *sys.modules, file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, *argv], capture_output=True, text=True, timeout=30, cwd=home, check=True
    )
    code, *names = result.stderr.split()
    assert code == "0", result
    return set(names)


def test_credential_loads_no_http_library_and_no_cryptography(tmp_path: Path):
    names = loaded_by(tmp_path, "credential", "--kubeconfig", "config")
    assert "kubeauthn.client.exec_source" in names
    # `_hashlib` is OpenSSL, which takes a tenth of the whole start
    assert not names & {*FOREIGN, "_hashlib", "hmac", "kubeauthn._core.yaml_lines"}


def test_the_list_of_commands_loads_none_of_them(tmp_path: Path):
    names = loaded_by(tmp_path, "--help")
    assert not names & {*FOREIGN, "yaml", "argparse", "json", "subprocess", "dataclasses"}
    assert not names & {f"kubeauthn.cli.{module}" for module, _ in COMMANDS.values()}


JWT = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "words",
    [
        ["explain", "f.yaml", "--token", JWT],
        ["explain", "f.yaml", f"--token={JWT}"],
        ["explain", "f.yaml", f"-t{JWT}"],
        ["explain", "--token", JWT, "f.yaml"],
        ["explain", "f.yaml", JWT],
        ["explain", "f.yaml", f"Bearer {JWT}"],
        ["explain", "f.yaml", f"--{JWT}"],
        ["explain", "f.yaml", "--online=" + JWT],
        ["explain", JWT, "--token-file", "t.jwt", "--online"],
        ["explain", JWT + "x" * 300, "--token-file", "t.jwt", "--online"],
        ["explain", "f.yaml", "--token-file", JWT, "--online"],
        ["explain", "f.yaml", "-o", JWT],
        ["explain", "f.yaml", "--claims", "c.json", "--now", JWT],
        ["explain", "f.yaml", "--claims", "c.json", "--kubernetes", JWT],
        ["check", JWT],
        ["kubectl", "get", "ns", "--bearer", JWT],
        ["bridge", JWT],
        ["help", JWT],
        [JWT],
    ],
    ids=lambda words: " ".join(words).replace(JWT, "TOKEN")[:60],
)
def test_a_token_in_the_wrong_place_is_not_repeated(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert code in (failure.USAGE, failure.ENVIRONMENT)
    assert out == "" or words[0] == "check"
    assert "eyJ" not in out + err


def test_the_value_of_an_unknown_option_is_not_repeated_however_short():
    code, _, err = run("explain", "f.yaml", "--password", "hunter2", "-p", "hunter2", "-phunter2")
    assert code == failure.USAGE
    assert "there is no option --password, -p" in err
    assert "hunter2" not in err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("check authn.yaml --kubernetes-version 1.33", "--kubernetes VERSION"),
        ("explain authn.yaml --k8s 1.33", "--kubernetes VERSION"),
        ("test suite.yaml --filter jane", "-k NAME"),
        ("credential --show", "--reveal, secrets included"),
        ("serve authn.yaml --cert c.pem --key k.pem", "--tls-cert FILE"),
        ("serve authn.yaml --key k.pem", "--tls-key FILE"),
    ],
)
def test_what_other_tools_call_an_option(words: str, hint: str):
    code, _, err = run(*words.split())
    assert code == failure.USAGE
    assert f"hint: did you mean {hint}?" in err
