"""Granian with three things of ours: one listening socket for all workers, SIGHUP that reloads the configuration, and
requests that are worked on in the thread that brings them (see at_once.py).

On Linux Granian gives each worker a listening socket of its own; connections that wait on that of a worker which ends
are reset. With one socket for all of them nothing is lost when workers are replaced, and a port can be chosen by the
system.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import threading
from contextlib import ExitStack, suppress
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubeauthn._io.descriptors import make_room
from kubeauthn.errors import EnvironmentFailure, MissingExtra
from kubeauthn.server import limits
from kubeauthn.server.at_once import AtOnce, Behind
from kubeauthn.server.ending import stop_accepting
from kubeauthn.server.listening import HOST_HINT, alone_at, bound_alone, why_not

try:
    from granian.constants import HTTPModes, Interfaces
    from granian.http import HTTP1Settings, HTTP2Settings
    from granian.log import LogLevels
    from granian.net import SocketHolder, UnixSocketSpec  # type: ignore[attr-defined]  # named there, not exported
    from granian.server.mp import MPServer, WorkerProcess
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "granian":
        raise
    raise MissingExtra("granian", "serve") from None

from kubeauthn.server.granian_tls import GranianTls

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn.server.certificates import Certificates
    from kubeauthn.server.listening import Listening


class Server(MPServer):
    """`serve_application(loader)` returns when SIGTERM or SIGINT came and every request under way is answered."""

    def __init__(
        self,
        listening: Listening,
        certificates: Certificates | None,
        *,
        workers: int,
        grace_seconds: int,
        log_config: dict[str, Any],
        on_hangup: Callable[[], None],
        on_listening: Callable[[str], None],
    ) -> None:
        # Forking a process with threads is not safe, and this one has some.
        multiprocessing.set_start_method("spawn", force=True)
        self._listening = listening
        self._on_hangup = on_hangup
        self._on_listening = on_listening
        super().__init__(
            "kubeauthn.server.worker",
            address=listening.host,
            port=listening.port,
            uds=Path(listening.unix_path) if listening.unix_path else None,
            interface=Interfaces.RSGI,
            workers=workers,
            backpressure=_connections(),
            http=HTTPModes.auto,
            websockets=False,
            http1_settings=HTTP1Settings(
                header_read_timeout=limits.HEADER_SECONDS * 1000, max_buffer_size=limits.HEADER_BYTES_1
            ),
            http2_settings=HTTP2Settings(
                keep_alive_interval=limits.PING_SECONDS * 1000,
                keep_alive_timeout=limits.PING_ANSWER_SECONDS,
                max_concurrent_streams=limits.STREAMS,
                max_headers_size=limits.HEADER_BYTES_2,
            ),
            log_level=LogLevels.warning,
            log_dictconfig=log_config,
            respawn_failed_workers=True,
            respawn_interval=limits.RESPAWN_SECONDS,
            workers_kill_timeout=grace_seconds,
        )
        self._use_certificates(certificates)

    def serve_application(self, loader: Callable[..., Any], *arguments: Any) -> None:
        """`loader(*arguments)` makes the application, in each worker."""
        self.serve(spawn_target=_worker, target_loader=partial(loader, *arguments), wrap_loader=False)

    def replace_workers(self, certificates: Certificates) -> None:
        """One after the other, each new one first. From any thread."""
        self._use_certificates(certificates)
        self.reload_signal = True
        self.main_loop_interrupt.set()

    def signal_handler_reload(self, *args: Any, **kwargs: Any) -> None:
        self._on_hangup()

    def _spawn_worker(self, *arguments: Any, **named: Any) -> WorkerProcess:
        worker = super()._spawn_worker(*arguments, **named)
        worker.is_alive = partial(still_runs, worker.inner)  # type: ignore[method-assign]
        return worker

    def _stop_workers(self) -> None:
        # They take no more connections from now on. What would wait for them in vain is refused instead, so that
        # whoever sent it asks another replica at once.
        refusing = threading.Timer(limits.REFUSE_SECONDS, self._refuse_connections)
        refusing.start()
        super()._stop_workers()  # type: ignore[no-untyped-call]
        refusing.join()
        super()._drop_shared_socket()  # type: ignore[no-untyped-call]

    def _drop_shared_socket(self) -> None:
        """Later: Granian would close it before the workers are told to end."""

    def _refuse_connections(self) -> None:
        if self._sso is not None:
            with suppress(OSError):
                self._sso.shutdown(socket.SHUT_RDWR)

    def _use_certificates(self, certificates: Certificates | None) -> None:
        """Every worker that starts from now on gets them: what was read and checked, and not the files."""
        self.ssl_ctx: Any = GranianTls.of(certificates)

    def _reload(self, spawn_target: Any, target_loader: Any) -> None:
        super()._reload(spawn_target, target_loader)  # type: ignore[no-untyped-call]
        # Granian ends the server when a worker dies soon after it was started again. Workers that were replaced on
        # purpose are not in trouble yet: the first one that dies is started again.
        self.respawned_wrks.clear()
        if self.interrupt_children:
            self.main_loop_interrupt.set()

    def _init_shared_socket(self) -> None:
        listening = self._listening
        try:
            if listening.unix_path:
                with alone_at(listening.unix_path):
                    shared: Any = UnixSocketSpec(listening.unix_path, self.backlog, 0o660).build()
                    with socket.socket(fileno=os.dup(shared.get_fd())) as bound:
                        bound.listen(self.backlog)
            else:
                # Granian's own would let a second server take the same port, and connections would go to either.
                make: Any = SocketHolder  # its declaration lacks the arguments
                shared = make(bound_alone(listening).detach(), False, self.backlog)
        except (OSError, RuntimeError, ValueError) as error:
            raise EnvironmentFailure(
                f"cannot listen on {listening.shown()}: {why_not(error)}",
                hint=HOST_HINT if isinstance(error, ValueError) else None,
            ) from None
        self._ssp, self._shd, self._sfd = None, shared, shared.get_fd()
        self._sso = socket.socket(fileno=self._sfd)
        self._sso.set_inheritable(True)
        self._sso.listen(self.backlog)  # from here on connections wait for the first worker
        self._on_listening(_address(self._sso, listening, tls=self.ssl_ctx.enabled))


def _connections() -> int:
    """No more than there are descriptors for: Granian would try to take one without end, and nobody else got any."""
    possible = make_room(limits.CONNECTIONS + limits.OTHER_DESCRIPTORS) - limits.OTHER_DESCRIPTORS
    if possible < 1:
        needed = limits.OTHER_DESCRIPTORS + 1
        raise EnvironmentFailure(f"serve cannot run with so few open files: it needs {needed} (ulimit -n)")
    return possible


def still_runs(process: Any) -> bool:
    """By its end of a pipe, and not by `waitpid`: Granian's watching thread may have had that answer already.

    Granian would then call a worker that ended as it should one that refused to, and kill whoever has its number now.
    """
    return not wait([process.sentinel], timeout=0)


@WorkerProcess.wrap_target  # type: ignore[untyped-decorator]  # Granian's is without types
def _worker(number: int, application: Any, sockets: Any, pipe: Any, loop: Any, *settings: Any) -> None:
    """Granian's own worker, but for the thread that requests are worked on in."""
    rsgi: Any = MPServer._spawn_rsgi_worker
    with ExitStack() as read_by_granian:
        settings = tuple(
            read_by_granian.enter_context(one.with_paths()) if isinstance(one, GranianTls) else one for one in settings
        )
        behind = Behind(application, loop, when_served=read_by_granian.pop_all().close)
        rsgi.__wrapped__(number, behind, sockets, pipe, AtOnce(loop, before_end=_before_end), *settings)


def _before_end() -> float:
    return limits.YOUNG_SECONDS if stop_accepting() else 0.0


def _address(listener: socket.socket, listening: Listening, *, tls: bool) -> str:
    if listening.unix_path:
        return f"unix:{os.path.abspath(listening.unix_path)}"
    host, port = listener.getsockname()[:2]
    scheme = "https" if tls else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
