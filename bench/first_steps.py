"""What a newcomer waits for: the demo, and the playground's verdict after a keystroke. Goals are limits, not ratios."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import Row, limit_row

if TYPE_CHECKING:
    from playwright.sync_api import Page, Response

MOST_DEMO_SECONDS = 15
MOST_VERDICT_MS = 150
MOST_PAGE_KB = 500
PARTS = 4
"""The slowest twentieth is looked for in each quarter of the keystrokes, so that it has a spread too."""
KEYS = "abcdefghijklmnopqrstuvwxyz"

# From the moment the browser dates the key press until the picture with the new verdict is on its way to the screen:
# the second of two frames after the text has changed.
WATCH = """() => {
    window.verdicts = [];
    let pressed = 0;
    document.addEventListener("input", (event) => { pressed = event.timeStamp; }, true);
    const drawn = () => window.verdicts.push(performance.now() - pressed);
    new MutationObserver(() => requestAnimationFrame(() => requestAnimationFrame(drawn)))
        .observe(document.getElementById("verdict"), { childList: true, characterData: true, subtree: true });
}"""


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    if not quick:
        demo(folder / "first")
    seconds = [demo(folder / str(number)) for number in range(1 if quick else 3)]
    yield limit_row("demo: the whole story, from start to end", seconds, most=MOST_DEMO_SECONDS, unit="s")
    yield from playground(8 if quick else len(KEYS) * 4)


def demo(home: Path) -> float:
    home.mkdir()
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(home), "XDG_RUNTIME_DIR": str(home)}
    # An installed program has its byte code beside it; the first, unmeasured run writes ours.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "kubeauthn", "demo"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,  # a plugin of the story fails there
        check=True,
        timeout=120,
    )
    return time.perf_counter() - begun


def playground(keystrokes: int) -> Iterator[Row]:
    """The example of the structured authentication KEP, which is the page's first, in the system's Chromium."""
    if shutil.which("chromium") is None:
        print("      there is no chromium: the playground's rows are left out", flush=True)
        return
    from tests.integration.playground_browser import DESKTOP, chromium
    from tests.integration.playground_process import PlaygroundProcess

    with PlaygroundProcess("--no-browser", "--port", "0") as command, chromium() as browser:
        page = browser.new_page(viewport=DESKTOP)
        sizes: list[int] = []

        def weigh(response: Response) -> None:
            sizes.append(len(response.body()))

        page.on("response", weigh)
        page.goto(f"http://127.0.0.1:{command.port}/")
        page.locator("#verdict", has_text="authenticated as jane:external-user").wait_for()
        page.remove_listener("response", weigh)  # those of the keystrokes would be measured along
        size = sum(sizes) / 1000
        milliseconds = typed(page, keystrokes)
    parts = [sorted(milliseconds[number::PARTS]) for number in range(PARTS)]
    slow = [part[min(len(part) - 1, int(len(part) * 0.95))] for part in parts]
    what = "playground: a keystroke to the verdict on the screen"
    yield limit_row(f"{what}, median", milliseconds, most=MOST_VERDICT_MS, unit="ms")
    yield limit_row(f"{what}, 95 of 100", slow, most=MOST_VERDICT_MS, unit="ms")
    page_row = limit_row("playground: the page and all that it fetches", [size], most=MOST_PAGE_KB, unit="kB")
    yield replace(page_row, spread="always the same")


def typed(page: Page, keystrokes: int) -> list[float]:
    """A letter more in the user's name with each key, and the verdict names it."""
    page.evaluate(WATCH)
    given = page.locator("#given")
    given.evaluate(
        "area => { const at = area.value.indexOf('jane') + 4; area.focus(); area.setSelectionRange(at, at); }"
    )
    name = "jane"
    for number in range(keystrokes):
        key = KEYS[number % len(KEYS)]
        name += key
        page.keyboard.press(key)
        page.locator("#verdict", has_text=f"authenticated as {name}:external-user").wait_for()
        page.wait_for_function("count => window.verdicts.length >= count", arg=number + 1)
    return [float(value) for value in page.evaluate("window.verdicts")]
