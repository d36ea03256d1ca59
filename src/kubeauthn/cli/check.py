"""Validate AuthenticationConfiguration files: every fault, with its place and Kubernetes' own text, and hints.

Warnings are about what is allowed and seldom meant; they change the exit code only with --strict.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.cli.config_file import checked_version, read, shown_name, with_patterns
from kubeauthn.cli.look import add_color_option
from kubeauthn.errors import AuthenticationConfigError, EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn._core.authentication.decode import Decoded
    from kubeauthn._core.authentication.faults import ConfigFault
    from kubeauthn.cli.check_report import FileReport
    from kubeauthn.cli.world import World

HELP = "validates AuthenticationConfiguration files: every fault with its place, and hints"
MOST_FAULTS = 1000
"""Of one file; a file with more has one fault, and a thousand copies of it."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="what to check; - is standard input")
    parser.add_argument("--kubernetes", metavar="VERSION", help="check for this release, such as 1.33 (newest)")
    parser.add_argument(
        "--disallowed-issuer", action="append", default=[], metavar="URL",
        help="no entry may have this issuer, e.g. that of service accounts; may repeat",
    )  # fmt: skip
    parser.add_argument("--online", action="store_true", help="also ask the issuers: discovery, issuer, keys, CA")
    parser.add_argument("--strict", action="store_true", help="a warning counts as a fault")
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "sarif", "github"), default="text", help="how to print it (text)"
    )
    add_color_option(parser)


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._core.authentication.release import NEWEST
    from kubeauthn.cli.check_output import write

    if arguments.files.count("-") > 1:
        raise UsageError("standard input can be read once")
    version = checked_version(arguments.kubernetes) if arguments.kubernetes else NEWEST
    reports = []
    for path in arguments.files:
        with with_patterns():
            report, decoded = check_file(path, world, version, arguments.disallowed_issuer)
        if arguments.online and decoded is not None and not report.has_faults:
            from kubeauthn.cli.check_online import ask_issuers

            ask_issuers(report, decoded, world)
        reports.append(report)
    write(reports, arguments.output, world, world.look(arguments.color))
    codes = [report.exit_code(strict=arguments.strict) for report in reports]
    return failure.ENVIRONMENT if failure.ENVIRONMENT in codes else max(codes)


def check_file(path: str, world: World, version: str, disallowed: list[str]) -> tuple[FileReport, Decoded | None]:
    """What is to say about a file, and its content if it can be decoded."""
    from kubeauthn._core.authentication.decode import TEXT_BYTES
    from kubeauthn.cli.check_report import FileReport

    try:
        content = read(path, TEXT_BYTES, world)
    except EnvironmentFailure as error:
        report = FileReport(shown_name(path))
        report.failed("file", str(error).removeprefix(f"{path}: "))
        return report, None
    return check_content(shown_name(path), content, version, disallowed)


def check_content(name: str, content: bytes, version: str, disallowed: list[str]) -> tuple[FileReport, Decoded | None]:
    """The same for a text that is at hand."""
    from kubeauthn._core.authentication.decode import decode_configuration
    from kubeauthn._core.authentication.hints import hints
    from kubeauthn.cli.check_report import FileReport

    report = FileReport(name)
    try:
        decoded = decode_configuration(content, version)
    except AuthenticationConfigError as error:
        for fault in error.errors[:MOST_FAULTS]:
            report.fault(fault)
        return report, None
    report.issuers = len(decoded.configuration.jwt)
    for fault in _faults(decoded, version, disallowed):
        report.fault(fault, decoded.configuration)
    for hint in hints(decoded.configuration, version):
        report.hint(hint, decoded)
    report.sort()
    return report, decoded


def _faults(decoded: Decoded, version: str, disallowed: list[str]) -> list[ConfigFault]:
    from kubeauthn._core.authentication.validate import validate_configuration

    findings = validate_configuration(decoded.configuration, disallowed, version)
    faults = [decoded.placed(finding) for finding in findings[:MOST_FAULTS]]
    if not faults and decoded.second is not None:
        faults = list(decoded.second.errors)  # type: ignore[arg-type]
    return faults
