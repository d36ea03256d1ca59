"""What an expression looks at: the claims, or the parts of the user, that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeauthn.cel.ast import Call, Ident, Literal, Select, walk
from kubeauthn.cel.escaping import unescape_name, unescape_or_none

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn.cel import Program
    from kubeauthn.cel.ast import Node

ABSENT = "<absent>"
_MOST = 50
_SELECTS = ("_[_]", "_?._", "_[?_]")


def seen_values(program: Program, variables: Mapping[str, Any]) -> dict[str, Any]:
    """By the way it is written, `claims.a.b`; ABSENT where there is nothing."""
    paths = dict.fromkeys(path for node in walk(program.ast) if (path := _path(node)))
    # `claims.a` is said by `claims.a.b` already
    longest = [path for path in paths if not any(other[: len(path)] == path and other != path for other in paths)]
    return {".".join(path): _value(path, variables) for path in longest[:_MOST]}


def _path(node: Node) -> tuple[str, ...]:
    names: list[str] = []
    while True:
        if isinstance(node, Select):
            names.append(node.field)
            node = node.operand
        elif isinstance(node, Call) and node.function in _SELECTS and _is_name(node.args[1]):
            names.append(str(node.args[1].value))  # type: ignore[attr-defined]
            node = node.args[0]
        else:
            break
    if not isinstance(node, Ident) or node.name not in ("claims", "user") or not names:
        return ()
    return (node.name, *reversed(names))


def _is_name(node: Node) -> bool:
    return isinstance(node, Literal) and isinstance(node.value, str)


def _value(path: tuple[str, ...], variables: Mapping[str, Any]) -> Any:
    current: Any = variables
    for depth, written in enumerate(path):
        # a wrongly escaped name is no claim's, but it may be a key further down
        name = unescape_or_none(written) if depth == 1 else unescape_name(written)
        # dict.get: not the claims' own access, which stops at a claim that is elsewhere or cannot be read
        if not isinstance(current, dict) or dict.get(current, name, ABSENT) is ABSENT:
            return ABSENT
        current = dict.get(current, name)
    return current
