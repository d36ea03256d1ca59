"""Whose environment a bridge has: a plugin takes its identity from variables (AWS_PROFILE for one), so it matters.

What is compared is exactly what a bridge is started with. What says no more than where a program stands and at which
terminal differs from window to window: it is not compared, and so no bridge gets it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from hashlib import sha256

from kubeauthn.errors import EnvironmentFailure

MARKS_BYTES = 256 * 1024
_MARK = 16
_NAMED = 5
_POLICY = "KUBERC"
"""Names the file with the policy for plugins, as `_io/kuberc.py` has it, which loads more than is needed here."""

_LEFT_OUT = frozenset(
    [
        "KUBECONFIG",  # the definition says which
        "KUBERNETES_EXEC_INFO",
        # Where the program stands, and below how many shells.
        "PWD",
        "OLDPWD",
        "SHLVL",
        "_",
        "MAKELEVEL",
        "MAKEFLAGS",
        "MFLAGS",
        "MAKE_TERMOUT",
        "MAKE_TERMERR",
        # Which of many commands or jobs it is: those that run at once would keep each other out.
        "SUDO_COMMAND",
        "PYTEST_CURRENT_TEST",
        "PLUGIN_CLIENT_CERT",  # HashiCorp's, made for each provider of Terraform
        "TRACEPARENT",
        "TRACESTATE",
        # What a shell shows and remembers, and the notes that its helpers keep for themselves: direnv's variables
        # count, its list of them does not.
        "PS1",
        "PS2",
        "PS3",
        "PS4",
        "PROMPT",
        "RPROMPT",
        "PROMPT_COMMAND",
        "LS_COLORS",
        "LSCOLORS",
        "STARSHIP_SESSION_KEY",
        "STARSHIP_SHELL",
        "ATUIN_SESSION",
        "ATUIN_HISTORY_ID",
        "MCFLY_SESSION_ID",
        "MCFLY_HISTORY",
        "DIRENV_DIFF",
        "DIRENV_DIR",
        "DIRENV_FILE",
        "DIRENV_WATCHES",
        # Which unit of systemd it is, and which click started it.
        "INVOCATION_ID",
        "JOURNAL_STREAM",
        "SYSTEMD_EXEC_PID",
        "MANAGERPID",
        "MANAGERPIDFDID",
        "MEMORY_PRESSURE_WATCH",
        "MEMORY_PRESSURE_WRITE",
        "GIO_LAUNCHED_DESKTOP_FILE",
        "GIO_LAUNCHED_DESKTOP_FILE_PID",
        "DESKTOP_STARTUP_ID",
        "XDG_ACTIVATION_TOKEN",
        # Its terminal: size, kind, and which window.
        "COLUMNS",
        "LINES",
        "TERM",
        "COLORTERM",
        "GPG_TTY",
        "SSH_TTY",
        "SSH_CLIENT",
        "SSH_CONNECTION",
        "WINDOWID",
        "WINDOW",
        "STY",
        "TMUX",
        "TMUX_PANE",
        "GNOME_TERMINAL_SCREEN",
        "GNOME_TERMINAL_SERVICE",
        "SHELL_SESSION_ID",
        "TILIX_ID",
        "WT_SESSION",
        "ITERM_SESSION_ID",
        "TERM_SESSION_ID",
        "XDG_SESSION_ID",
        "XDG_VTNR",
        "WINDOWPATH",
        "VTE_VERSION",
        "LC_TERMINAL",
        "LC_TERMINAL_VERSION",
        "TERMINAL_EMULATOR",
        "GUAKE_TAB_UUID",
        "NVIM",
        "NVIM_LISTEN_ADDRESS",
        "INSIDE_EMACS",
    ]
)
_LEFT_OUT_BEGINNINGS = (
    "ALACRITTY_",
    "GHOSTTY_",
    "HELM_",  # helm's own, which its plugins have and it has not; the cluster, user and token among them
    "HIST",
    "KITTY_",
    "KONSOLE_",
    "P9K_",  # Powerlevel10k: the terminal that it was started in
    "_P9K_",
    "PARALLEL_",  # GNU parallel: which job this is
    "PTYXIS_",
    "PYTEST_XDIST_",
    "TERMINATOR_",
    "TERM_PROGRAM",
    "VSCODE_",
    "WEZTERM_",
    "ZELLIJ",
)


def carried(environ: Mapping[str, str]) -> dict[str, str]:
    """What a bridge that is started from here gets."""
    found = {
        name: value
        for name, value in environ.items()
        if name not in _LEFT_OUT and not name.startswith(_LEFT_OUT_BEGINNINGS)
    }
    if (named := found.get(_POLICY, "")) not in ("", "off"):
        found[_POLICY] = os.path.abspath(named)  # a bridge stands elsewhere
    return found


def marks(environ: Mapping[str, str]) -> dict[str, str]:
    """A mark for each variable that matters, so that two environments are compared and their difference named."""
    found = {name: _digest(f"{name}={value}")[:_MARK] for name, value in carried(environ).items()}
    # Names are counted as they are written: what is not ASCII takes six characters of JSON.
    if sum(len(name) * 6 + _MARK + 8 for name in found) > MARKS_BYTES:
        raise EnvironmentFailure("the environment has too many variables for a bridge")
    return found


def whole(environ: Mapping[str, str]) -> str:
    """The same for all of them: a name for the environment."""
    return _digest("\0".join(f"{name}={mark}" for name, mark in sorted(marks(environ).items())))


def told(text: str) -> dict[str, object]:
    """Marks as somebody sent them."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("not marks")
    return found


def differing(ours: Mapping[str, str], theirs: Mapping[str, object]) -> list[str]:
    """The names of variables that only one has, or that are not the same."""
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def named(names: list[str]) -> str:
    """A few of them, for a message; never a value."""
    shown = ", ".join("".join(each if each.isprintable() else "?" for each in name[:60]) for name in names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
