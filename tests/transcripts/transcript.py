"""Transcripts of the command line: what is typed, what comes back, and the exit code.

::

    # A comment.
    == .kube/config            a file below the scratch home, up to the next line "=="; a mode may follow its name
    …
    ==
    @ accept t0ken jane dev    an order to the stage: see `Stage`
    $ kubeauthn whoami         a command; NAME=VALUE may stand before it, `< FILE` after it
    Username   jane            standard output
    ! error: …                 standard error
    ? 1                        the exit code

In what is expected, `…` stands for any text in a line, and a line of `…` alone for any number of lines.
`{server}`, `{port}`, `{ca}` and `{home}` are filled in, in files, commands and expectations alike.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ANY = "…"


@dataclass
class File:
    line: int
    name: str
    mode: int
    text: str = ""


@dataclass
class Order:
    line: int
    words: list[str]


@dataclass
class Command:
    line: int
    words: list[str]
    environment: dict[str, str]
    stdin: str | None
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    code: int | None = None


Step = File | Order | Command


def read(path: Path) -> list[Step]:
    steps: list[Step] = []
    lines = iter(enumerate(path.read_text().splitlines(), 1))
    for number, line in lines:
        command = steps[-1] if steps and isinstance(steps[-1], Command) else None
        expecting = command is not None and command.code is None
        if line.startswith("$ "):
            assert not expecting, f"{path.name}:{number}: the command before has no exit code"
            steps.append(_command(number, line[2:]))
        elif expecting and command is not None:
            if line.startswith("? "):
                command.code = int(line[2:])
            elif line.startswith("!"):
                command.stderr.append(line[2:])
            else:
                command.stdout.append(line)
        elif line.startswith("== "):
            name, _, mode = line[3:].partition(" ")
            file = File(number, name, int(mode or "600", 8))
            for _, text in lines:
                if text == "==":
                    break
                file.text += text + "\n"
            else:
                raise AssertionError(f"{path.name}:{number}: the file {name} does not end")
            steps.append(file)
        elif line.startswith("@ "):
            steps.append(Order(number, shlex.split(line[2:])))
        else:
            assert not line or line.startswith("#"), f"{path.name}:{number}: cannot be understood: {line}"
    assert not steps or not isinstance(steps[-1], Command) or steps[-1].code is not None, f"{path.name}: no exit code"
    return steps


def _command(number: int, text: str) -> Command:
    words = shlex.split(text)
    environment: dict[str, str] = {}
    while "=" in words[0]:
        name, _, value = words.pop(0).partition("=")
        environment[name] = value
    stdin = None
    if "<" in words:
        place = words.index("<")
        stdin = words[place + 1]
        del words[place : place + 2]
    return Command(number, words, environment, stdin)


def matches(expected: list[str], actual: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANY else ".*".join(map(re.escape, line.split(ANY))) + r"\n"
        for line in expected
    )
    if actual and not actual.endswith("\n"):
        actual += "\n"
    return re.fullmatch(pattern, actual) is not None
