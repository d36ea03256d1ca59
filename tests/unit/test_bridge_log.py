"""The file of a bridge's warnings."""

from __future__ import annotations

import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubeauthn.plugins.bridge.log import BoundedLog

MOST = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def logger(path: Path) -> Iterator[logging.Logger]:
    made = logging.Logger("a bridge's")
    handler = BoundedLog(str(path), MOST)
    made.addHandler(handler)
    yield made
    handler.stream.close()


def test_what_is_newest_is_there_however_much_comes(logger: logging.Logger, path: Path):
    for number in range(1000):
        logger.warning("line %d of a server that is away", number)
        assert path.stat().st_size <= MOST
    lines = path.read_text().splitlines()
    assert lines == [f"line {number} of a server that is away" for number in range(1000 - len(lines), 1000)]
    assert len(path.read_bytes()) > MOST // 3


def test_a_line_that_is_too_long_by_itself(logger: logging.Logger, path: Path):
    logger.warning("x" * 3 * MOST)
    logger.warning("and another")
    assert path.read_text() == "and another\n"


def test_it_is_this_users_alone(logger: logging.Logger, path: Path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
