"""An API server for tests: TLS, tokens, client certificates, watches, switches and records.

::

    with ApiServer() as server:
        server.accept_token("s3cret", user="jane", groups=["dev"])
        server.write_kubeconfig(path, user={"token": "s3cret"})
        ...  # the program under test
        assert server.requests[-1].user == "jane"

It listens on 127.0.0.1, port picked by the system, one thread per connection. A client
certificate is verified by TLS itself, so one of another authority, or one that is out of
its time, ends in the handshake and not in a 401.
"""

from __future__ import annotations

import ssl
import time
import zlib
from threading import Event, local
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from kubeauthn.errors import UsageError
from kubeauthn.testing import _csr, _kubeconfig, _waiting
from kubeauthn.testing._api import Api
from kubeauthn.testing._csr import CERTIFICATE_REQUESTS
from kubeauthn.testing._faults import Faults
from kubeauthn.testing._http import BadRequest, HttpConnection, Request, Response
from kubeauthn.testing._identity import Credentials, PeerCertificate, User, bearer_token, effective_user
from kubeauthn.testing._listener import Listener, handshake
from kubeauthn.testing._records import ConnectionLog, RecordedConnection, RecordedRequest
from kubeauthn.testing._resources import Catalogue, ResourceType
from kubeauthn.testing._service_accounts import SERVICE_ACCOUNTS
from kubeauthn.testing._spdy import SpdyError
from kubeauthn.testing._status import ApiError, unauthorized
from kubeauthn.testing._store import Store
from kubeauthn.testing._streaming import stream
from kubeauthn.testing._upgrade import Upgrade
from kubeauthn.testing._watch import Selection, Watch
from kubeauthn.testing._webhook import TokenReviewWebhook
from kubeauthn.testing._websocket import WebSocketError
from kubeauthn.testing.pki import LOOPBACK_NAMES, CertificateAuthority

if TYPE_CHECKING:
    import os
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

T = TypeVar("T")

_VERIFY_MODES = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}


