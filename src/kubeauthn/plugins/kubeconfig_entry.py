"""The user entry of a kubeconfig that runs a plugin of ours."""

from __future__ import annotations

import json

from kubeauthn._core.execwire import V1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INSTALL_HINT = "the login needs kubeauthn: pip install kubeauthn"


def exec_entry(name: str, words: Sequence[str], *, provide_cluster_info: bool = False) -> list[str]:
    """Lines of YAML. JSON's strings are YAML's too, so nothing in them can end a line."""
    return [
        "users:",
        f"- name: {json.dumps(name)}",
        "  user:",
        "    exec:",
        f"      apiVersion: {V1}",
        "      command: kubeauthn",
        "      args:",
        *(f"      - {json.dumps(word)}" for word in words),
        "      interactiveMode: IfAvailable",
        f"      provideClusterInfo: {'true' if provide_cluster_info else 'false'}",
        f"      installHint: {json.dumps(INSTALL_HINT)}",
    ]
