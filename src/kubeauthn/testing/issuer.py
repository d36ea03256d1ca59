"""An OpenID Connect issuer for tests: discovery, keys, a token endpoint, and signed tokens.

::

    with Issuer() as issuer:
        token = issuer.token("jane", audience="kubernetes", groups=["dev"])
        issuer.rotate()                  # a new key signs from now on; the old one is still published
        issuer.withdraw(issuer.kids[0])  # and now it is not

The token endpoint knows the grants `refresh_token` and `client_credentials`; any other,
the password grant among them, is refused as a real issuer would refuse it.
"""

from __future__ import annotations

import base64
import binascii
import time
from dataclasses import dataclass
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote_plus

from kubeauthn.errors import UsageError
from kubeauthn.testing._http import BadRequest, HttpConnection, Request, Response
from kubeauthn.testing._listener import Listener, handshake
from kubeauthn.testing._signing import ALGORITHMS, SigningKey
from kubeauthn.testing.pki import CertificateAuthority

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

DISCOVERY_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/keys"
TOKEN_PATH = "/token"


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
    client is public. With `rotate_refresh_tokens` a refresh token is good for one use only.
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.ca = ca or CertificateAuthority("kubeauthn test issuer CA")
        self.client_id = client_id
        self.requests: list[IssuerRequest] = []
        """Every request so far, oldest first. Appended to by other threads; may be cleared."""
        self._context = self.ca.server_context() if tls else None
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
        if asked == ("POST", TOKEN_PATH):
            return self._exchange(request, form)
        return Response.of_json({"error": "not_found"}, 404)

    def _discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": self.url + KEYS_PATH,
            "token_endpoint": self.url + TOKEN_PATH,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": list(ALGORITHMS),
            "grant_types_supported": ["refresh_token", "client_credentials"],
        }

    def _exchange(self, request: Request, form: Mapping[str, str]) -> Response:
        if not self._client_holds(request, form):
            return Response.of_json({"error": "invalid_client"}, 401)
        grant = form.get("grant_type", "")
        if grant == "client_credentials" and self._client_secret is not None:
            return self._granted({"sub": self.client_id}, refresh_token=None)
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

    def _granted(self, claims: Mapping[str, Any], *, refresh_token: str | None) -> Response:
        token = self.sign(self._claims(claims, None, None))
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
