"""Open the person's browser, without waiting for it and without giving it our standard streams."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys

from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_started: list[subprocess.Popen[bytes]] = []
"""Browsers outlive us. They are held, because Python complains of a process that nobody waits for."""


def open_browser(address: str, command: str = "", environ: Mapping[str, str] | None = None) -> bool:
    """Whether one was started. The address is all that its arguments show, and other users can see those."""
    environ = os.environ if environ is None else environ
    for argv in _candidates(address, command, environ):
        path = shutil.which(argv[0])
        if path is None:
            continue
        try:
            _started.append(
                subprocess.Popen(
                    argv,
                    executable=path,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
        except OSError:
            continue
        return True
    if command:
        raise UsageError("--browser-command cannot be started", hint="is it installed, and on PATH?")
    return False


def _candidates(address: str, command: str, environ: Mapping[str, str]) -> list[list[str]]:
    if command:
        return [_words(command, address)]
    # As Python's and Debian's tools read it: a list of commands, %s for the address.
    named = [_words(part, address) for part in environ.get("BROWSER", "").split(os.pathsep) if part.strip()]
    if sys.platform == "darwin":
        return [*named, ["open", address]]
    if sys.platform == "win32":
        return [*named, ["rundll32", "url.dll,FileProtocolHandler", address]]
    if environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"):
        return [*named, ["xdg-open", address]]
    if environ.get("WSL_DISTRO_NAME"):
        return [*named, ["wslview", address]]
    return named


def _words(command: str, address: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        raise UsageError("the command for the browser has a quotation mark without its pair") from None
    if not words:
        raise UsageError("the command for the browser is empty")
    filled = [word.replace("%s", address) for word in words]
    return filled if filled != words else [*words, address]
