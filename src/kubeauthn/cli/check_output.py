"""What `check` found, printed: for people, for programs, for code scanning, for the lines of a pull request."""

from __future__ import annotations

import json

from kubeauthn import __version__
from kubeauthn._core.authentication.hints import RULES
from kubeauthn.cli.check_report import ERROR, KINDS, NOTE, WARNING, FileReport, Found
from kubeauthn.cli.config_file import STDIN
from kubeauthn.cli.text import escaped, escaped_lines, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn.cli.look import Look
    from kubeauthn.cli.world import World

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_KINDS = {ERROR: "bad", WARNING: "doubt", NOTE: "note"}
_INDENT = 4
_SOURCE_LINE = " |"
"""A compiler shows where in the expression: such a line stays whole, or its mark would point elsewhere."""
_GITHUB_LEVELS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


def write(reports: list[FileReport], form: str, world: World, look: Look) -> None:
    if form == "text":
        for report in reports:
            _write_text(report, world, look)
    elif form == "github":
        for report in reports:
            for found in report.all:
                world.say(_github(report, found))
    else:
        document = as_json(reports) if form == "json" else as_sarif(reports)
        # ASCII alone, so that no reader's terminal obeys a character of somebody else's
        world.say(json.dumps(document, indent=2))


# -- text -----------------------------------------------------------------------------------------


def _write_text(report: FileReport, world: World, look: Look) -> None:
    name = escaped(report.name)
    for found in report.all:
        place = f"{name}:{found.line}:{found.column}" if found.line else name
        rule = "" if found.rule in KINDS else f" [{found.rule}]"
        first, *rest = escaped_lines(found.text)
        begin = len(f"{place}: {found.level}: ")
        first, *folded = look.folded(first + ("" if rest else rule), _INDENT, first=begin)
        world.say(f"{look.paint('strong', place)}: {look.paint(_KINDS[found.level], found.level)}: {first}")
        for line in (*folded, *rest):
            for part in [line] if line.startswith(_SOURCE_LINE) else look.folded(line, _INDENT):
                world.say(f"{'':{_INDENT}}{part}".rstrip())
        hints = escaped_lines(found.hint) if found.hint else []
        for number, line in enumerate(part for hint in hints for part in look.folded(hint, _INDENT + 6)):
            world.say(f"{'':{_INDENT}}{look.paint('note', 'hint:') + ' ' if number == 0 else '      '}{line}")
    for answer in report.answers:
        world.say(f"{name}: {escaped(answer)}")
    kind = "bad" if report.has_faults else "doubt" if report.count(WARNING) else "good"
    world.say(f"{look.paint('strong', name)}: {look.paint(kind, _summary(report))}")


def _summary(report: FileReport) -> str:
    counts = [
        plural(count, noun)
        for level, noun in ((ERROR, "fault"), (WARNING, "warning"), (NOTE, "note"))
        if (count := report.count(level))
    ]
    if report.has_faults:
        return ", ".join(counts)
    return ", ".join([f"valid, {plural(report.issuers, 'issuer')}", *counts])


# -- for programs ---------------------------------------------------------------------------------


def as_json(reports: list[FileReport]) -> dict[str, Any]:
    return {
        "version": 1,
        "ok": not any(report.has_faults for report in reports),
        "files": [report.as_json() for report in reports],
    }


def as_sarif(reports: list[FileReport]) -> dict[str, Any]:
    used = dict.fromkeys(found.rule for report in reports for found in report.all)
    rules = [{"id": rule, "shortDescription": {"text": {**KINDS, **RULES}[rule]}} for rule in used]
    return {
        "$schema": SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "kubeauthn", "version": __version__, "rules": rules}},
                "columnKind": "unicodeCodePoints",
                "results": [_sarif_result(report, found) for report in reports for found in report.all],
            }
        ],
    }


def _sarif_result(report: FileReport, found: Found) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(report.name)}}
    if found.line:
        place["region"] = {"startLine": found.line, "startColumn": found.column}
    location: dict[str, Any] = {"physicalLocation": place}
    if found.field:
        location["logicalLocations"] = [{"fullyQualifiedName": found.field}]
    text = f"{found.text}\nhint: {found.hint}" if found.hint else found.text
    return {"ruleId": found.rule, "level": found.level, "message": {"text": text}, "locations": [location]}


def _uri(name: str) -> str:
    from urllib.parse import quote

    return "stdin" if name == STDIN else quote(name.replace("\\", "/"))


def _github(report: FileReport, found: Found) -> str:
    """A workflow command. What it holds is escaped as GitHub wants it, so that no text begins a command of its own."""
    where = f",line={found.line},col={found.column}" if found.line else ""
    title = _property(f"kubeauthn: {found.rule}")
    text = f"{found.text}\nhint: {found.hint}" if found.hint else found.text
    return f"::{_GITHUB_LEVELS[found.level]} file={_property(report.name)}{where},title={title}::{_message(text)}"


def _message(text: str) -> str:
    plain = "".join(c if c.isprintable() or c in "\n\r" else escaped(c) for c in text)
    return plain.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
