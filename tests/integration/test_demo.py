"""`kubeauthn demo` as a person runs it: the whole story, kept and looked around in, interrupted, failing half-way."""

from __future__ import annotations

import io
import os
import pty
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest

from kubeauthn.cli.arguments import CommandParser
from kubeauthn.cli.main import COMMANDS
from kubeauthn.cli.world import World

PATIENCE = 60.0
MARKER = "KUBEAUTHN_DEMO_TEST"
WITHOUT_EXTRAS = """
import sys
for name in ("granian", "prometheus_client", "re2", "ruamel.yaml", "redis", "botocore", "keyring"):
    sys.modules[name] = None
from kubeauthn.cli.main import main
sys.exit(main(sys.argv[1:]))
"""

WITHOUT_OPENSSL = """
import ssl, sys
ssl.OPENSSL_VERSION = "LibreSSL 4.1.0"
from kubeauthn.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


class Demo:
    """A demo in a process of its own, all of whose descendants can be told from their environment."""

    def __init__(
        self,
        home: Path,
        *options: str,
        start: tuple[str, ...] = ("-m", "kubeauthn"),
        terminal: bool = False,
        **environment: str,
    ) -> None:
        self.home = home
        self.mark = str(uuid.uuid4())
        home.mkdir()
        self.environment = {**os.environ, "TMPDIR": str(home), "XDG_RUNTIME_DIR": str(home), MARKER: self.mark}
        self.environment |= {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        self.lines: list[str] = []
        reading, writing = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, *start, "demo", *options],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.STDOUT,
            env=self.environment,
            process_group=0,
        )
        os.close(writing)
        self.output = open(reading, encoding="utf-8", closefd=True)  # noqa: SIM115 - closed by `end`
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            for line in self.output:
                self.lines.append(line)  # at once: others look for it
        except OSError:
            return  # how a terminal ends

    @property
    def text(self) -> str:
        return "".join(self.lines)

    def wait_for_line(self, beginning: str) -> str:
        def found() -> str | None:
            line = next((line for line in list(self.lines) if line.startswith(beginning)), None)
            assert line or self._reader.is_alive(), self.text
            return line

        return str(until(found, f"a line that begins with {beginning!r}", lambda: self.text))

    def ended(self) -> int:
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code

    def processes(self) -> dict[int, str]:
        """Those of this demo, dead or alive, with their command lines."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            try:
                if f"{MARKER}={self.mark}".encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue  # gone, or not ours to see
        return found

    def started(self, name: str) -> list[int]:
        return [pid for pid, command in self.processes().items() if name in command]

    def left_behind(self) -> list[object]:
        files = sorted(path.relative_to(self.home) for path in self.home.rglob("*"))
        return [*files, *self.processes().values()]

    def tips(self) -> list[list[str]]:
        """The commands that were printed to be tried, as the shell would split them."""
        found = []
        for line in self.text.splitlines():
            label, colon, command = line.strip().partition(": ")
            if colon and label.startswith("try"):
                found.append(shlex.split(command))
        return found

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.ended()
        self.output.close()


def until(condition: Callable[[], object], what: str, told: Callable[[], object] = str) -> object:
    ends = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < ends, f"not within {PATIENCE} seconds: {what}\n{told()}"
        time.sleep(0.02)
    return found


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Callable[..., Demo]]:
    started: list[Demo] = []

    def start(*options: str, **more: Any) -> Demo:
        started.append(Demo(tmp_path / f"home{len(started)}", *options, **more))
        return started[-1]

    yield start
    for each in started:
        each.end()


def kubeauthn(story: Demo, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubeauthn", *words]
    environment = {**story.environment, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)


def parsed(words: list[str]) -> str:
    """The command's name, if its own parser takes the words; what it then asks for is not done."""
    program, *rest = words
    assert os.path.basename(program) == "kubeauthn"
    name = next(name for name in sorted(COMMANDS, key=len, reverse=True) if rest[: len(name.split())] == name.split())
    module = import_module(f"kubeauthn.cli.{COMMANDS[name][0]}")
    world = World(stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), environ={})
    parser = CommandParser(world, name)
    module.add_arguments(parser)
    try:
        parser.parse_args(rest[len(name.split()) :])
    except SystemExit as ending:  # --help
        assert ending.code == 0
    return name


