"""One column, in a process of its own: `python -m tests.compat.measure COLUMN FOLDER`.

Libraries keep clients, configurations and temporary files for the whole process, so no two of them share one.
The cells go to FOLDER/cells.json; key files that were left are looked for again when the process has ended.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from tests.compat import probes_keep, probes_run
from tests.compat.columns import COLUMNS
from tests.compat.scene import Stage


def measure(column_name: str, folder: Path) -> None:
    os.umask(0o022)  # what most people have; it decides who can read a carelessly made file
    column = COLUMNS[column_name]
    scenes = folder / "scenes"
    scenes.mkdir()
    stage = Stage(column.make_driver(), scenes, ours=column.ours)
    cells: dict[str, str] = {}
    for probe in (*probes_run.PROBES, *probes_keep.PROBES):
        cells |= probe(stage)
    result = {"cells": cells, "left": stage.left_by_probe}
    (folder / "cells.json").write_text(json.dumps(result))


if __name__ == "__main__":
    measure(sys.argv[1], Path(sys.argv[2]))
