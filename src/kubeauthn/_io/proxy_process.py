"""Run a plugin that may be a proxy: read one document, and do not wait for the end of one that stays.

It gets a process group of its own, whatever else it does, so that neither the time limit of another
run nor Ctrl-C at the terminal reaches a proxy that requests are going through.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence

from kubeauthn._core import limits
from kubeauthn._core.execproxy import DocumentEnd, has_proxy_config
from kubeauthn._io.process import CHUNK_BYTES, TICK_SECONDS, end_process, running, too_late
from kubeauthn.errors import EnvironmentFailure, PluginReplyError

_staying: set[int] = set()
"""Processes that were left to be proxies: ours to reap once they have ended, and nothing else."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_staying.clear)


def run_proxy_plugin(
    path: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    interactive: bool,
    seconds: float | None,
) -> tuple[int, bytes, int | None]:
    """Exit code, standard output, and the process that stays (None: none does, as far as we know).

    An output with a `proxyConfig` is complete when its document is: the code is then 0 unless the plugin has
    already ended with another. Any other output is complete when the plugin has ended, as `run_plugin` has it.
    """
    if os.name != "posix":
        raise EnvironmentFailure("proxy plugins cannot be run on this platform yet", hint="see docs/platforms.md")
    _reap()
    process = subprocess.Popen(
        list(argv),
        executable=path,
        env=dict(environment),
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=not interactive,
        process_group=0 if interactive else None,
    )
    running.add(process)
    try:
        with _terminal_lent_to(process.pid) if interactive else contextlib.nullcontext():
            output, is_proxy = _read(process, argv[0], None if interactive else seconds)
    except BaseException:
        end_process(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(limits.PLUGIN_EXIT_GRACE_SECONDS)
        raise
    finally:
        running.discard(process)
    code = process.poll()
    if not is_proxy or code is not None:
        return code or 0, output, None
    return 0, output, _hand_over(process)


def end_proxy(pid: int) -> None:
    """End one whose reply turned out to be of no use, with all that it started."""
    if pid not in _staying:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    _reap()


def _hand_over(process: subprocess.Popen[bytes]) -> int:
    _staying.add(process.pid)
    # From here on its number is all we keep. Told that it has ended, the object does not complain when it goes.
    process.returncode = 0
    return process.pid


def _reap() -> None:
    for pid in list(_staying):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid  # somebody else in this program waits for all children
        if ended:
            _staying.discard(pid)


def _read(process: subprocess.Popen[bytes], name: str, seconds: float | None) -> tuple[bytes, bool]:
    """The output, and whether it is that of a proxy."""
    assert process.stdout is not None  # noqa: S101  stdout=PIPE says so
    started = time.monotonic()
    deadline = started + seconds if seconds is not None else None
    gone_at: float | None = None
    output = bytearray()
    end = DocumentEnd()
    looked = False
    with process.stdout as stdout:
        descriptor = stdout.fileno()
        poller = select.poll()
        poller.register(descriptor, select.POLLIN | select.POLLHUP)
        while True:
            if poller.poll(TICK_SECONDS * 1000):
                chunk = os.read(descriptor, CHUNK_BYTES)
                if not chunk:
                    break
                output += chunk
                if len(output) > limits.PLUGIN_REPLY_BYTES:
                    raise PluginReplyError(
                        f"exec: executable {name} printed more than {limits.PLUGIN_REPLY_BYTES} bytes: not a credential"
                    )
                if not looked and end.feed(chunk):
                    looked = True
                    if has_proxy_config(bytes(output)):
                        return bytes(output), True
            now = time.monotonic()
            if deadline is not None and now > deadline:
                raise too_late(name, now - started)
            if gone_at is None and process.poll() is not None:
                gone_at = now
            if gone_at is not None and now > gone_at + limits.PLUGIN_EXIT_GRACE_SECONDS:
                raise PluginReplyError(
                    f"exec: executable {name} has ended, but a process it started keeps its standard output open",
                    hint="a plugin that leaves a process behind must redirect that process's output",
                )
    try:
        process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise too_late(name, time.monotonic() - started) from None
    return bytes(output), False


@contextlib.contextmanager
def _terminal_lent_to(group: int) -> Iterator[None]:
    """As a shell does it: while the plugin asks its person, its group is the one in front of the terminal."""
    try:
        ours = os.getpgrp()
        if os.tcgetpgrp(0) != ours:
            raise OSError("we are not in front ourselves")
        os.tcsetpgrp(0, group)
    except OSError:
        yield
        return
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGCONT)  # it may have tried to read before it was its turn
    try:
        yield
    finally:
        _take_terminal_back(ours)


def _take_terminal_back(ours: int) -> None:
    # From behind, this would stop us.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        with contextlib.suppress(OSError):
            os.tcsetpgrp(0, ours)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
