"""The ways to change a part of an object: merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from __future__ import annotations

import copy
from typing import Any

from kubeauthn.testing._status import ApiError


def merge_patch(target: Any, patch: Any) -> Any:
    """`patch` laid over `target`; null removes. Neither is changed."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    """The operations add, replace, remove and test, on a copy."""
    document = copy.deepcopy(target)
    if not isinstance(operations, list):
        raise ApiError(400, "a JSON patch is a list of operations")
    for operation in operations:
        try:
            document = _apply(document, operation)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise ApiError(422, f"the JSON patch does not fit the object: {error}") from None
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    name, path = operation["op"], operation["path"]
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    if not steps:
        raise ValueError("the whole document cannot be patched")
    parent = document
    for step in steps[:-1]:
        parent = parent[int(step)] if isinstance(parent, list) else parent[step]
    last = steps[-1]
    if isinstance(parent, list):
        _apply_to_list(parent, last, name, operation)
    else:
        _apply_to_object(parent, last, name, operation)
    return document


def _apply_to_object(parent: dict[str, Any], key: str, name: str, operation: dict[str, Any]) -> None:
    if name == "add":
        parent[key] = operation["value"]
    elif name == "replace":
        parent[key]  # must be there
        parent[key] = operation["value"]
    elif name == "remove":
        del parent[key]
    elif name == "test":
        _test(parent.get(key), operation)
    else:
        raise ValueError(f"operation {name!r} is not known")


def _apply_to_list(parent: list[Any], step: str, name: str, operation: dict[str, Any]) -> None:
    index = len(parent) if step == "-" else int(step)
    if name == "add":
        parent.insert(index, operation["value"])
    elif name == "replace":
        parent[index] = operation["value"]
    elif name == "remove":
        del parent[index]
    elif name == "test":
        _test(parent[index], operation)
    else:
        raise ValueError(f"operation {name!r} is not known")


def _test(actual: Any, operation: dict[str, Any]) -> None:
    if actual != operation["value"]:
        raise ValueError(f"the test of {operation['path']} failed")
