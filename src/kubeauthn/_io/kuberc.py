"""Where the kuberc is, and the plugin policy in it."""

from __future__ import annotations

import os

from kubeauthn._core.kubeconfig.faults import Fault, faults_error
from kubeauthn._core.kubeconfig.model import Origin
from kubeauthn._core.kuberc import decode_policy
from kubeauthn._core.policy import PluginPolicy
from kubeauthn._io.files import Problem, read_text_or_problem
from kubeauthn._io.kubeconfig import home_directory
from kubeauthn.errors import KubercError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "KUBERC"
OFF = "off"
KUBERC_BYTES = 1 << 20


def policy_path(environ: Mapping[str, str]) -> str:
    """Where the policy is looked for; empty where none is wanted."""
    named = environ.get(VARIABLE, "")
    home = home_directory(environ)
    if named == OFF or not (named or home):
        return ""
    return os.path.abspath(named or os.path.join(home, ".kube", "kuberc"))


def read_policy(*, environ: Mapping[str, str] | None = None) -> PluginPolicy:
    """The policy of the file that `KUBERC` names (`off`: none), else of `~/.kube/kuberc`.

    Without a file everything is allowed, as in kubectl. A file that `KUBERC` names must be there.
    """
    environ = os.environ if environ is None else environ
    path = policy_path(environ)
    if not path:
        return PluginPolicy()
    text = read_text_or_problem(path, KUBERC_BYTES)
    if isinstance(text, Problem):
        if text.missing and not environ.get(VARIABLE):
            return PluginPolicy()
        raise faults_error([Fault(Origin(path), (), text.reason)], error=KubercError)
    return decode_policy(text, path)
