"""Run a plugin that may be a proxy: read one document, and do not wait for the end of one that stays.

It gets a process group of its own, whatever else it does, so that neither the time limit of another
run nor Ctrl-C at the terminal reaches a proxy that requests are going through.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence

from kubeauthn._core.execproxy import DocumentEnd, has_proxy_config
from kubeauthn._io.process import end_group, ended_on_failure, read_output
from kubeauthn.errors import EnvironmentFailure, PluginTimeout

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
    document = ProxyDocument()
    with (
        ended_on_failure(process),
        _terminal_lent_to(process.pid) if interactive else contextlib.nullcontext(),
    ):
        try:
            output = read_output(process, argv[0], None if interactive else seconds, document.is_complete)
        except PluginTimeout as error:
            if not document.never:
                raise
            raise PluginTimeout(
                f"{error}; what it printed does not begin with a document",
                hint="a proxy plugin prints one ExecCredential to standard output, and nothing before it",
            ) from None
    code = process.poll()
    if not document.is_a_proxys or code is not None:
        return code or 0, output, None
    return 0, output, _hand_over(process)


def end_proxy(pid: int) -> None:
    """End one whose reply turned out to be of no use, with all that it started."""
    if pid in _staying:
        end_group(pid)
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


class ProxyDocument:
    """Looks, once, whether the first whole document of an output is a proxy's."""

    def __init__(self) -> None:
        self._end: DocumentEnd | None = DocumentEnd()
        self.is_a_proxys = False

    @property
    def never(self) -> bool:
        """What has come so far can no more become a document."""
        return self._end is not None and self._end.never

    def is_complete(self, chunk: bytes, output: bytearray) -> bool:
        if self._end is not None and self._end.feed(chunk):
            self._end = None
            self.is_a_proxys = has_proxy_config(bytes(output))
        return self.is_a_proxys


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
