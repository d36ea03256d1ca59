"""Reads a tutorial and does what it says, in an empty folder, as a reader would.

Every block of a tutorial runs; there is no other kind:

- a block with `title="NAME"` is written to the file NAME;
- a `console` block holds commands behind `$ ` (a line that ends in a backslash goes on), each followed by what it
  prints, standard error included. `…` stands for any text in a line, a line of `…` alone for any number of lines. A
  command ends with exit code 0, unless `# exit code N` stands behind it;
- a `console` block with `title="second terminal"` starts in a shell of its own and goes on running; what it shows must
  appear before the next block is done.
"""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.transcripts.transcript import matches

SECOND = "second terminal"
SECONDS = 40
"""For one command. None should take a quarter of it."""


@dataclass
class Command:
    line: int
    text: str
    expected: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        return int(self.text.rpartition("# exit code ")[2]) if "# exit code " in self.text else 0


@dataclass
class Block:
    line: int
    language: str
    title: str
    text: str

    def commands(self) -> list[Command]:
        commands: list[Command] = []
        continued = False
        for number, line in enumerate(self.text.splitlines(), self.line + 1):
            if line.startswith("$ "):
                commands.append(Command(number, line[2:]))
            elif continued:
                commands[-1].text += "\n" + line
            else:
                commands[-1].expected.append(line)
            continued = (line.startswith("$ ") or continued) and line.endswith("\\")
        return commands


def blocks(page: str) -> list[Block]:
    found: list[Block] = []
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            if not inside:
                language, _, rest = line[3:].partition(" ")
                title = rest.partition('title="')[2].partition('"')[0]
                found.append(Block(number, language, title, ""))
            inside = not inside
        elif inside:
            found[-1].text += line + "\n"
    return found


class Shell:
    """One bash, with one command after the other."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._seen = ""

    def start(self, command: str, end: str = "") -> None:
        assert self._process.stdin is not None
        line = f"eval {shlex.quote(command)} </dev/null\n{end}\n"
        self._seen = ""
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()

    def run(self, command: str) -> tuple[str, int]:
        """What it printed, and its exit code."""
        mark = f"--{os.urandom(8).hex()}--"
        self.start(command, f"echo {mark} $?")
        self.read_until(lambda seen: mark in seen and seen.endswith("\n"))
        printed, _, code = self._seen.partition(mark)
        return printed, int(code)

    def read_until(self, enough) -> str:
        assert self._process.stdout is not None
        end = time.monotonic() + SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while not enough(self._seen):
                assert time.monotonic() < end, f"not what was expected within {SECONDS} s:\n{self._seen}"
                if selector.select(0.2):
                    piece = os.read(self._process.stdout.fileno(), 65536)
                    assert piece, f"the shell ended:\n{self._seen}"
                    self._seen += piece.decode(errors="replace")
        return self._seen

    def end(self) -> None:
        """As Ctrl-C and closing the window do, and then for certain."""
        for number, seconds in ((signal.SIGINT, 5), (signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                break
            if number == signal.SIGINT and self._process.stdin is not None:
                self._process.stdin.close()
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
        self._process.wait(5)
        if self._process.stdout is not None:
            self._process.stdout.close()


def follow(page: Path, folder: Path, environ: dict[str, str]) -> int:
    """How many commands were run. Raises AssertionError where something else came than the page shows."""
    shell = Shell(folder, environ)
    shells, count = [shell], 0
    try:
        for block in blocks(page.read_text()):
            where = f"{page.name}:{block.line}"
            if block.language != "console":
                assert block.title, f"{where}: a block that is neither a file nor commands does not run"
                file = folder / block.title
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block.text)
            elif block.title == SECOND:
                shells.append(Shell(folder, environ))
                (command,) = block.commands()
                shells[-1].start(command.text)
                shells[-1].read_until(lambda seen, command=command: matches(command.expected, seen))
                count += 1
            else:
                for command in block.commands():
                    printed, code = shell.run(command.text)
                    place = f"{page.name}:{command.line}: {command.text}\n"
                    expected = "\n".join(command.expected)
                    assert matches(command.expected, printed), f"{place}expected:\n{expected}\ncame:\n{printed}"
                    assert code == command.exit_code, f"{place}exit code {code}:\n{printed}"
                    count += 1
    finally:
        for each in reversed(shells):
            each.end()
    return count
