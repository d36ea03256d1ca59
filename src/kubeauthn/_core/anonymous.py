"""The `anonymous` section: who comes without a token, and where. As in kube-apiserver, paths are compared whole."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from kubeauthn._core.authentication.verdict import UserInfo

if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import Anonymous

ANONYMOUS_USER = UserInfo("system:anonymous", "", ("system:unauthenticated",))


def is_anonymous_path(anonymous: Anonymous | None, path: str) -> bool:
    """Whether a request without a token may come to this path, as the application sees it (decoded)."""
    if anonymous is None or not anonymous.enabled:
        return False
    # An empty list is as absent: that is how kube-apiserver takes it.
    return not anonymous.conditions or path in anonymous.conditions


def is_anonymous_uri(anonymous: Anonymous | None, uri: str) -> bool:
    """The same for a path with its query, as it stood on the wire. An escape where none is needed matches nothing."""
    if not uri.startswith("/"):
        return False
    raw = uri.partition("?")[0]
    if anonymous is None or not anonymous.enabled:
        return False
    return not anonymous.conditions or any(raw in (path, quote(path)) for path in anonymous.conditions)
