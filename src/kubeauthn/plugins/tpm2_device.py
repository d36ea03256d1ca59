"""Reach a TPM 2.0: the kernel's device with its resource manager, or the socket of a software TPM."""

from __future__ import annotations

import os
import stat

from kubeauthn._core import tpm2
from kubeauthn._core.tpm2_codes import BUSY, response_code
from kubeauthn.errors import KeyStoreAbsent, KeyStoreError, SignerRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

DEFAULT_DEVICE = "/dev/tpmrm0"
SECONDS = 60.0
"""An RSA signature takes some discrete TPMs seconds."""
_MOST_ATTEMPTS = 5
_PAUSE_SECONDS = 0.1


class TpmDevice:
    """One connection: `device` is a path, `unix:PATH`, or `tcp:127.0.0.1:PORT`. A context manager."""

    def __init__(self, device: str = DEFAULT_DEVICE) -> None:
        self._name = device
        self._file: int | None = None
        self._socket: socket.socket | None = None
        try:
            if device.startswith(("unix:", "tcp:")):
                self._socket = _connected(device)
            else:
                self._file = _opened(device)
        except OSError as error:
            reason = (error.strerror or "cannot be reached").lower()
            hint = "the user must be in the group tss" if isinstance(error, PermissionError) else None
            raise KeyStoreAbsent(f"device: {device}: {reason}", hint=hint) from None

    def __enter__(self) -> TpmDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
        if self._socket is not None:
            self._socket.close()
        self._file = self._socket = None

    def ask(self, command: bytes, what: str) -> tpm2.Reader:
        """Send a command and read the answer. Again only when the TPM says that it did not begin."""
        for attempt in range(_MOST_ATTEMPTS):
            try:
                response = self._exchange(command)
            except OSError as error:
                reason = (error.strerror or "no answer in time").lower()
                raise KeyStoreAbsent(f"device: {self._name}: {reason} at {what}") from None
            if response_code(response) not in BUSY or attempt + 1 == _MOST_ATTEMPTS:
                break
            import time

            time.sleep(_PAUSE_SECONDS)
        return tpm2.parameters(response, what)

    def _exchange(self, command: bytes) -> bytes:
        if self._file is not None:
            os.write(self._file, command)  # in one piece, as the driver wants it
            import select

            poll = select.poll()
            poll.register(self._file, select.POLLIN)
            if not poll.poll(SECONDS * 1000):
                raise TimeoutError
            response = os.read(self._file, tpm2.LONGEST_RESPONSE)
            if len(response) < tpm2.HEADER_BYTES:
                raise KeyStoreError(f"device: {self._name} answered {len(response)} bytes: it is no TPM 2.0")
            return response
        if self._socket is None:
            raise KeyStoreAbsent(f"device: {self._name} is closed")
        self._socket.sendall(command)
        header = self._receive(tpm2.HEADER_BYTES)
        return header + self._receive(tpm2.response_size(header) - tpm2.HEADER_BYTES)

    def _receive(self, count: int) -> bytes:
        content = b""
        while len(content) < count and self._socket is not None:
            chunk = self._socket.recv(count - len(content))
            if not chunk:
                raise KeyStoreAbsent(f"device: {self._name} ended the connection")
            content += chunk
        return content


def _opened(path: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    if not stat.S_ISCHR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise KeyStoreError(f"device: {path} is not a device")
    return descriptor


def _connected(device: str) -> socket.socket:
    import socket

    kind, _, place = device.partition(":")
    address: str | tuple[str, int] = place
    family = socket.AF_UNIX
    if kind == "tcp":
        host, _, port = place.rpartition(":")
        # The authorisation value crosses this connection as it is.
        if host != "127.0.0.1" or not (port.isascii() and port.isdecimal() and len(port) < 6 and 0 < int(port) < 65536):
            raise SignerRequestError("device: a software TPM is reached at tcp:127.0.0.1:PORT, and nowhere else")
        address, family = (host, int(port)), socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    connection.settimeout(SECONDS)
    try:
        connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection
