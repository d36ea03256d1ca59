"""`kubeauthn plugin service-account`: a short-lived token of a service account, asked for as somebody else.

The TokenRequest API gives it: the user of another context asks, and the token that comes back is all that the client
gets. So a program works with the rights of a service account, and not with those of whoever started it.
"""

from __future__ import annotations

import json
import os

from kubeauthn._core import limits
from kubeauthn._core.record import record
from kubeauthn.errors import CredentialError, EnvironmentFailure, UsageError
from kubeauthn.plugin import credential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kubeauthn.client.access import Access

DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600
LONGEST_SECONDS = 1 << 32
"""The API server refuses what is shorter or longer."""

UNDER_WAY = "KUBEAUTHN_SERVICE_ACCOUNT_UNDER_WAY"
"""Which requests the processes above this one are busy with: a context that leads back to itself is found by it."""

_PLUGIN_SECONDS = limits.PLUGIN_SECONDS - 20
"""For the other context's own plugin: less than the client gives us, so that the message comes from here."""
_NAME_CHARACTERS = 253
_OF_NAMES = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")
_MESSAGE_CHARACTERS = 300


@record(frozen=True, slots=True)
class Settings:
    """`context` and `kubeconfig` say who asks; empty: the current context, or in a pod its own account."""

    name: str
    namespace: str = ""
    context: str = ""
    kubeconfig: str = ""
    audiences: tuple[str, ...] = ()
    seconds: int = DEFAULT_SECONDS


def credential_function(settings: Settings) -> Callable[[credential.Request], credential.Credential]:
    def get_token(request: credential.Request) -> credential.Credential:
        return make_token(settings, request)

    return get_token


def make_token(settings: Settings, request: credential.Request) -> credential.Credential:
    """Raises CredentialError where the server gives none."""
    # 1. What can be known without asking anybody.
    check(settings)
    _note_under_way(settings)
    # 2. Who asks, and where.
    from kubeauthn.client.access import open_access

    access = open_access(
        settings.context or None, kubeconfig=settings.kubeconfig or None, plugin_timeout=_PLUGIN_SECONDS
    )
    _check_server(access, request)
    namespace = settings.namespace or access.namespace
    # 3. The question, and what became of it.
    status, answer = _ask(access, namespace, settings)
    if status != 201:
        raise _refusal(status, answer, access, namespace, settings.name)
    return _token(answer)


def check(settings: Settings) -> None:
    """Raises UsageError."""
    for option, name in (("the service account", settings.name), ("--namespace", settings.namespace or "default")):
        # They become part of a path, in which two dots would lead elsewhere.
        plain = name.strip("-.") == name and all(letter in _OF_NAMES for letter in name)
        if not name or len(name) > _NAME_CHARACTERS or not plain:
            raise UsageError(f"{option} takes a name of small letters, digits, - and .")
    if not SHORTEST_SECONDS <= settings.seconds <= LONGEST_SECONDS:
        raise UsageError(f"--expires takes seconds, {SHORTEST_SECONDS} at least")


def words_of(settings: Settings) -> list[str]:
    """`plugin service-account …`, as a kubeconfig entry has it."""
    texts = {
        "--namespace": settings.namespace,
        "--context": settings.context,
        "--kubeconfig": os.path.abspath(settings.kubeconfig) if settings.kubeconfig else "",
        "--expires": str(settings.seconds) if settings.seconds != DEFAULT_SECONDS else "",
    }
    words = [f"{option}={value}" for option, value in texts.items() if value]
    return ["plugin", "service-account", settings.name, *words, *(f"--audience={name}" for name in settings.audiences)]


def _note_under_way(settings: Settings) -> None:
    """For the plugins that are started from here on. The environment is this process's own, which ends soon."""
    from kubeauthn._core.light_sha256 import sha256_hex

    mark = sha256_hex(json.dumps(words_of(settings)).encode("utf-8", "surrogatepass"))[:16]
    above = os.environ.get(UNDER_WAY, "").split()
    if mark in above:
        raise UsageError(
            "the context that is to ask for this token is logged in by this very entry",
            hint="name a context of another user: --context NAME",
        )
    os.environ[UNDER_WAY] = " ".join([*above, mark])


def _check_server(access: Access, request: credential.Request) -> None:
    """A token of one cluster is not handed to another; known only where the entry has `provideClusterInfo: true`."""
    server = (request.cluster_fields or {}).get("server")
    if isinstance(server, str) and server.rstrip("/") != access.server:
        raise UsageError(
            f"the credential is for {server}, and the context that asks for it leads to {access.server}",
            hint="name a context of the same cluster: --context NAME",
        )


def _ask(access: Access, namespace: str, settings: Settings) -> tuple[int, dict[str, Any]]:
    import httpx2

    from kubeauthn.client.httpx2 import client

    spec: dict[str, Any] = {"expirationSeconds": settings.seconds, "audiences": list(settings.audiences)}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{settings.name}/token"
    failure = ""
    try:
        with client(access=access) as api, api.stream("POST", path, json=body) as response:
            status, content = response.status_code, _bounded(response, access.server)
    except httpx2.TimeoutException:
        failure = f"no answer from {access.server} in time"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = f"cannot reach {access.server}: {str(error) or type(error).__name__}"
    if failure:
        raise EnvironmentFailure(failure, hint="kubeauthn doctor --online explains the way there")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    return status, document if isinstance(document, dict) else {}


def _bounded(response: Any, server: str) -> bytes:
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > limits.HTTP_DOCUMENT_BYTES:
            raise EnvironmentFailure(f"{server} answered more than {limits.HTTP_DOCUMENT_BYTES} bytes")
    return bytes(body)


def _token(answer: dict[str, Any]) -> credential.Credential:
    from kubeauthn._core import rfc3339

    status = answer.get("status")
    given = status if isinstance(status, dict) else {}
    token, expiry = given.get("token"), given.get("expirationTimestamp")
    if not isinstance(token, str) or not token or not isinstance(expiry, str):
        raise CredentialError("the server's answer to the TokenRequest holds no token, or does not say when it ends")
    try:
        ends = rfc3339.parse(expiry)
    except ValueError:
        raise CredentialError("the server's answer to the TokenRequest ends at no time that can be read") from None
    return credential.Token(token, expires_at=ends)


def _refusal(status: int, answer: dict[str, Any], access: Access, namespace: str, name: str) -> CredentialError:
    message = answer.get("message")
    said = f": {message[:_MESSAGE_CHARACTERS]}" if isinstance(message, str) and message else ""
    account = f"service account {name} in namespace {namespace}"
    if status == 401:
        context = access.target.context_name if access.target else ""
        return CredentialError(
            f"the server does not know who asks for the token (401), the user of context {context or 'in-cluster'}",
            hint="kubeauthn doctor explains which credential that is",
        )
    if status == 403:
        return CredentialError(
            f"no token for {account} may be asked for{said}",
            hint="a role must allow it: kubectl create role NAME --verb=create --resource=serviceaccounts/token "
            f"--resource-name={name} -n {namespace}",
        )
    if status == 404:
        return CredentialError(
            f"there is no {account}{said}", hint=f"kubectl create serviceaccount {name} -n {namespace}"
        )
    return CredentialError(f"the server answered {status} to the request for a token of {account}{said}")
