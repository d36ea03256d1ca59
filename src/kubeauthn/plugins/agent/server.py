"""The agent's socket: 0700 around it, one user, bounded in connections, size and time."""

from __future__ import annotations

import errno
import os
import socket
import stat
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from contextlib import contextmanager
from threading import BoundedSemaphore, Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from kubeauthn._core.signerwire import HASH_BYTES, decode_options
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure, KubeauthnError, SignerRequestError
from kubeauthn.plugins.agent import wire
from kubeauthn.plugins.agent.keeper import KeptKey, _PinNeeded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

MOST_CONNECTIONS = 16
TICK_SECONDS = 0.5
CLOSE_SECONDS = 3.0
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.ECONNABORTED)
"""What passes by itself."""


class AgentServer:
    """Serves until `stop` is set. It refuses keys it was not started for: it loads nothing that a request names."""

    def __init__(self, path: str, keys: Sequence[KeptKey], *, log: Callable[[str], None] = lambda line: None) -> None:
        self._path = path
        self._keys = tuple(keys)
        self._log = log
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        self.stop = Event()
        self.ready = Event()

    def serve(self) -> None:
        with self._alone(), self._listening() as listener:
            own = os.lstat(self._path)
            self.ready.set()
            # Beside it: a key that somebody has to touch first is not to be waited for here.
            Thread(target=self._expire_on, name="signer agent's PINs", daemon=True).start()
            try:
                while not self.stop.is_set():
                    self._accept(listener)
            finally:
                self._remove(own)
                self._close_keys()

    def _close_keys(self) -> None:
        """A token that waits for a touch, or never answers, is not waited for: it is logged out with the process."""
        threads = [
            Thread(target=self._close, args=(key,), name="signer agent's end", daemon=True) for key in self._keys
        ]
        for thread in threads:
            thread.start()
        until = monotonic() + CLOSE_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - monotonic()))
        if any(thread.is_alive() for thread in threads):
            self._log("a token does not answer, and is left as it is")

    def _close(self, key: KeptKey) -> None:
        try:
            key.close()
        except Exception as error:
            self._log(f"failed: {type(error).__name__}")

    def _expire_on(self) -> None:
        while not self.stop.wait(TICK_SECONDS):
            for key in self._keys:
                try:
                    key.expire()
                except Exception as error:  # of the token's, when it is closed: the PIN is gone by then
                    self._log(f"failed: {type(error).__name__}")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One agent per place, from before it looks for a socket that was left until its own is gone.

        Of two that start at once, one would else take the other's socket for an old one, and put it away.
        """
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        wire.check_place(self._path)
        lock = self._locked(f"{self._path}.lock")
        try:
            yield
        finally:
            os.close(lock)  # the file stays: whoever is about to lock it has this very one open

    def _locked(self, path: str) -> int:
        import fcntl  # not on every system; wire.check_peer says so where it is missed

        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        except OSError as error:
            raise EnvironmentFailure(f"{path}: {(error.strerror or 'cannot be made').lower()}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise EnvironmentFailure(f"an agent listens at {self._path} already") from None
        return descriptor

    def _listening(self) -> socket.socket:
        self._remove_stale()
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(self._path)
            os.chmod(self._path, 0o600)
            listener.listen(MOST_CONNECTIONS)
            listener.settimeout(TICK_SECONDS)
        except OSError as error:
            listener.close()
            raise EnvironmentFailure(f"{self._path}: {(error.strerror or 'cannot listen').lower()}") from None
        return listener

    def _remove_stale(self) -> None:
        if not os.path.lexists(self._path):
            return
        if not stat.S_ISSOCK(os.lstat(self._path).st_mode):
            raise EnvironmentFailure(f"{self._path} is not a socket, and is left as it is")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            if probe.connect_ex(self._path) == 0:
                raise EnvironmentFailure(f"an agent listens at {self._path} already")
        os.unlink(self._path)

    def _remove(self, own: os.stat_result) -> None:
        """Only our own socket: another agent may have taken the place."""
        try:
            if os.path.samestat(os.lstat(self._path), own):
                os.unlink(self._path)
        except OSError:
            pass

    def _accept(self, listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except TimeoutError:
            return
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            self._log(f"a connection was not taken: {error.strerror}")
            self.stop.wait(TICK_SECONDS)
            return
        if not self._free.acquire(blocking=False):
            connection.close()
            return
        Thread(target=self._converse, args=(connection,), name="signer agent", daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(wire.SECONDS)
                wire.check_peer(connection)
                key: KeptKey | None = None
                while (message := wire.receive(connection)) is not None:
                    if "signer" in message:
                        key = self._key_for(message)
                        reply: dict[str, Any] = {"mine": key is not None}
                    elif key is None:
                        reply = {"error": "say first which key is meant"}
                    else:
                        reply = self._reply(key, message)
                    wire.send(connection, reply)
        except (OSError, KubeauthnError) as error:
            self._log(f"a connection ended: {error if isinstance(error, KubeauthnError) else type(error).__name__}")
        finally:
            self._free.release()

    def _key_for(self, message: dict[str, Any]) -> KeptKey | None:
        wanted = message.get("configuration")
        return next((key for key in self._keys if key.is_for(str(message["signer"]), wanted)), None)

    def _reply(self, key: KeptKey, message: dict[str, Any]) -> dict[str, Any]:
        try:
            if message.get("do") == "certificate":
                return {"certificate": b64encode(key.certificate()).decode()}
            if message.get("do") == "sign":
                self._log(f"a signature with the {key.kind} key")
                return {"signature": b64encode(self._sign(key, message)).decode()}
            return {"error": "the agent knows certificate and sign"}
        except _PinNeeded as needed:
            return {"pinNeeded": str(needed)}
        except KubeauthnError as error:
            self._log(f"refused: {error}")
            return {"error": str(error), "class": type(error).__name__, "hint": error.hint}
        except Exception as error:  # a fault of ours or of a library's: its text may hold anything
            self._log(f"failed: {type(error).__name__}")
            return {"error": f"the agent failed: {type(error).__name__}"}

    def _sign(self, key: KeptKey, message: dict[str, Any]) -> bytes:
        algorithm = decode_options(message.get("type"), message.get("options"))
        try:
            digest = b64decode(str(message.get("digest", "")), validate=True)
        except (NotBase64, ValueError):
            raise SignerRequestError("the digest is not base64") from None
        if algorithm.hash and len(digest) != HASH_BYTES[algorithm.hash]:
            raise SignerRequestError(f"the digest has {len(digest)} bytes, and {algorithm.hash} another length")
        pin = message.get("pin")
        return key.sign(digest, algorithm, Secret(pin) if isinstance(pin, str) and pin else None)
