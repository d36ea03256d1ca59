"""The completion script for zsh: one `_arguments` call for each command."""

from __future__ import annotations

from kubeauthn.cli.completion_shapes import FILES, FOLDERS, NAMES, PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.cli.completion_shapes import Option, Shape

_FRAME = """\
#compdef kubeauthn kubectl-authn
# Completion for kubeauthn in zsh:  eval "$(kubeauthn completion zsh)"  after compinit,
# or this file as _kubeauthn in a folder of $fpath.

_kubeauthn_names() {
    local -a names
    names=("${(@f)$(_call_program names kubeauthn completion --names $argv[-1] 2>/dev/null)}")
    compadd "${(@)argv[1,-2]}" -- ${names:#}  # _arguments puts options for compadd before the word
}

_kubeauthn() {
    local -a choices
    if (( CURRENT == 2 )); then
        choices=(
@FIRST@
        )
        _describe command choices
        return
    fi
    local command=$words[2]
    shift words
    (( CURRENT -= 1 ))
    case $command in
@GROUPS@
    esac
    case $command in
@COMMANDS@
    esac
}

if [[ $funcstack[1] == _kubeauthn ]]; then
    _kubeauthn "$@"
else
    compdef _kubeauthn kubeauthn kubectl-authn
fi
"""


def script(shapes: Mapping[str, Shape]) -> str:
    groups: dict[str, dict[str, str]] = {}
    for name, shape in shapes.items():
        first, _, second = name.partition(" ")
        groups.setdefault(first, {})[second] = shape.help
    filled = {
        "@FIRST@": "\n".join(
            f"            {_quoted(_described(first, lines.get('') or ', '.join(lines)))}"
            for first, lines in groups.items()
        ),
        "@GROUPS@": "\n".join(_group(first, lines) for first, lines in groups.items() if "" not in lines),
        "@COMMANDS@": "\n".join(_command(name, shape) for name, shape in shapes.items()),
    }
    text = _FRAME
    for mark, content in filled.items():
        text = text.replace(mark, content)
    return text


def _group(first: str, lines: Mapping[str, str]) -> str:
    lines_of_group = [
        f"{first})",
        "    if (( CURRENT == 2 )); then",
        "        choices=(",
        *(f"            {_quoted(_described(*entry))}" for entry in lines.items()),
        "        )",
        "        _describe command choices",
        "        return",
        "    fi",
        '    command+=" $words[2]"',
        "    shift words",
        "    (( CURRENT -= 1 ))",
        "    ;;",
    ]
    return "\n".join(f"        {line}" for line in lines_of_group)


def _command(name: str, shape: Shape) -> str:
    specs = [spec for option in shape.options for spec in _option(option)]
    if shape.source == PROGRAMS:
        specs.append("*::command:_normal")
    elif shape.words:
        specs.append(f"1:value:({' '.join(shape.words)})")
    elif shape.source:
        specs.append(f"*:{shape.source}:{_action((), shape.source)}")
    else:
        # Any word: behind one that it does not expect, zsh offers no options. `()` and not a space, which would be a
        # message, and where there is one zsh lists what it found instead of putting it in.
        specs.append("*:word:()")
    lines = " \\\n".join(f"                {_quoted(spec)}" for spec in specs)
    return f"        {_quoted(name)})\n            _arguments -S \\\n{lines}\n            ;;"


def _option(option: Option) -> list[str]:
    """`(-o --output)--output=[how to print it]:value:(text json)`, once for each spelling."""
    before = "*" if option.repeats else f"({' '.join(option.spellings)})"
    value = f":value:{_action(option.choices, option.source)}" if option.takes_value else ""
    return [
        f"{before}{spelling}{_joint(spelling) if value else ''}[{_escaped(option.help, '[]')}]{value}"
        for spelling in option.spellings
    ]


def _joint(spelling: str) -> str:
    return "=" if spelling.startswith("--") else "+"


def _action(choices: tuple[str, ...], source: str | None) -> str:
    if choices:
        return f"({' '.join(choices)})"
    if source in NAMES:
        return f"_kubeauthn_names {source}"
    return {FILES: "_files", FOLDERS: "_files -/"}.get(source or "", "")


def _described(name: str, line: str) -> str:
    return f"{name}:{_escaped(line, ':')}"


def _escaped(text: str, characters: str) -> str:
    return "".join(f"\\{character}" if character in f"\\{characters}" else character for character in text)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
