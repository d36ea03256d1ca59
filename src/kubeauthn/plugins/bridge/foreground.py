"""A plugin that asks a person is run by the command, which has a terminal, and its answer handed to the bridge."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from kubeauthn._core.credential import Credential
from kubeauthn._core.interaction import NEVER
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugins.bridge import control, environment, starting

if TYPE_CHECKING:
    from kubeauthn.plugins.bridge.definition import Definition

OFFER = "offer "


def bring_credential(definition: Definition) -> None:
    """Where the user's plugin may ask a person, and the bridge has no answer of theirs any more: ask, and hand it over.

    To be called by a process whose standard input is a terminal. A plugin that is a proxy, or that names an external
    signer, stays with the bridge: what it leaves running must outlive this process.
    """
    from kubeauthn.client.access import open_access
    from kubeauthn.client.exec_source import exec_proxy_switched_on

    os.environ["KUBECONFIG"] = definition.kubeconfig
    access = open_access(definition.context or None, **definition.options)
    user = access.target.user if access.target is not None else None
    if user is None or user.exec is None or user.exec.interactive_mode == NEVER or exec_proxy_switched_on(user):
        return
    starting.credential(definition.name)
    status = control.ask(definition.name, "status")
    if status is None or status.get("offered"):
        return
    credential = access.credential()
    if credential.route is None and not credential.signer and not _signs_elsewhere(credential):
        # A person took their time: by now another environment's bridge may stand in the place of the one asked above.
        offer = {"credential": encode(credential), "environment": environment.marks(os.environ)}
        answer = control.ask(definition.name, OFFER + json.dumps(offer))
        if answer is None or not answer.get("taken"):
            raise EnvironmentFailure("the bridge did not take the credential", hint=_why_not(answer))


def encode(credential: Credential) -> dict[str, Any]:
    identity = credential.identity
    return {
        "authorization": credential.authorization.reveal() if credential.authorization else "",
        "certificate": identity.certificate.decode() if identity else "",
        "key": identity.key.reveal() if identity else "",
        "expires_at": credential.expires_at,
    }


def opened(text: str) -> tuple[object, dict[str, object]]:
    """An offer's credential, as `encode` made it, and the marks of the environment that its plugin ran in."""
    offer = json.loads(text)
    if not isinstance(offer, dict) or not isinstance(offer.get("environment"), dict):
        raise ValueError("not an offer")
    return offer.get("credential"), offer["environment"]


def decode(offer: object, now: float) -> Credential:
    """`ValueError` where it is not what `encode` made."""
    from kubeauthn._core.certificates import client_identity

    if not isinstance(offer, dict):
        raise ValueError("not an object")
    authorization, certificate, key = (offer.get(name) for name in ("authorization", "certificate", "key"))
    expires_at = offer.get("expires_at")
    if not (isinstance(authorization, str) and isinstance(certificate, str) and isinstance(key, str)):
        raise ValueError("not an offer")
    if not isinstance(expires_at, int | float | None):
        raise ValueError("not an offer")
    identity = client_identity(certificate.encode(), Secret(key), now) if certificate else None
    return Credential(
        authorization=Secret(authorization) if authorization else None, identity=identity, expires_at=expires_at
    )


def _why_not(answer: dict[str, Any] | None) -> str | None:
    if answer is None or "differing" not in answer:
        return None
    return f"it has another environment by now; not the same: {answer['differing']}"


def _signs_elsewhere(credential: Credential) -> bool:
    return credential.identity is not None and not credential.identity.key
