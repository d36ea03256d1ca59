"""The prompt of `kubeauthn cel`, on a real (pseudo) terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time


def test_a_person_types_expressions() -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kubeauthn", "cel"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    seen = ""

    def wait_for(text: str) -> None:
        nonlocal seen
        deadline = time.monotonic() + 20
        while text not in seen:
            assert time.monotonic() < deadline, seen
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 4096).decode()

    try:
        wait_for("cel> ")
        os.write(master, b':claims {"sub": "jane"}\n')
        os.write(master, b'claims.sub + "!"\n')
        wait_for('"jane!"')
        os.write(master, b":quit\n")
        assert process.wait(40) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
