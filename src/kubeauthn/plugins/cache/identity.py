"""What a credential hangs on: the command, its arguments, the environment, the cluster, and the policy it ran under.

Of the environment everything counts but names that are known to say nothing about who you are: one name too many
costs another run of the plugin, one too few hands out somebody else's credential.
"""

from __future__ import annotations

import json
import os

from kubeauthn._core import execwire
from kubeauthn._core.light_sha256 import sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

IGNORED = frozenset(
    (
        "_", "BASH_EXECUTION_STRING", "COLORTERM", "COLUMNS", "EDITOR", "GPG_TTY", "HISTFILE", "HISTSIZE",
        "INVOCATION_ID", "JOURNAL_STREAM", "LINES", "LS_COLORS", "OLDPWD", "PAGER", "PS1", "PWD", "SHLVL",
        "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "STY", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION",
        "TERM_SESSION_ID", "TMUX", "TMUX_PANE", "VISUAL", "WINDOWID", "XDG_SESSION_ID", "XDG_VTNR",
        execwire.VARIABLE,
    )
)  # fmt: skip
"""They differ from shell to shell. The last one is taken apart: of it only the cluster counts."""


def identity(
    command: Sequence[str], environ: Mapping[str, str], cluster: dict[str, Any] | None, ignored: Sequence[str] = ()
) -> str:
    """A name for the cache. It is a digest, because the environment may hold secrets."""
    counted = {name: value for name, value in environ.items() if name not in IGNORED and not _matches(name, ignored)}
    parts = [
        1,
        os.geteuid() if hasattr(os, "geteuid") else 0,
        list(command),
        # A path that is relative means another file elsewhere.
        os.getcwd() if any(_is_relative_path(word) for word in command) else "",
        sorted(counted.items()),
        cluster,
        _policy_version(environ),
    ]
    return sha256_hex(json.dumps(parts, separators=(",", ":"), sort_keys=True).encode("utf-8", "surrogatepass"))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    """A pattern is a name, or the beginning of names with a star behind it."""
    return any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in patterns)


def _is_relative_path(word: str) -> bool:
    return (os.sep in word or word.startswith(".")) and not os.path.isabs(word)


def _policy_version(environ: Mapping[str, str]) -> list[int]:
    """A plugin that a new policy forbids is not answered for out of the cache: the policy is asked again."""
    path = environ.get("KUBERC", "") or os.path.join(environ.get("HOME", ""), ".kube", "kuberc")
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return []
    return [found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size]
