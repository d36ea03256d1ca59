"""An OpenID Connect issuer for tests: discovery, keys, a token endpoint, and signed tokens.

::

    with Issuer() as issuer:
        token = issuer.token("jane", audience="kubernetes", groups=["dev"])
        issuer.rotate()                  # a new key signs from now on; the old one is still published
        issuer.withdraw(issuer.kids[0])  # and now it is not

People log in by browser (authorization code, PKCE is asked for and checked) or by device code::

    issuer.log_in_as("jane", groups=["dev"])      # who sits at the browser from now on; None: a person who cancels
    issuer.approve_device(issuer.user_codes[0], "jane")

The token endpoint also knows the grants `refresh_token` and `client_credentials`; any other,
the password grant among them, is refused as a real issuer would refuse it. An issuer that means no
good is made with `override_claims`, `override_discovery` and `override_redirect`.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import time
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus

from kubeauthn.errors import UsageError
from kubeauthn.testing._http import BadRequest, HttpConnection, Request, Response
from kubeauthn.testing._listener import Listener, handshake
from kubeauthn.testing._login import DEVICE_GRANT, Grant, Logins, Refused
from kubeauthn.testing._signing import ALGORITHMS, SigningKey
from kubeauthn.testing.pki import CertificateAuthority

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

DISCOVERY_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/keys"
TOKEN_PATH = "/token"
AUTHORIZATION_PATH = "/authorize"
DEVICE_PATH = "/device_authorization"
REVOCATION_PATH = "/revoke"


@dataclass(frozen=True)
class IssuerRequest:
    """A request as it arrived, the form of a token request read."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    form: Mapping[str, str]
    status: int
    at: float


