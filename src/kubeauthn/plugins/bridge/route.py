"""Every request of a bridge's clients, with the credential of the kubeconfig's user."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kubeauthn._core.execproxy import ProxyIdentity
from kubeauthn._core.signing_identity import SigningIdentity
from kubeauthn._io.carrier.destination import address_of, host_header, path_prefix
from kubeauthn._io.carrier.dialling import Address
from kubeauthn._io.carrier.plan import Asked, Plan
from kubeauthn._io.carrier.pool import Pool
from kubeauthn.client.exec_source import forget_shared_source
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.errors import CredentialError, KubeauthnError, PluginFailed, UpstreamError

if TYPE_CHECKING:
    import logging

    from kubeauthn._core.credential import ClientIdentity, Credential
    from kubeauthn.client.access import Access

LOOK_SECONDS = 2.0
"""How often the kubeconfig's files, and those that it names, are looked at for a change."""
REST_SECONDS = 0.5
"""A file that changed less than this ago may still be written. What is there of it by then can be a whole kubeconfig
too, and name another identity, or none."""
_LONGEST_REST = 4 * REST_SECONDS
"""So long a request waits for that."""
_POOLS = 4
_A_PROXYS_OWN = frozenset({500, 502})
"""What a local proxy answers in the server's place where its author's function failed, or the server is not reached."""


