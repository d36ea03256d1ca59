"""A relay on loopback that hands on every answer late."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from kubeauthn.testing._listener import Listener, shut_down

__all__ = ["SlowRelay"]


class SlowRelay:
    """Bytes for `port` go on at once; what comes back waits for `delay` seconds, which may be changed at any time."""

    def __init__(self, port: int) -> None:
        self.delay = 0.0
        self._port = port
        self._stopping = threading.Event()
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        self._listener = Listener(self._serve, name="slow relay")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        assert self._listener is not None
        self._listener.stop()

    @property
    def url(self) -> str:
        assert self._listener is not None
        return f"https://127.0.0.1:{self._listener.port}"

    def _serve(self, near: socket.socket) -> None:
        with socket.create_connection(("127.0.0.1", self._port)) as far:
            back = threading.Thread(target=self._hand_on, args=(far, near, True))
            back.start()
            self._hand_on(near, far, False)
            back.join()

    def _hand_on(self, source: socket.socket, target: socket.socket, late: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if late and self.delay:
                    self._wait()
                target.sendall(data)
        for end in (source, target):
            shut_down(end)

    def _wait(self) -> None:
        """As long as the delay is now: one that was shortened lets go of what it holds."""
        waited, step = 0.0, 0.05
        while waited < self.delay and not self._stopping.wait(step):
            waited += step
