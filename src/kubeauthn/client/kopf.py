"""kopf, authenticated: a login handler.

    import kopf
    from kubeauthn.client.kopf import login

    kopf.on.login()(login)

Expiry, rotation and 401 are dealt with inside the session it returns; kopf logs in once and its watches go on.
Another context, or any options of `open_access`, are given as kopf's `param`: `kopf.on.login(param="prod")(login)`,
`kopf.on.login(param={"context": "prod", "plugin_timeout": 10})(login)`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kubeauthn.client.access import open_access
from kubeauthn.errors import (
    AuthProviderError,
    CredentialError,
    InteractionRequired,
    KubeauthnError,
    MissingExtra,
    PluginDenied,
    UsageError,
)

try:
    import aiohttp
    import kopf
    from kopf import AiohttpSession
except ImportError:  # not there, or older than sessions made by a login
    raise MissingExtra("kopf 1.45 or newer", "kopf") from None

from kubeauthn.client._aiohttp_family import Authentication, session_options

__all__ = ["login"]

RETRY_SECONDS = 5.0
"""How long kopf waits before it asks again for a login that failed. The plugin has its own, longer waiting times."""
_WANTS_A_PERSON = (InteractionRequired, PluginDenied, AuthProviderError)
"""Failures that no waiting will mend."""


async def login(*, param: Any = None, **_: Any) -> AiohttpSession | None:
    """Log in as the kubeconfig says, or in a pod as the service account.

    Where waiting may help, kopf is told to call again. Where it will not, the reason goes to the log and the
    answer is None, upon which an operator without another login ends. (A permanent error of the
    handler would leave it hanging: kopf then waits for a login that nobody attempts any more.)
    """
    try:
        access = open_access(**_options(param))
        options = session_options(access, Authentication(access, repeat_any=True))
        await access.credential_async()
    except CredentialError as error:
        if isinstance(error, _WANTS_A_PERSON):
            _log_no_login(error)
            return None
        raise kopf.TemporaryError(str(error), delay=RETRY_SECONDS) from error
    except KubeauthnError as error:
        _log_no_login(error)
        return None
    return AiohttpSession(
        server=access.server,
        default_namespace=access.namespace,
        aiohttp_session=_session(options),
    )


def _log_no_login(error: KubeauthnError) -> None:
    logging.getLogger("kubeauthn").error("no login: %s%s", error, f" ({error.hint})" if error.hint else "")


def _options(param: Any) -> dict[str, Any]:
    if param is None:
        return {}
    if isinstance(param, str):
        return {"context": param}
    if isinstance(param, Mapping):
        return dict(param)
    raise UsageError(f"param of the login is expected to be a context's name or options, not {type(param).__name__}")


def _session(options: dict[str, Any]) -> aiohttp.ClientSession:
    options["middlewares"] = (_as_connection_error, *options["middlewares"])
    # No limit, as in kopf's own sessions: each watched resource holds a connection.
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), **options)


class _NoCredential(CredentialError, aiohttp.ClientConnectionError):
    """kopf tries again after connection errors, with growing pauses; any other error would end the operator."""


async def _as_connection_error(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except CredentialError as error:
        raise _NoCredential(str(error), hint=error.hint) from error
