"""An argument parser that speaks through the `World` and fails with an error rather than an exit."""

from __future__ import annotations

import argparse
import os
import sys

from kubeauthn.cli.text import escaped
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from kubeauthn.cli.world import World


HIDDEN = "<…>"
_LONGEST_WORD = 60
_LONGEST_NAME = 100
_JWT_START = "eyJ"  # base64 of {", the beginning of nearly every JWT
_JWT_STARTS = ("eyA", "eyI", "ew0", "ewk", "ewo")  # of a brace and a blank: other words may have these in them
_SHORTEST_TOKEN = 20

_AFTER_DASHES = {
    "kubectl": "kubectl",
    "bridge run": "the program",
    "plugin check": "the plugin",
    "plugin cache": "the plugin",
}
"""Commands that hand words on, and to whom."""
_FILE_OPTIONS = ("-f", "--file", "--filename", "--config")
_OTHER_NAMES = {
    "--json": ("--output", "-o json"),
    "--format": ("--output", "-o"),
    "--port": ("--listen", "--listen ADDRESS:PORT"),
    "--address": ("--listen", "--listen ADDRESS:PORT"),
    "--bind": ("--listen", "--listen ADDRESS:PORT"),
    "--token": ("--token-file", "--token-file FILE (- for standard input)"),
    "--keys": ("--jwks", "--jwks FILE"),
    "--version": ("--kubernetes", "--kubernetes VERSION"),
    "--kubernetes-version": ("--kubernetes", "--kubernetes VERSION"),
    "--k8s": ("--kubernetes", "--kubernetes VERSION"),
    "--k8s-version": ("--kubernetes", "--kubernetes VERSION"),
    "--filter": ("-k", "-k NAME"),
    "--show": ("--reveal", "--reveal, secrets included"),
    "--cert": ("--tls-cert", "--tls-cert FILE"),
    "--key": ("--tls-key", "--tls-key FILE"),
}
"""What other tools call it: the option of ours, and how it is written."""


def may_be_token(word: str, longest: int = _LONGEST_WORD) -> bool:
    """Too long for what people type, or a JWT: such a word is not repeated on a terminal or in a log."""
    if len(word) > longest:
        return True
    if len(word) < _SHORTEST_TOKEN:
        return False
    return _JWT_START in word or (word.count(".") >= 2 and any(start in word for start in _JWT_STARTS))


def without_tokens(text: str, given: Iterable[str], longest: int = sys.maxsize) -> str:
    """A text about a command line, without the words of it that may be tokens."""
    for word in given:
        for part in (word, word.partition("=")[2]):
            if may_be_token(part, longest):
                text = text.replace(repr(part), HIDDEN).replace(part, HIDDEN)
    return text


def shown_path(path: str) -> str:
    """The name of a file, unless somebody gave a token where a name belongs."""
    return HIDDEN if any(may_be_token(part, _LONGEST_NAME) for part in path.split("/")) else path


class CommandParser(argparse.ArgumentParser):
    """For one command. Long options are never abbreviated: a script must not break when one is added."""

    def __init__(self, world: World, name: str, **options: Any) -> None:
        width = _width(world)
        super().__init__(
            prog=f"{world.program} {name}".strip(),
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=width),
            **options,
        )
        self.color = False  # newer Pythons would colour the help on a terminal of their own choosing
        self._world = world
        self._name = name
        self._given: list[str] = []

    # argparse would print every word that it did not expect, and one of them may be a token.
    def parse_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        self._given = list(args or ())
        found, surplus = self.parse_known_args(self._given, namespace)
        if surplus:
            self._refuse(surplus)
        return found

    def print_help(self, file: object = None) -> None:
        from kubeauthn.cli.examples import examples_of

        self._world.stdout.write(self.format_help() + examples_of(self._name, self._world.program))

    def error(self, message: str) -> NoReturn:
        raise UsageError(without_tokens(message, self._given, _LONGEST_WORD), hint=self._usage())

    def _usage(self) -> str:
        return f"{self.format_usage().strip()}\n{self.prog} --help says more"

    def _refuse(self, surplus: list[str]) -> NoReturn:
        words_only = self._given[self._given.index("--") :] if "--" in self._given else []
        options = [
            _option_name(word) for word in surplus if word.startswith("-") and word != "-" and word not in words_only
        ]
        if not options:
            shown = [HIDDEN if may_be_token(word) else escaped(word) for word in surplus if word != "--"]
            words = ", ".join(shown)
            takes_token = "--token-file" in self._option_string_actions
            hint = ""
            if takes_token and HIDDEN in words:
                hint = "a token comes from a file: --token-file FILE (- for standard input)"
            elif takes_token and len(shown) == 1 and "--token-file" not in self._given:
                hint = f"is it the token's file? --token-file {words}"
            raise UsageError(f"unexpected arguments: {words}", hint=hint or self._usage())
        # What follows an option that nobody knows is probably its value: it is not shown, however short.
        to = _AFTER_DASHES.get(self._name)
        if to and "--" not in self._given:
            hint = f"put -- before what {to} is given: {self.prog} -- …"
        else:
            hint = self._meant(options[0]) or self._usage()
        raise UsageError(f"there is no option {', '.join(dict.fromkeys(options))}", hint=hint)

    def _meant(self, option: str) -> str:
        known = self._option_string_actions
        ours, written = _OTHER_NAMES.get(option, ("", ""))
        if ours in known:
            return f"did you mean {written}?"
        if option in _FILE_OPTIONS and any(action.metavar == "FILE" for action in self._get_positional_actions()):
            return f"the file is given without it: {self.prog} FILE"
        near = _nearest(option, known)
        return f"did you mean {near}?" if near else ""


def refuse_empty_values(parser: argparse.ArgumentParser) -> None:
    """For all arguments that are added from here on.

    `--client-ca "$CA"` with a variable that nobody set would be as if the option were not there: who asked for a check
    would go without it and not know.
    """
    parser.register("action", None, _StoreGiven)
    parser.register("action", "append", _AppendGiven)


class _StoreGiven(argparse._StoreAction):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        _refuse_nothing(self, values)
        super().__call__(parser, namespace, values, option_string)


class _AppendGiven(argparse._AppendAction):
    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        _refuse_nothing(self, values)
        super().__call__(parser, namespace, values, option_string)


def _refuse_nothing(action: argparse.Action, value: object) -> None:
    if type(value) is str and not value.strip(" \t,"):
        raise argparse.ArgumentError(action, "expected a value, got an empty text (a variable that is not set?)")


def _option_name(word: str) -> str:
    """Without the value, which may be joined to it: --token=… and -t…"""
    name = word.partition("=")[0] if word.startswith("--") else word[:2]
    return HIDDEN if may_be_token(name) else escaped(name)


def _nearest(option: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    bare = {name.replace("-", ""): name for name in known if name.startswith("--")}
    word = option.replace("-", "").lower()
    if len(word) > 1:
        for spelling, name in bare.items():
            if spelling.startswith(word):
                return name
    near = get_close_matches(word, bare, n=1, cutoff=0.75)
    return bare[near[0]] if near else ""


def _width(world: World) -> int:
    """Said here, because argparse would load half a dozen modules to find out, for every option that is added."""
    columns = world.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal():
        return max(40, int(columns[:6]) - 2)
    try:
        return max(40, os.get_terminal_size(world.stdout.fileno()).columns - 2)
    except (OSError, ValueError):
        return 98
