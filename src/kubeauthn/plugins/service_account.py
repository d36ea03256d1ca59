"""`kubeauthn plugin service-account`: a short-lived token of a service account, asked for as somebody else.

The TokenRequest API gives it: the user of another context asks, and the token that comes back is all that the client
gets. So a program works with the rights of a service account, and not with those of whoever started it.
"""

from __future__ import annotations

import json
import os
import time

from kubeauthn._core import limits
from kubeauthn._core.record import record
from kubeauthn.errors import CredentialError, EnvironmentFailure, UsageError
from kubeauthn.plugin import credential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from kubeauthn._core.credential import Credential
    from kubeauthn.client.access import Access

DEFAULT_SECONDS = 3600
SHORTEST_SECONDS = 600
LONGEST_SECONDS = 1 << 32
"""The API server refuses what is shorter or longer."""

UNDER_WAY = "KUBEAUTHN_SERVICE_ACCOUNT_UNDER_WAY"
"""Which requests the processes above this one are busy with: a context that leads back to itself is found by it."""

_PLUGIN_SECONDS = limits.PLUGIN_SECONDS - 20
ANSWER_SECONDS = 15.0
"""For the other context's own plugin and for the server's answer: together less than the client gives us, so that the
message comes from here. kubectl gives us for ever."""
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
        settings.context or None,
        kubeconfig=settings.kubeconfig or None,
        plugin_timeout=_PLUGIN_SECONDS,
        # Some clients leave us their terminal also where nobody is to be asked.
        stdin_taken=None if request.interactive else "the client of this plugin asks nobody",
    )
    _check_server(access, request)
    namespace = settings.namespace or access.namespace
    _check_name("the namespace of the context", namespace)
    # 3. The question, and what became of it.
    status, answer = _ask(access, namespace, settings)
    if status != 201:
        raise _refusal(status, answer, access, namespace, settings.name)
    return _token(answer)


def check(settings: Settings) -> None:
    """Raises UsageError."""
    _check_name("the service account", settings.name)
    if settings.namespace:
        _check_name("--namespace", settings.namespace)
    if not SHORTEST_SECONDS <= settings.seconds <= LONGEST_SECONDS:
        raise UsageError(f"--expires takes seconds, {SHORTEST_SECONDS} at least")


def _check_name(what: str, name: str) -> None:
    """It becomes part of a path, in which two dots would lead elsewhere."""
    plain = name.strip("-.") == name and all(letter in _OF_NAMES for letter in name)
    if not name or len(name) > _NAME_CHARACTERS or not plain:
        raise UsageError(f"{what} takes a name of small letters, digits, - and .")


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
    spec: dict[str, Any] = {"expirationSeconds": settings.seconds, "audiences": list(settings.audiences)}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{settings.name}/token"
    # Outside of the time limit for the answer: a person who logs in takes what it takes.
    asking = access.credential()
    status, answer = _exchange(access, asking, path, body)
    if status == 401 and (renewed := access.renew(asking)) is not None:
        # Clients repeat no POST by themselves. This one has made nothing.
        asking = renewed
        status, answer = _exchange(access, asking, path, body)
    if _quotes(answer.get("message"), asking):
        del answer["message"]
    return status, answer


def _exchange(access: Access, asking: Credential, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    import asyncio

    import httpx2

    failure = ""
    try:
        status, content = asyncio.run(_answer(access, asking, path, body))
    except (TimeoutError, httpx2.TimeoutException):
        failure = f"{access.server} did not end its answer within {ANSWER_SECONDS:g} s"
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        failure = f"cannot reach {access.server}: {str(error) or type(error).__name__}"
    if failure:
        raise EnvironmentFailure(failure, hint="kubeauthn doctor --online explains the way there")
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    return status, document if isinstance(document, dict) else {}


async def _answer(access: Access, asking: Credential, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    """With a limit for the whole: a server that drips its answer is no reason to hang."""
    import asyncio

    from kubeauthn._core.kubeconfig.model import User
    from kubeauthn._io.bounded_body import read_bounded
    from kubeauthn.client.access import Access
    from kubeauthn.client.httpx2 import async_client
    from kubeauthn.client.sources import FixedSource

    user = access.target.user if access.target else User()
    as_asked = Access(access.cluster, FixedSource(asking), user=user)
    async with (
        asyncio.timeout(ANSWER_SECONDS),
        async_client(access=as_asked, timeout=None, headers={"Accept-Encoding": "identity"}) as api,
        api.stream("POST", path, json=body) as response,
    ):
        return response.status_code, await read_bounded(response, access.server, limits.HTTP_DOCUMENT_BYTES)


def _quotes(message: object, asking: Credential) -> bool:
    """Whether a server shows what it was asked with: messages end up in logs."""
    if not isinstance(message, str) or asking.authorization is None:
        return False
    return asking.authorization.reveal().partition(" ")[2] in message


def _token(answer: dict[str, Any]) -> credential.Credential:
    from kubeauthn._core import rfc3339
    from kubeauthn.plugins.token_life import handed_out_until

    status = answer.get("status")
    given = status if isinstance(status, dict) else {}
    token, expiry = given.get("token"), given.get("expirationTimestamp")
    if not isinstance(token, str) or not token or not isinstance(expiry, str):
        raise CredentialError("the server's answer to the TokenRequest holds no token, or does not say when it ends")
    try:
        ends = rfc3339.parse(expiry)
    except ValueError:
        raise CredentialError("the server's answer to the TokenRequest ends at no time that can be read") from None
    return credential.Token(token, expires_at=handed_out_until(token, ends, time.time()))


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
