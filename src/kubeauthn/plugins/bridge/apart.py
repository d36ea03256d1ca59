"""A bridge beside another, for one environment alone: what is kept of it goes when nothing leads to it any more.

Only `kubeauthn kubectl` and `bridge run` make one, with a kubeconfig that ends with them. Each holds a lock on it for
as long. Whoever comes last, the bridge or the command, finds that nobody else does.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.plugins.bridge import definition as definitions

IN_USE = "in-use"


@contextmanager
def in_use(name: str) -> Iterator[None]:
    """Nobody forgets this bridge meanwhile; afterwards it is forgotten, unless it runs or is used by others.

    It may have been forgotten before: whoever wants its definition asks for it within.
    """
    path = definitions.directory_of(name)
    try:
        descriptor = _shared(path)
    except OSError as error:
        raise EnvironmentFailure(
            f"{error.filename or path}: {(error.strerror or 'cannot be opened').lower()}"
        ) from None
    try:
        yield
    finally:
        os.close(descriptor)
        forget_unless_used(path)


def forget_unless_used(path: str) -> None:
    """The bridge calls it at its end, and each command at its own: the last of them finds that nobody else is there."""
    with suppress(OSError, EnvironmentFailure), definitions.one_at_a_time(), ExitStack() as held:
        _lock(os.path.join(path, definitions.LOCK), held, os.O_CREAT)
        _lock(os.path.join(path, IN_USE), held)  # without it another version made the bridge, and nobody knows
        shutil.rmtree(path)


def _shared(path: str) -> int:
    file = os.path.join(path, IN_USE)
    while True:
        with suppress(FileNotFoundError):  # it is just being forgotten: once more
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            definitions.check_private(path)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), os.stat(file)):
                    return descriptor
            os.close(descriptor)


def _lock(file: str, held: ExitStack, more: int = 0) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | more, 0o600)
    held.callback(os.close, descriptor)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
