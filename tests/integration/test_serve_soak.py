"""The soak of bench/serve_soak.py in short: reloads and rotations under load, and no wrong answer."""

from __future__ import annotations

import asyncio

from bench.serve_soak import soak


def test_no_wrong_answer_while_file_and_keys_change():
    seen = asyncio.run(soak(12.0, 2))
    assert seen.wrong == {}
    assert seen.reloads >= 5
    assert seen.rotations >= 2
    assert seen.requests > 200
