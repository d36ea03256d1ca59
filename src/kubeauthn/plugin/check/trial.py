"""One run of a plugin, watched: what it printed where, how long it took, how it ended, what it left.

The client's own runner (`_io.process`) raises at the first thing that is wrong; this one goes on looking.
The limits are the same.
"""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from kubeauthn._core import limits
from kubeauthn.plugin.check.leftovers import Leftover, end_group, leftovers

MARK = "KUBEAUTHN_PLUGIN_CHECK"
"""Set in the environment of every run, so that what it leaves behind can be recognised."""

STDERR_BYTES = 64 << 10
"""What is kept of standard error; the rest is read and dropped."""
_TICK_SECONDS = 0.05
_CHUNK = 65536


@dataclass(frozen=True, slots=True)
class Trial:
    """`output` and `errors` may hold secrets: they are not in the repr."""

    seconds: float
    exit_code: int | None
    """Negative: the signal. None: it was ended by us."""
    output: bytes = field(repr=False)
    errors: bytes = field(repr=False)
    timed_out: bool = False
    too_long: bool = False
    kept_open: bool = False
    """The plugin ended, and a process that it had started keeps standard output open."""
    left_behind: tuple[Leftover, ...] = ()


def run_trial(
    path: str, argv: Sequence[str], environment: Mapping[str, str], *, seconds: float, with_person: bool = False
) -> Trial:
    """With a person: on this terminal, in this session, and without a time limit; standard error is then not seen.

    Raises OSError when the executable cannot be started.
    """
    mark = secrets.token_hex(16)
    started = time.monotonic()
    # Not in a `with`: that waits for ever, and one that became another user cannot be ended by us.
    process = subprocess.Popen(
        list(argv),
        executable=path,
        env={**environment, MARK: mark},
        stdin=None if with_person else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if with_person else subprocess.PIPE,
        start_new_session=not with_person,
    )
    watch = _Watch(process, None if with_person else started + seconds)
    try:
        watch.until_the_end()
    finally:
        ended_by_us = process.poll() is None
        if ended_by_us or watch.kept_open:
            _end(process, whole_group=not with_person)
        with suppress(subprocess.TimeoutExpired):
            process.wait(limits.PLUGIN_EXIT_GRACE_SECONDS)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
    took = watch.ended_at - started
    left = leftovers(None if with_person else process.pid, f"{MARK}={mark}")
    end_group(left, process.pid)
    return Trial(
        seconds=took,
        exit_code=None if ended_by_us else process.returncode,
        output=bytes(watch.output),
        errors=bytes(watch.errors),
        timed_out=watch.timed_out,
        too_long=watch.too_long,
        kept_open=watch.kept_open,
        left_behind=left,
    )


class _Watch:
    """Reads both streams until the plugin has ended and its output is closed, or a limit is reached."""

    def __init__(self, process: subprocess.Popen[bytes], deadline: float | None) -> None:
        self._process = process
        self._deadline = deadline
        self.output = bytearray()
        self.errors = bytearray()
        self.timed_out = self.too_long = self.kept_open = False
        self.ended_at = 0.0

    def until_the_end(self) -> None:
        process = self._process
        assert process.stdout is not None  # noqa: S101  stdout=PIPE says so
        stdout = process.stdout.fileno()
        stderr = process.stderr.fileno() if process.stderr else None
        poller = select.poll()
        still_open = {stdout} if stderr is None else {stdout, stderr}
        for descriptor in still_open:
            poller.register(descriptor, select.POLLIN | select.POLLHUP)
        gone_at: float | None = None

        while True:
            for descriptor, _ in poller.poll(_TICK_SECONDS * 1000) if still_open else ():
                chunk = os.read(descriptor, _CHUNK)
                if not chunk:
                    poller.unregister(descriptor)
                    still_open.discard(descriptor)
                elif descriptor == stdout:
                    self.output += chunk
                else:
                    self.errors += chunk[: STDERR_BYTES - len(self.errors)]
            self.ended_at = time.monotonic()
            if len(self.output) > limits.PLUGIN_REPLY_BYTES:
                self.too_long = True
                return
            if gone_at is None and self._has_ended(wait=stdout not in still_open):
                gone_at = self.ended_at
            if gone_at is not None and stdout not in still_open:
                self._rest_of_stderr(stderr if stderr in still_open else None)
                return
            if gone_at is not None and self.ended_at > gone_at + limits.PLUGIN_EXIT_GRACE_SECONDS:
                self.kept_open = True
                return
            if self._deadline is not None and self.ended_at > self._deadline:
                self.timed_out = True
                return

    def _has_ended(self, *, wait: bool) -> bool:
        if not wait:
            return self._process.poll() is not None
        try:
            # Its output is closed, so its end is near: a wait is prompter than the tick.
            self._process.wait(_TICK_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        self.ended_at = time.monotonic()
        return True

    def _rest_of_stderr(self, descriptor: int | None) -> None:
        """What is there now. A process left behind may keep it open for ever: that is allowed."""
        if descriptor is None:
            return
        os.set_blocking(descriptor, False)
        try:
            while len(self.errors) < STDERR_BYTES and (chunk := os.read(descriptor, _CHUNK)):
                self.errors += chunk[: STDERR_BYTES - len(self.errors)]
        except BlockingIOError:
            pass


def _end(process: subprocess.Popen[bytes], *, whole_group: bool) -> None:
    """Its own session makes the plugin the leader of a group, which lives on while any member does."""
    try:
        if whole_group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
