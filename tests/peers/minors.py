"""Makes the oracle's go.mod files for the older minors from its own: same sources, other releases.

python -m tests.peers.minors 1.36=0.36.6 1.35=0.35.10
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.peers.programs import HERE

ORACLE = HERE / "oracle"
_TEMPLATE = """\
// The oracle with Kubernetes {minor}'s code. Made by `python -m tests.peers.minors`.
module kubeauthn.test/peers/oracle

go 1.26.0

require (
\tk8s.io/apimachinery v{release}
\tk8s.io/apiserver v{release}
)
"""


def write(minor: str, release: str) -> Path:
    """The module file of one minor, with its sums."""
    modfile = ORACLE / "minors" / f"{minor}.mod"
    modfile.parent.mkdir(exist_ok=True)
    modfile.write_text(_TEMPLATE.format(minor=minor, release=release), encoding="utf-8")
    subprocess.run(["go", "mod", "tidy", f"-modfile={modfile}"], cwd=ORACLE, check=True, timeout=600)
    return modfile


def main(arguments: list[str]) -> int:
    for argument in arguments:
        minor, _, release = argument.partition("=")
        write(minor, release)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
