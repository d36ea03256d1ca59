"""The credential plugin policy: which executables a kubeconfig may make us run.

The rules and texts are kubectl's (kuberc, `credentialPluginPolicy`). The decision is
pure: the caller says what the command resolved to and lends a way to resolve others.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from kubeauthn._core.record import record
from kubeauthn.errors import PluginDenied

ALLOW_ALL = "AllowAll"
DENY_ALL = "DenyAll"
ALLOWLIST = "Allowlist"

Lookup = Callable[[str], str | None]
"""From a command to the path that would run, or None: what `PATH` says."""


@record(frozen=True, slots=True)
class PluginPolicy:
    """`mode` is AllowAll (also when empty), DenyAll or Allowlist; `allowlist` None means: not given.

    An allowlist entry is a bare name or a normalized path.
    """

    mode: str = ALLOW_ALL
    allowlist: tuple[str, ...] | None = None
    origin: str = ""
    """Where the policy was read, for messages."""

    def faults(self) -> list[str]:
        """What is wrong with the policy itself. A policy with faults is never applied: it is an error."""
        if self.mode in ("", ALLOW_ALL, DENY_ALL):
            if self.allowlist is not None:
                return [
                    "misconfigured credential plugin allowlist: "
                    f'plugin policy is "{self.mode}" but allowlist is non-nil'
                ]
            return []
        if self.mode != ALLOWLIST:
            return [f'unknown plugin policy: "{self.mode}"']
        if self.allowlist is None:
            return [f'credential plugin policy set to "{ALLOWLIST}", but allowlist is unspecified']
        if not self.allowlist:
            return [
                f'credential plugin policy set to "{ALLOWLIST}", '
                f'but allowlist is empty; use "{DENY_ALL}" policy instead'
            ]
        return [fault for index, entry in enumerate(self.allowlist, 1) if (fault := _entry_fault(index, entry))]


def permitted_path(policy: PluginPolicy, command: str, lookup: Lookup) -> str | None:
    """The path to run for `command`, or `PluginDenied`. None: allowed, but there is no such executable.

    Only a resolved path is ever returned, so that what was checked is what runs.
    """
    if policy.faults():
        raise PluginDenied(f"invalid plugin policy: {policy.faults()[0]}")
    if policy.mode == DENY_ALL:
        raise PluginDenied(f'plugin "{command}" not allowed: policy set to "{DENY_ALL}"', hint=_where(policy))
    if policy.mode != ALLOWLIST:
        return lookup(command)

    allowed = policy.allowlist or ()
    cleaned = posixpath.normpath(command)
    # Behind a symbolic link `..` leads elsewhere than the text says: so the text that was checked is what is looked up.
    resolved = lookup(cleaned)
    if cleaned in allowed and (resolved is not None or cleaned == command):
        return resolved
    if resolved is None:
        raise PluginDenied(
            f'plugin path "{command}" cannot be resolved for credential plugin allowlist check',
            hint=_where(policy),
        )
    name = posixpath.basename(resolved)
    if resolved in allowed or any(posixpath.basename(entry) == name and lookup(entry) == resolved for entry in allowed):
        return resolved
    raise PluginDenied(
        f'plugin path "{resolved}" is not permitted by the credential plugin allowlist', hint=_where(policy)
    )


def _entry_fault(index: int, entry: str) -> str | None:
    if not entry:
        return f"misconfigured credential plugin allowlist: empty allowlist entry #{index}"
    cleaned = posixpath.normpath(entry)
    # posixpath keeps a double slash at the front, which POSIX leaves open and Go does not.
    cleaned = "/" + cleaned.lstrip("/") if cleaned.startswith("//") else cleaned
    return f'non-normalized file path: "{entry}" vs "{cleaned}"' if cleaned != entry else None


def _where(policy: PluginPolicy) -> str | None:
    return f"the policy comes from {policy.origin}" if policy.origin else None
