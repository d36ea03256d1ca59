"""The bridge's own process: `python -m kubeauthn.plugins.bridge.daemon NAME DESCRIPTOR`.

One for each definition: the first to take the lock is it. It says on the descriptor that it is ready, or why not.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sys
import time
from datetime import timedelta

from kubeauthn._core.credential import ClientIdentity
from kubeauthn._io.carrier.listener import Listener
from kubeauthn._io.carrier.one_run import LIFE, OneRunAuthority, listening_context
from kubeauthn._io.files import write_atomically
from kubeauthn._io.kuberc import policy_path
from kubeauthn.errors import EnvironmentFailure, KubeauthnError
from kubeauthn.plugin._proxy_harness import SOCKET_NAME, private_directory, remove, stay, stop_at_signals
from kubeauthn.plugins.bridge import control, environment, foreground
from kubeauthn.plugins.bridge import definition as definitions
from kubeauthn.plugins.bridge.apart import forget_unless_used
from kubeauthn.plugins.bridge.log import log_to
from kubeauthn.plugins.bridge.route import AccessRoute
from kubeauthn.plugins.bridge.starting import CREDENTIAL, HELD, SERVES

CREDENTIAL_SECONDS = 60.0
"""How long a client uses its certificate without asking, at most: so long may it miss that the bridge is gone."""
STAY_SECONDS = 2.0
"""How long it stays for those it has served, or is about to, before it leaves for another environment."""
AUTHORITY_LIFE = timedelta(days=3650)
"""Of what signs the clients' certificates, which are renewed: a bridge with a client that stays does not end."""
_RENEW_SECONDS = 86400.0


class Bridge:
    def __init__(self, definition: definitions.Definition) -> None:
        self._environment = environment.marks(os.environ)
        os.environ["KUBECONFIG"] = definition.kubeconfig
        from kubeauthn.client.access import open_access

        self.definition = definition
        self._authority = OneRunAuthority("kubeauthn bridge clients", life=AUTHORITY_LIFE, issues_for=LIFE)
        self._client = self._authority.client("kubeauthn bridge client")
        self.route = AccessRoute(
            lambda: open_access(
                definition.context or None, stdin_taken="it is the bridge that runs the plugin", **definition.options
            ),
            [*definition.kubeconfig.split(os.pathsep), *filter(None, [policy_path(os.environ)])],
            log_path=os.path.join(definitions.directory_of(definition.name), definitions.LOG),
        )
        own = ClientIdentity(definition.certificate.encode(), definition.key, not_before=0, not_after=0)
        self.listener = Listener(self.route, listening_context(own, self._authority.certificate))
        self.started = time.time()
        self._leaving = False

    async def serve(self, ready: int) -> None:
        try:
            await self.listener.on_loopback(self.definition.port)
        except EnvironmentFailure as error:
            raise EnvironmentFailure(
                str(error), hint="somebody else has the port; write the bridge's kubeconfig again, and it gets another"
            ) from None
        with private_directory() as directory:
            path = os.path.join(directory, SOCKET_NAME)
            before = os.umask(0o177)
            try:
                server = await asyncio.start_unix_server(self._answer, path, limit=control.QUESTION_BYTES)
            finally:
                os.umask(before)
            where = os.path.join(definitions.directory_of(self.definition.name), control.RUNNING)
            write_atomically(where, json.dumps({"socket": path, "pid": os.getpid()}).encode())
            stopping = stop_at_signals()
            _tell(ready, "ready")
            try:
                await stay(self.listener, stopping, "", directory, self.definition.idle_seconds)
            finally:
                server.close()
                self.route.close()
                with contextlib.suppress(OSError):
                    os.unlink(where)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if control.peer_of(writer.get_extra_info("socket")) == os.geteuid():
                async with asyncio.timeout(control.ASK_SECONDS):
                    question = (await reader.readline()).decode("utf-8", "replace").strip()
                    writer.write(json.dumps(self._told(question)).encode())
                    await writer.drain()
        except (OSError, ValueError, KubeauthnError):
            pass  # whoever asked is gone, or asked for too much, or offered what is no credential
        finally:
            writer.close()

    def _told(self, question: str) -> dict[str, object]:
        if question.startswith(CREDENTIAL):
            if self._leaving:
                return {"leaving": True}  # a certificate would open nothing any more
            marks = environment.told(question.removeprefix(CREDENTIAL))
            if differing := environment.differing(self._environment, marks):
                return self._told_to_others(differing)
            self.listener.touch()
            if self._client.not_after - time.time() < _RENEW_SECONDS:
                self._client = self._authority.client("kubeauthn bridge client")
            # The same one each time: client-go closes all connections when it changes.
            return {
                "certificate": self._client.certificate.decode(),
                "key": self._client.key.reveal(),
                # Not longer than the bridge waits for it: whoever comes later asks again, and so starts another.
                "expires_at": time.time() + min(CREDENTIAL_SECONDS, self.definition.idle_seconds),
            }
        if question.startswith(SERVES):
            differing = environment.differing(self._environment, environment.told(question.removeprefix(SERVES)))
            return {"others": bool(differing and self.listener.connections)}
        if question == "status":
            return {
                "pid": os.getpid(),
                "port": self.definition.port,
                "connections": self.listener.connections,
                "accepted": self.listener.accepted,
                "idle_seconds": self.listener.idle_seconds(),
                "started": self.started,
                "offered": self.route.has_offer,
            }
        if question.startswith(foreground.OFFER):
            offered, marks = foreground.opened(question.removeprefix(foreground.OFFER))
            if differing := environment.differing(self._environment, marks):
                return {"differing": environment.named(differing)}
            self.route.offer(foreground.decode(offered, time.time()))
            return {"taken": True}
        if question == "stop":
            self._stop_soon()
            return {"stopping": True}
        return {"error": "unknown question"}

    def _told_to_others(self, differing: list[str]) -> dict[str, object]:
        """Never a certificate: what goes through here goes out under the identity of this environment."""
        if self.listener.idle_seconds() < STAY_SECONDS:
            return {"differing": environment.named(differing)}
        self._stop_soon()
        return {"leaving": True}

    def _stop_soon(self) -> None:
        import signal

        self._leaving = True
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)


def main() -> int:
    name, ready = sys.argv[1], int(sys.argv[2])
    try:
        directory = definitions.directory_of(definitions.load(name).name)
        lock = os.open(os.path.join(directory, definitions.LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            _tell(ready, HELD)
            return 0
        stale = control.socket_path(name)
        if stale is not None and os.path.basename(os.path.dirname(stale)).startswith("kubeauthn-"):
            remove(os.path.dirname(stale))  # of one that crashed
        log_to(os.path.join(directory, definitions.LOG))
        bridge = Bridge(definitions.load(name))
        asyncio.run(bridge.serve(ready))
        if bridge.definition.apart:
            os.close(lock)  # a command that ends just now would take it that the bridge still runs
            forget_unless_used(directory)
    except KubeauthnError as error:
        _tell(ready, f"error {error}" + (f"\n{error.hint}" if error.hint else ""))
        return 1
    return 0


def _tell(descriptor: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(descriptor, text.encode()[:4000])
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
