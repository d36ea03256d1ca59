"""The terminal, if there is one."""

from __future__ import annotations

import os
import sys


def stdin_is_terminal() -> bool:
    """File descriptor 0 is asked, because that is what a plugin would inherit."""
    try:
        return sys.stdin is not None and os.isatty(0)
    except OSError:
        return False
