"""`make docs`: the site builds without a warning, holds every page, and asks nobody else for anything."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documentation") / "site"
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=110,
    )
    warnings = [line for line in result.stderr.splitlines() if "INFO" not in line]
    assert result.returncode == 0, "\n".join(warnings)
    return folder


class Loaded(HTMLParser):
    """What a browser fetches to show a page, and the pictures and links it leads to."""

    FETCHED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src"}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        wanted = self.FETCHED.get(tag)
        if wanted and given.get(wanted) and given.get("rel") != "canonical":
            self.fetched.append(given[wanted] or "")
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")


def loaded(page: Path) -> Loaded:
    parser = Loaded()
    parser.feed(page.read_text())
    return parser


def pages(site: Path) -> list[Path]:
    return [page for page in site.rglob("*.html") if page.name != "404.html"]


@pytest.mark.timeout(120)
def test_every_document_is_a_page(site: Path):
    sources = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]
    project = [Path("project", f"{name}.html") for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")]
    assert not [str(path) for path in (*sources, *project) if path.name != "README.html" and not (site / path).exists()]
    assert (site / "project" / "index.html").exists() or (site / "project" / "README.html").exists()


@pytest.mark.timeout(120)
def test_nothing_is_fetched_from_elsewhere(site: Path):
    seen = {address for page in pages(site) for address in loaded(page).fetched}
    assert any(address.endswith(".css") for address in seen)
    assert not [address for address in seen if address.startswith(("http:", "https:", "//"))]


@pytest.mark.timeout(120)
def test_links_and_pictures_lead_to_files_of_the_site(site: Path):
    broken = [
        f"{page.relative_to(site)}: {address}"
        for page in pages(site)
        for address in (*loaded(page).links, *loaded(page).fetched)
        if "://" not in address and not address.startswith(("#", "mailto:", "data:"))
        if not (page.parent / address.partition("#")[0].partition("?")[0]).exists()
    ]
    assert not broken


@pytest.mark.needs("chromium")
@pytest.mark.timeout(120)
def test_the_search_answers_where_the_site_is_opened_from_the_disk(site: Path):
    from playwright.sync_api import expect

    from tests.integration.playground_browser import Watched, chromium

    with chromium() as browser:
        watched = Watched(browser.new_page())
        page = watched.page
        page.goto((site / "index.html").as_uri())
        words, found = page.locator(".md-search__input"), page.locator(".md-search-result__item")
        for _ in range(40):  # what is typed before the index has been read is not looked for
            words.fill("")
            words.press_sequentially("audienceMatchPolicy")
            page.wait_for_timeout(500)
            if found.count():
                break
        expect(found.first).to_contain_text("audienceMatchPolicy", ignore_case=True)
        assert not [address for address in watched.requests if not address.startswith("file:")]
        assert watched.complaints == []
