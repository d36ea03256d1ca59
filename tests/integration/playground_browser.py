"""The playground in the system's Chromium, driven by Playwright: one for a module, a fresh profile per test."""

from __future__ import annotations

import shutil
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import expect, sync_playwright

from kubeauthn.cli.playground_server import PlaygroundServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ARGUMENTS = (
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 740}

expect.set_options(timeout=20_000)  # a machine that builds something beside this is slow, and not wrong


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Scrollbars take room, and that is where two layers of a text drift apart.
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=list(ARGUMENTS), ignore_default_args=["--hide-scrollbars"]
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def playground(start: dict[str, str] | None = None) -> Iterator[PlaygroundServer]:
    server = PlaygroundServer(0, time.time, start)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Watched:
    """A page, and all that it asked for and complained about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))

    def open(self, address: str) -> Page:
        self.page.goto(address)
        self.page.locator("#verdict:not(:empty)").wait_for()
        return self.page
