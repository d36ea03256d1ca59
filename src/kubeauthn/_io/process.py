"""Run one plugin: bounded output, bounded time, and nothing of it left behind.

A plugin that needs no person runs in a session of its own. So the time limit can end
everything it started, and it cannot sit waiting on a terminal that nobody watches.
One that talks to a person shares our session (else it could not read the terminal) and
has no time limit.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from kubeauthn._core import limits
from kubeauthn.errors import EnvironmentFailure, PluginFailed, PluginReplyError, PluginTimeout

_TICK_SECONDS = 0.1
_CHUNK_BYTES = 65536

running: set[subprocess.Popen[bytes]] = set()
if hasattr(os, "register_at_fork"):
    # They are the parent's: a child that ends must not end them.
    os.register_at_fork(after_in_child=running.clear)


def run_plugin(
    path: str,
    argv: Sequence[str],
    environment: Mapping[str, str],
    *,
    interactive: bool,
    seconds: float | None,
    descriptors: Sequence[int] = (),
) -> tuple[int, bytes]:
    """Exit code (negative: the signal) and standard output. Standard error is the person's; it inherits `descriptors`.

    Raises OSError when the executable cannot be started, PluginTimeout, or PluginReplyError
    when it prints too much or leaves its standard output open in a process it started.
    """
    if os.name != "posix":
        raise EnvironmentFailure("credential plugins cannot be run on this platform yet", hint="see docs/platforms.md")
    # Not in a `with` statement: that waits for its end, and one that became root, as sudo does, is not ours to end.
    process = subprocess.Popen(
        list(argv),
        executable=path,
        env=dict(environment),
        stdin=None if interactive else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=not interactive,
        pass_fds=descriptors,
    )
    with ended_on_failure(process):
        output = read_output(process, argv[0], None if interactive else seconds)
    return process.returncode, output


@contextmanager
def ended_on_failure(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Nothing of it is left when the block raises, nor when the program ends within it."""
    running.add(process)
    try:
        yield
    except BaseException:
        end_process(process)
        with suppress(subprocess.TimeoutExpired):
            process.wait(limits.PLUGIN_EXIT_GRACE_SECONDS)
        raise
    finally:
        running.discard(process)


def read_output(
    process: subprocess.Popen[bytes],
    name: str,
    seconds: float | None,
    is_complete: Callable[[bytes, bytearray], bool] | None = None,
) -> bytes:
    """Standard output until it is closed and the plugin has ended; or until `is_complete`, which sees each piece and
    all so far, says that no more is wanted."""
    assert process.stdout is not None  # noqa: S101  stdout=PIPE says so
    with process.stdout as stdout:
        return _read_output(process, stdout.fileno(), name, seconds, is_complete)


def _read_output(
    process: subprocess.Popen[bytes],
    descriptor: int,
    name: str,
    seconds: float | None,
    is_complete: Callable[[bytes, bytearray], bool] | None,
) -> bytes:
    started = time.monotonic()
    deadline = started + seconds if seconds is not None else None
    gone_at: float | None = None
    output = bytearray()
    poller = select.poll()
    poller.register(descriptor, select.POLLIN | select.POLLHUP)

    while True:
        if poller.poll(_TICK_SECONDS * 1000):
            chunk = os.read(descriptor, _CHUNK_BYTES)
            if not chunk:
                break
            output += chunk
            if len(output) > limits.PLUGIN_REPLY_BYTES:
                raise PluginReplyError(
                    f"exec: executable {name} printed more than {limits.PLUGIN_REPLY_BYTES} bytes: not a credential"
                )
            if is_complete is not None and is_complete(chunk, output):
                # Many write the end of the line by itself, and one that finds nobody reading ends there.
                end = time.monotonic() + _TICK_SECONDS
                while not output.endswith(b"\n") and len(output) < limits.PLUGIN_REPLY_BYTES:
                    left = max(0.0, end - time.monotonic())
                    if not left or not poller.poll(left * 1000) or not (chunk := os.read(descriptor, _CHUNK_BYTES)):
                        break
                    output += chunk
                return bytes(output)
        now = time.monotonic()
        if deadline is not None and now > deadline:
            raise _too_late(name, now - started)
        if gone_at is None and process.poll() is not None:
            gone_at = now
        if gone_at is not None and now > gone_at + limits.PLUGIN_EXIT_GRACE_SECONDS:
            raise PluginReplyError(
                f"exec: executable {name} has ended, but a process it started keeps its standard output open",
                hint="a plugin that leaves a process behind must redirect that process's output",
            )

    # Standard output is closed; the process itself may still take its time.
    try:
        process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _too_late(name, time.monotonic() - started) from None
    return bytes(output)


def _too_late(name: str, seconds: float) -> PluginFailed:
    return PluginTimeout(
        f"exec: executable {name} did not answer within {seconds:.1f} s and was ended",
        hint="a plugin that asks a person needs interactiveMode IfAvailable or Always and a terminal",
    )


def end_process(process: subprocess.Popen[bytes]) -> None:
    try:
        # Its own session makes it the leader of a group: end the whole group.
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        # The plugin itself is gone and reaped; what it left in its group is not.
        if process.pid != os.getpgrp():
            end_group(process.pid)
    except PermissionError:
        pass  # it has become another user's, as sudo does


def end_group(group: int) -> None:
    """All of a process group that is there and ours to end."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


@atexit.register
def _end_all() -> None:
    for process in list(running):
        end_process(process)
