"""On which line of a YAML text a field stands: a second reading, for texts that have faults."""

from __future__ import annotations

from kubeauthn._core.yaml_document import Path, event_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


def lines_of(text: str, paths: Iterable[Path]) -> dict[Path, int]:
    """The line of each path in the first document; for what is not there, the line of the nearest thing around it."""
    import yaml

    wanted = set(paths)
    steps_to_wanted = {path[:length] for path in wanted for length in range(len(path) + 1)}
    found: dict[Path, int] = {}
    try:
        for path, line in _positions(event_source(text)):
            if path in steps_to_wanted:
                found[path] = line
    except (yaml.YAMLError, UnicodeEncodeError):
        pass  # positions up to the fault are good enough
    return {path: _nearest(path, found) for path in wanted}


def _nearest(path: Path, found: dict[Path, int]) -> int:
    while path and path not in found:
        path = path[:-1]
    return found.get(path, 1)


def _positions(loader: Any) -> Iterator[tuple[Path, int]]:
    """Path and line of every node. A key counts as the place of its value."""
    import yaml

    path: list[str | int] = []  # of the node that comes next
    expecting_key: list[bool | None] = []  # per open collection; None in a sequence
    key_line = 0
    while True:
        event = loader.get_event()
        if isinstance(event, yaml.DocumentEndEvent | yaml.StreamEndEvent):
            return
        if isinstance(event, yaml.CollectionEndEvent):
            path.pop()
            expecting_key.pop()
        elif isinstance(event, yaml.NodeEvent):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if expecting_key and expecting_key[-1] is True:
                path[-1] = event.value if isinstance(event, yaml.ScalarEvent) else "?"
                key_line = line
                if not isinstance(event, yaml.CollectionStartEvent):
                    expecting_key[-1] = False
                    continue
            else:
                in_mapping = bool(expecting_key) and expecting_key[-1] is False
                yield tuple(path), key_line if in_mapping else line
            if isinstance(event, yaml.CollectionStartEvent):
                mapping = isinstance(event, yaml.MappingStartEvent)
                path.append("?" if mapping else 0)
                expecting_key.append(True if mapping else None)
                continue
        else:
            continue
        _advance(path, expecting_key)


def _advance(path: list[str | int], expecting_key: list[bool | None]) -> None:
    """A node is complete: what comes next is the next index, the value of a key, or the next key."""
    if not expecting_key:
        return
    index = path[-1]
    if expecting_key[-1] is None and isinstance(index, int):
        path[-1] = index + 1
    else:
        expecting_key[-1] = not expecting_key[-1]
