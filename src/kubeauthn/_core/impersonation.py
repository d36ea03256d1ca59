"""`as`, `as-uid`, `as-groups` and `as-user-extra` as request headers."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.model import Impersonation

_HEADER_NAME_BYTES = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""What a header name may hold, less the percent sign: that one begins an escape."""


def impersonation_headers(impersonation: Impersonation) -> list[tuple[str, str]]:
    headers: list[tuple[str, str]] = []
    if impersonation.user:
        headers.append(("Impersonate-User", impersonation.user))
    if impersonation.uid:
        headers.append(("Impersonate-Uid", impersonation.uid))
    headers += [("Impersonate-Group", group) for group in impersonation.groups]
    for key, values in impersonation.extra:
        headers += [(f"Impersonate-Extra-{_escape(key)}", value) for value in values]
    return headers


def _escape(key: str) -> str:
    return "".join(chr(byte) if byte in _HEADER_NAME_BYTES else f"%{byte:02X}" for byte in key.encode())
