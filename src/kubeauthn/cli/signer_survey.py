"""What can sign here, for `kubeauthn signer doctor`: PKCS#11 modules with what is on their tokens, and the TPM."""

from __future__ import annotations

from kubeauthn.cli.text import escaped, time_left
from kubeauthn.errors import KubeauthnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

MODULE_SECONDS = 20.0


def survey(modules: Sequence[str]) -> dict[str, Any]:
    """The document of `--output json`. Without `modules`, those that are installed."""
    from kubeauthn.plugins.pkcs11_inventory import installed_modules

    return {
        "version": 1,
        "modules": [look_into(path) for path in modules or installed_modules()],
        "tpm": _tpm(),
    }


def lines_of(report: dict[str, Any]) -> list[str]:
    lines = [] if report["modules"] else ["no PKCS#11 module found; --module PATH names one"]
    for module in report["modules"]:
        lines += _module_lines(module)
    tpm = report["tpm"]
    if "error" in tpm:
        return [*lines, f"no TPM: {escaped(tpm['error'])}"]
    return [*lines, f"TPM {tpm['device']}: persistent handles {', '.join(tpm['handles']) or 'none'}"]


def look_into(path: str, seconds: float = MODULE_SECONDS) -> dict[str, Any]:
    """In a process of its own: a module is foreign code, and may crash or never answer."""
    import json
    import os
    import subprocess
    import sys

    argv = [sys.executable, "-P", "-m", "kubeauthn.plugins.pkcs11_inventory", os.path.abspath(path)]
    try:
        result = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
        report: dict[str, Any] = json.loads(result.stdout)
    except subprocess.TimeoutExpired:
        return {"module": path, "error": f"did not answer within {seconds:g} s"}
    except ValueError:
        code = result.returncode
        ending = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return {"module": path, "error": f"ended its process {ending}"}
    for token in report.get("tokens", ()):
        for item in token["objects"]:
            if item["kind"] == "certificate":
                item.update(certificate_facts(bytes.fromhex(item.pop("certificate"))))
    return report


def certificate_facts(der: bytes) -> dict[str, Any]:
    """`subject` and `notAfter`; or an `error`."""
    from cryptography import x509

    from kubeauthn._core import rfc3339
    from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE

    try:
        certificate = x509.load_der_x509_certificate(der)
        end = certificate.not_valid_after_utc.timestamp()
        return {"subject": certificate.subject.rfc4514_string(), "notAfter": rfc3339.format(end)}
    except NOT_A_CERTIFICATE:
        return {"error": "not a certificate"}


def certificate_line(facts: dict[str, Any], now: float | None = None) -> str:
    """With `now`, how much time is left; else the day on which it ends."""
    from kubeauthn._core import rfc3339

    if "error" in facts:
        return str(facts["error"])
    when = f"until {facts['notAfter'][:10]}" if now is None else time_left(rfc3339.parse(facts["notAfter"]), now)
    return f"{escaped(facts['subject'])}, {when}"


def _module_lines(report: dict[str, Any]) -> list[str]:
    lines = [f"module {escaped(str(report['module']))}"]
    if "error" in report:
        return [*lines, f"  {escaped(str(report['error']))}"]
    slots = report["slots"]
    lines[0] += f" ({escaped(report['description'])}, {slots} {'slot' if slots == 1 else 'slots'})"
    if not report["tokens"]:
        lines.append(f"  no token: {_how_to_get_a_token(str(report['module']))}")
    for token in report["tokens"]:
        state = ", PIN locked" if token["locked"] else ", one attempt left" if token["lastTry"] else ""
        lines.append(f"  token {escaped(token['label'])!r}, slotId {token['slotId']}{state}")
        certified = {item["id"] for item in token["objects"] if item["kind"] == "certificate"}
        for item in token["objects"]:
            name = f"objectId 0x{item['id']} {escaped(item['label'])!r}"
            lines.append(f"    key {item['type']}, {name}" if item["kind"] == "key" else f"    certificate, {name}")
            if item["kind"] == "certificate":
                lines.append(f"      {certificate_line(item)}")
            elif item["id"] not in certified:
                lines.append(f"      no certificate: {_how_to_get_a_certificate(report, token, item)}")
    return lines


def _how_to_get_a_token(module: str) -> str:
    import os

    if "softhsm" in os.path.basename(module).lower():
        return "softhsm2-util --init-token --free --label NAME makes one"
    return "plug in the card or key; a new one is initialised with its maker's program"


def _how_to_get_a_certificate(report: dict[str, Any], token: dict[str, Any], item: dict[str, Any]) -> str:
    from shlex import quote

    module = quote(f"pathLib={escaped(str(report['module']))}")
    which = f"--set {module} --set slotId={token['slotId']} --set objectId=0x{item['id']}"
    return f"kubeauthn signer request-certificate --signer pkcs11 {which}"


def _tpm() -> dict[str, Any]:
    import os

    from kubeauthn._core import tpm2
    from kubeauthn.plugins.tpm2_device import DEFAULT_DEVICE, TpmDevice

    found: dict[str, Any] = {"device": DEFAULT_DEVICE}
    if not os.path.exists(DEFAULT_DEVICE):
        return {**found, "error": f"{DEFAULT_DEVICE} is not there"}
    try:
        with TpmDevice() as device:
            answer = device.ask(tpm2.get_handles(tpm2.FIRST_PERSISTENT), "to list its handles")
            return {**found, "handles": [hex(handle) for handle in tpm2.handles(answer, tpm2.LAST_PERSISTENT)]}
    except KubeauthnError as error:
        return {**found, "error": str(error)}
