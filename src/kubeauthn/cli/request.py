"""One request from the command line: opened, sent, and every way it can fail put into words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import httpx2

from kubeauthn._core import limits
from kubeauthn.cli.text import escaped
from kubeauthn.client.access import Access
from kubeauthn.client.httpx2 import client
from kubeauthn.errors import EnvironmentFailure, RequestRefused

ERROR_BODY_BYTES = 64 * 1024
"""Of an error's body only the message is wanted."""


class Unreachable(EnvironmentFailure):
    """There was no answer from the server."""


class UntrustedServer(Unreachable):
    """The server's certificate was not made by whom the cluster entry trusts, or not for its name."""


@contextmanager
def connection(access: Access, **options: Any) -> Iterator[httpx2.Client]:
    """A client whose network errors are ours."""
    try:
        with client(access=access, **options) as api:
            yield api
    except httpx2.InvalidURL as error:
        # Of a redirect, which is looked at though it is not followed.
        raise Unreachable(f"{access.server} names an address that is none: {error}") from None
    except httpx2.TimeoutException:
        raise Unreachable(f"no answer from {access.server} within {limits.HTTP_SECONDS:g} s") from None
    except httpx2.RequestError as error:
        raise unreachable(access, error) from None


def unreachable(access: Access, error: httpx2.RequestError) -> Unreachable:
    import ssl

    through = " through its proxy" if access.cluster.proxy_url else ""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return UntrustedServer(
                f"the certificate of {access.server} is not trusted: {cause.verify_message}",
                hint="kubeauthn doctor --online shows that certificate, and the CA that the cluster entry trusts",
            )
        cause = cause.__cause__ or cause.__context__
    return Unreachable(f"cannot reach {access.server}{through}: {str(error) or type(error).__name__}")


def exchange(api: httpx2.Client, method: str, path: str, **options: Any) -> tuple[httpx2.Response, bytes]:
    """One request for a small document: the answer, and its body as far as it is of a document's size."""
    with api.stream(method, path, **options) as response:
        return response, read_bounded_body(response, limits.HTTP_DOCUMENT_BYTES)


def read_bounded_body(response: httpx2.Response, limit: int) -> bytes:
    """The beginning of a streamed body."""
    body = b""
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limit:
            return body[:limit]
    return body


def refusal(response: httpx2.Response, body: bytes) -> RequestRefused:
    """The error for an answer that is not a success, with what the server said about it."""
    status = response.status_code
    said = status_message(body)
    if status == 401:
        return RequestRefused(
            f"the server does not know you (401{_and(said, 'Unauthorized')})",
            status=status,
            hint="kubeauthn doctor explains which credential is used and why",
        )
    if 300 <= status < 400:
        place = escaped(response.headers.get("location", "nowhere"))
        return RequestRefused(f"the server answered {status}, and redirects are not followed: {place}", status=status)
    name = HTTPStatus(status).phrase if status in HTTPStatus._value2member_map_ else "no known status"
    return RequestRefused(f"the server answered {status} ({name}){_and(said, name)}", status=status)


def status_message(body: bytes) -> str:
    """`message` of a Kubernetes Status, or nothing."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    message = document.get("message") if isinstance(document, dict) else None
    return message if isinstance(message, str) else ""


def _and(said: str, known: str) -> str:
    return f": {said}" if said and said.lower() != known.lower() else ""
