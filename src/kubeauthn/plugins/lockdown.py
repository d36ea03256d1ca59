"""A process that holds a key or a PIN leaves no trace of it: no core dump, no debugger, nothing in the swap."""

from __future__ import annotations

import sys

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS = 4, 38
_MCL_CURRENT = 1
_KEPT = (
    "HOME",
    "LANG",
    "LC_ALL",
    "PATH",
    "TERM",
    "TZ",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "KUBEAUTHN_DEBUG",
)
"""Of the environment: what a prompt and a keyring need."""


def lock_down(*, clear_environment: bool = False) -> None:
    """What the system offers of it is done; what it refuses, such as locking memory, is done without."""
    import os
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    if clear_environment:
        for name in [name for name in os.environ if name not in _KEPT and not name.startswith("PYTHON_KEYRING")]:
            del os.environ[name]
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.mlockall(_MCL_CURRENT)
