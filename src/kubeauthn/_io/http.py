"""Small documents from an identity provider: bounded in size and time, no redirects, no plain http but on loopback."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2

from kubeauthn._core import limits
from kubeauthn._io.bounded_body import read_bounded
from kubeauthn.errors import EnvironmentFailure

T = TypeVar("T")


def get_json(url: str, context: ssl.SSLContext) -> dict[str, Any]:
    return _exchange("GET", url, context, None)


def post_form(url: str, context: ssl.SSLContext, fields: Mapping[str, str]) -> dict[str, Any]:
    return _exchange("POST", url, context, fields)


def _exchange(method: str, url: str, context: ssl.SSLContext, fields: Mapping[str, str] | None) -> dict[str, Any]:
    """The JSON object of a 200 answer. Messages name the place, never the fields or the body: both hold secrets."""
    place = _checked_place(url)
    failure = ""
    try:
        status, body = _in_a_loop(_answer(method, url, context, fields, place))
    except TimeoutError:
        failure = f"{place} did not end its answer within {limits.HTTP_SECONDS:g} s"
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ImportError, ValueError) as error:
        # The last two: a proxy of the environment that is none, or of a kind whose library is not installed.
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


async def _answer(
    method: str, url: str, context: ssl.SSLContext, fields: Mapping[str, str] | None, place: str
) -> tuple[int, bytes]:
    headers = {"Accept-Encoding": "identity"}  # `read_bounded` takes nothing that is compressed
    async with (
        # For the whole: an answer that comes byte by byte, its head included, has no more time than any other. The
        # HTTP library itself bounds the size of the head.
        asyncio.timeout(limits.HTTP_SECONDS),
        httpx2.AsyncClient(verify=context, timeout=None, headers=headers) as client,
        client.stream(method, url, data=fields) as response,
    ):
        return response.status_code, await read_bounded(response, place, limits.HTTP_DOCUMENT_BYTES)


def _in_a_loop(work: Coroutine[Any, Any, T]) -> T:
    """Whoever calls this waits for it. A thread that has an event loop already cannot run another one."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as other_thread:
        return other_thread.submit(asyncio.run, work).result()


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
