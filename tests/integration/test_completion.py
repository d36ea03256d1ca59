"""Completion in a real bash, zsh and fish: by their own tables, and by pressing Tab in a terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kubeauthn.cli.completion_shapes import command_shapes
from kubeauthn.cli.main import COMMANDS, main
from kubeauthn.cli.world import World
from tests.pages.blocks import blocks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"
PROGRAM = f"""\
#!{sys.executable}
import sys
from kubeauthn.cli.main import main
sys.exit(main())
"""
# The words of a line, what bash would put into its variables, and then what it would offer.
ASK = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _kubeauthn; printf "%s\\n" "${COMPREPLY[@]}"'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A `kubeauthn` to start, and the script that it prints."""
    folder = tmp_path_factory.mktemp("completion")
    program = folder / "kubeauthn"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    printed = subprocess.run([program, "completion", "bash"], capture_output=True, check=True, timeout=50)
    (folder / "script").write_bytes(printed.stdout)
    return folder


def offers(folder: Path, *words: str) -> list[str]:
    """What Tab offers after these words, the last of which is being typed."""
    result = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", ASK, "bash", str(folder / "script"), "kubeauthn", *words],
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


def printed(*argv: str) -> str:
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(3)]
    world = World(stdin=streams[0], stdout=streams[1], stderr=streams[2], environ=os.environ)
    assert main(argv, world) == 0
    return streams[1].buffer.getvalue().decode()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["sch"], ["schema"], id="a command"),
        pytest.param(
            ["plugin", ""],
            ["check", "oidc", "cache", "eks", "service-account", "github-actions"],
            id="the second word of a command",
        ),
        pytest.param(["check", "--str"], ["--strict"], id="an option"),
        pytest.param(["check", "-o", ""], ["text", "json", "sarif", "github"], id="a choice"),
        pytest.param(["check", "--output", "s"], ["sarif"], id="a choice that has begun"),
        pytest.param(["check", "--output", "="], ["text", "json", "sarif", "github"], id="a choice after ="),
        pytest.param(["check", "--output", "=", "gi"], ["github"], id="a choice after = that has begun"),
        pytest.param(["plugin", "check", "--api-version", "v1b"], ["v1beta1"], id="in a command of two words"),
        pytest.param(["completion", ""], ["bash", "zsh", "fish"], id="a word that is one of a few"),
        pytest.param(["whoami", "--token", ""], [], id="nothing where nothing is known"),
        pytest.param(["no-such", "--"], [], id="nothing for a command that does not exist"),
    ],
)
def test_what_is_offered(folder: Path, words: list[str], expected: list[str]):
    assert offers(folder, *words) == expected


def test_every_command_and_every_option_is_offered(folder: Path):
    shapes = command_shapes(World(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr, environ=os.environ))
    assert set(shapes) == set(COMMANDS)
    assert {name.split()[0] for name in COMMANDS} <= set(offers(folder, ""))
    for name in ("raw", "serve", "signer doctor", "bridge run", "plugin service-account", "plugin github-actions"):
        assert offers(folder, *name.split(), "-") == [word for o in shapes[name].options for word in o.spellings]


def test_a_program_after_two_dashes(folder: Path):
    assert "kubeauthn" in offers(folder, "plugin", "check", "--", "kubeauth")
    assert offers(folder, "plugin", "check", "--", "kubeauthn", "--out") == []


KUBECONFIG = """\
contexts:
- {name: prod, context: {cluster: c, user: jane}}
- {name: prod-eu, context: {cluster: c, user: jane}}
- {name: test, context: {cluster: c, user: jane}}
- {name: "p$(touch MARK)", context: {cluster: c, user: jane}}
- {name: "p`touch MARK`", context: {cluster: c, user: jane}}
- {name: "p; touch MARK", context: {cluster: c, user: jane}}
- {name: "-p", context: {cluster: c, user: jane}}
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: jane, user: {}}]
"""


def test_names_come_from_the_kubeconfig_and_none_of_them_is_obeyed(folder: Path, own_environment: Path):
    mark = own_environment / "mark"
    (own_environment / ".kube").mkdir()
    (own_environment / ".kube" / "config").write_text(KUBECONFIG.replace("MARK", str(mark)))
    assert offers(folder, "whoami", "--context", "p") == ["prod", "prod-eu"]
    assert offers(folder, "whoami", "--context", "") == ["prod", "prod-eu", "test"]
    assert offers(folder, "whoami", "--user", "") == ["jane"]
    assert not mark.exists()


def test_a_kubeconfig_that_cannot_be_read_offers_nothing(folder: Path, own_environment: Path):
    (own_environment / ".kube").mkdir()
    (own_environment / ".kube" / "config").write_text("contexts: [")
    assert offers(folder, "whoami", "--context", "") == []


def shown(shell: str) -> str:
    """What the page tells a reader to put into the start-up file of this shell."""
    (line,) = (block.text for block in blocks(PAGE.read_text()) if f"kubeauthn completion {shell}" in block.text)
    return line.strip()


