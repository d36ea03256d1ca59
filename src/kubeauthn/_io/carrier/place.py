"""Where an author's function failed. Its error's text may hold a secret; file and line do not, and are what helps."""

from __future__ import annotations

import os
import traceback

_OURS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


def place_of(error: BaseException) -> str:
    """` (FILE:LINE)`: the last line of the author's file. Empty where nobody else's code was on the way."""
    lines = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    author = next((file for file, _ in lines if not os.path.abspath(file).startswith(_OURS)), None)
    if author is None:
        return ""
    return f" ({os.path.basename(author)}:{[line for file, line in lines if file == author][-1]})"
