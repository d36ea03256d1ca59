"""The blocks of a page, each with its place, its kind, and what the line before it says of it."""

from __future__ import annotations

from dataclasses import dataclass, field

SECOND = "second terminal"

REASONS = {
    "set-up": "it installs or builds for minutes; its make targets and its extras exist",
    "hardware": "it wants a device or an account of one's own; its kubeauthn commands have the options that we know",
    "picture": "a drawing in characters, or a pattern of a line, not a program's",
    "other program": "a part of the configuration of a program that is not here; what is YAML can be read as YAML",
}
"""Why a block may not run, and what is checked instead."""

_ORDERS = ("needs", "first", "run by", "not run")


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
    orders: dict[str, str] = field(default_factory=dict)

    def commands(self) -> list[Command]:
        prompt = "$ " if self.language == "console" else ""
        return _commands(self.text, self.line, prompt)

    @property
    def needs(self) -> list[str]:
        return self.orders.get("needs", "").split()

    @property
    def runs(self) -> bool:
        return "not run" not in self.orders and "run by" not in self.orders


def _commands(text: str, line: int, prompt: str) -> list[Command]:
    commands: list[Command] = []
    continued = False
    for number, words in enumerate(text.splitlines(), line + 1):
        begins = words.startswith(prompt) and not continued and bool(words.strip())
        if begins:
            commands.append(Command(number, words[len(prompt) :]))
        elif continued:
            commands[-1].text += "\n" + words
        elif prompt:
            assert commands, f"line {number}: a console block begins with a command behind `$ `"
            commands[-1].expected.append(words)
        continued = (begins or continued) and words.endswith("\\")
    return commands


def script(text: str) -> list[str]:
    return [command.text for command in _commands(text, 0, "")]


def blocks(page: str) -> list[Block]:
    found: list[Block] = []
    inside: str | None = None
    orders: dict[str, str] = {}
    comment: list[str] | None = None
    for number, line in enumerate(page.splitlines(), 1):
        bare = line.strip()
        if inside is not None:
            if bare == "```":
                inside = None
            else:
                found[-1].text += line.removeprefix(inside) + "\n"
        elif comment is not None or bare.startswith("<!--"):
            comment = [*(comment or []), line]
            if "-->" in line:
                orders.update(_order("\n".join(comment), number))
                comment = None
        elif bare.startswith("```"):
            language, _, rest = bare[3:].partition(" ")
            title = rest.partition('title="')[2].partition('"')[0]
            inside = line[: len(line) - len(line.lstrip())]
            found.append(Block(number, language, title, "", orders))
            orders = {}
        elif bare and orders:
            raise AssertionError(f"line {number}: {', '.join(orders)} belongs to a block, and none follows")
    return found


def _order(comment: str, number: int) -> dict[str, str]:
    name, colon, text = comment.replace("<!--", "", 1).replace("-->", "").strip().partition(":")
    if not colon or name not in _ORDERS:
        return {}  # a comment like any other
    assert name != "not run" or text.strip() in REASONS, f"line {number}: not one of the reasons: {text.strip()}"
    return {name: text.strip()}
