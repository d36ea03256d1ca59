"""Show what can sign here: modules, slots, tokens, keys and certificates, and the TPM's handles.

With a signer named (--signer-user, or --signer and --set) it also reads the certificate, signs a test digest and
verifies the signature. --write NAME puts that signer into the kubeconfig as the user NAME.
"""

from __future__ import annotations

import hashlib
import json
import os

from kubeauthn.cli import failure
from kubeauthn.cli.signer_entry import COMMAND, add_signer_options, chosen, open_signer
from kubeauthn.cli.text import escaped
from kubeauthn.errors import EnvironmentFailure, PluginReplyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from kubeauthn.cli.world import World
    from kubeauthn.plugin.signer import Configuration

HELP = "modules, tokens, keys, certificates, a test signature, the kubeconfig entry"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--module", action="append", default=[], metavar="PATH", help="look into this module only")
    parser.add_argument("--write", metavar="NAME", help="write the signer into the kubeconfig, as this user")
    parser.add_argument("--no-sign", action="store_true", help="no test signature, so no PIN")
    parser.add_argument("--kubeconfig", metavar="FILE", help="this file instead of KUBECONFIG and ~/.kube/config")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to print it (text)")
    add_signer_options(parser)


def run(arguments: Namespace, world: World) -> int:
    found = chosen(arguments, arguments.kubeconfig)
    if found is None:
        if arguments.write:
            raise UsageError("--write needs to know what: --signer KIND --set KEY=VALUE …")
        return _survey(arguments, world)
    from kubeauthn._core.stored_pin import holds_pin

    kind, configuration = found
    if arguments.write and "pin-value=" in configuration.get("uri", ""):
        raise UsageError("the uri holds a PIN, which is not written: take its pin-value out, and use pinSource")
    if holds_pin(configuration):
        world.complain("warning", "the kubeconfig holds a PIN: whoever reads that file can use the key")
        world.complain("hint", "keyring set kubeauthn NAME stores it; then write pinSource: keyring:kubeauthn/NAME")
    report = _trial(kind, configuration, world.clock(), sign=not arguments.no_sign)
    if arguments.write and not report["faults"]:
        report["written"] = {"user": arguments.write, "pathExec": _write(arguments, kind, configuration)}
    if arguments.output == "json":
        world.say(json.dumps(report, indent=2))
    else:
        for line in _trial_lines(report, world.clock()):
            world.say(line)
    for fault in report["faults"]:
        world.complain("error", fault)
    if report["faults"]:
        world.complain("hint", "kubeauthn signer request-certificate --renew")
    return failure.NO if report["faults"] else failure.YES


def _survey(arguments: Namespace, world: World) -> int:
    from kubeauthn.cli import signer_survey

    for path in arguments.module:
        if not os.path.exists(path):
            raise EnvironmentFailure(
                f"--module {path}: no such file or directory",
                hint="without --module, those that are installed are shown",
            )
    report = signer_survey.survey(arguments.module)
    if arguments.output == "json":
        world.say(json.dumps(report, indent=2))
    else:
        for line in signer_survey.lines_of(report):
            world.say(line)
    return failure.YES


def _trial(kind: str, configuration: Configuration, now: float, *, sign: bool) -> dict[str, Any]:
    """The document of `--output json`: the certificate, a signature that was verified with it, and what is wrong."""
    from kubeauthn._core import rfc3339
    from kubeauthn._core.signing_identity import signing_identity
    from kubeauthn.cli.signer_survey import certificate_facts
    from kubeauthn.plugin._signer_rehearsal import public_key_of, tls_algorithms, verify
    from kubeauthn.plugin.signer import der_chain

    signer = open_signer(kind, configuration)
    chain = der_chain(signer.certificate())
    leaf = chain[0]
    facts = certificate_facts(leaf)
    report: dict[str, Any] = {"version": 1, "signer": kind, "certificate": facts, "signature": None, "faults": []}
    if "error" in facts:
        report["faults"].append("what the signer gives as a certificate is none")
        return report
    if sign:
        algorithm = tls_algorithms(public_key_of(leaf))[0]
        message = os.urandom(32)
        digest = hashlib.new(algorithm.hash, message).digest() if algorithm.hash else message
        verify(leaf, signer.sign(digest, algorithm), digest, algorithm)
        report["signature"] = str(algorithm)
    if rfc3339.parse(facts["notAfter"]) < now:
        report["faults"].append("the certificate has expired")
        return report
    try:
        signing_identity(chain, signer.sign, now)  # what a client looks at before it shows a certificate
    except PluginReplyError as error:
        report["faults"].append(str(error))
    return report


def _trial_lines(report: dict[str, Any], now: float) -> list[str]:
    from kubeauthn.cli.signer_survey import certificate_line

    lines = [f"certificate   {certificate_line(report['certificate'], now)}"]
    if report["signature"]:
        lines.append(f"signature     {report['signature']}: verified with the certificate")
    if "written" in report:
        written = report["written"]
        lines.append(f"kubeconfig    user {escaped(written['user'])} now signs with {escaped(written['pathExec'])}")
    return lines


def _write(arguments: Namespace, kind: str, configuration: Configuration) -> str:
    import shutil

    from kubeauthn.client import kubeconfig as files

    path = shutil.which(f"{COMMAND}{kind}") or f"{COMMAND}{kind}"
    config = {
        "pathExec": path,
        **{key: value for key, value in configuration.items() if key not in ("pin", "pathExec")},
    }
    with files.edit(arguments.kubeconfig) as edit:
        edit.set_user(arguments.write, {"auth-provider": {"name": "externalSigner", "config": config}})
    return path
