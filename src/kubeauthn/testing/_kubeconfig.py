"""A kubeconfig for one server and one user."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping


def kubeconfig(
    *,
    server: str,
    ca_pem: bytes,
    user: Mapping[str, object] | None,
    cluster: Mapping[str, object] | None,
    context_name: str,
    cluster_name: str,
    user_name: str,
    namespace: str | None,
) -> dict[str, Any]:
    """`cluster` is laid over the server's own entry; a value of None takes a field away."""
    cluster_entry: dict[str, object] = {
        "server": server,
        "certificate-authority-data": base64.b64encode(ca_pem).decode(),
        **(cluster or {}),
    }
    context: dict[str, object] = {"cluster": cluster_name, "user": user_name}
    if namespace is not None:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context_name,
        "clusters": [
            {"name": cluster_name, "cluster": {key: value for key, value in cluster_entry.items() if value is not None}}
        ],
        "contexts": [{"name": context_name, "context": context}],
        "users": [{"name": user_name, "user": dict(user or {})}],
    }


def write(path: str | os.PathLike[str], document: Mapping[str, Any]) -> Path:
    """As YAML, readable by its owner alone."""
    target = Path(path).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        yaml.safe_dump(dict(document), file, sort_keys=False)
    return target
