"""Sending through a local proxy: what is repeated, and when.

Nobody listens: nothing was sent, so the plugin is run again, once for all callers, and any request is sent again.
The connection broke before an answer began: a request that is safe to repeat is repeated, once. More is the caller's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubeauthn._core.credential import Credential
from kubeauthn.client.access import Access
from kubeauthn.errors import ProxyUnreachable

Answer = TypeVar("Answer")
Broken = tuple[type[BaseException], ...]


def send_routed(
    access: Access,
    credential: Credential,
    send: Callable[[Credential], Answer],
    *,
    may_repeat: Callable[[], bool],
    broken: Broken = (),
) -> tuple[Credential, Answer]:
    """What `send` returned, and the credential that it was sent with."""
    replaced = repeated = False
    while True:
        try:
            return credential, send(credential)
        except ProxyUnreachable as gone:
            if replaced:
                access.lost(credential, str(gone))
                raise
            replaced = True
            credential = access.replace_lost(credential, str(gone))
        except broken:
            if repeated or not may_repeat():
                raise
            repeated = True


async def send_routed_async(
    access: Access,
    credential: Credential,
    send: Callable[[Credential], Awaitable[Answer]],
    *,
    may_repeat: Callable[[], bool],
    broken: Broken = (),
) -> tuple[Credential, Answer]:
    """The same for an event loop."""
    replaced = repeated = False
    while True:
        try:
            return credential, await send(credential)
        except ProxyUnreachable as gone:
            if replaced:
                access.lost(credential, str(gone))
                raise
            replaced = True
            credential = await access.replace_lost_async(credential, str(gone))
        except broken:
            if repeated or not may_repeat():
                raise
            repeated = True
