"""Run files of cases against a configuration: claims or a token, and the user or the refusal that is expected.

Claims are taken as verified. The report also says which rules no case made fail.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from kubeauthn.cli import failure
from kubeauthn.cli.config_file import checked_version, read, read_configuration, shown_name, with_patterns
from kubeauthn.cli.look import add_color_option
from kubeauthn.errors import EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator
    from typing import Any

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn._core.authentication.suite import Case, Suite
    from kubeauthn._core.authentication.trace import Trace
    from kubeauthn.cli.suite_report import SuiteReport
    from kubeauthn.cli.world import World

HELP = "runs a file of cases against a configuration, like unit tests"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="YAML files with cases")
    parser.add_argument("-k", dest="name", metavar="NAME", help="only cases whose name holds this text")
    parser.add_argument("--junit", metavar="FILE", help="also write a JUnit report to this file")
    parser.add_argument("--kubernetes", metavar="VERSION", help="expressions as this release has them (newest)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it (text)")
    add_color_option(parser)


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._core.authentication.release import NEWEST
    from kubeauthn.cli.suite_report import write_json, write_junit, write_text

    if arguments.suites.count("-") > 1:
        raise UsageError("standard input can be read once")
    version = checked_version(arguments.kubernetes) if arguments.kubernetes else NEWEST
    with with_patterns():
        reports = [run_suite(path, world, version, arguments.name) for path in arguments.suites]
    if not any(report.results for report in reports):
        raise UsageError(f'no case has "{arguments.name}" in its name')
    if arguments.output == "json":
        write_json(reports, world)
    else:
        write_text(reports, world, world.look(arguments.color), all_cases=not arguments.name)
    if arguments.junit:
        write_junit(reports, arguments.junit)
    return failure.NO if any(report.failed for report in reports) else failure.YES


def run_suite(path: str, world: World, version: str, only: str | None = None) -> SuiteReport:
    """Raises EnvironmentFailure for a suite or a file it names that is not right."""
    from kubeauthn._core.authentication.suite import differences, failed_rules
    from kubeauthn.cli.suite_report import CaseResult, SuiteReport

    suite = _read(path, world)
    folder = "" if path == "-" else os.path.dirname(path)
    with _named_by(path, "configuration"):
        config = read_configuration(os.path.join(folder, suite.configuration), world, version)
    with _named_by(path, "keys"):
        keys = _keys(suite, folder, config, world)
    judge = _Judge(suite, config, keys, world, version)
    report = SuiteReport(shown_name(path), suite.configuration, config)
    for case in suite.cases:
        if only is not None and only not in case.name:
            continue
        started = world.clock()
        trace = judge.trace(case, path)
        seconds = max(0.0, world.clock() - started)
        report.results.append(CaseResult(case, differences(case.expect, trace), seconds))
        report.failed_rules |= failed_rules(trace)
        report.issuers_met.add(trace.issuer)
    return report


def _read(path: str, world: World) -> Suite:
    from kubeauthn._core.authentication.fault_hints import text_hint
    from kubeauthn._core.authentication.suite import SUITE_BYTES, read_suite

    suite, faults = read_suite(read(path, SUITE_BYTES, world))
    if suite is None:
        lines = [f"{shown_name(path)}:{fault.line}:{fault.column}: {fault.text}" for fault in faults[:50]]
        probably = next((hint for fault in faults if (hint := text_hint(fault.text))), None)
        own = {'a suite has no field "apiVersion"', 'a suite has no field "jwt"'}
        is_configuration = any(fault.text.partition(":")[0] in own for fault in faults)
        hint = "it is what is tested: a suite is a file beside it, with configuration: and cases:"
        raise EnvironmentFailure("\n".join(lines), hint=hint if is_configuration else probably)
    return suite


@contextmanager
def _named_by(suite: str, field: str) -> Iterator[None]:
    """Who ran a suite gave no other file: of one that is not right, where its name comes from is said."""
    try:
        yield
    except EnvironmentFailure as error:
        error.hint = error.hint or f"it is what {shown_name(suite)} names as {field}"
        raise


def _keys(suite: Suite, folder: str, config: AuthenticationConfiguration, world: World) -> dict[str, dict[str, Any]]:
    if not suite.keys:
        return {}
    from kubeauthn.cli.issuer_keys import FILE_BYTES, keys_by_issuer

    path = os.path.join(folder, suite.keys)
    return keys_by_issuer(read(path, FILE_BYTES, world), path, config)


class _Judge:
    """Tokens are judged with the suite's keys, claims with a key of our own."""

    def __init__(
        self,
        suite: Suite,
        config: AuthenticationConfiguration,
        keys: dict[str, dict[str, Any]],
        world: World,
        version: str,
    ) -> None:
        from kubeauthn.cli.verified_claims import ClaimsSigner
        from kubeauthn.server.authenticator import Authenticator

        self._suite = suite
        self._world = world
        self._signer = ClaimsSigner(config)
        self._of_claims = Authenticator(config, keys=self._signer.keys, kubernetes=version)
        self._of_tokens = Authenticator(config, keys=keys, kubernetes=version)

    def trace(self, case: Case, path: str) -> Trace:
        now = next((moment for moment in (case.now, self._suite.now) if moment is not None), self._world.clock())
        if case.claims is None:
            if not self._suite.keys:
                raise EnvironmentFailure(f"{path}:{case.line}: a case with a token needs keys: FILE in the suite")
            return self._of_tokens.explain(case.token, now)
        try:
            token, _ = self._signer.token(case.claims, now)
        except UsageError as error:
            raise EnvironmentFailure(f"{path}:{case.line}: {error}", hint=error.hint) from None
        return self._of_claims.explain(token, now)