class Issuer:
    """An issuer on 127.0.0.1, over TLS unless `tls=False`. Use it as a context manager.

    `client_id` and `client_secret` are what the token endpoint asks for; without a secret the
    client is public. With `rotate_refresh_tokens` a refresh token is good for one use only. A browser
    is sent back to `redirect_uris` alone; on loopback the port does not matter.
    """

    def __init__(
        self,
        *,
        tls: bool = True,
        ca: CertificateAuthority | None = None,
        client_id: str = "kubernetes",
        client_secret: str | None = None,
        token_seconds: float = 3600.0,
        rotate_refresh_tokens: bool = False,
        redirect_uris: Sequence[str] = ("http://127.0.0.1/callback",),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ca = ca or CertificateAuthority("kubeauthn test issuer CA")
        self.client_id = client_id
        self.requests: list[IssuerRequest] = []
        """Every request so far, oldest first. Appended to by other threads; may be cleared."""
        self.override_claims: dict[str, Any] = {}
        """Laid over the claims of each id token of the token endpoint; None takes a claim away."""
        self.override_discovery: dict[str, Any] = {}
        """Laid over the discovery document."""
        self.override_redirect: dict[str, str | None] = {}
        """Laid over what the browser brings back: `state`, `code`, `iss`; None takes one away."""
        self._context = self.ca.server_context() if tls else None
        self._logins = Logins(client_id, redirect_uris, clock)
        self._client_secret = client_secret
        self._token_seconds = token_seconds
        self._rotate_refresh_tokens = rotate_refresh_tokens
        self._clock = clock
        self._lock = Lock()
        self._numbers = count(1)
        self._keys: list[SigningKey] = []
        self._withdrawn: list[SigningKey] = []
        self._refresh_tokens: dict[str, dict[str, Any]] = {}
        self._failures: tuple[int, int] = (0, 500)
        self._listener: Listener | None = None

    def __enter__(self) -> Self:
        if self._listener is not None:
            raise UsageError("an Issuer is started once")
        self._listener = Listener(self._serve, name="kubeauthn test issuer", context=self._context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._listener is not None:
            self._listener.stop()

    @property
    def port(self) -> int:
        if self._listener is None:
            raise UsageError("the Issuer is not started: use it in a with statement")
        return self._listener.port

    @property
    def url(self) -> str:
        """The issuer, as in `iss`."""
        return f"{'http' if self._context is None else 'https'}://127.0.0.1:{self.port}"

    # keys and tokens

    @property
    def kids(self) -> list[str]:
        """The ids of the published keys, oldest first."""
        with self._lock:
            return [key.kid for key in self._keys]

    def jwks(self) -> dict[str, Any]:
        """The published keys."""
        with self._lock:
            if not self._keys and not self._withdrawn:
                self._add_key_locked("RS256")
            return {"keys": [key.jwk() for key in self._keys]}

    def rotate(self, alg: str = "RS256") -> str:
        """Add a key, which signs from now on, and return its id. Older ones stay published until withdrawn."""
        with self._lock:
            return self._add_key_locked(alg).kid

    def withdraw(self, kid: str) -> None:
        """No longer publish this key. It still signs for who asks for it by its id."""
        with self._lock:
            key = next((key for key in self._keys if key.kid == kid), None)
            if key is None:
                raise UsageError(f"no published key has the id {kid!r}")
            self._keys.remove(key)
            self._withdrawn.append(key)

    def sign(
        self,
        claims: Mapping[str, Any],
        *,
        kid: str | None = None,
        alg: str | None = None,
        headers: Mapping[str, Any] | None = None,
    ) -> str:
        """Sign exactly these claims: with the newest key for `alg` (RS256 unless told), or with the key `kid`."""
        with self._lock:
            key = self._key_locked(kid, alg)
        return key.sign(claims, headers or {})

    def token(
        self, subject: str, *, audience: str | None = None, expires_in: float | None = None, **claims: Any
    ) -> str:
        """A token with issuer, audience and times filled in; `claims` are laid over them."""
        return self.sign(self._claims({"sub": subject, **claims}, audience, expires_in))

    def accept_refresh_token(self, token: str, subject: str, **claims: Any) -> None:
        """Let the token endpoint exchange this refresh token for an id token with these claims."""
        if not token:
            raise UsageError("an empty refresh token cannot be accepted")
        with self._lock:
            self._refresh_tokens[token] = {"sub": subject, **claims}

    def revoke_refresh_token(self, token: str) -> None:
        with self._lock:
            if self._refresh_tokens.pop(token, None) is None:
                raise UsageError("only a refresh token that is accepted can be revoked")

    # people

    def log_in_as(self, subject: str | None, **claims: Any) -> None:
        """Who sits at the browser from now on. None, as at the start: somebody who cancels."""
        self._logins.person = None if subject is None else {"sub": subject, **claims}

    @property
    def user_codes(self) -> list[str]:
        """The codes of devices that wait for their person, oldest first."""
        return self._logins.waiting_user_codes()

    @property
    def device_interval(self) -> float:
        """How often a device may ask, in seconds. It may be set, for logins that begin later."""
        return self._logins.interval

    @device_interval.setter
    def device_interval(self, seconds: float) -> None:
        self._logins.interval = seconds

    def approve_device(self, user_code: str, subject: str, **claims: Any) -> None:
        """What a person does who enters the code on another device."""
        self._logins.settle_device(user_code, {"sub": subject, **claims})

    def deny_device(self, user_code: str) -> None:
        self._logins.settle_device(user_code, None)

    def fail_next(self, times: int = 1, status: int = 503) -> None:
        """Answer the next `times` requests with this status."""
        with self._lock:
            self._failures = (times, status)

    def auth_provider(self, *, refresh_token: str, id_token: str | None = None) -> dict[str, Any]:
        """The kubeconfig `auth-provider` entry of the kind `oidc` for this issuer."""
        config = {
            "idp-issuer-url": self.url,
            "client-id": self.client_id,
            "refresh-token": refresh_token,
            "idp-certificate-authority-data": base64.b64encode(self.ca.certificate_pem).decode(),
        }
        if self._client_secret is not None:
            config["client-secret"] = self._client_secret
        if id_token is not None:
            config["id-token"] = id_token
        return {"name": "oidc", "config": config}

    def _add_key_locked(self, alg: str) -> SigningKey:
        key = SigningKey.new(f"key-{next(self._numbers)}", alg)
        self._keys.append(key)
        return key

    def _key_locked(self, kid: str | None, alg: str | None) -> SigningKey:
        if kid is None:
            wanted = alg or "RS256"
            found = [key for key in self._keys if key.alg == wanted]
            return found[-1] if found else self._add_key_locked(wanted)
        key = next((key for key in (*self._keys, *self._withdrawn) if key.kid == kid), None)
        if key is None:
            raise UsageError(f"no key has the id {kid!r}")
        if alg not in (None, key.alg):
            raise UsageError(f"the key {kid!r} signs with {key.alg}, not with {alg}")
        return key

    def _claims(self, claims: Mapping[str, Any], audience: str | None, expires_in: float | None) -> dict[str, Any]:
        now = int(self._clock())
        seconds = self._token_seconds if expires_in is None else expires_in
        times = {"iat": now, "exp": int(now + seconds)}
        return {"iss": self.url, "aud": audience or self.client_id, **times, **claims}

    # requests

    def _serve(self, connection: socket.socket) -> None:
        try:
            http = HttpConnection(connection if self._context is None else handshake(connection))
            while (request := http.read_request()) is not None:
                form = dict(parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True))
                response = self._answer(request, form)
                self.requests.append(
                    IssuerRequest(request.method, request.path, request.headers, form, response.status, self._clock())
                )
                http.write_response(response, keep_alive=request.keep_alive)
                if not request.keep_alive:
                    return
        except (OSError, BadRequest):
            pass  # the peer is gone, or does not speak HTTP: either ends the connection

    def _answer(self, request: Request, form: Mapping[str, str]) -> Response:
        with self._lock:
            left, status = self._failures
            if left > 0:
                self._failures = (left - 1, status)
                return Response.of_json({"error": "server_error"}, status)
        asked = (request.method, request.path)
        if asked == ("GET", DISCOVERY_PATH):
            return Response.of_json(self._discovery())
        if asked == ("GET", KEYS_PATH):
            return Response.of_json(self.jwks())
        if asked == ("GET", AUTHORIZATION_PATH):
            return self._logins.authorize(request.query, self.url, self.override_redirect)
        if asked == ("POST", TOKEN_PATH):
            return self._exchange(request, form)
        if asked == ("POST", DEVICE_PATH):
            if not self._client_holds(request, form):
                return Response.of_json({"error": "invalid_client"}, 401)
            return self._logins.begin_device(form, self.url)
        if asked == ("POST", REVOCATION_PATH):
            return self._revoke(request, form)
        return Response.of_json({"error": "not_found"}, 404)

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": self.url + KEYS_PATH,
            "authorization_endpoint": self.url + AUTHORIZATION_PATH,
            "token_endpoint": self.url + TOKEN_PATH,
            "device_authorization_endpoint": self.url + DEVICE_PATH,
            "revocation_endpoint": self.url + REVOCATION_PATH,
            "authorization_response_iss_parameter_supported": True,
            "code_challenge_methods_supported": ["S256"],
            "response_types_supported": ["code", "id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": list(ALGORITHMS),
            "grant_types_supported": ["authorization_code", DEVICE_GRANT, "refresh_token", "client_credentials"],
            **self.override_discovery,
        }

    def _exchange(self, request: Request, form: Mapping[str, str]) -> Response:
        if not self._client_holds(request, form):
            return Response.of_json({"error": "invalid_client"}, 401)
        grant = form.get("grant_type", "")
        if grant == "client_credentials" and self._client_secret is not None:
            return self._granted({"sub": self.client_id}, refresh_token=None)
        if grant in ("authorization_code", DEVICE_GRANT):
            try:
                redeem = self._logins.redeem_code if grant == "authorization_code" else self._logins.redeem_device
                return self._begin_session(redeem(form))
            except Refused as refusal:
                return Response.of_json({"error": refusal.error}, 400)
        if grant != "refresh_token":
            return Response.of_json({"error": "unsupported_grant_type"}, 400)
        presented = form.get("refresh_token", "")
        with self._lock:
            claims = self._refresh_tokens.get(presented)
            if claims is None:
                return Response.of_json({"error": "invalid_grant"}, 400)
            if self._rotate_refresh_tokens:
                del self._refresh_tokens[presented]
                presented = f"refresh-{next(self._numbers)}"
                self._refresh_tokens[presented] = claims
        return self._granted(claims, refresh_token=presented)

    def _begin_session(self, grant: Grant) -> Response:
        """A refresh token comes with it where `offline_access` was asked for, as at most issuers."""
        refresh_token = None
        if "offline_access" in grant.scope.split():
            with self._lock:
                refresh_token = f"refresh-{next(self._numbers)}-{secrets.token_urlsafe(16)}"
                self._refresh_tokens[refresh_token] = dict(grant.claims)
        nonce = {} if grant.nonce is None else {"nonce": grant.nonce}
        return self._granted({**grant.claims, **nonce}, refresh_token=refresh_token)

    def _revoke(self, request: Request, form: Mapping[str, str]) -> Response:
        """RFC 7009: an unknown token is as good as revoked."""
        if not self._client_holds(request, form):
            return Response.of_json({"error": "invalid_client"}, 401)
        with self._lock:
            self._refresh_tokens.pop(form.get("token", ""), None)
        return Response(200)

    def _granted(self, claims: Mapping[str, Any], *, refresh_token: str | None) -> Response:
        laid_over = {**self._claims(claims, None, None), **self.override_claims}
        token = self.sign({name: value for name, value in laid_over.items() if value is not None})
        reply: dict[str, Any] = {
            "access_token": token,
            "id_token": token,
            "token_type": "Bearer",
            "expires_in": int(self._token_seconds),
        }
        if refresh_token is not None:
            reply["refresh_token"] = refresh_token
        return Response.of_json(reply)

    def _client_holds(self, request: Request, form: Mapping[str, str]) -> bool:
        """The client's id and secret, from the header (RFC 6749, form-encoded first) or from the form."""
        client_id, secret = form.get("client_id", ""), form.get("client_secret", "")
        scheme, _, encoded = (request.header("authorization") or "").partition(" ")
        if scheme.lower() == "basic":
            try:
                name, _, value = base64.b64decode(encoded, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                return False
            client_id, secret = unquote_plus(name), unquote_plus(value)
        return client_id == self.client_id and (self._client_secret is None or secret == self._client_secret)
