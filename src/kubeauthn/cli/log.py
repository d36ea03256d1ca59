"""What the library logs (a plugin that cannot be refreshed, an old API version) as warnings of the command line."""

from __future__ import annotations

import logging

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn.cli.world import World


class _Complaints(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__(logging.WARNING)
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        self._world.complain("warning", record.getMessage())


def show_warnings(world: World) -> None:
    """Call it only where something may be logged: `logging` takes longer to load than a cached credential to find."""
    logger = logging.getLogger("kubeauthn")
    logger.handlers = [_Complaints(world)]
    logger.propagate = False
