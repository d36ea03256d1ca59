"""A document as a tree in which every part knows its place: what the JSON and the YAML reader both make."""

from __future__ import annotations

from kubeauthn._core.authentication.faults import DECODE, SYNTAX, ConfigFault, config_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.yaml_document import Path
    from kubeauthn.errors import AuthenticationConfigError

DEPTH = 64
"""How deep a document may be nested. A configuration needs 7."""


class Node:
    """A value: str, bool, int, float, None, a list of nodes, or a list of `Entry`, told apart by `kind`."""

    __slots__ = ("column", "kind", "line", "size", "value")

    def __init__(self, kind: str, value: object, line: int, column: int, size: int = 1) -> None:
        self.kind = kind  # as Go names it: string, bool, number, null, array, object
        self.value = value
        self.line = line
        self.column = column
        self.size = size  # how many nodes it stands for

    @property
    def entries(self) -> list[Entry]:
        """The fields of an object; none where it is something else."""
        return self.value if self.kind == "object" else []  # type: ignore[return-value]

    @property
    def items(self) -> list[Node]:
        return self.value if self.kind == "array" else []  # type: ignore[return-value]


class Entry:
    """`key: value`, in the order in which Kubernetes reads them. The place is the key's."""

    __slots__ = ("column", "key", "line", "value")

    def __init__(self, key: str, value: Node, line: int, column: int) -> None:
        self.key = key
        self.value = value
        self.line = line
        self.column = column


def unreadable(text: str, line: int = 0, column: int = 0, *, kind: str = SYNTAX) -> AuthenticationConfigError:
    """The one fault after which nothing more can be said."""
    return config_error([ConfigFault(text, "", line, column, kind)])


def undecodable(text: str, node: Node) -> AuthenticationConfigError:
    return unreadable(text, node.line, node.column, kind=DECODE)


def place(root: Node, path: Path) -> tuple[int, int]:
    """Line and column of a field; of what is not there, those of the nearest thing around it."""
    line, column = root.line, root.column
    node = root
    for step in path:
        if isinstance(step, int):
            if step >= len(node.items):
                break
            node = node.items[step]
            line, column = node.line, node.column
        else:
            found = [entry for entry in node.entries if entry.key == step]
            if not found:
                break
            node, line, column = found[-1].value, found[-1].line, found[-1].column
    return line, column