@pytest.mark.timeout(120)
def test_the_whole_story_holds_and_leaves_nothing_behind(demo: Callable[..., Demo]):
    story = demo()
    assert story.ended() == 0, story.text
    assert "\nEvery step held.\n" in story.text
    assert story.text.count("\n  ok ") == 18
    assert "eyJ" not in story.text, "a token was printed"
    assert "\x1b" not in story.text
    assert len(story.tips()) == 11
    assert story.left_behind() == []
    tried = []
    for tip in story.tips():
        name = parsed(tip)
        if name in ("migrate", "schema", "cel") or "--help" in tip:  # the others want a kubeconfig, or go on for ever
            tried.append(name)
            assert kubeauthn(story, *tip[1:]).returncode == 0, tip
    assert tried == ["migrate", "schema", "serve", "plugin check", "cel"]


@pytest.mark.timeout(240)
def test_kept_it_can_be_looked_around_in_and_ctrl_c_ends_it(demo: Callable[..., Demo]):
    story = demo("--keep", "--no-browser")
    last = story.wait_for_line("  export KUBECONFIG=")
    kubeconfig = last.strip().partition("=")[2]
    address = story.wait_for_line("  playground ").split()[-1]
    assert httpx2.get(address, trust_env=False).status_code == 200
    start = httpx2.get(f"{address}setting.json", trust_env=False).json()["start"]
    assert "AuthenticationConfiguration" in start["configuration"]

    outcomes = {}
    for tip in story.tips():
        result = kubeauthn(story, *tip[1:])
        outcomes[" ".join(tip[1:])] = result.returncode
        if parsed(tip) == "explain":
            assert "only members of dev may log in" in result.stdout
        if parsed(tip) == "check":
            assert "warning" not in result.stdout
    assert len(outcomes) == 10
    assert {command: code for command, code in outcomes.items() if code != 0} == {
        command: 1 for command in outcomes if command.startswith("explain ")
    }
    assert "demo:jane" in kubeauthn(story, "whoami", KUBECONFIG=kubeconfig).stdout

    assert story.process.poll() is None
    story.process.send_signal(signal.SIGINT)
    assert story.ended() == 0
    assert story.text.endswith("Stopped; nothing is left behind.\n")
    assert story.left_behind() == []


BROWSER = """\
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
page = opener.open(sys.argv[1], timeout=50).read().decode()
with open(sys.argv[0] + ".seen", "w") as seen:
    seen.write(f"{sys.argv[1]} {'playground' in page}")
"""


@pytest.mark.timeout(120)
def test_on_a_terminal_the_playground_is_opened_and_answers_a_browser_that_is_waited_for(
    demo: Callable[..., Demo], tmp_path: Path
):
    browser, seen = tmp_path / "browser.py", tmp_path / "browser.py.seen"
    browser.write_text(BROWSER)
    story = demo("--keep", terminal=True, BROWSER=f"{sys.executable} -I {browser} %s")
    address = story.wait_for_line("  playground ").split()[-1]
    assert until(lambda: seen.exists() and seen.read_text(), "the browser has the page") == f"{address} True"
    story.process.send_signal(signal.SIGINT)
    assert story.ended() == 0
    assert story.left_behind() == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("1. ", signal.SIGINT),
        ("3. ", signal.SIGINT),
        ("5. ", signal.SIGINT),
        ("10. ", signal.SIGINT),
        ("3. ", signal.SIGTERM),
        ("5. ", signal.SIGHUP),
    ],
)
def test_interrupted_in_the_middle(demo: Callable[..., Demo], line: str, number: signal.Signals):
    story = demo()
    story.wait_for_line(line)
    for _ in range(2):  # somebody is impatient
        os.killpg(story.process.pid, number)  # as a terminal does: the plugin that may be running hears it, too
    assert story.ended() == (130 if number == signal.SIGINT else 128 + number)
    assert "Every step held." not in story.text
    assert "Traceback" not in story.text
    assert story.left_behind() == []


SLOW_START = """
import sys, time
if any({name!r} in word for word in sys.orig_argv):
    time.sleep({seconds})
"""


