"""Does what a page says."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.pages import kinds
from tests.pages.blocks import SECOND, Block, Command, blocks
from tests.pages.shell import Shell
from tests.transcripts.transcript import matches


class Reader:
    """One reader of one page: a folder, a terminal, and more terminals where the page asks for them."""

    def __init__(self, page: Path, folder: Path, environ: dict[str, str], fitted=str) -> None:
        self._page = page
        self._folder = folder
        self._environ = environ
        self._fitted = fitted
        self._shell = Shell(folder, environ)
        self._shells = [self._shell]
        self.count = 0

    def read(self) -> None:
        try:
            for block in blocks(self._page.read_text()):
                self._do(block)
        finally:
            for each in reversed(self._shells):
                each.end()

    def _do(self, block: Block) -> None:
        where = f"{self._page.name}:{block.line}"
        if "first" in block.orders:
            printed, code = self._shell.run(self._fitted(block.orders["first"]))
            assert code == 0, f"{where}: what comes first ended with exit code {code}:\n{printed}"
        if not block.runs:
            kinds.check_unrun(block, self._page, where)
        elif block.language == "console" and block.title == SECOND:
            self._go_on(block)
        elif block.language in ("console", "sh") and not block.title:
            for command in block.commands():
                self._run(command, compared=block.language == "console")
        elif block.title:
            file = self._folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._fitted(block.text))
            file.chmod(0o755 if block.text.startswith("#!") else 0o600)
        elif block.language == "python":
            file = self._folder / f"line-{block.line}.py"
            file.write_text(block.text)
            printed, code = self._shell.run(f"{sys.executable} {file}")
            assert code == 0, f"{where}: exit code {code}:\n{printed}"
            self.count += 1
        else:
            kinds.check(block, where)
            self.count += 1

    def _run(self, command: Command, *, compared: bool) -> None:
        printed, code = self._shell.run(self._fitted(command.text))
        place = f"{self._page.name}:{command.line}: {command.text}\n"
        if compared:
            expected = self._fitted("\n".join(command.expected))
            assert matches(expected.splitlines(), printed), f"{place}expected:\n{expected}\ncame:\n{printed}"
        assert code == command.exit_code, f"{place}exit code {code}:\n{printed}"
        self.count += 1

    def _go_on(self, block: Block) -> None:
        self._shells.append(Shell(self._folder, self._environ))
        (command,) = block.commands()
        expected = self._fitted("\n".join(command.expected)).splitlines()
        self._shells[-1].start(self._fitted(command.text))
        self._shells[-1].read_until(lambda seen: matches(expected, seen))
        self.count += 1


def follow(page: Path, folder: Path, environ: dict[str, str], fitted=str) -> int:
    """How much was run. Raises AssertionError where something else came than the page shows. `fitted` makes a text of
    the page fit for this machine."""
    reader = Reader(page, folder, environ, fitted)
    reader.read()
    return reader.count
