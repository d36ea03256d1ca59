"""Service accounts of a test's cluster, and the TokenRequest API that gives out their tokens."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

from kubeauthn._core import rfc3339
from kubeauthn.testing._identity import User
from kubeauthn.testing._resources import ResourceType
from kubeauthn.testing._status import ApiError

if TYPE_CHECKING:
    from kubeauthn.testing._identity import Credentials

SERVICE_ACCOUNTS = ResourceType("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",))
SHORTEST_SECONDS, DEFAULT_SECONDS = 600, 3600


def account_user(namespace: str, name: str) -> User:
    """Who such a token is, as Kubernetes has it."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(f"system:serviceaccount:{namespace}:{name}", groups)


def answered(body: dict[str, Any], namespace: str, name: str, credentials: Credentials) -> dict[str, Any]:
    """The TokenRequest with a token in it. For the server itself it is accepted from now on, for others it is not."""
    spec: dict[str, Any] = body.get("spec") or {}
    seconds = spec.get("expirationSeconds") or DEFAULT_SECONDS
    if not isinstance(seconds, int) or seconds < SHORTEST_SECONDS:
        raise ApiError(
            422,
            'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: '
            f"Invalid value: {seconds}: may not specify a duration less than 10 minutes",
        )
    token = f"{namespace}.{name}.{secrets.token_urlsafe(24)}"
    if not spec.get("audiences"):
        credentials.accept_token(token, account_user(namespace, name))
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": rfc3339.format(time.time())},
        "spec": {**spec, "expirationSeconds": seconds},
        "status": {"token": token, "expirationTimestamp": rfc3339.format(time.time() + seconds)},
    }
