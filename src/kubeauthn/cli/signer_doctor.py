"""Show what can sign here: modules, slots, tokens, keys and certificates, and the TPM's handles.

With a signer named (--signer-user, or --signer and --set) it also reads the certificate, signs a test digest and
verifies the signature. --write NAME puts that signer into the kubeconfig as the user NAME.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.cli.signer_entry import COMMAND, add_signer_options, chosen, open_signer
from kubeauthn.cli.text import escaped, time_left
from kubeauthn.errors import KubeauthnError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from kubeauthn.cli.world import World
    from kubeauthn.plugin.signer import Configuration

HELP = "modules, tokens, keys, certificates, a test signature, the kubeconfig entry"
MODULE_SECONDS = 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--module", action="append", default=[], metavar="PATH", help="look into this module only")
    parser.add_argument("--write", metavar="NAME", help="write the signer into the kubeconfig, as this user")
    parser.add_argument("--no-sign", action="store_true", help="no test signature, so no PIN")
    parser.add_argument("--kubeconfig", metavar="FILE", help="this file instead of KUBECONFIG and ~/.kube/config")
    add_signer_options(parser)


def run(arguments: Namespace, world: World) -> int:
    found = chosen(arguments, arguments.kubeconfig)
    if found is None:
        if arguments.write:
            raise UsageError("--write needs to know what: --signer KIND --set KEY=VALUE …")
        return _survey(arguments, world)
    kind, configuration = found
    if configuration.get("pin"):
        world.complain("warning", "the kubeconfig holds a PIN: whoever reads that file can use the key")
        world.complain("hint", "keyring set kubeauthn NAME stores it; then write pinSource: keyring:kubeauthn/NAME")
    code = _trial(kind, configuration, world, sign=not arguments.no_sign)
    if arguments.write and code == failure.YES:
        _write(arguments, kind, configuration, world)
    return code


def _survey(arguments: Namespace, world: World) -> int:
    from kubeauthn.plugins.pkcs11_inventory import installed_modules

    modules = arguments.module or installed_modules()
    if not modules:
        world.say("no PKCS#11 module found; --module PATH names one")
    for path in modules:
        for line in _module_lines(_look_into(path)):
            world.say(line)
    for line in _tpm_lines():
        world.say(line)
    return failure.YES


def _look_into(path: str) -> dict[str, Any]:
    import json
    import os
    import subprocess
    import sys

    argv = [sys.executable, "-m", "kubeauthn.plugins.pkcs11_inventory", os.path.abspath(path)]
    try:
        result = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=MODULE_SECONDS)
        report: dict[str, Any] = json.loads(result.stdout)
    except subprocess.TimeoutExpired:
        return {"module": path, "error": f"did not answer within {MODULE_SECONDS} s"}
    except ValueError:
        return {"module": path, "error": f"ended its process (exit code {result.returncode})"}
    return report


def _module_lines(report: dict[str, Any]) -> list[str]:
    lines = [f"module {escaped(str(report['module']))}"]
    if "error" in report:
        return [*lines, f"  {escaped(str(report['error']))}"]
    lines[0] += f" ({escaped(report['description'])}, {report['slots']} slots)"
    for token in report["tokens"]:
        state = ", PIN locked" if token["locked"] else ", one attempt left" if token["lastTry"] else ""
        lines.append(f"  token {escaped(token['label'])!r}, slotId {token['slotId']}{state}")
        for item in token["objects"]:
            name = f"objectId 0x{item['id']} {escaped(item['label'])!r}"
            lines.append(f"    key {item['type']}, {name}" if item["kind"] == "key" else f"    certificate, {name}")
            if item["kind"] == "certificate":
                lines.append(f"      {_certificate_line(bytes.fromhex(item['certificate']))}")
    return lines


def _tpm_lines() -> list[str]:
    import os

    from kubeauthn._core import tpm2
    from kubeauthn.plugins.tpm2_device import DEFAULT_DEVICE, TpmDevice

    if not os.path.exists(DEFAULT_DEVICE):
        return [f"no TPM: {DEFAULT_DEVICE} is not there"]
    try:
        with TpmDevice() as device:
            answer = device.ask(tpm2.get_handles(tpm2.FIRST_PERSISTENT), "to list its handles")
            handles = tpm2.handles(answer, tpm2.LAST_PERSISTENT)
    except KubeauthnError as error:
        return [f"TPM {DEFAULT_DEVICE}: {error}"]
    return [f"TPM {DEFAULT_DEVICE}: persistent handles {', '.join(map(hex, handles)) or 'none'}"]


def _trial(kind: str, configuration: Configuration, world: World, *, sign: bool) -> int:
    from cryptography import x509

    from kubeauthn.plugin._signer_rehearsal import tls_algorithms, verify
    from kubeauthn.plugin.signer import der_chain

    signer = open_signer(kind, configuration)
    chain = der_chain(signer.certificate())
    try:
        leaf = x509.load_der_x509_certificate(chain[0])
    except ValueError:
        world.complain("error", "what the signer gives as a certificate is none")
        return failure.NO
    world.say(f"certificate   {_certificate_line(chain[0], world.clock())}")
    if sign:
        import hashlib
        import os

        for algorithm in tls_algorithms(leaf.public_key())[:1]:
            message = os.urandom(32)
            digest = hashlib.new(algorithm.hash, message).digest() if algorithm.hash else message
            verify(chain[0], signer.sign(digest, algorithm), digest, algorithm)
            world.say(f"signature     {algorithm}: verified with the certificate")
    if leaf.not_valid_after_utc.timestamp() < world.clock():
        world.complain("error", "the certificate has expired")
        world.complain("hint", "kubeauthn signer request-certificate --renew")
        return failure.NO
    return failure.YES


def _certificate_line(der: bytes, now: float | None = None) -> str:
    from cryptography import x509

    try:
        certificate = x509.load_der_x509_certificate(der)
    except ValueError:
        return "not a certificate"
    end = certificate.not_valid_after_utc
    when = time_left(end.timestamp(), now) if now is not None else f"until {end:%Y-%m-%d}"
    return f"{escaped(certificate.subject.rfc4514_string())}, {when}"


def _write(arguments: Namespace, kind: str, configuration: Configuration, world: World) -> None:
    import shutil

    from kubeauthn.client import kubeconfig as files

    path = shutil.which(f"{COMMAND}{kind}") or f"{COMMAND}{kind}"
    config = {
        "pathExec": path,
        **{key: value for key, value in configuration.items() if key not in ("pin", "pathExec")},
    }
    with files.edit(arguments.kubeconfig) as edit:
        edit.set_user(arguments.write, {"auth-provider": {"name": "externalSigner", "config": config}})
    world.say(f"kubeconfig    user {escaped(arguments.write)} now signs with {path}")
