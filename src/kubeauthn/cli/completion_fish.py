"""The completion script for fish: one `complete` line for each word."""

from __future__ import annotations

from kubeauthn.cli.completion_shapes import FILES, FOLDERS, NAMES, PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kubeauthn.cli.completion_shapes import Option, Shape

_HEAD = """\
# Completion for kubeauthn in fish:  kubeauthn completion fish | source
# In a file of its own: ~/.config/fish/completions/kubeauthn.fish

function __kubeauthn_is
    set -l words (commandline -opc)
    set -l last (math 1 + (count $argv))
    test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"
end

function __kubeauthn_words
    test (count (commandline -opc)) -eq $argv[1]
end

complete -c kubeauthn -f
complete -c kubectl-authn -w kubeauthn
"""


def script(shapes: Mapping[str, Shape]) -> str:
    lines = [_HEAD]
    groups: dict[str, dict[str, str]] = {}
    for name, shape in shapes.items():
        first, _, second = name.partition(" ")
        groups.setdefault(first, {})[second] = shape.help
    for first, seconds in groups.items():
        line = seconds.get("") or ", ".join(seconds)
        lines.append(f"complete -c kubeauthn -n '__kubeauthn_words 1' -a {first} -d {_quoted(line)}")
        for second, text in seconds.items():
            if second:
                condition = _quoted(f"__kubeauthn_words 2; and __kubeauthn_is {first}")
                lines.append(f"complete -c kubeauthn -n {condition} -a {second} -d {_quoted(text)}")
    for name, shape in shapes.items():
        lines += _command(name, shape)
    return "\n".join(lines) + "\n"


def _command(name: str, shape: Shape) -> Iterator[str]:
    start = f"complete -c kubeauthn -n {_quoted(f'__kubeauthn_is {name}')}"
    for option in shape.options:
        yield f"{start} {_option(option)} -d {_quoted(option.help)}"
    if shape.words:
        yield f"{start} -a {_quoted(' '.join(shape.words))}"
    elif shape.source == PROGRAMS:
        words = 1 + len(name.split())  # what stands before the program, dashes aside
        yield f"{start} -a '(__fish_complete_subcommand --fcs-skip={words})'"
    elif shape.source == FILES:
        yield f"{start} -F"


def _option(option: Option) -> str:
    words = [
        f"-l {spelling[2:]}" if spelling.startswith("--") else f"-s {spelling[1:]}" for spelling in option.spellings
    ]
    if option.choices:
        words.append(f"-x -a {_quoted(' '.join(option.choices))}")
    elif option.source in NAMES:
        words.append(f"-x -a '(kubeauthn completion --names {option.source} 2>/dev/null)'")
    elif option.source == FILES:
        words.append("-r -F")
    elif option.source == FOLDERS:
        words.append("-x -a '(__fish_complete_directories)'")
    elif option.takes_value:
        words.append("-x")
    return " ".join(words)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
