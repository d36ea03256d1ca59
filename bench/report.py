"""What a run leaves behind: results/latest.json, the plot beside it, the tables of docs/benchmarks.md and README.md.

    python -m bench.report            checks that plot and pages are of the results that are there
    python -m bench.report --write    makes them so

No figure is written by hand: each page holds a part between two marks that comes from the results alone.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bench import peer, plot
from bench.measure import Row
from tests.peers.programs import find

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results" / "latest.json"
PLOT = RESULTS.with_suffix(".svg")
PAGE = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- from bench/results/latest.json: begin -->", "<!-- from bench/results/latest.json: end -->"
HEADLINES = (
    ("authenticate: RS256", "kube-apiserver's code"),
    ("cel: 6 of the six expressions", "cel-expr-python"),
    ("webhook: 2 workers, every token new", "Go webhook"),
    ("requests a second through a proxy, 16 connections", "kubectl proxy"),
    ("start-up: a plugin written with the SDK", "python -c pass"),
    ("playground: a keystroke to the verdict on the screen, median", "the limit"),
)
"""Rows that the README shows where their goal is met: one of each kind of use."""
TABLE = ("| row | beside | ours | peer | ratio | goal | spread |", "|---|---|---|---|---|---|---|")
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
    for page, part in pages():
        page.write_text(page_with(page.read_text(encoding="utf-8"), part(found)), encoding="utf-8")


def pages() -> tuple[tuple[Path, Callable[[Mapping[str, Any]], str]], ...]:
    """Each page, and what its measured part is made by."""
    return ((PAGE, measured_part), (README, short_part))


def page_with(page: str, part: str) -> str:
    """The page with this measured part."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has lost the marks around its measured part")
    return f"{before}{BEGIN}\n\n{part}\n{END}{after}"


def measured_part(found: Mapping[str, Any]) -> str:
    results = found["results"]
    missed = [result for result in results if not result["met"]]
    with_goal = [result for result in results if result["goal"] != "none"]
    lines = [
        f"Measured on {described(found['machine'])}{_commit(found.get('checkout', {}))}.",
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
            *TABLE,
        ]
        lines += [_line(result) for result in missed]
    shown = plot.chosen(results)
    lines += [
        "",
        "### The rows of the plot",
        "",
        *TABLE,
    ]
    lines += [_line(result) for result in shown]
    names = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return "\n".join([*lines, "", f"Versions: {names}.", ""])


def short_part(found: Mapping[str, Any]) -> str:
    """For the README: how many goals are met, some of them, and by how much the others are missed."""
    with_goal = [result for result in found["results"] if result["goal"] != "none"]
    missed = [result for result in with_goal if not result["met"]]
    met = len(with_goal) - len(missed)
    lines = [f"{met} of {len(with_goal)} goals are met in the last full run ({described(found['machine'])})."]
    by_key = {(result["name"], result["peer_name"]): result for result in found["results"]}
    shown = [by_key[key] for key in HEADLINES if key in by_key and by_key[key]["met"]]
    if shown:
        lines += ["", TABLE[0].replace("row", "met, for example", 1), TABLE[1]]
        lines += [_line(result) for result in shown]
    if missed:
        lines += ["", "| missed | beside | reached | goal | by | spread |", "|---|---|---|---|---|---|"]
        lines += [_missed_line(result) for result in missed]
    return "\n".join([*lines, ""])


def _missed_line(result: Mapping[str, Any]) -> str:
    reached, by = behind(result)
    cells = (result["name"], result["peer_name"], reached, result["goal"], by, _spread(result))
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def behind(result: Mapping[str, Any]) -> tuple[str, str]:
    """What a row reached, in the terms of its goal, and how far behind it is, as a part of the goal."""
    sign, number, *words = str(result["goal"]).split()
    unit = result["unit"]
    if words[-1:] == ["×"]:
        reached, told = result["ratio"], f"{result['ratio']:.3g} ×"
    elif words[-1:] == ["more"]:
        reached = result["ours"] - result["peer"]
        told = f"{_figure(reached)} {unit} more"
    else:
        reached, told = result["ours"], f"{_figure(result['ours'])} {unit}"
    part = reached / float(number)
    return told, f"{abs(1 - part if sign == '≥' else part - 1):.1%}"


def _line(result: Mapping[str, Any]) -> str:
    unit = result["unit"]
    cells = [
        result["name"],
        result["peer_name"],
        f"{_figure(result['ours'])} {unit}",
        f"{_figure(result['peer'])} {unit}",
        f"{result['ratio']:.3g} ×",
        result["goal"],
        _spread(result),
    ]
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _spread(result: Mapping[str, Any]) -> str:
    """Of ours and of the peer's readings, and how well the ratio is known where that is more than a guess."""
    within = result.get("ratio_within")
    return (result["spread"] or "not taken") + (f", ratio ±{within:.1%}" if within is not None else "")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def described(found: Mapping[str, Any]) -> str:
    return (
        f"{found['processor']}, {found['cores']} cores, {found['system']}, Python {found['python']}, {found['openssl']}"
    )


def _commit(found: Mapping[str, Any]) -> str:
    if not found.get("commit"):
        return ""
    return f", commit {found['commit'][:12]}" + ("" if found["clean"] else " with changes")


def left_out() -> list[str]:
    """What is not on this machine, and the rows that go with it."""
    found = []
    if peer.program() is None:
        found.append("Go, and with it every row beside Kubernetes' own code")
    if kubectl() is None:
        found.append("kubectl, and with it every row beside it")
    if shutil.which("openssl") is None:
        found.append("openssl, and with it the rows beside its speed")
    if shutil.which("softhsm2-util") is None or shutil.which("pkcs11-tool") is None:
        found.append("SoftHSM2 and OpenSC, and with them the row of kubeauthn-signer-pkcs11")
    if shutil.which("chromium") is None:
        found.append("Chromium, and with it the rows of the playground's page")
    return found


def kubectl() -> str | None:
    """The one that goals are measured beside: the newest if it is built, else the packaged one."""
    newest = find("kubectl")
    return str(newest) if newest else shutil.which("kubectl")


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
    program = kubectl()
    if program is not None:
        command = [program, "version", "--client", "--output=json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        try:
            found["kubectl"] = str(json.loads(done.stdout)["clientVersion"]["gitVersion"])
        except (ValueError, KeyError):
            found["kubectl"] = "unknown"
    return {**found, **peer.versions()}


def main() -> int:
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        write(found)
        return 0
    wanted = [(PLOT, plot.svg(found))]
    wanted += [(page, page_with(page.read_text(encoding="utf-8"), part(found))) for page, part in pages()]
    stale = [
        path.relative_to(ROOT) for path, text in wanted if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{path} is not of the results in {RESULTS.name}: python -m bench.report --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
