"""What a run leaves behind: results/latest.json, the plot beside it, and the tables of docs/benchmarks.md.

    python -m bench.report            checks that plot and page are of the results that are there
    python -m bench.report --write    makes them so

No figure is written by hand: the page holds a part between two marks that comes from the results alone.
"""

from __future__ import annotations

import json
import os
import platform
import ssl
import subprocess
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import peer, plot
from bench.measure import Row

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "latest.json"
PLOT = RESULTS.with_suffix(".svg")
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- from bench/results/latest.json: begin -->", "<!-- from bench/results/latest.json: end -->"
PACKAGES = (
    "kubeauthn",
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
    "cryptography",
    "PyJWT",
    "joserfc",
    "Authlib",
    "cel-expr-python",
    "common-expression-language",
    "cel-python",
    "granian",
)


def document(rows: Iterable[Row], left_out: list[str]) -> dict[str, Any]:
    return {
        "machine": machine(),
        "checkout": checkout(),
        "versions": versions(),
        "left_out": left_out,
        "results": [row.as_dict() for row in rows],
    }


def write(found: Mapping[str, Any]) -> None:
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PLOT.write_text(plot.svg(found), encoding="utf-8")
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")


def page_with(page: str, found: Mapping[str, Any]) -> str:
    """The page with its measured part made from these results."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE.name} has lost the marks around its measured part")
    return f"{before}{BEGIN}\n\n{measured_part(found)}\n{END}{after}"


def measured_part(found: Mapping[str, Any]) -> str:
    results = found["results"]
    missed = [result for result in results if not result["met"]]
    with_goal = [result for result in results if result["goal"] != "none"]
    lines = [
        f"Measured on {_machine(found['machine'])}{_commit(found.get('checkout', {}))}.",
        "",
        f"{len(with_goal) - len(missed)} of {len(with_goal)} goals are met.",
    ]
    if found.get("left_out"):
        lines += ["", f"Left out, because it was not there: {', '.join(found['left_out'])}."]
    if missed:
        lines += [
            "",
            "### Missed goals",
            "",
            "| row | beside | ours | peer | ratio | goal |",
            "|---|---|---|---|---|---|",
        ]
        lines += [_line(result) for result in missed]
    shown = plot.chosen(results)
    lines += [
        "",
        "### The rows of the plot",
        "",
        "| row | beside | ours | peer | ratio | goal |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_line(result) for result in shown]
    names = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return "\n".join([*lines, "", f"Versions: {names}.", ""])


def _line(result: Mapping[str, Any]) -> str:
    unit = result["unit"]
    cells = [
        result["name"],
        result["peer_name"],
        f"{_figure(result['ours'])} {unit}",
        f"{_figure(result['peer'])} {unit}",
        f"{result['ratio']:.3g} ×",
        result["goal"],
    ]
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _machine(found: Mapping[str, Any]) -> str:
    return (
        f"{found['processor']}, {found['cores']} cores, {found['system']}, Python {found['python']}, {found['openssl']}"
    )


def _commit(found: Mapping[str, Any]) -> str:
    if not found.get("commit"):
        return ""
    return f", commit {found['commit'][:12]}" + ("" if found["clean"] else " with changes")


def machine() -> dict[str, object]:
    model = ""
    if Path("/proc/cpuinfo").exists():
        names = [row for row in Path("/proc/cpuinfo").read_text().splitlines() if row.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else ""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "processor": model or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
    }


def checkout() -> dict[str, object]:
    """Which commit was measured, and whether the tree had changes; empty outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD").strip()
        return {"commit": commit, "clean": not _git("status", "--porcelain", "--untracked-files=no").strip()}
    except (OSError, subprocess.CalledProcessError):
        return {}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout


def versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return {**found, **peer.versions()}


def main() -> int:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        write(found)
        return 0
    stale = [
        path.relative_to(ROOT)
        for path, text in ((PLOT, plot.svg(found)), (PAGE, page_with(PAGE.read_text(encoding="utf-8"), found)))
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{path} is not of the results in {RESULTS.name}: python -m bench.report --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
