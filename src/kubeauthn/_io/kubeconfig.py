"""The shell around the kubeconfig rules: environment variables, files, and the pod's service account."""

from __future__ import annotations

import os

from kubeauthn._core import limits
from kubeauthn._core.kubeconfig.decode import decode_with_faults
from kubeauthn._core.kubeconfig.faults import Fault, faults_error, raise_faults, with_lines
from kubeauthn._core.kubeconfig.merge import in_cluster, is_empty, merge
from kubeauthn._core.kubeconfig.model import Kubeconfig, Origin, Target
from kubeauthn._core.kubeconfig.resolve import Overrides, complete, select
from kubeauthn._io.files import Problem, read_or_problem, read_text_or_problem
from kubeauthn.errors import KubeconfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

VARIABLE = "KUBECONFIG"
SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"


def home_directory(environ: Mapping[str, str]) -> str:
    """Empty where there is none: no variable, and a user id that the system does not know, as in many containers."""
    home = environ.get("HOME") or environ.get("USERPROFILE") or os.path.expanduser("~")
    return "" if home == "~" else home


def candidate_paths(path: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The files that count, absolute, first in force first, whether they exist or not."""
    if path is not None:
        return (os.path.abspath(os.fspath(path)),)
    listed = [part for part in environ.get(VARIABLE, "").split(os.pathsep) if part]
    if not listed and (home := home_directory(environ)):
        listed = [os.path.join(home, ".kube", "config")]
    return tuple(dict.fromkeys(os.path.abspath(part) for part in listed))


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    service_account: str = SERVICE_ACCOUNT_DIRECTORY,
) -> Kubeconfig:
    """All kubeconfig files merged, or what a pod has instead. Raises `KubeconfigError` with the faults of all files."""
    environ = os.environ if environ is None else environ
    loaded: list[Kubeconfig] = []
    faults: list[Fault] = []
    candidates = candidate_paths(path, environ)
    for candidate in candidates:
        text = read_text_or_problem(candidate, limits.KUBECONFIG_BYTES)
        if isinstance(text, Problem):
            if path is not None or not text.missing:
                faults.append(Fault(Origin(candidate), (), text.reason))
            continue
        kubeconfig, found = decode_with_faults(text, candidate)
        faults += found
        loaded.append(
            Kubeconfig(
                kubeconfig.clusters,
                kubeconfig.users,
                kubeconfig.contexts,
                kubeconfig.current_context,
                kubeconfig.current_context_origin,
                (candidate,),
            )
        )
    raise_faults(faults)
    merged = merge(loaded)
    if path is None and is_empty(merged):
        return _in_cluster(environ, service_account) or _nothing(merged, candidates)
    return merged


def resolve(
    kubeconfig: Kubeconfig, overrides: Overrides | None = None, *, environ: Mapping[str, str] | None = None
) -> Target:
    """One cluster and one user, with every file they name read. Raises `KubeconfigError` with all faults."""
    try:
        selection = select(kubeconfig, overrides or Overrides())
        contents: dict[str, bytes | str] = {}
        for path in selection.files:
            content = read_or_problem(path, limits.CREDENTIAL_FILE_BYTES)
            contents[path] = content.reason if isinstance(content, Problem) else content
        return complete(selection, contents, os.environ if environ is None else environ)
    except KubeconfigError as error:
        if not error.faults:
            raise
        raise faults_error(_located(error), hint=error.hint) from None


def _located(error: KubeconfigError) -> list[Fault]:
    """The faults with their lines. The files are read a second time: only somebody with faults pays for that."""
    located = [fault for fault in error.faults if isinstance(fault, Fault)]
    in_file: dict[str, list[int]] = {}
    for index, fault in enumerate(located):
        if fault.origin.path is not None and fault.path:
            in_file.setdefault(fault.origin.path, []).append(index)
    for path, indices in in_file.items():
        text = read_text_or_problem(path, limits.KUBECONFIG_BYTES)
        if isinstance(text, Problem):
            continue  # gone since: the faults stand, their lines are not known
        # All of a file at once: there may be thousands, and each reading of a large file takes its time.
        for index, fault in zip(indices, with_lines([located[index] for index in indices], text), strict=True):
            located[index] = fault
    return located


def _in_cluster(environ: Mapping[str, str], directory: str) -> Kubeconfig | None:
    """The service account's cluster, if this is a pod that has one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    token_file = os.path.join(directory, "token")
    if not host or not port or not os.path.isfile(token_file):
        return None
    namespace = read_text_or_problem(os.path.join(directory, "namespace"), limits.CREDENTIAL_FILE_BYTES)
    return in_cluster(
        host,
        port,
        token_file=token_file,
        ca_file=os.path.join(directory, "ca.crt"),
        # Not every pod has it, and nothing is less safe without it.
        namespace="" if isinstance(namespace, Problem) else namespace.strip(),
    )


def _nothing(merged: Kubeconfig, candidates: Sequence[str]) -> Kubeconfig:
    if merged.sources:
        return merged  # a file is there and says nothing: what to do about that, `resolve` tells
    raise KubeconfigError(
        "no kubeconfig was found, and this is not a pod with a service account",
        hint=f"looked for: {', '.join(candidates) or 'none, without a home directory'}; set {VARIABLE} or name a file",
    )
