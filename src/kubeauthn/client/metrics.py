"""What happens to exec plugins, told to whoever counts it.

The port is five methods; nobody listens until `install` is called.
`kubeauthn.client.prometheus` is one listener.
"""

from __future__ import annotations

import os
import threading
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # typing is not loaded for the name of it: start-up is a feature


NO_ERROR = "no_error"
PLUGIN_EXECUTION_ERROR = "plugin_execution_error"
PLUGIN_NOT_FOUND_ERROR = "plugin_not_found_error"
CLIENT_INTERNAL_ERROR = "client_internal_error"

ALLOWED = "allowed"
DENIED = "denied"


class ExecMetrics(Protocol):
    def certificate_expires(self, at: float | None) -> None:
        """The earliest end of all client certificates in use (unix seconds); None: there are none."""

    def certificate_rotated(self, age: float) -> None:
        """A certificate was replaced, `age` seconds after the start of its validity."""

    def plugin_called(self, code: int, status: str) -> None:
        """A plugin was run. `code` is 0 only on success."""

    def proxy_plugin_called(self, code: int, status: str) -> None:
        """The same, beside `plugin_called`, for a plugin that may be a proxy."""

    def policy_decided(self, result: str) -> None:
        """The plugin policy said `allowed` or `denied`."""


class Unheard:
    """The listener that is there when nobody listens."""

    def certificate_expires(self, at: float | None) -> None: ...
    def certificate_rotated(self, age: float) -> None: ...
    def plugin_called(self, code: int, status: str) -> None: ...
    def proxy_plugin_called(self, code: int, status: str) -> None: ...
    def policy_decided(self, result: str) -> None: ...


_listener: ExecMetrics = Unheard()
_expiries: weakref.WeakKeyDictionary[object, float] = weakref.WeakKeyDictionary()
_expiries_lock = threading.Lock()


def install(listener: ExecMetrics) -> None:
    """From now on `listener` hears of every plugin in this process."""
    global _listener
    _listener = listener
    _tell_earliest_expiry()


def listener() -> ExecMetrics:
    return _listener


def set_certificate_expiry(owner: object, at: float | None) -> None:
    """`owner` now holds a certificate that ends `at`, or none."""
    with _expiries_lock:
        if at is None:
            _expiries.pop(owner, None)
        else:
            _expiries[owner] = at
    _tell_earliest_expiry()


def _tell_earliest_expiry() -> None:
    with _expiries_lock:
        earliest = min(_expiries.values(), default=None)
    _listener.certificate_expires(earliest)


def _after_fork_in_child() -> None:
    global _expiries_lock
    _expiries_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
