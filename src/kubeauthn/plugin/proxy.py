"""Write a proxy plugin (KEP-2718): one function, from a request to what is to be different about it.

    from kubeauthn.plugin import proxy

    async def sign(request):
        body = await request.body()
        return proxy.Change({"X-Signature": signature_of(request.method, request.target, body)})

    proxy.run(sign)

The function sees every request on its way to the API server and returns a `Change`, or None for none, or raises
`Refuse("why")`. It may be plain or async. In place of it, or beside it, `tls` gives the `ssl.SSLContext` for the
server, with whatever key. The harness does the rest: socket, certificates, the client's lock, streams and upgrades.
"""

from __future__ import annotations

import os
import ssl
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NoReturn

from kubeauthn._core import execproxy, execwire
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.errors import EnvironmentFailure, ExecInfoError, UsageError
from kubeauthn.plugin._proxy_request import Change, Refuse, Request

if TYPE_CHECKING:
    from kubeauthn.plugin._proxy_route import Handler
    from kubeauthn.plugin._stdout import GuardedStdout

__all__ = ["run", "Request", "Change", "Refuse", "Cluster", "server_context", "BODY_BYTES"]

BODY_BYTES = 16 << 20
"""What `request.body()` takes unless `run` is told otherwise."""


def run(
    handler: Handler | None = None,
    *,
    tls: Callable[[Cluster], ssl.SSLContext] | None = None,
    body_limit: int = BODY_BYTES,
    listen: Literal["unix", "loopback"] = "unix",
    idle_seconds: float | None = None,
) -> NoReturn:
    """Be the proxy until the client is gone. Exit code 0 then; 1 and a line on standard error if it cannot begin."""
    from kubeauthn.plugin.credential import _report

    name = os.path.basename(sys.argv[0]) or "proxy"
    code = 0
    try:
        if handler is None and tls is None:
            raise UsageError("a proxy needs a function, or tls, or both")
        for given in (handler, tls):
            if given is not None and not callable(given):
                raise UsageError(f"a proxy needs functions, and was given a {type(given).__name__}")
        _be_proxy(handler, tls, body_limit, listen, idle_seconds)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = 1
        _report(name, error)
    sys.exit(code)


def server_context(cluster: Cluster) -> ssl.SSLContext:
    """TLS that verifies the cluster's server as its entry says; load a client certificate into it."""
    from kubeauthn._io.tls import server_context as made

    return made(cluster)


def _be_proxy(
    handler: Handler | None,
    tls: Callable[[Cluster], ssl.SSLContext] | None,
    body_limit: int,
    listen: str,
    idle_seconds: float | None,
) -> None:
    from kubeauthn.plugin._stdout import GuardedStdout

    stdout = GuardedStdout()
    # 1. Who asks, and for which cluster?
    version, cluster, lock_path = _asked()
    # 2. The way to the server.
    from kubeauthn.plugin._proxy_harness import checked_context
    from kubeauthn.plugin._proxy_route import HandlerRoute

    def made() -> ssl.SSLContext:
        assert tls is not None  # noqa: S101  else nobody asks
        return checked_context(tls(cluster), cluster.insecure_skip_tls_verify)

    context = None if tls is None else made()
    import asyncio

    _log_to_stderr()
    # 3. The way in, the answer, and the wait for the client's end.
    route = HandlerRoute(handler, cluster, context, body_limit, made)
    asyncio.run(_serve(route, stdout, version, lock_path, listen, idle_seconds, _end_of(context)))


async def _serve(
    route: object,
    stdout: GuardedStdout,
    version: str,
    lock_path: str,
    listen: str,
    idle_seconds: float | None,
    ends_at: float | None,
) -> None:
    from kubeauthn._io.carrier.listener import Listener
    from kubeauthn._io.carrier.one_run import OneRunAuthority, listening_context
    from kubeauthn.plugin._proxy_harness import SOCKET_NAME, own_process_group, private_directory, stay, stop_at_signals

    authority = OneRunAuthority("kubeauthn proxy")
    client = authority.client("client")
    listener = Listener(route, listening_context(authority.server(), authority.certificate))  # type: ignore[arg-type]
    with private_directory() as directory:
        if listen == "unix":
            path = os.path.join(directory, SOCKET_NAME)
            await listener.on_socket(path)
            url = f"unix://{path}"
        else:
            url = f"https://{execproxy.LOOPBACK}:{await listener.on_loopback()}"
        own_process_group()
        stopping = stop_at_signals()
        stdout.send(
            execproxy.encode_reply(
                version,
                url=url,
                certificate_authority=authority.certificate,
                certificate=client.certificate.decode(),
                key=client.key.reveal(),
                # Then the client runs us again: whoever shows an ended certificate to the server gets nothing there.
                expires_at=client.not_after if ends_at is None else min(ends_at, client.not_after),
            )
        )
        await stay(listener, stopping, lock_path, directory, idle_seconds)


def _end_of(context: ssl.SSLContext | None) -> float | None:
    from kubeauthn._io.tls import identity_end

    return None if context is None else identity_end(context)


def _asked() -> tuple[str, Cluster, str]:
    text = os.environ.pop(execwire.VARIABLE, "")
    if not text:
        raise ExecInfoError(
            f"{execwire.VARIABLE} env var is unset or empty", hint="this is a proxy plugin: a kubeconfig names it"
        )
    version, _, fields = execwire.decode_exec_info(text)
    lock_path = execproxy.lock_file_path(text)
    if not lock_path:
        raise EnvironmentFailure(
            "this is a proxy plugin, and whoever started it knows no proxies: spec.lockFilePath is missing",
            hint="plain tools use the bridge: kubeauthn kubectl -- ARGS, or kubeauthn bridge kubeconfig",
        )
    if fields is None:
        raise ExecInfoError(
            "ExecCredential does not contain cluster information, so the proxy does not know the server",
            hint="set provideClusterInfo: true in the exec entry of the kubeconfig",
        )
    return version, execwire.decode_cluster(fields), lock_path


def _log_to_stderr() -> None:
    import logging

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"{os.path.basename(sys.argv[0]) or 'proxy'}: %(message)s"))
    logger = logging.getLogger("kubeauthn")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING)
