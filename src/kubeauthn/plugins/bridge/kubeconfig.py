"""The kubeconfig through which plain tools reach a bridge. No secret is in it."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from typing import TYPE_CHECKING

from kubeauthn._core.execwire import V1BETA1

if TYPE_CHECKING:
    from kubeauthn.plugins.bridge.definition import Definition

_MODULE = "kubeauthn.plugins.bridge.credential"
_RUN = ["-P", "-m", _MODULE]
"""`-P`: a client runs it wherever the person stands, and what lies about there is not to be imported."""


def document(definition: Definition, *, api_version: str = V1BETA1) -> bytes:
    """JSON, which every reader of YAML reads. v1beta1 unless told: kubectl before 1.22 does not know v1."""
    context: dict[str, object] = {"cluster": "bridge", "user": "bridge"}
    if definition.namespace:
        context["namespace"] = definition.namespace
    name = definition.context or "bridge"
    exec_entry = {
        "apiVersion": api_version,
        "command": sys.executable,
        "args": [*_RUN, definition.name],
        "env": None,
        "interactiveMode": "Never",
        "provideClusterInfo": False,
        "installHint": "the bridge of this kubeconfig belongs to kubeauthn",
    }
    cluster = {
        "server": f"https://127.0.0.1:{definition.port}",
        "certificate-authority-data": b64encode(definition.certificate.encode()).decode(),
    }
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "preferences": {},
        "clusters": [{"name": "bridge", "cluster": cluster}],
        "contexts": [{"name": name, "context": context}],
        "users": [{"name": "bridge", "user": {"exec": exec_entry}}],
    }
    return json.dumps(whole, indent=1).encode() + b"\n"


def is_document(content: bytes) -> bool:
    """Whether `document` made it and nobody added to it: one cluster, one user, and that user is a bridge's."""
    try:
        whole = json.loads(content)
        (cluster,), (context,), (user,) = whole["clusters"], whole["contexts"], whole["users"]
        return (
            [cluster["name"], user["name"], context["context"]["user"]] == ["bridge"] * 3
            and user["user"].keys() == {"exec"}
            and user["user"]["exec"]["args"][:-1] in (_RUN, _RUN[1:])  # the latter by an earlier version
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return False
