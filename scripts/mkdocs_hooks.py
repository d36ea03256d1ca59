"""What the documentation site needs beyond docs/: the README and its neighbours, linked files, folders, the search.

The pages are written for a reader of the repository, where `../README.md` leads somewhere. On the site the project's
own documents are pages below `project/`, any other file of the repository that a page links to is copied below
`files/`, and the links are rewritten. In the navigation `folder/*` stands for the pages of a folder.
"""

from __future__ import annotations

import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from collections.abc import Callable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PROJECT = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    named = _named(config.nav)
    config.nav = _expanded(config.nav, named)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name in PROJECT:
        files.append(File.generated(config, f"project/{name}", content=(ROOT / name).read_text()))
    linked = {
        target
        for file in files.documentation_pages()
        for target in link_targets(file.content_string, source_of(file.src_uri))
        if (ROOT / target).is_file() and site_place(target).startswith("files/")
    }
    for target in sorted(linked):
        files.append(File.generated(config, site_place(target), abs_src_path=str(ROOT / target)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    source, place = source_of(page.file.src_uri), page.file.src_uri

    def moved(target: str) -> str:
        there = site_place(_in_repository(target, source))
        return posixpath.relpath(there, posixpath.dirname(place) or ".")

    return with_links(markdown, moved)


def on_post_build(config: MkDocsConfig) -> None:
    """The search's index as a script too: what is opened from the disk can load that, and no JSON."""
    index = Path(config.site_dir, "search", "search_index.json")
    index.with_suffix(".js").write_text(f"var __index = {index.read_text('utf-8')};\n", "utf-8")


def source_of(place: str) -> str:
    """Where a page of the site stands in the repository."""
    return place.removeprefix("project/") if place.startswith("project/") else f"docs/{place}"


def site_place(path: str) -> str:
    """Where a file of the repository stands on the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"project/{path}" if path in PROJECT else f"files/{path}"


def link_targets(markdown: str, source: str) -> list[str]:
    """The files of the repository that a page links to."""
    found: list[str] = []

    def noted(target: str) -> str:
        found.append(_in_repository(target, source))
        return target

    with_links(markdown, noted)
    return found


def with_links(markdown: str, change: Callable[[str], str]) -> str:
    """Each link to another file changed; code blocks are left alone."""
    lines, fence = [], ""
    for line in markdown.split("\n"):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if fence == mark else fence or mark
        lines.append(line if fence else _changed_line(line, change))
    return "\n".join(lines)


def _changed_line(line: str, change: Callable[[str], str]) -> str:
    first, *rest = line.split("](")
    parts = [first]
    for part in rest:
        link, bracket, after = part.partition(")")
        target, hash_sign, anchor = link.partition("#")
        if bracket and target and "://" not in target and not target.startswith("mailto:"):
            part = f"{change(target)}{hash_sign}{anchor}){after}"
        parts.append(part)
    return "](".join(parts)


def _in_repository(target: str, source: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def _named(nav: Any) -> set[str]:
    if isinstance(nav, str):
        return {nav}
    entries = nav.values() if isinstance(nav, dict) else nav
    return {name for entry in entries for name in _named(entry)}


def _expanded(nav: Any, named: set[str]) -> Any:
    if isinstance(nav, dict):
        return {title: _expanded(entry, named) for title, entry in nav.items()}
    if not isinstance(nav, list):
        return nav
    entries: list[Any] = []
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/*"):
            pages = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").glob(f"{entry}.md"))
            entries += [page for page in pages if page not in named]
        else:
            entries.append(_expanded(entry, named))
    return entries
