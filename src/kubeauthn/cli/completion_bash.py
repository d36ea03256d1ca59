"""The completion script for bash: tables in `case`, and one function that reads them."""

from __future__ import annotations

from kubeauthn.cli.completion_shapes import FILES, FOLDERS, NAMES, PROGRAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kubeauthn.cli.completion_shapes import Shape

# `compopt -o default` leaves file names to readline, which knows about quotes and ~. It is missing in bash 3.
# Names from a kubeconfig are compared and never given to `compgen -W`, which would evaluate them.
_FRAME = """\
# Completion for kubeauthn in bash:  eval "$(kubeauthn completion bash)"
# In a file of its own: ~/.local/share/bash-completion/completions/kubeauthn

_kubeauthn_source() {
    local name
    case $1 in
        files) compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$current")) ;;
        folders) compopt -o dirnames 2>/dev/null || COMPREPLY=($(compgen -d -- "$current")) ;;
        contexts|clusters|users)
            while IFS= read -r name; do
                [[ $name == "$current"* ]] && COMPREPLY+=("$name")
            done < <("${COMP_WORDS[0]}" completion --names "$1" 2>/dev/null)
            ;;
    esac
}

_kubeauthn_values() {
    case $1 in
@VALUES@
        *) return 1 ;;
    esac
}

_kubeauthn() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
    local command=${COMP_WORDS[1]} first=2 index
    COMPREPLY=()
    # bash takes --output=json apart into three words
    if [[ $current == "=" ]]; then
        current=
    elif [[ $previous == "=" ]] && (( COMP_CWORD > 2 )); then
        previous=${COMP_WORDS[COMP_CWORD-2]}
    fi
    if (( COMP_CWORD == 1 )); then
        COMPREPLY=($(compgen -W '@FIRST@' -- "$current"))
        return
    fi
    case $command in
@GROUPS@
    esac
    for (( index = first; index < COMP_CWORD; index++ )); do
        if [[ ${COMP_WORDS[index]} == -- ]]; then
            _kubeauthn_after "$command" "$index"
            return
        fi
    done
    if _kubeauthn_values "$command $previous"; then
        return
    fi
    case $command in
@COMMANDS@
    esac
}

# What follows -- is another program with its own arguments.
_kubeauthn_after() {
    case $1 in
@PROGRAMS@
        *) compopt -o default 2>/dev/null; return ;;
    esac
    if declare -F _command_offset >/dev/null; then
        _command_offset $(( $2 + 1 ))
    elif (( COMP_CWORD == $2 + 1 )); then
        COMPREPLY=($(compgen -c -- "$current"))
    else
        compopt -o default 2>/dev/null
    fi
}

complete -F _kubeauthn kubeauthn kubectl-authn
"""


def script(shapes: Mapping[str, Shape]) -> str:
    groups: dict[str, list[str]] = {}
    for name in shapes:
        first, _, second = name.partition(" ")
        groups.setdefault(first, []).extend([second] if second else [])
    programs = [_quoted(name) for name, shape in shapes.items() if shape.source == PROGRAMS]
    filled = {
        "@VALUES@": _indented(_value_cases(shapes), 8),
        "@FIRST@": " ".join([*groups, "--help", "--version"]),
        "@GROUPS@": _indented((_group_case(first, seconds) for first, seconds in groups.items() if seconds), 8),
        "@COMMANDS@": _indented((_command_case(name, shape) for name, shape in shapes.items()), 8),
        "@PROGRAMS@": _indented([f"{'|'.join(programs)}) ;;"] if programs else [], 8),
    }
    text = _FRAME
    for mark, content in filled.items():
        text = text.replace(mark, content)
    return text


def _value_cases(shapes: Mapping[str, Shape]) -> Iterable[str]:
    """One line for each option of each command that takes a value; one that nothing is known of offers nothing."""
    for name, shape in shapes.items():
        for option in shape.options:
            if option.takes_value:
                pattern = "|".join(_quoted(f"{name} {spelling}") for spelling in option.spellings)
                yield f"{pattern}) {_offer(option.choices, option.source)} ;;"


def _group_case(first: str, seconds: list[str]) -> str:
    return (
        f"{first})\n    if (( COMP_CWORD == 2 )); then\n"
        f"        COMPREPLY=($(compgen -W '{' '.join(seconds)}' -- \"$current\"))\n        return\n    fi\n"
        '    command+=" ${COMP_WORDS[2]}" first=3\n    ;;'
    )


def _command_case(name: str, shape: Shape) -> str:
    options = " ".join(spelling for option in shape.options for spelling in option.spellings)
    return "\n".join(
        [
            f"{_quoted(name)})",
            "    if [[ $current == -* ]]; then",
            f"        COMPREPLY=($(compgen -W '{options}' -- \"$current\"))",
            "    else",
            f"        {_offer(shape.words, shape.source)}",
            "    fi",
            "    ;;",
        ]
    )


def _offer(words: tuple[str, ...], source: str | None) -> str:
    if words:
        return f"COMPREPLY=($(compgen -W '{' '.join(words)}' -- \"$current\"))"
    return f"_kubeauthn_source {source}" if source in (FILES, FOLDERS, *NAMES) else ":"


def _quoted(text: str) -> str:
    return f"'{text}'"


def _indented(blocks: Iterable[str], width: int) -> str:
    return "\n".join(f"{' ' * width}{line}" for block in blocks for line in block.split("\n"))
