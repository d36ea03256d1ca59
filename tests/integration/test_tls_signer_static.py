"""The Python that uv installs: its OpenSSL is linked in and hidden. A real one, and what it is told."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.peers.programs import find

STANDALONE = find("standalone-python")
pytestmark = pytest.mark.skipif(STANDALONE is None, reason="standalone-python is not built: tests/peers/build.py")
SOURCES = Path(__file__).resolve().parents[2] / "src"
ASK = """
import json, ssl
from kubeauthn._io.tls_signer import check_support
from kubeauthn.errors import SigningUnsupported
said = []
for _ in range(2):
    try:
        check_support()
    except SigningUnsupported as error:
        said.append([str(error), error.hint])
print(json.dumps({"version": ssl.OPENSSL_VERSION, "said": said}))
"""


def test_it_is_refused_by_what_it_is_and_told_the_way_that_works(tmp_path: Path):
    done = subprocess.run(
        [str(STANDALONE), str(tmp_path / "python"), "-c", ASK],
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["version"].startswith("OpenSSL 3.")  # new enough: it is the linking alone that is in the way
    first, second = answer["said"]
    text, hint = first
    assert f"this Python has {answer['version']} linked into its ssl" in text
    assert "uv venv --python /usr/bin/python3" in hint
    assert "kubeauthn bridge run" in hint
    assert second == first
