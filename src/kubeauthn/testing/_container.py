"""What "runs" in the pods of an `ApiServer`: a few tiny programs, driven by what comes in. No process is started."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

END_OF_TRANSMISSION = b"\x04"
_CHUNK = b"x" * 65536


class Program:
    """`cat`, `echo WORDS`, `produce BYTES`, `size` (of the terminal), `fail CODE`. Any other name is not found.

    `write(channel, data)` gets what it prints, `end(status)` the last word: a Kubernetes `Status`.
    """

    def __init__(
        self, argv: list[str], *, tty: bool, write: Callable[[str, bytes], object], end: Callable[[bytes], object]
    ) -> None:
        self._argv = argv or ["cat"]
        self._tty = tty
        self._write = write
        self._end = end
        self._ended = False

    def start(self) -> None:
        name, *words = self._argv
        if name == "echo":
            self._write("stdout", " ".join(words).encode() + self._newline)
            self._exit(0)
        elif name == "produce":
            left = int(words[0])
            while left > 0:
                self._write("stdout", _CHUNK[:left])
                left -= len(_CHUNK)
            self._exit(0)
        elif name == "fail":
            self._write("stdout" if self._tty else "stderr", b"told to fail" + self._newline)
            self._exit(int(words[0]))
        elif name not in ("cat", "size"):
            self._write("stdout" if self._tty else "stderr", f"{name}: not found".encode() + self._newline)
            self._exit(127)

    def stdin(self, data: bytes) -> None:
        if self._ended or self._argv[0] != "cat":
            return
        text, ended, _ = data.partition(END_OF_TRANSMISSION) if self._tty else (data, b"", b"")
        if text:
            self._write("stdout", text)
        if ended:
            self._exit(0)

    def stdin_end(self) -> None:
        if self._argv[0] == "cat":
            self._exit(0)

    def resize(self, data: bytes) -> None:
        if self._argv[0] == "size" and not self._ended:
            size = json.loads(data)
            self._write("stdout", f"{size['Width']}x{size['Height']}".encode() + self._newline)
            self._exit(0)

    @property
    def _newline(self) -> bytes:
        return b"\r\n" if self._tty else b"\n"

    def _exit(self, code: int) -> None:
        if not self._ended:
            self._ended = True
            self._end(json.dumps(exit_status(code)).encode())


def exit_status(code: int) -> dict[str, Any]:
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
