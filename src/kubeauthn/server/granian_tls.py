"""The certificates, as Granian's workers take them, and a trial of whether they do.

Granian's TLS library takes fewer keys than OpenSSL does, and a worker that cannot load its own ends at once. So before
a worker is given new ones, a process of its own tries them: as a worker would, but with nobody to listen to.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import socket
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from granian.constants import HTTPModes, RuntimeModes, SSLProtocols, TaskImpl
from granian.net import SocketHolder  # type: ignore[attr-defined]  # named there, not exported
from granian.server.mp import MPServer

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server import limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubeauthn.server.certificates import CertificateFiles, Certificates


class GranianTls(NamedTuple):
    """What Granian passes on to its workers, in its order. In the place of the paths are the contents."""

    enabled: bool
    certificates: Certificates | None
    nothing: None = None
    password: None = None
    lowest: str = str(SSLProtocols.tls12)
    client_ca: None = None
    revoked: tuple[str, ...] = ()
    ask_clients: bool = False

    @classmethod
    def of(cls, certificates: Certificates | None) -> GranianTls:
        return cls(certificates is not None, certificates)

    @contextmanager
    def with_paths(self) -> Iterator[tuple[Any, ...]]:
        """In the worker: what Granian's own code expects."""
        if self.certificates is None:
            yield (False, None, None, None, self.lowest, None, [], False)
            return
        with self.certificates.as_paths() as (chain, key, client_ca):
            yield (True, chain, key, None, self.lowest, client_ca or None, [], bool(client_ca))


def try_out(files: CertificateFiles, certificates: Certificates) -> None:
    """Raises EnvironmentFailure if a worker could not start with them. Takes as long as a process does to start.

    TimeoutError: the trial came to no end, which says nothing about them.
    """
    # More than one trial: on a busy machine one has been seen to fail with a good pair. A bad one fails each time.
    if not any(_is_taken(certificates) for _ in range(limits.TRIALS)):
        hint = "RSA from 2048 bits on, P-256, P-384 and Ed25519 are taken, and certificates of X.509 version 3"
        raise EnvironmentFailure(f"{files.shown()}: not of a kind that is taken for TLS here", hint=hint)


def _is_taken(certificates: Certificates) -> bool:
    process = multiprocessing.get_context("spawn").Process(target=_attempt, args=(GranianTls.of(certificates),))
    process.start()
    process.join(limits.TRIAL_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
        raise TimeoutError("the trial came to no end")
    return process.exitcode in (0, -signal.SIGTERM)  # it is told to end by that signal once it has loaded them


def _attempt(tls: GranianTls) -> None:
    # What Rust says when it gives up is for nobody; the verdict is the exit code.
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, sys.stderr.fileno())
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    make: Any = SocketHolder  # its declaration lacks the arguments
    sockets = (None, make(listener.detach(), False, 1))
    run: Any = MPServer._spawn_rsgi_worker
    loop = asyncio.new_event_loop()
    kinds = (RuntimeModes.mt, 1, 1, 1, 30, 1, TaskImpl.asyncio, HTTPModes.auto)
    with tls.with_paths() as paths:
        run.__wrapped__(
            1, _EndsAtOnce(), sockets, None, loop, *kinds, None, None, False, None, None, paths, {}, (None, None)
        )


class _EndsAtOnce:
    """An RSGI application that is told to end as soon as it is served."""

    def __rsgi_init__(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(os.kill, os.getpid(), signal.SIGTERM)

    async def __rsgi__(self, scope: object, protocol: Any) -> None:
        protocol.response_empty(503, [])
