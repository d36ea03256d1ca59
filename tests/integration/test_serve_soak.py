"""The soak of bench/serve_soak.py in short: reloads and one rotation under load, and no wrong answer.

One, because a second one within 30 s meets the limit on looking up unknown keys: the long form shows that.
"""

from __future__ import annotations

import asyncio

from bench.serve_soak import soak


def test_no_wrong_answer_while_file_and_keys_change():
    seen = asyncio.run(soak(8.0, 2))
    assert seen.wrong == {}
    assert seen.reloads >= 5
    assert seen.rotations == 1
    assert seen.requests > 200
