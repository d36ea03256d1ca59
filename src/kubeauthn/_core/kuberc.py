"""kuberc: of kubectl's preferences file, the part that says which credential plugins may run."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.faults import Fault, faults_error, raise_faults, with_lines
from kubeauthn._core.kubeconfig.model import Origin
from kubeauthn._core.policy import ALLOW_ALL, PluginPolicy
from kubeauthn._core.yaml_document import Path, YamlSyntaxError, parse_all
from kubeauthn.errors import KubercError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GROUP = "kubectl.config.k8s.io"
KIND = "Preference"
_WITH_POLICY = f"{GROUP}/v1beta1"
_WITHOUT_POLICY = f"{GROUP}/v1alpha1"


def decode_policy(text: str, path: str | None = None) -> PluginPolicy:
    """The policy of the first document of a known version. `KubercError` with all faults.

    A file that has documents, but none that is known, is an error: it may hold a policy that
    a newer version could read, and going on as if there were none would lift it.
    """
    origin = path or "kuberc"
    try:
        documents = list(parse_all(text))
    except YamlSyntaxError as error:
        raise faults_error([Fault(Origin(origin, error.line), (), error.message)], error=KubercError) from None
    documents = [document for document in documents if document.value is not None or document.faults]
    if not documents:
        return PluginPolicy(origin=path or "")
    for index, document in enumerate(documents):
        if document.faults:
            faults = [Fault(Origin(origin), at, message) for at, message in document.faults]
            raise_faults(with_lines(faults, text) if index == 0 else faults, error=KubercError)
        value = document.value
        if not isinstance(value, dict) or value.get("kind") != KIND:
            continue
        if value.get("apiVersion") == _WITHOUT_POLICY:
            return PluginPolicy(origin=path or "")
        if value.get("apiVersion") == _WITH_POLICY:
            found: list[tuple[Path, str]] = []
            policy = _policy(value, path or "", found)
            faults = [Fault(Origin(origin), at, message) for at, message in found]
            # Lines are known for the first document only.
            raise_faults(with_lines(faults, text) if index == 0 else faults, error=KubercError)
            return policy
    message = f"no document is a {KIND} of {_WITH_POLICY} or {_WITHOUT_POLICY}"
    raise faults_error([Fault(Origin(origin), (), message)], error=KubercError)


def _policy(document: dict[str, Any], origin: str, faults: list[tuple[Path, str]]) -> PluginPolicy:
    mode = document.get("credentialPluginPolicy")
    if not isinstance(mode, str | None):
        faults.append((("credentialPluginPolicy",), "expected a string"))
        mode = None
    allowlist = _allowlist(document.get("credentialPluginAllowlist"), faults)
    policy = PluginPolicy(mode=mode or ALLOW_ALL, allowlist=allowlist, origin=origin)
    if not faults:
        field = "credentialPluginAllowlist" if allowlist is not None else "credentialPluginPolicy"
        faults += [((field,), message) for message in policy.faults()]
    return policy


def _allowlist(value: object, faults: list[tuple[Path, str]]) -> tuple[str, ...] | None:
    here = "credentialPluginAllowlist"
    if value is None:
        return None
    if not isinstance(value, list):
        faults.append(((here,), "expected a list"))
        return None
    commands: list[str] = []
    for index, entry in enumerate(value):
        command = entry.get("command") if isinstance(entry, dict) else entry
        if not isinstance(entry, dict | None):
            faults.append(((here, index), "expected an object"))
        elif not isinstance(command, str | None):
            faults.append(((here, index, "command"), "expected a string"))
        else:
            commands.append(command or "")
    return tuple(commands)
