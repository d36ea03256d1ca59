"""`python -m bench [--quick] [--only NAME]`: every scenario, a table, and bench/results/latest.json."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import ssl
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.measure import Row

SCENARIOS = ("hot_path", "adapters", "startup", "kubeconfig", "cel", "authenticate", "server_memory")
RESULTS = Path(__file__).parent / "results" / "latest.json"
PEERS = (
    "PyYAML",
    "httpx2",
    "httpx",
    "requests",
    "urllib3",
    "aiohttp",
    "kubernetes",
    "kubernetes_asyncio",
    "lightkube",
    "kr8s",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, nothing written")
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="this scenario alone")
    arguments = parser.parse_args()
    rows: list[Row] = []
    for name in arguments.only or SCENARIOS:
        scenario = importlib.import_module(f"bench.{name}")
        with tempfile.TemporaryDirectory(prefix="kubeauthn-bench-") as folder:
            for row in scenario.rows(Path(folder), quick=arguments.quick):
                print(line(row), flush=True)
                rows.append(row)
    if not arguments.quick and not arguments.only:
        write(rows)
    missed = [row for row in rows if not row.met]
    print(f"\n{len(rows) - len(missed)} of {len(rows)} goals met")
    # Quick runs are too short to judge a few per cent by: they show that everything runs.
    return 1 if missed and not arguments.quick else 0


def line(row: Row) -> str:
    mark = "met " if row.met else "MISS"
    return (
        f"{mark}  {row.name:<66} {row.ours:>10.3f} {row.unit:<7} {row.peer:>10.3f} {row.ratio:>7.3f} ×  "
        f"{row.goal:<14} {row.spread:<13} beside {row.peer_name}"
    )


def write(rows: list[Row]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    document = {"machine": machine(), "versions": versions(), "results": [row.as_dict() for row in rows]}
    RESULTS.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def machine() -> dict[str, object]:
    model = ""
    if Path("/proc/cpuinfo").exists():
        names = [row for row in Path("/proc/cpuinfo").read_text().splitlines() if row.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else ""
    return {
        "system": platform.system(),
        "processor": model or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
    }


def versions() -> dict[str, str]:
    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    sys.exit(main())
