"""The command that is wrapped, run as a client would run it: under the policy, with limits, its reply checked."""

from __future__ import annotations

import os
import time

from kubeauthn._core import execwire, limits
from kubeauthn._core.policy import permitted_path
from kubeauthn._io.kuberc import read_policy
from kubeauthn._io.lookup import find_executable, why_not_found, why_not_started
from kubeauthn._io.process import run_plugin
from kubeauthn.errors import PluginFailed, PluginNotFound, PluginReplyError
from kubeauthn.plugin import credential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SECONDS = limits.PLUGIN_SECONDS - 5
"""Less than the client's own limit, so that the message comes from here."""


def ask(command: Sequence[str], request: credential.Request) -> tuple[credential.Credential, float | None]:
    """The credential, and when its certificate ends if it has one."""
    name = command[0]
    # The command comes from a kubeconfig: what it makes us run is the policy's to allow, here as there.
    path = permitted_path(read_policy(), name, find_executable)
    if path is None:
        reason, remedy = why_not_found(name)
        raise PluginNotFound(f"exec: executable {name} not found: {reason}", hint=remedy or None)
    try:
        code, output = run_plugin(path, command, os.environ, interactive=request.interactive, seconds=_SECONDS)
    except OSError as error:
        reason, remedy = why_not_started(path, error)
        raise PluginNotFound(f"exec: executable {name} cannot be started: {reason}", hint=remedy or None) from None
    if code != 0:
        ending = f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"
        raise PluginFailed(f"exec: executable {name} {ending}", exit_code=code)
    document = execwire.reply_document(output)
    found = execwire.decode_document(document, request.api_version, time.time())
    if found.signer:
        raise PluginReplyError(
            "the plugin returned an externalSigner, which is no credential that could be kept",
            hint=f"use {name} without plugin cache",
        )
    status = document["status"]
    kept = credential.Credential(
        token=status.get("token") or None,
        certificate=status.get("clientCertificateData") or None,
        key=status.get("clientKeyData") or None,
        expires_at=found.expires_at,
    )
    return kept, found.identity.not_after if found.identity is not None else None