SHOW_WORDS = (
    'kubeauthn() { if [ "$1" = completion ]; then command kubeauthn "$@"; else printf \'<%s>\' "$@"; echo; fi; }'
)
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f"source SCRIPT; {SHOW_WORDS}"),
    "zsh": (["zsh", "-f", "-i"], f"autoload -Uz compinit && compinit -u -D; LINE; {SHOW_WORDS}"),
    "fish": (
        ["fish", "--no-config", "-i"],
        "function fish_prompt; echo '$ '; end; LINE; "
        "function kubeauthn; if test $argv[1] = completion; command kubeauthn $argv; "
        "else; printf '<%s>' $argv; echo; end; end",
    ),
}


@pytest.mark.parametrize(
    "shell",
    [
        "bash",
        pytest.param("zsh", marks=pytest.mark.needs("zsh")),
        pytest.param("fish", marks=pytest.mark.needs("fish")),
    ],
)
def test_tab_in_a_terminal(shell: str, folder: Path, tmp_path: Path, own_environment: Path):
    """An interactive shell, keys as a person would press them; `kubeauthn` is a function that shows its words."""
    (tmp_path / "my configuration.yaml").touch()
    (own_environment / ".kube").mkdir()
    (own_environment / ".kube" / "config").write_text(KUBECONFIG.replace("MARK", str(own_environment / "mark")))
    argv, begin = SHELLS[shell]
    begin = begin.replace("SCRIPT", f"'{folder}/script'").replace("LINE", shown(shell).partition("  #")[0])
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe(argv[0], argv, {**os.environ, "PATH": path, "PS1": "$ ", "TERM": "dumb"})  # noqa: S606
    try:
        read_until(terminal, "$ ")
        type_in(terminal, f"{begin}; echo rea''dy\n")
        assert "ready\r\n" in read_until(terminal, "ready\r\n")
        for keys, expected in (
            ("kubeauthn che\t--str\t-o sa\tmy\t\n", "<check><--strict><-o><sarif><my configuration.yaml>"),
            ("kubeauthn plugin che\t--api-version v1b\t\n", "<plugin><check><--api-version><v1beta1>"),
            ("kubeauthn whoami --context te\t\n", "<whoami><--context><test>"),
            ("kubeauthn whoami --cont\t\n", "<whoami><--context>"),
            ("kubeauthn plugin ser\trobot --context te\t\n", "<plugin><service-account><robot><--context><test>"),
            ("kubeauthn plugin gi\t--audience prod\n", "<plugin><github-actions><--audience><prod>"),
        ):
            type_in(terminal, keys)
            assert expected in read_until(terminal, expected)
        assert not (own_environment / "mark").exists()
    finally:
        os.close(terminal)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


@pytest.mark.needs("fish")
def test_what_fish_offers(folder: Path, own_environment: Path, tmp_path: Path):
    """fish says itself what it would offer, so the whole table is asked, and nothing may be complained of."""
    (own_environment / ".kube").mkdir()
    (own_environment / ".kube" / "config").write_text(KUBECONFIG.replace("MARK", str(own_environment / "mark")))
    asked = {
        "sch": ["schema"],
        "plugin ch": ["check"],
        "plugin gi": ["github-actions"],
        "plugin service-account robot --context pro": ["prod", "prod-eu"],
        "check --str": ["--strict"],
        "check -o ": ["github", "json", "sarif", "text"],
        "check --output=s": ["--output=sarif"],
        "completion ": ["bash", "fish", "zsh"],
        "whoami --token ": [],
        "no-such --": [],
        "whoami --context pro": ["prod", "prod-eu"],
    }
    lines = [shown("fish"), *(f"complete -C 'kubeauthn {words}'; echo END" for words in asked)]
    result = subprocess.run(
        ["fish", "--no-config", "-c", "\n".join(lines)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.stderr == ""
    answers = [part.split("\n")[:-1] for part in result.stdout.split("END\n")[:-1]]
    offered = [[line.split("\t")[0] for line in answer] for answer in answers]
    assert dict(zip(asked, offered, strict=True)) == asked
    assert not (own_environment / "mark").exists()


def type_in(terminal: int, keys: str) -> None:
    os.write(terminal, keys.encode())


def read_until(terminal: int, text: str, seconds: float = 30) -> str:
    seen, end = "", time.monotonic() + seconds
    while text not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 0.2)[0]:
            seen += os.read(terminal, 4096).decode(errors="replace")
    return seen


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_have_every_command_and_option(shell: str):
    """What they read is looked at as a whole: each word, and that each quote is closed."""
    script = printed("completion", shell)
    shapes = command_shapes(World(stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr, environ=os.environ))
    for name, shape in shapes.items():
        assert name in script
        for option in shape.options:
            for spelling in option.spellings:
                assert (spelling if shell == "zsh" else f" {spelling.lstrip('-')} ") in script
    bare = script.replace("\\'", "") if shell == "fish" else script.replace("'\\''", "")
    assert not [line for line in bare.splitlines() if not line.startswith("#") and line.count("'") % 2]


def test_without_a_shell_it_says_which_there_are():
    result = subprocess.run(
        [sys.executable, "-c", "import sys; from kubeauthn.cli.main import main; sys.exit(main())", "completion"],
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert result.returncode == 2
    assert result.stderr.startswith("error: which shell: bash, zsh or fish\nhint: eval")
