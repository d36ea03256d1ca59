"""The kinds an `ApiServer` knows, and the discovery documents that list them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import UsageError
from kubeauthn.testing._status import unknown_path

if TYPE_CHECKING:
    from collections.abc import Iterable

ALL_VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
REVIEW_VERBS = ("create",)

VERSION = {
    "major": "1",
    "minor": "35",
    "gitVersion": "v1.35.0",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}

CORE_VERSIONS = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
"""`/api`. No addresses: clients keep the one they came by."""


@dataclass(frozen=True)
class ResourceType:
    """One kind of object. `group` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    has_status: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def discovery(self) -> list[dict[str, Any]]:
        entry: dict[str, Any] = {
            "name": self.plural,
            "singularName": self.kind.lower(),
            "namespaced": self.namespaced,
            "kind": self.kind,
            "verbs": list(self.verbs),
        }
        if self.short_names:
            entry["shortNames"] = list(self.short_names)
        if self.plural == "pods" and not self.group:
            streaming = {"kind": "PodExecOptions", "namespaced": True, "singularName": "", "verbs": ["create", "get"]}
            entries = [entry] + [{"name": f"pods/{name}", **streaming} for name in ("attach", "exec", "portforward")]
        else:
            entries = [entry]
        if not self.has_status:
            return entries
        status = entry | {"name": f"{self.plural}/status", "singularName": "", "verbs": ["get", "patch", "update"]}
        status.pop("shortNames", None)
        return [*entries, status]


NAMESPACES = ResourceType("", "v1", "namespaces", "Namespace", False, ("ns",), has_status=True)
SELF_SUBJECT_REVIEWS = ResourceType(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, verbs=REVIEW_VERBS
)
TOKEN_REVIEWS = ResourceType("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, verbs=REVIEW_VERBS)
SELF_SUBJECT_ACCESS_REVIEWS = ResourceType(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, verbs=REVIEW_VERBS
)
BUILT_IN = (
    NAMESPACES,
    ResourceType("", "v1", "pods", "Pod", True, ("po",), has_status=True),
    ResourceType("", "v1", "configmaps", "ConfigMap", True, ("cm",)),
    ResourceType("", "v1", "secrets", "Secret"),
    ResourceType("", "v1", "events", "Event", True, ("ev",)),
    ResourceType("events.k8s.io", "v1", "events", "Event", True, ("ev",)),
    ResourceType(
        "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False, ("crd",)
    ),
    SELF_SUBJECT_REVIEWS,
    TOKEN_REVIEWS,
    SELF_SUBJECT_ACCESS_REVIEWS,
)


class Catalogue:
    """The resource types, by path and by name."""

    def __init__(self, types: Iterable[ResourceType] = BUILT_IN) -> None:
        self._types = {(item.group, item.version, item.plural): item for item in types}

    def add(self, item: ResourceType) -> None:
        key = (item.group, item.version, item.plural)
        if key in self._types:
            raise UsageError(f"{item.plural} of {item.api_version} is there already")
        self._types[key] = item

    def get(self, group: str, version: str, plural: str) -> ResourceType:
        found = self._types.get((group, version, plural))
        if found is None:
            raise unknown_path()
        return found

    def named(self, plural: str) -> ResourceType:
        """By its plural alone, as a test names it: `namespaces`, or `widgets.example.com` where that is not clear."""
        name, _, group = plural.partition(".")
        for item in self._types.values():
            if item.plural == name and group in ("", item.group):
                return item
        raise UsageError(f"no resource is called {plural!r}")

    def all(self) -> list[ResourceType]:
        return list(self._types.values())

    def groups(self) -> dict[str, Any]:
        """`/apis`."""
        names = dict.fromkeys(item.group for item in self._types.values() if item.group)
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [self._group(name) for name in names]}

    def group(self, name: str) -> dict[str, Any]:
        """`/apis/{group}`."""
        if not name or all(item.group != name for item in self._types.values()):
            raise unknown_path()
        return {"kind": "APIGroup", "apiVersion": "v1", **self._group(name)}

    def _group(self, name: str) -> dict[str, Any]:
        versions = dict.fromkeys(item.version for item in self._types.values() if item.group == name)
        entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        return {"name": name, "versions": entries, "preferredVersion": entries[0]}

    def resources(self, group: str, version: str) -> dict[str, Any]:
        """`/api/v1`, `/apis/{group}/{version}`."""
        types = [item for item in self._types.values() if (item.group, item.version) == (group, version)]
        if not types:
            raise unknown_path()
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": types[0].api_version,
            "resources": [entry for item in types for entry in item.discovery()],
        }
