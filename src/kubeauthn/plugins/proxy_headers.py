"""`kubeauthn-proxy-headers -- COMMAND`: adds the headers that a command prints, one `Name: value` a line.

The command runs again when its headers have grown old, once for all requests that wait, and no request goes out without
them.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Awaitable

from kubeauthn._io.process import end_group
from kubeauthn.errors import EnvironmentFailure, PluginFailed
from kubeauthn.plugin import proxy

OUTPUT_BYTES = 64 * 1024
COMMAND_SECONDS = 60.0


class HeaderCommand:
    """The headers of a command, kept for `keep_seconds`."""

    def __init__(self, command: list[str], keep_seconds: float) -> None:
        self._command = command
        self._keep = keep_seconds
        self._change: proxy.Change | None = None
        self._until = 0.0
        self._lock: asyncio.Lock | None = None

    def __call__(self, request: proxy.Request) -> proxy.Change | Awaitable[proxy.Change]:
        if self._change is not None and time.monotonic() < self._until:
            return self._change  # at once: no task is made for it
        return self._renewed()

    async def _renewed(self) -> proxy.Change:
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            if self._change is None or time.monotonic() >= self._until:
                self._change = proxy.Change(headers_in(await self._output()))
                self._until = time.monotonic() + self._keep
            return self._change

    async def _output(self) -> str:
        name = self._command[0]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                limit=OUTPUT_BYTES,
                start_new_session=True,
            )
        except OSError as error:
            raise EnvironmentFailure(f"{name} cannot be run: {error.strerror}") from None
        try:
            async with asyncio.timeout(COMMAND_SECONDS):
                assert process.stdout is not None  # noqa: S101  it was asked for
                output = b""
                while len(output) <= OUTPUT_BYTES and (piece := await process.stdout.read(OUTPUT_BYTES)):
                    output += piece
                if len(output) > OUTPUT_BYTES:
                    raise PluginFailed(f"{name} printed more than {OUTPUT_BYTES} bytes")
                code = await process.wait()
        except TimeoutError:
            raise PluginFailed(f"{name} did not end within {COMMAND_SECONDS:g} s") from None
        finally:
            if process.returncode is None:
                end_group(process.pid)  # it is a session of its own, with all that it started
                await process.wait()
        if code:
            raise PluginFailed(f"{name} failed with exit code {code}", exit_code=code)
        return output.decode("latin-1")


def headers_in(text: str) -> dict[str, str]:
    """`Name: value` lines; empty ones are passed over. None at all is an error: a request must not go out bare."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise PluginFailed(f"line {number} of the command's output is not Name: value")
        if name.strip().lower() in {known.lower() for known in found}:
            raise PluginFailed(f"line {number} of the command's output names a header again")
        found[name.strip()] = value.strip()
    if not found:
        raise PluginFailed("the command printed no headers")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="kubeauthn-proxy-headers", description=__doc__, allow_abbrev=False)
    parser.add_argument("--keep", type=float, default=60.0, metavar="SECONDS", help="how long headers are used (60)")
    parser.add_argument("command", nargs="+", metavar="COMMAND", help="after --, with its arguments")
    arguments = parser.parse_args()
    proxy.run(HeaderCommand(arguments.command, arguments.keep))
