"""Access: one cluster, as one user. Everything an HTTP library needs, and nothing of any of them.

An adapter does this, and no more::

    credential = access.credential()              # may run a plugin, wait for one, or raise
    response = send(request, credential)          # header from credential.authorization, TLS from credential.identity
    if response.status != 401:
        access.accepted(credential)
    elif (renewed := access.renew(credential)) and access.may_repeat(request.method):
        response = send(request, renewed)
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict
from urllib.parse import urlsplit

from kubeauthn._core import limits
from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._core.execproxy import ProxyIdentity
from kubeauthn._core.impersonation import impersonation_headers
from kubeauthn._core.kubeconfig.model import Cluster, Target, User
from kubeauthn._core.policy import PluginPolicy
from kubeauthn.client.exec_source import ExecOptions, exec_proxy_switched_on
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.client.sources import CredentialSource, source_for
from kubeauthn.errors import CredentialError, UsageError

_REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


class AccessOptions(TypedDict, total=False):
    """What every door takes beside the context's name."""

    kubeconfig: str | None
    """A file to use instead of KUBECONFIG and ~/.kube/config."""
    cluster: str | None
    user: str | None
    namespace: str | None
    server: str | None
    tls_server_name: str | None
    token: str | None
    impersonate_user: str | None
    impersonate_uid: str | None
    impersonate_groups: Sequence[str]
    impersonate_extra: Mapping[str, Sequence[str]]
    policy: PluginPolicy | None
    """Which plugins may run; None: what the kuberc says."""
    plugin_timeout: float | None
    """Seconds a plugin may take when no person is typing; None: no limit."""
    stdin_taken: str | None
    """Set it, perhaps to a reason, where the program reads standard input itself."""
    exec_proxy: bool | None
    """Whether an exec plugin may be a proxy; None: what KUBEAUTHN_EXEC_PROXY or the user's extension says."""
    retry_unauthorized: bool
    """Repeat a request once with a renewed credential after a 401, where it may be repeated."""


class Access:
    def __init__(
        self,
        cluster: Cluster,
        source: CredentialSource,
        *,
        user: User = User(),
        namespace: str = "",
        target: Target | None = None,
        retry_unauthorized: bool = True,
    ) -> None:
        self.cluster = cluster
        self.source = source
        self.server = cluster.server.rstrip("/")
        self.namespace = namespace or "default"
        self.target = target
        self.retry_unauthorized = retry_unauthorized
        self.headers: list[tuple[str, str]] = impersonation_headers(user.impersonation)
        """Sent with every request: impersonation. Names may repeat."""
        if cluster.disable_compression:
            self.headers.append(("Accept-Encoding", "identity"))
        self._origin = _origin(self.server)
        self._beginning = "/".join(self.server.split("/", 3)[:3]) + "/"

    def credential(self) -> Credential:
        return self.source.get()

    def credential_at_hand(self) -> Credential | None:
        """The credential if nothing need be done for it, else None: a coroutine less on an event loop's hot path."""
        return self.source.at_hand()

    async def credential_async(self) -> Credential:
        return await self.source.get_async()

    def accepted(self, credential: Credential) -> None:
        """Call it after any answer but 401; costs nothing once it is known."""
        if not credential.proven:
            self.source.accepted(credential)

    def renew(self, refused: Credential) -> Credential | None:
        """After a 401: a credential other than the refused one, or None. The reason for None goes to the log:
        the caller has the 401 to show."""
        self.source.refused(refused)
        try:
            renewed = self.source.get()
        except CredentialError as error:
            _log_failed_renewal(error)
            return None
        return renewed if renewed is not refused else None

    async def renew_async(self, refused: Credential) -> Credential | None:
        self.source.refused(refused)
        try:
            renewed = await self.source.get_async()
        except CredentialError as error:
            _log_failed_renewal(error)
            return None
        return renewed if renewed is not refused else None

    def lost(self, credential: Credential, reason: str) -> None:
        """Nobody listens at the proxy of this credential."""
        if isinstance(self.source, RefreshedSource):
            self.source.lost(credential, reason)

    def replace_lost(self, credential: Credential, reason: str) -> Credential:
        """The proxy of this credential is gone, and nothing was sent: another, from one new run for all who ask."""
        self.lost(credential, reason)
        return self.source.get()

    async def replace_lost_async(self, credential: Credential, reason: str) -> Credential:
        self.lost(credential, reason)
        return await self.source.get_async()

    def may_repeat(self, method: str) -> bool:
        """Whether a refused request may be sent once more; the adapter adds: if its body can be."""
        return self.retry_unauthorized and method.upper() in _REPEATABLE

    def answered(self, credential: Credential, status: int) -> None:
        """The outcome of a request that will not be repeated any more."""
        if status == 401:
            self.source.refused(credential)
        else:
            self.accepted(credential)

    def tls_context(self, identity: ClientIdentity | None) -> ssl.SSLContext:
        """A new context that trusts what the cluster entry says and shows `identity`; for a local proxy, its own CA."""
        if isinstance(identity, ProxyIdentity):
            from kubeauthn._io.tls import local_proxy_context

            return local_proxy_context(identity)
        from kubeauthn._io.tls import server_context

        return server_context(self.cluster, identity)

    def proxy_tls_context(self) -> ssl.SSLContext:
        """A new context for the way to an https proxy; shows no certificate."""
        from kubeauthn._io.tls import proxy_context

        return proxy_context(self.cluster)

    def check_destination(self, url: str) -> None:
        """Credentials go to their own server only: a redirect or an absolute URL elsewhere is refused."""
        # The whole authority and the slash after it: nothing that begins like this leads elsewhere.
        if url.startswith(self._beginning):
            return
        # HTTP libraries do not agree where a host ends that has a backslash behind it.
        try:
            elsewhere = "\\" in url or _origin(url) != self._origin
            place = _shown(url) if elsewhere else ""
        except ValueError:
            elsewhere, place = True, "an address that is none"
        if elsewhere:
            raise UsageError(f"this client carries credentials for {self.server} and sends nothing to {place}")


