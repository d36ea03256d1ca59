"""The objects of an `ApiServer`, in memory, with resource versions and watches."""

from __future__ import annotations

import copy
import uuid
from collections import deque
from datetime import UTC, datetime
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Any

from kubeauthn.testing._resources import NAMESPACES
from kubeauthn.testing._status import ApiError, not_found
from kubeauthn.testing._watch import Selection, Watch, event_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.testing._resources import ResourceType

HISTORY_EVENTS = 10_000
"""How far back a watch can start."""

Key = tuple[str, str]
Item = dict[str, Any]


class Store:
    """Objects by type, namespace and name. What it returns are copies."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._items: dict[ResourceType, dict[Key, Item]] = {}
        self._versions = count(1)
        self._version = 0
        self._suffixes = count(1)
        self._history: deque[tuple[int, ResourceType, str, Item]] = deque(maxlen=HISTORY_EVENTS)
        self._watches: set[Watch] = set()
        for name in ("default", "kube-system"):
            self.create(NAMESPACES, "", {"metadata": {"name": name}})

    def get(self, type: ResourceType, namespace: str, name: str) -> Item:
        with self._lock:
            return copy.deepcopy(self._find_locked(type, namespace, name))

    def listing(self, selection: Selection) -> Item:
        with self._lock:
            items = [copy.deepcopy(item) for item in self._selected_locked(selection)]
            version = self._version
        return {
            "kind": f"{selection.type.kind}List",
            "apiVersion": selection.type.api_version,
            "metadata": {"resourceVersion": str(version)},
            "items": items,
        }

    def create(self, type: ResourceType, namespace: str, item: Item) -> Item:
        with self._lock:
            if type.namespaced:
                self._find_locked(NAMESPACES, "", namespace)
            item = _typed(type, item)
            metadata = item["metadata"]
            if not metadata.get("name") and metadata.get("generateName"):
                metadata["name"] = f"{metadata['generateName']}{next(self._suffixes):05d}"
            name = metadata.get("name")
            if not isinstance(name, str) or not name:
                raise ApiError(
                    422, f"{type.kind} is invalid: metadata.name: Required value: name or generateName is required"
                )
            if (namespace, name) in self._items.setdefault(type, {}):
                details = {"name": name, "kind": type.plural}
                raise ApiError(409, f'{type.plural} "{name}" already exists', reason="AlreadyExists", details=details)
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = _now()
            if type.namespaced:
                metadata["namespace"] = namespace
            if type == NAMESPACES:
                item.setdefault("status", {"phase": "Active"})
            return self._write_locked(type, namespace, "ADDED", item)

    def change(self, type: ResourceType, namespace: str, name: str, edit: Callable[[Item], Item]) -> Item:
        """Replace an object by what `edit` makes of it."""
        with self._lock:
            before = self._find_locked(type, namespace, name)
            after = _typed(type, edit(copy.deepcopy(before)))
            metadata, old = after["metadata"], before["metadata"]
            if metadata.get("name", name) != name:
                raise ApiError(
                    400, f"the name of the object ({metadata['name']}) does not match the name on the URL ({name})"
                )
            if metadata.get("resourceVersion") not in (None, "", old["resourceVersion"]):
                message = (
                    f'Operation cannot be fulfilled on {type.plural} "{name}": the object has been modified; '
                    "please apply your changes to the latest version and try again"
                )
                raise ApiError(409, message, details={"name": name, "kind": type.plural})
            for kept in ("name", "namespace", "uid", "creationTimestamp", "resourceVersion", "deletionTimestamp"):
                if kept in old:
                    metadata[kept] = old[kept]
            if after == before:
                return copy.deepcopy(before)  # no change, so no event
            if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
                return self._remove_locked(type, namespace, after)
            return self._write_locked(type, namespace, "MODIFIED", after)

    def touch(self, type: ResourceType, namespace: str, name: str) -> Item:
        """A change of nothing but the resource version."""
        with self._lock:
            return self._write_locked(type, namespace, "MODIFIED", self.get(type, namespace, name))

    def delete(self, type: ResourceType, namespace: str, name: str) -> Item:
        """Remove an object, or mark it while finalizers hold it."""
        with self._lock:
            item = copy.deepcopy(self._find_locked(type, namespace, name))
            if item["metadata"].get("finalizers"):
                if item["metadata"].get("deletionTimestamp"):
                    return item
                item["metadata"]["deletionTimestamp"] = _now()
                return self._write_locked(type, namespace, "MODIFIED", item)
            if type == NAMESPACES:
                for other, items in self._items.items():
                    for key in [key for key in items if other.namespaced and key[0] == name]:
                        self._remove_locked(other, name, copy.deepcopy(items[key]))
            return self._remove_locked(type, namespace, item)

    def watch(self, selection: Selection, since: str, *, initial_events: bool, seconds: float | None) -> Watch:
        """Changes after the version `since`; with none (or 0), what there is comes first."""
        with self._lock:
            if since in ("", "0") or initial_events:
                lines = [event_line("ADDED", item) for item in self._selected_locked(selection)]
            else:
                lines = self._missed_locked(selection, since)
            if initial_events:
                lines.append(event_line("BOOKMARK", self._bookmark_locked(selection.type)))
            watch = Watch(selection, lines, seconds=seconds)
            self._watches.add(watch)
            return watch

    def close_watch(self, watch: Watch) -> None:
        with self._lock:
            self._watches.discard(watch)
        watch.close()

    def watches(self) -> list[Watch]:
        with self._lock:
            return list(self._watches)

    def _missed_locked(self, selection: Selection, since: str) -> list[bytes]:
        if not since.isdecimal():
            raise ApiError(400, f"resourceVersion: Invalid value: {since!r}")
        oldest = self._history[0][0]
        if int(since) < oldest - 1:
            raise ApiError(410, f"too old resource version: {since} ({oldest})")
        return [
            event_line(event, item)
            for version, type, event, item in self._history
            if version > int(since) and selection.matches(type, item)
        ]

    def _bookmark_locked(self, type: ResourceType) -> Item:
        annotations = {"k8s.io/initial-events-end": "true"}
        metadata = {"resourceVersion": str(self._version), "creationTimestamp": None, "annotations": annotations}
        return {"kind": type.kind, "apiVersion": type.api_version, "metadata": metadata}

    def _find_locked(self, type: ResourceType, namespace: str, name: str) -> Item:
        item = self._items.get(type, {}).get((namespace, name))
        if item is None:
            raise not_found(type.plural, name)
        return item

    def _selected_locked(self, selection: Selection) -> list[Item]:
        items = self._items.get(selection.type, {}).values()
        return [item for item in items if selection.matches(selection.type, item)]

    def _write_locked(self, type: ResourceType, namespace: str, event: str, item: Item) -> Item:
        self._announce_locked(type, event, item)
        self._items[type][namespace, item["metadata"]["name"]] = item
        return copy.deepcopy(item)

    def _remove_locked(self, type: ResourceType, namespace: str, item: Item) -> Item:
        del self._items[type][namespace, item["metadata"]["name"]]
        self._announce_locked(type, "DELETED", item)
        return copy.deepcopy(item)

    def _announce_locked(self, type: ResourceType, event: str, item: Item) -> None:
        self._version = next(self._versions)
        item["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, type, event, item))
        line = event_line(event, item)
        for watch in self._watches:
            if watch.selection.matches(type, item):
                watch.push(line)


def _typed(type: ResourceType, item: Item) -> Item:
    """The object with its kind and metadata in place; another kind is refused."""
    for key, expected in (("kind", type.kind), ("apiVersion", type.api_version)):
        if item.get(key, expected) != expected:
            raise ApiError(400, f"the {key} of the object ({item[key]}) does not match the expected one ({expected})")
    if not isinstance(item.get("metadata", {}), dict):
        raise ApiError(400, "metadata is expected to be an object")
    return {
        **copy.deepcopy(item),
        "kind": type.kind,
        "apiVersion": type.api_version,
        "metadata": dict(item.get("metadata", {})),
    }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