class ApiServer(Faults):
    """A Kubernetes API server that is good enough for real clients. Use it as a context manager.

    `tokens` maps a bearer token to a user (or a user's name). `server_names` are the names in
    the server's certificate. A request without a credential that holds is a 401, unless
    `allow_anonymous`; either way it is recorded with `user=None`. `token_review` is asked about
    bearer tokens that are not among `tokens`: the URL of a TokenReview webhook, whose
    certificate is checked against `token_review_ca` (PEM), or a function from a token to a user or None.
    """

    def __init__(
        self,
        *,
        client_certificates: Literal["none", "optional", "required"] = "optional",
        tokens: Mapping[str, User | str] | None = None,
        server_names: Sequence[str] = LOOPBACK_NAMES,
        tls12_only: bool = False,
        allow_anonymous: bool = False,
        ca: CertificateAuthority | None = None,
        token_review: str | Callable[[str], User | None] | None = None,
        token_review_ca: bytes | None = None,
    ) -> None:
        if client_certificates not in _VERIFY_MODES:
            raise UsageError(f"client_certificates is one of {', '.join(_VERIFY_MODES)}, not {client_certificates!r}")
        super().__init__()
        self.ca = ca or CertificateAuthority()
        self.requests: list[RecordedRequest] = []
        """Every request so far, oldest first. Appended to by other threads; may be cleared."""
        self._context = self.ca.server_context(server_names)
        self._context.verify_mode = _VERIFY_MODES[client_certificates]
        self._context.load_verify_locations(cadata=self.ca.certificate_pem.decode())
        if tls12_only:
            self._context.maximum_version = ssl.TLSVersion.TLSv1_2
        self._context.sni_callback = self._note_sni
        self._handshake = local()  # the SNI of the handshake that this thread is in
        self._webhook = TokenReviewWebhook(token_review, token_review_ca) if isinstance(token_review, str) else None
        asked = token_review if callable(token_review) else self._webhook
        self._credentials = Credentials(allow_anonymous=allow_anonymous, ask=asked)
        for token, user in (tokens or {}).items():
            self._credentials.accept_token(token, User(user) if isinstance(user, str) else user)
        self._catalogue = Catalogue()
        self._catalogue.add(CERTIFICATE_REQUESTS)
        self._catalogue.add(SERVICE_ACCOUNTS)
        self._store = Store()
        self._connections = ConnectionLog()
        self._stopping = Event()
        self._listener: Listener | None = None
        self._api = Api(self._catalogue, self._store, self._credentials)

    # life

    def __enter__(self) -> Self:
        if self._listener is not None:
            raise UsageError("an ApiServer is started once")
        if self._webhook is not None:
            self._webhook.start()
        self._listener = Listener(self._serve, name="kubeauthn test API server", context=self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        if self._listener is not None:
            self._listener.stop()
        if self._webhook is not None:
            self._webhook.close()

    @property
    def port(self) -> int:
        """The port; it stays known after the end, when nobody listens there."""
        if self._listener is None:
            raise UsageError("the ApiServer is not started: use it in a with statement")
        return self._listener.port

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    # who is let in

    def accept_token(
        self,
        token: str,
        user: str = "test-user",
        groups: Sequence[str] = (),
        *,
        uid: str = "",
        extra: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Let this bearer token in, as this user."""
        values = {key: tuple(items) for key, items in (extra or {}).items()}
        self._credentials.accept_token(token, User(user, tuple(groups), uid, values))

    def accept_only(self, token: str, user: str | None = None) -> None:
        """Let this token in and no other. Certificates are not touched."""
        self._credentials.accept_only(token, User(user) if user is not None else None)

    def revoke_token(self, token: str) -> None:
        self._credentials.revoke_token(token)

    def accept_password(self, user: str, password: str, groups: Sequence[str] = ()) -> None:
        """Let this user in with basic authentication, which Kubernetes itself no longer has."""
        self._credentials.accept_password(User(user, tuple(groups)), password)

    def accept_certificates(self, accepted: bool) -> None:
        """With False, a client certificate still passes TLS but no longer says who the client is."""
        self._credentials.certificates_accepted = accepted

    def revoke_serial(self, serial: int) -> None:
        """No longer take the client certificate with this serial as a credential."""
        self._credentials.revoke_serial(serial)

    # what goes wrong

    def drop_connections(self) -> None:
        """Cut every connection, as a network failure would."""
        if self._listener is not None:
            self._listener.drop_connections()

    # objects and watches

    def define(
        self, group: str, version: str, plural: str, kind: str, *, namespaced: bool = True, status: bool = False
    ) -> None:
        """Add a custom resource: discovery lists it and its paths work."""
        self._catalogue.add(ResourceType(group, version, plural, kind, namespaced, has_status=status))

    def emit(
        self, kind: str = "namespaces", name: str = "emitted", *, namespace: str = "default", deleted: bool = False
    ) -> dict[str, Any]:
        """Make a watch event: ADDED if the object is new, else MODIFIED; DELETED on request. Returns the object."""
        type = self._catalogue.named(kind)
        place = namespace if type.namespaced else ""
        if deleted:
            return self._store.delete(type, place, name)
        try:
            return self._store.touch(type, place, name)
        except ApiError:
            return self._store.create(type, place, {"metadata": {"name": name}})

    def add_pod(self, name: str = "web", *, namespace: str = "default", container: str = "main") -> dict[str, Any]:
        """A running pod, for exec, attach and port-forward.

        Its programs are `cat`, `echo`, `produce BYTES`, `size` and `fail CODE`. Its ports answer what they are sent.
        """
        ready = {"name": container, "ready": True, "restartCount": 0, "state": {"running": {}}}
        pod = {
            "metadata": {"name": name},
            "spec": {"containers": [{"name": container, "image": "test", "stdin": True, "tty": True}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")],
                "containerStatuses": [ready],
            },
        }
        return self._store.create(self._catalogue.named("pods"), namespace, pod)

    def settle_certificate_requests(self, *, deny: str | None = None) -> int:
        """Approve and sign every request of the CSR API that waits, or deny it with this message. How many."""
        waiting = [item for item in self.objects("certificatesigningrequests") if not item.get("status")]
        for item in waiting:
            self._store.change(
                _csr.CERTIFICATE_REQUESTS,
                "",
                item["metadata"]["name"],
                lambda old: _csr.approved(old, self.ca) if deny is None else _csr.denied(old, deny),
            )
        return len(waiting)

    def objects(self, kind: str, namespace: str | None = None) -> list[dict[str, Any]]:
        """What is stored now."""
        items: list[dict[str, Any]] = self._store.listing(Selection(self._catalogue.named(kind), namespace))["items"]
        return items

    @property
    def open_watches(self) -> int:
        """How many watch streams are running."""
        return len(self._store.watches())

    def close_watches(self) -> None:
        """End every watch stream in the regular way; the connections stay."""
        for watch in self._store.watches():
            watch.end()

    # records

    @property
    def connections(self) -> list[RecordedConnection]:
        """Every connection so far, oldest first, as they are now."""
        return self._connections.snapshot()

    def wait_for(self, predicate: Callable[[], T], seconds: float = 5.0) -> T:
        """Wait until `predicate()` is true and return its value; `TimeoutError` after `seconds`."""
        return _waiting.wait_for(predicate, seconds)

    async def wait_for_async(self, predicate: Callable[[], T], seconds: float = 5.0) -> T:
        """The same without blocking the event loop."""
        return await _waiting.wait_for_async(predicate, seconds)

    # kubeconfig

    def kubeconfig(
        self,
        user: Mapping[str, object] | None = None,
        *,
        cluster: Mapping[str, object] | None = None,
        path: str | os.PathLike[str] | None = None,
        context_name: str = "test",
        cluster_name: str = "test",
        user_name: str = "test",
        namespace: str | None = None,
    ) -> dict[str, Any]:
        """A kubeconfig for this server with this user entry; also written to `path` if one is given.

        `cluster` is laid over the cluster entry: a value of None takes a field away.
        """
        document = _kubeconfig.kubeconfig(
            server=self.url,
            ca_pem=self.ca.certificate_pem,
            user=user,
            cluster=cluster,
            context_name=context_name,
            cluster_name=cluster_name,
            user_name=user_name,
            namespace=namespace,
        )
        if path is not None:
            _kubeconfig.write(path, document)
        return document

    def write_kubeconfig(
        self,
        path: str | os.PathLike[str],
        user: Mapping[str, object] | None = None,
        *,
        cluster: Mapping[str, object] | None = None,
        context_name: str = "test",
        cluster_name: str = "test",
        user_name: str = "test",
        namespace: str | None = None,
    ) -> Path:
        """Write that kubeconfig and return its path."""
        document = self.kubeconfig(
            user,
            cluster=cluster,
            context_name=context_name,
            cluster_name=cluster_name,
            user_name=user_name,
            namespace=namespace,
        )
        return _kubeconfig.write(path, document)

    # one connection, in its own thread

    def _note_sni(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> None:
        self._handshake.sni = name

    def _serve(self, connection: socket.socket) -> None:
        number = self._connections.open()
        error: str | None = None
        try:
            self._converse(handshake(connection), number)
        except (OSError, BadRequest, SpdyError, WebSocketError, zlib.error) as problem:  # ssl.SSLError is an OSError
            error = str(problem)
        finally:
            self._connections.closed(number, error=error)

    def _converse(self, connection: ssl.SSLSocket, number: int) -> None:
        certificate = connection.getpeercert()
        peer = PeerCertificate.from_ssl(certificate) if certificate else None
        sni: str | None = getattr(self._handshake, "sni", None)
        self._connections.handshaken(number, certificate_serial=peer.serial if peer else None, sni=sni)
        http = HttpConnection(connection)
        while True:
            try:
                request = http.read_request()
            except BadRequest as problem:
                http.write_response(ApiError(400, str(problem)).response(), keep_alive=False)
                raise
            if request is None:
                return
            user = self._credentials.authenticate(request, peer)
            self._record(request, user, peer, number, connection.version() or "", sni)
            if self._delay and self._stopping.wait(self._delay):
                return
            answer = self._answer(request, user)
            if isinstance(answer, Upgrade):
                answer.serve(connection, http)
                return
            if isinstance(answer, Watch):
                try:
                    if not stream(connection, http, answer):
                        return
                finally:
                    self._store.close_watch(answer)
            else:
                http.write_response(answer, keep_alive=request.keep_alive)
            if not request.keep_alive:
                return

    def _record(
        self,
        request: Request,
        user: User | None,
        peer: PeerCertificate | None,
        number: int,
        tls_version: str,
        sni: str | None,
    ) -> None:
        recorded = RecordedRequest(
            method=request.method,
            path=request.path,
            query=request.query,
            headers=request.headers,
            body=request.body,
            user=user.name if user else None,
            token=bearer_token(request.header("authorization")),
            certificate_serial=peer.serial if peer else None,
            connection_id=number,
            tls_version=tls_version,
            server_name=sni,
            at=time.time(),
        )
        self.requests.append(recorded)

    def _answer(self, request: Request, user: User | None) -> Response | Watch | Upgrade:
        try:
            self._raise_fault()
            if user is None and not self._credentials.anonymous_is_fine(request):
                raise unauthorized()
            return self._api.answer(request, effective_user(request, user))
        except ApiError as error:
            return error.response()