def slow_to_start(name: str, seconds: int, folder: Path) -> dict[str, str]:
    """What a loaded machine does to a program: an environment in which Python takes its time before it begins."""
    (folder / "sitecustomize.py").write_text(SLOW_START.format(name=name, seconds=seconds))
    search = (str(folder), os.environ.get("PYTHONPATH", ""))
    return {"PYTHONPATH": os.pathsep.join(part for part in search if part)}


@pytest.mark.timeout(120)
def test_interrupted_while_the_command_of_the_last_step_only_starts(demo: Callable[..., Demo], tmp_path: Path):
    """Python itself would print a traceback then."""
    story = demo(**slow_to_start("through-proxy", 2, tmp_path))
    until(lambda: story.started(" raw "), "the command starts", lambda: story.text)
    os.killpg(story.process.pid, signal.SIGINT)
    assert story.ended() == 130
    assert "Traceback" not in story.text
    assert story.left_behind() == []


@pytest.mark.timeout(120)
def test_a_proxy_that_has_just_lost_its_client_is_waited_for(demo: Callable[..., Demo], tmp_path: Path):
    """It has no socket yet by which it could be found."""
    story = demo(**slow_to_start("kubeauthn-proxy-tls", 5, tmp_path))
    until(lambda: story.started("kubeauthn-proxy-tls"), "the proxy starts", lambda: story.text)
    os.kill(story.started(" raw ")[0], signal.SIGKILL)
    assert story.process.wait(PATIENCE) == 4
    assert story.left_behind() == []
    story.ended()
    assert "step 10 of the demo did not hold" in story.text


@pytest.mark.timeout(120)
def test_a_step_that_fails_is_named_and_still_nothing_is_left(demo: Callable[..., Demo]):
    """The webhook is killed: its workers lose their parent, and the configuration can no longer be reloaded."""
    story = demo()
    story.wait_for_line("4. ")
    serving = story.started(" serve ")
    assert serving
    os.kill(min(serving), signal.SIGKILL)
    assert story.ended() == 4
    assert "of the demo did not hold" in story.text
    assert story.left_behind() == []


@pytest.mark.timeout(120)
def test_nobody_reads_on(tmp_path: Path):
    home = tmp_path / "piped"
    home.mkdir()
    environment = {**os.environ, "TMPDIR": str(home)}
    command = f"{shlex.quote(sys.executable)} -m kubeauthn demo | head -n 12"
    result = subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    assert len(result.stdout.splitlines()) == 12
    assert "Traceback" not in result.stderr
    until(lambda: not any(home.iterdir()), "nothing is left")


@pytest.mark.timeout(120)
def test_what_is_set_on_this_machine_does_not_change_the_story(demo: Callable[..., Demo], tmp_path: Path):
    kuberc = tmp_path / "kuberc"
    kuberc.write_text("apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\ncredentialPluginPolicy: DenyAll\n")
    nobody = "http://127.0.0.1:9"
    story = demo(KUBERC=str(kuberc), KUBEAUTHN_EXEC_PROXY="0", HTTPS_PROXY=nobody, https_proxy=nobody)
    assert story.ended() == 0, story.text
    assert "\nEvery step held.\n" in story.text


@pytest.mark.timeout(120)
def test_with_the_core_alone_the_extra_is_named_and_the_rest_goes_on(demo: Callable[..., Demo], tmp_path: Path):
    script = tmp_path / "without.py"
    script.write_text(WITHOUT_EXTRAS)
    story = demo(start=(str(script),))
    assert story.ended() == 0, story.text
    assert "left out: granian is not installed: pip install 'kubeauthn[serve]'" in story.text
    assert "the very same token is accepted now" in story.text
    assert "\nEvery step that was not left out held.\n" in story.text
    assert story.left_behind() == []


@pytest.mark.timeout(120)
def test_where_external_keys_cannot_be_used_that_is_said_and_left_out(demo: Callable[..., Demo], tmp_path: Path):
    script = tmp_path / "without.py"
    script.write_text(WITHOUT_OPENSSL)
    story = demo(start=(str(script),))
    assert story.ended() == 0, story.text
    assert "  left out: " in story.text
    assert "LibreSSL 4.1.0" in story.text
    assert "\n10. " not in story.text
    assert "\nEvery step that was not left out held.\n" in story.text
    for tip in story.tips():
        parsed(tip)