def open_access(
    context: str | None = None,
    *,
    kubeconfig: str | None = None,
    cluster: str | None = None,
    user: str | None = None,
    namespace: str | None = None,
    server: str | None = None,
    tls_server_name: str | None = None,
    token: str | None = None,
    impersonate_user: str | None = None,
    impersonate_uid: str | None = None,
    impersonate_groups: Sequence[str] = (),
    impersonate_extra: Mapping[str, Sequence[str]] | None = None,
    policy: PluginPolicy | None = None,
    plugin_timeout: float | None = limits.PLUGIN_SECONDS,
    stdin_taken: str | None = None,
    exec_proxy: bool | None = None,
    retry_unauthorized: bool = True,
) -> Access:
    """The access that a kubeconfig context gives, or in a pod the service account's.

    No plugin runs yet: that happens at the first request.
    """
    from kubeauthn._io.kuberc import read_policy
    from kubeauthn.client.kubeconfig import resolve

    target = resolve(
        context,
        path=kubeconfig,
        cluster=cluster,
        user=user,
        namespace=namespace,
        server=server,
        tls_server_name=tls_server_name,
        token=token,
        impersonate_user=impersonate_user,
        impersonate_uid=impersonate_uid,
        impersonate_groups=impersonate_groups,
        impersonate_extra=impersonate_extra,
    )
    options = ExecOptions(
        policy=policy if policy is not None else read_policy(),
        seconds=plugin_timeout,
        stdin_taken=stdin_taken,
        exec_proxy=exec_proxy_switched_on(target.user, exec_proxy),
    )
    return Access(
        target.cluster,
        source_for(target.user, target.cluster, options),
        user=target.user,
        namespace=target.namespace,
        target=target,
        retry_unauthorized=retry_unauthorized,
    )


def access_and_rest(context: str | None, options: dict[str, Any]) -> tuple[Access, dict[str, Any]]:
    """For adapters: split one set of keyword arguments into an `Access` and what is left for the library."""
    rest = dict(options)
    access: Access | None = rest.pop("access", None)
    mine = {name: rest.pop(name) for name in AccessOptions.__annotations__ if name in rest}
    if access is None:
        return open_access(context, **mine), rest
    if context is not None or mine:
        raise UsageError("give either access or what one is opened with, not both")
    return access, rest


def is_idempotent(method: str) -> bool:
    """Whether a request whose connection broke before an answer may be sent again."""
    return method.upper() in _REPEATABLE


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    scheme = parts.scheme.lower()
    return scheme, (parts.hostname or "").lower(), parts.port or (443 if scheme == "https" else 80)


def _shown(url: str) -> str:
    scheme, host, port = _origin(url)
    return f"{scheme}://{host}:{port}"


def _log_failed_renewal(error: CredentialError) -> None:
    import logging

    logging.getLogger("kubeauthn").error("refreshing credentials: %s", error)
