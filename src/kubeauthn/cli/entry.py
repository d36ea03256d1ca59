"""Where `kubeauthn` begins: Ctrl-C ends it without a traceback, also while the rest of it is only being loaded.

Until a command runs there is nothing to clear up, so the process ends at once. An exception would not do: one that is
raised while Python imports a module may be lost in it, and the command would go on.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # what `signal` is made of, and loaded already; that would bring `enum`
import os

INTERRUPTED = 130


def main() -> int:
    """The exit code of the process."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # a job in the background ignores it
        _signal.signal(_signal.SIGINT, _leave)
    from kubeauthn.cli.main import main as run

    try:
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        # Python's own ending takes a moment, too: another Ctrl-C is not to fill it with what it cannot do any more.
        if _signal.getsignal(_signal.SIGINT) in (_leave, _signal.default_int_handler):
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)


def raise_again() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again: a command is about to run, and may have to clear up."""
    if _signal.getsignal(_signal.SIGINT) is _leave:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _leave(number: int, frame: object) -> None:
    os._exit(INTERRUPTED)
