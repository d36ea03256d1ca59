"""One question to an issuer, with a limit for the whole exchange: a server that drips its head is no reason to hang.

For programs that have no event loop of their own. Messages name the place, never the fields or the body.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from typing import Any
from urllib.parse import urlsplit

import httpx2

from kubeauthn._core.oidc import limits
from kubeauthn._core.oidc.provider import is_safe_address
from kubeauthn._io.bounded_body import read_bounded
from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._secret import Secret

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def ask(
    method: str,
    url: str,
    context: ssl.SSLContext,
    *,
    fields: Mapping[str, str] | None = None,
    basic: tuple[str, str] | None = None,
    bearer: Secret | None = None,
    seconds: float = limits.ANSWER_SECONDS,
) -> tuple[int, dict[str, Any]]:
    """Status and JSON object, which is empty where the answer is none. No redirect is followed."""
    if not is_safe_address(url):
        raise EnvironmentFailure("an address of the issuer is not https: nothing was sent there")
    parts = urlsplit(url)
    place = f"{parts.scheme}://{parts.netloc}{parts.path}"
    failure = ""
    try:
        status, body = asyncio.run(_exchange(method, url, context, fields, basic, bearer, seconds, place))
    except TimeoutError:
        failure = f"{place} did not end its answer within {seconds:g} s"
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ImportError, ValueError) as error:
        failure = f"{place} cannot be reached: {_short(error)}"
    if failure:
        # Out here the error is not its context: that one holds the request, and the request holds the fields.
        raise EnvironmentFailure(failure, hint=_hint(failure))
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    return status, document if isinstance(document, dict) else {}


def trusting(url: str, authority_file: str) -> ssl.SSLContext:
    """For an issuer whose certificate this file's authorities signed; without a file, those of the system."""
    from kubeauthn._core.kubeconfig.model import Cluster
    from kubeauthn._core.limits import CREDENTIAL_FILE_BYTES
    from kubeauthn._io.files import read_bounded
    from kubeauthn._io.tls import server_context

    authority = b""
    if authority_file:
        authority = read_bounded(authority_file, CREDENTIAL_FILE_BYTES)
        if b"-----BEGIN CERTIFICATE-----" not in authority:
            raise EnvironmentFailure(f"{authority_file}: holds no certificate in PEM")
    return server_context(Cluster(server=url, certificate_authority_data=authority))


async def _exchange(
    method: str,
    url: str,
    context: ssl.SSLContext,
    fields: Mapping[str, str] | None,
    basic: tuple[str, str] | None,
    bearer: Secret | None,
    seconds: float,
    place: str,
) -> tuple[int, bytes]:
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
    if bearer is not None:
        headers["Authorization"] = f"Bearer {bearer.reveal()}"
    through_proxy = urlsplit(url).hostname not in _LOOPBACK
    async with (
        asyncio.timeout(seconds),
        # No limit for each piece: the line above has one for the whole.
        httpx2.AsyncClient(verify=context, timeout=None, trust_env=through_proxy) as client,
        client.stream(method, url, data=fields, headers=headers, auth=basic) as response,
    ):
        return response.status_code, await read_bounded(response, place, limits.ANSWER_BYTES)


def _short(error: Exception) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in str(error)[:200])
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


def _hint(failure: str) -> str | None:
    if "CERTIFICATE_VERIFY_FAILED" in failure:
        return "name the authority that signed the issuer's certificate: --certificate-authority FILE"
    return None
