"""Small documents from an identity provider: bounded in size and time, no redirects, no plain http but on loopback."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2

from kubeauthn._core import limits
from kubeauthn.errors import EnvironmentFailure


def get_json(url: str, context: ssl.SSLContext) -> dict[str, Any]:
    return _exchange("GET", url, context, None)


def post_form(url: str, context: ssl.SSLContext, fields: Mapping[str, str]) -> dict[str, Any]:
    return _exchange("POST", url, context, fields)


def _exchange(method: str, url: str, context: ssl.SSLContext, fields: Mapping[str, str] | None) -> dict[str, Any]:
    """The JSON object of a 200 answer. Messages name the place, never the fields or the body: both hold secrets."""
    place = _checked_place(url)
    failure = ""
    try:
        with (
            # Not compressed: a small piece of the body must not become a large one.
            httpx2.Client(
                verify=context, timeout=limits.HTTP_SECONDS, headers={"Accept-Encoding": "identity"}
            ) as client,
            client.stream(method, url, data=fields) as response,
        ):
            status, body = response.status_code, _bounded_body(response, place)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = f"{place} cannot be reached: {type(error).__name__}: {error}"
    if failure:
        # Out here the error is not its context: that one holds the request, and the request holds the fields.
        raise EnvironmentFailure(failure)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if status != 200:
        reason = document.get("error") if isinstance(document, dict) else None
        detail = f" ({reason})" if isinstance(reason, str) and reason.isprintable() and len(reason) < 100 else ""
        raise EnvironmentFailure(f"{place} answered {status}{detail}")
    if not isinstance(document, dict):
        raise EnvironmentFailure(f"{place} did not answer a JSON object")
    return document


def _bounded_body(response: httpx2.Response, place: str) -> bytes:
    """The client's time limit is for each piece; a body of many small ones has the same limit for all of them."""
    deadline = time.monotonic() + limits.HTTP_SECONDS
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if len(body) > limits.HTTP_DOCUMENT_BYTES:
            raise EnvironmentFailure(f"{place} answered more than {limits.HTTP_DOCUMENT_BYTES} bytes")
        if time.monotonic() > deadline:
            raise EnvironmentFailure(f"{place} did not end its answer within {limits.HTTP_SECONDS:g} s")
    return bytes(body)


def _checked_place(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise EnvironmentFailure("an address of the identity provider is not a URL") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise EnvironmentFailure(f"{parts.scheme}://{parts.hostname} is not https: secrets are not sent there")
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