class AccessRoute:
    """`open_again` opens the access anew: a kubeconfig that changes is read again, a broken one is not taken.

    `files`: what it reads, the kuberc with the policy for plugins among them.
    """

    def __init__(self, open_again: Callable[[], Access], files: list[str], *, log_path: str = "") -> None:
        self._open = open_again
        self._log_path = log_path
        self._files = files
        self._named: tuple[str, ...] = ()
        self._seen = self._signature()
        self._look_at = time.monotonic() + LOOK_SECONDS
        self._pools: dict[ClientIdentity | None, Pool] = {}
        self._offered: Credential | None = None
        self._use(open_again())

    def offer(self, credential: Credential) -> None:
        """Somebody ran the plugin where a person could answer it: this is used until it ends or is refused.

        The kubeconfig is looked at first: it was read for this, and a change that is seen only later would lose it.
        """
        self._look(time.monotonic())
        self._offered = credential

    @property
    def has_offer(self) -> bool:
        return self._offered is not None and self._offered.usable(time.time())

    def plan(self, asked: Asked) -> Plan | Awaitable[Plan]:
        now = time.monotonic()
        if now >= self._look_at:
            if self._is_being_written():
                return self._when_written(asked)
            self._look(now)
        return self._plan(asked)

    def _plan(self, asked: Asked) -> Plan | Awaitable[Plan]:
        if asked.head.value(b"authorization") is not None:
            return self._planned(asked, None)
        if self._offered is not None and self.has_offer:
            return self._planned(asked, self._offered)
        if (credential := self._access.credential_at_hand()) is not None:
            return self._planned(asked, credential)
        return self._with_credential(asked)

    async def renewed(self, asked: Asked, refused: Plan) -> Plan | None:
        credential = refused.mark
        if credential is None:
            return None
        if credential is self._offered:
            self._offered = None
            return await self._with_credential(asked)
        access = self._access
        with self._naming_the_log():
            renewed = await access.renew_async(credential)  # type: ignore[arg-type]  # the mark is ours
        if access is not self._access:
            return await self._with_credential(asked)
        return None if renewed is None else self._planned(asked, renewed)

    async def unreachable(self, asked: Asked, failed: Plan, reason: str) -> Plan | None:
        """A proxy plugin's process that died is started again, once for all who ask."""
        credential: Credential | None = failed.mark  # type: ignore[assignment]  # the mark is ours
        if credential is not None and isinstance(credential.identity, SigningIdentity) and "external signer " in reason:
            raise UpstreamError(f"{reason}{self._see_log()}")
        if credential is None or credential.route is None:
            return None
        access = self._access
        with self._naming_the_log():
            replaced = await access.replace_lost_async(credential, reason)
        return self._planned(asked, replaced) if access is self._access else await self._with_credential(asked)

    def answered(self, plan: Plan, status: int) -> None:
        if plan.mark is not None and plan.mark is self._offered:
            if status == 401:
                self._offered = None
        elif plan.mark is not None:
            self._access.answered(plan.mark, status)  # type: ignore[arg-type]  # the mark is ours
            if status in _A_PROXYS_OWN and plan.mark.route is not None:  # type: ignore[attr-defined]  # likewise
                # What it says of that is on its standard error, and the log takes the last line of that along.
                _log().warning("through the proxy plugin came status %d", status)

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    @contextmanager
    def _naming_the_log(self) -> Iterator[None]:
        """Why a program failed is in the log; the client that waits for it sees no more than that it did."""
        try:
            yield
        except PluginFailed as error:
            raise CredentialError(f"{error}{self._see_log()}", hint=error.hint) from error

    def _see_log(self) -> str:
        return f"; see {self._log_path}" if self._log_path else ""

    async def _with_credential(self, asked: Asked) -> Plan:
        access: Access | None = None
        with self._naming_the_log():
            # The kubeconfig may change while its plugin runs: what that gave is not for the server that is named now.
            while access is not self._access:
                access = self._access
                credential = await access.credential_async()
        return self._planned(asked, credential)

    def _planned(self, asked: Asked, credential: Credential | None) -> Plan:
        added = self._always
        if credential is not None and credential.authorization:
            added = (*added, (b"Authorization", credential.authorization.reveal().encode()))
        # Always: the bridge's own kubeconfig has no path, so none of it is in what a client asks for.
        target = asked.head.target if asked.head.target == b"*" else self._prefix + asked.head.target
        return Plan(
            self._pool(credential),
            target,
            without=self._without,
            added=added,
            renewable=credential is not None and self._access.may_repeat(asked.head.method.decode()),
            mark=credential,
        )

    def _pool(self, credential: Credential | None) -> Pool:
        identity = None if credential is None else credential.identity
        pool = self._pools.get(identity)
        if pool is None:
            if isinstance(identity, ProxyIdentity):
                self._let_go_of_proxies()
            pool = self._pools[identity] = Pool(self._address(credential))
            if len(self._pools) > _POOLS:  # certificates that were replaced
                self._pools.pop(next(iter(self._pools))).close()
        return pool

    def _let_go_of_proxies(self) -> None:
        """A key holds the proxy that it leads to. One that was replaced has what still goes through it, no more."""
        for identity in [each for each in self._pools if isinstance(each, ProxyIdentity)]:
            self._pools.pop(identity).close()

    def _address(self, credential: Credential | None) -> Address:
        if credential is not None and credential.route is not None:
            route, local = credential.route, self._access.tls_context(credential.identity)
            return Address("127.0.0.1", route.port, local, socket_path=route.socket_path, tls_name="localhost")
        cluster = self._access.cluster
        encrypted = cluster.server.lower().startswith("https://")
        identity = None if credential is None else credential.identity
        context = self._access.tls_context(identity) if encrypted else None
        return address_of(cluster, context, signs_slowly=isinstance(identity, SigningIdentity))

    def _use(self, access: Access) -> None:
        self._access = access
        self._named = access.target.files if access.target is not None else ()
        self._offered = None
        self.close()
        self._pools = {}
        cluster = access.cluster
        self._prefix = path_prefix(cluster)
        headers = [(name.encode("latin-1"), value.encode()) for name, value in access.headers]
        self._always = ((b"Host", host_header(cluster)), *headers)
        self._without = frozenset([b"host", *(name.lower() for name, _ in headers)])

    async def _when_written(self, asked: Asked) -> Plan:
        end = time.monotonic() + _LONGEST_REST
        while self._is_being_written() and time.monotonic() < end:
            await asyncio.sleep(REST_SECONDS / 5)
        self._look(time.monotonic())
        plan = self._plan(asked)
        return plan if isinstance(plan, Plan) else await plan

    def _is_being_written(self) -> bool:
        seen = self._signature()
        if seen == self._seen:
            return False
        if any(state is None and self._seen.get(path) is not None for path, state in seen.items()):
            return True  # one that is gone may be about to be put back
        now = time.time()
        return any(0 <= now - _changed_at(path) < REST_SECONDS for path in seen)

    def _look(self, now: float) -> None:
        self._look_at = now + LOOK_SECONDS
        seen = self._signature()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            access = self._open()
        except KubeauthnError as error:
            _log().error("the kubeconfig changed and cannot be used: %s", error)
            return
        # Files change for others too, `kubectl config use-context` for one: nobody need log in again for that. The
        # source of a plugin's credentials is another one also where the policy for plugins is another.
        is_another = access.source is not self._access.source
        if access.target != self._access.target or (is_another and isinstance(access.source, RefreshedSource)):
            if is_another:
                forget_shared_source(self._access.source)
            self._use(access)

    def _signature(self) -> dict[str, tuple[int, int, int] | None]:
        """Taken before the files are read: what changes meanwhile is read again, at the next look."""
        return {path: _state(path) for path in (*self._files, *self._named)}


def _log() -> logging.Logger:
    import logging

    return logging.getLogger("kubeauthn.proxy")


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _changed_at(path: str) -> float:
    """Not when its content is from: a file that was copied with its times is new all the same."""
    try:
        return os.stat(path).st_ctime
    except OSError:
        return 0.0
