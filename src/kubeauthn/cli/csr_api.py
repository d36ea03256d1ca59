"""The Kubernetes CSR API: submit a request, wait for what becomes of it."""

from __future__ import annotations

import json
import time
from base64 import b64decode, b64encode
from typing import Any

import httpx2

from kubeauthn.cli.request import exchange, refusal
from kubeauthn.cli.text import duration, escaped
from kubeauthn.errors import EnvironmentFailure, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATH = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
_PROGRESS_SECONDS = 30.0


def submitted(api: httpx2.Client, request: str, signer_name: str, expires: int | None) -> str:
    """The name that the server gave it."""
    spec: dict[str, Any] = {
        "request": b64encode(request.encode()).decode(),
        "signerName": signer_name,
        "usages": ["digital signature", "client auth"],
    }
    if expires is not None:
        spec["expirationSeconds"] = expires
    body = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "kubeauthn-"},
        "spec": spec,
    }
    response, content = exchange(api, "POST", PATH, json=body)
    if not response.is_success:
        raise refusal(response, content)
    name = _document(content).get("metadata", {}).get("name")
    # It becomes part of a path and of a command that a person copies.
    if not isinstance(name, str) or not name or not all(letter.isalnum() or letter in "-." for letter in name):
        raise EnvironmentFailure("the server's answer names no CertificateSigningRequest")
    return name


def waited_for(api: httpx2.Client, name: str, seconds: float, progress: Callable[[str], None]) -> bytes:
    """The certificate, PEM. Denied and failed are errors with what was said about it."""
    began = said = time.monotonic()
    pause = _FIRST_PAUSE
    while True:
        response, content = exchange(api, "GET", f"{PATH}/{name}")
        if not response.is_success:
            raise refusal(response, content)
        certificate = _certificate(_document(content), name)
        if certificate is not None:
            return certificate
        now = time.monotonic()
        if now - began + pause > seconds:
            raise EnvironmentFailure(
                f"nobody approved {name} within {duration(seconds)}",
                hint=f"once it is approved (kubectl certificate approve {name}) run this again",
            )
        if now - said >= _PROGRESS_SECONDS:
            said = now
            progress(f"{duration(now - began)} so far")
        time.sleep(pause)
        pause = min(pause * 1.5, _LONGEST_PAUSE)


def _certificate(item: dict[str, Any], name: str) -> bytes | None:
    status = item.get("status")
    status = status if isinstance(status, dict) else {}
    for condition in status.get("conditions") or ():
        if isinstance(condition, dict) and condition.get("type") in ("Denied", "Failed"):
            why = escaped(str(condition.get("message") or condition.get("reason") or "no reason given"))
            raise RequestRefused(f"{name} was {str(condition['type']).lower()}: {why}")
    content = status.get("certificate")
    if not content:
        return None
    try:
        return b64decode(str(content), validate=True)
    except ValueError:
        raise EnvironmentFailure(f"the certificate of {name} is not base64") from None


def _document(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise EnvironmentFailure("the server's answer is no CertificateSigningRequest")
    return document
