"""The report of `kubeauthn test`: like that of a test runner, and as JUnit and JSON for those who gather them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from kubeauthn.cli.text import escaped, escaped_lines
from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn._core.authentication.suite import Case
    from kubeauthn.cli.look import Look
    from kubeauthn.cli.world import World


@dataclass(frozen=True)
class CaseResult:
    case: Case
    differences: list[tuple[str, str]]
    seconds: float


@dataclass
class SuiteReport:
    name: str
    configuration: str
    config: AuthenticationConfiguration
    results: list[CaseResult] = field(default_factory=list)
    failed_rules: set[str] = field(default_factory=set)
    issuers_met: set[str] = field(default_factory=set)

    @property
    def failed(self) -> int:
        return sum(bool(result.differences) for result in self.results)

    def untested_rules(self) -> Iterator[tuple[str, str]]:
        """The rules that no case made fail, each with what it says."""
        for index, entry in enumerate(self.config.jwt):
            for number, rule in enumerate(entry.claim_validation_rules):
                place = f"jwt[{index}].claimValidationRules[{number}]"
                if place not in self.failed_rules:
                    yield place, rule.expression or f"{rule.claim} is {json.dumps(rule.required_value)}"
            for number, user_rule in enumerate(entry.user_validation_rules):
                place = f"jwt[{index}].userValidationRules[{number}]"
                if place not in self.failed_rules:
                    yield place, user_rule.expression

    def untested_issuers(self) -> Iterator[tuple[str, str]]:
        """The issuers that no case has."""
        for index, entry in enumerate(self.config.jwt):
            if entry.issuer.url not in self.issuers_met:
                yield f"jwt[{index}]", entry.issuer.url

    def rules(self) -> int:
        return sum(len(entry.claim_validation_rules) + len(entry.user_validation_rules) for entry in self.config.jwt)


# -- text -----------------------------------------------------------------------------------------


def write_text(reports: list[SuiteReport], world: World, look: Look, *, all_cases: bool) -> None:
    for report in reports:
        world.say(f"{escaped(report.name)} ({escaped(report.configuration)})")
        for result in report.results:
            _write_result(result, world, look)
        if all_cases:
            _write_coverage(report, world)
    failed = sum(report.failed for report in reports)
    passed = sum(len(report.results) for report in reports) - failed
    world.say(look.paint("bad" if failed else "good", f"{passed} passed, {failed} failed"))


def _write_result(result: CaseResult, world: World, look: Look) -> None:
    kind, word = ("bad", "FAILED") if result.differences else ("good", "ok")
    mark = look.paint(kind, word.ljust(6))
    line = f" (line {result.case.line})" if result.differences else ""
    world.say(f"  {mark}  {escaped(result.case.name)}{line}")
    for wanted, got in result.differences:
        for title, text in (("expected", wanted), ("got", got)):
            first, *rest = escaped_lines(text)
            world.say(f"          {title.ljust(8)}  {first}")
            for more in rest:
                world.say(f"                    {more}")


def _write_coverage(report: SuiteReport, world: World) -> None:
    untested = list(report.untested_rules())
    if report.rules():
        world.say(f"  rules that a case made fail: {report.rules() - len(untested)} of {report.rules()}")
    for place, text in untested:
        world.say(f"    no case makes {place} fail: {escaped(text)}")
    for place, text in report.untested_issuers():
        world.say(f"    no case is of {place}: {escaped(text)}")


# -- for programs ---------------------------------------------------------------------------------


def write_json(reports: list[SuiteReport], world: World) -> None:
    failed = sum(report.failed for report in reports)
    document = {
        "version": 1,
        "ok": not failed,
        "passed": sum(len(report.results) for report in reports) - failed,
        "failed": failed,
        "suites": [_suite(report) for report in reports],
    }
    world.say(json.dumps(document, indent=2))


def _suite(report: SuiteReport) -> dict[str, Any]:
    return {
        "suite": report.name,
        "configuration": report.configuration,
        "cases": [
            {
                "name": result.case.name,
                "line": result.case.line,
                "ok": not result.differences,
                "differences": [{"expected": wanted, "got": got} for wanted, got in result.differences],
            }
            for result in report.results
        ],
        "rulesNoCaseMadeFail": [place for place, _ in report.untested_rules()],
        "issuersWithoutACase": [url for _, url in report.untested_issuers()],
    }


def write_junit(reports: list[SuiteReport], path: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(junit(reports))
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {(error.strerror or type(error).__name__).lower()}") from None


def junit(reports: list[SuiteReport]) -> str:
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>"]
    for report in reports:
        counts = f'tests="{len(report.results)}" failures="{report.failed}" errors="0" skipped="0"'
        lines.append(f"  <testsuite name={_attribute(report.name)} {counts}>")
        for result in report.results:
            head = f"name={_attribute(result.case.name)} classname={_attribute(report.name)}"
            where = f'file={_attribute(report.name)} line="{result.case.line}" time="{result.seconds:.3f}"'
            if not result.differences:
                lines.append(f"    <testcase {head} {where}/>")
                continue
            text = "\n".join(f"expected {wanted}\ngot      {got}" for wanted, got in result.differences)
            message = _attribute(f"expected {result.differences[0][0]}")
            lines.append(f"    <testcase {head} {where}>")
            lines.append(f"      <failure message={message}>{escape(_xml(text))}</failure>")
            lines.append("    </testcase>")
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _attribute(text: str) -> str:
    return quoteattr(_xml(text))


def _xml(text: str) -> str:
    """XML has no place for most control characters, nor for half a surrogate pair."""
    return "".join(c if c.isprintable() or c in "\n\t" else escaped(c) for c in text)
