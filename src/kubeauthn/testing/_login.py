"""The part of an issuer that people meet: authorization codes with PKCE, and the device authorization grant."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from kubeauthn.errors import UsageError
from kubeauthn.testing._http import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
CODE_SECONDS = 60.0
DEVICE_SECONDS = 600.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@dataclass
class Grant:
    """What a code stands for: whom, and what the client must still prove."""

    claims: dict[str, Any]
    scope: str
    ends: float
    redirect_uri: str = ""
    challenge: str = ""
    nonce: str | None = None


@dataclass
class Device:
    user_code: str
    scope: str
    ends: float
    interval: float
    asked_at: float | None = None
    outcome: str = "authorization_pending"
    claims: dict[str, Any] = field(default_factory=dict)


class Refused(Exception):
    """An OAuth error, which is the answer."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Logins:
    """Codes that were given out, and devices that wait. Every code is good once."""

    def __init__(self, client_id: str, redirect_uris: Sequence[str], clock: Callable[[], float]) -> None:
        self.client_id = client_id
        self.person: dict[str, Any] | None = None
        self.interval = 5.0
        self._redirect_uris = tuple(redirect_uris)
        self._clock = clock
        self._lock = Lock()
        self._codes: dict[str, Grant] = {}
        self._devices: dict[str, Device] = {}

    def authorize(self, query: Mapping[str, str], issuer_url: str, over: Mapping[str, str | None]) -> Response:
        """RFC 6749, 4.1.1. Before the redirect address is known to be the client's, nothing is sent there."""
        redirect_uri = query.get("redirect_uri", "")
        if query.get("client_id") != self.client_id or not self._is_registered(redirect_uri):
            return Response.of_json({"error": "invalid_request"}, 400)
        answer: dict[str, str | None] = {"state": query.get("state"), "iss": issuer_url}
        try:
            answer["code"] = self._new_code(query, redirect_uri)
        except Refused as refusal:
            answer["error"] = refusal.error
        answer.update(over)
        sent = urlencode({name: value for name, value in answer.items() if value is not None})
        return Response(302, headers=(("Location", f"{redirect_uri}?{sent}"),))

    def _new_code(self, query: Mapping[str, str], redirect_uri: str) -> str:
        if query.get("response_type") != "code":
            raise Refused("unsupported_response_type")
        if "openid" not in query.get("scope", "").split():
            raise Refused("invalid_scope")
        if query.get("code_challenge_method") != "S256" or len(query.get("code_challenge", "")) != 43:
            raise Refused("invalid_request")
        if self.person is None:
            raise Refused("access_denied")
        code = secrets.token_urlsafe(24)
        grant = Grant(
            claims=dict(self.person),
            scope=query["scope"],
            ends=self._clock() + CODE_SECONDS,
            redirect_uri=redirect_uri,
            challenge=query["code_challenge"],
            nonce=query.get("nonce"),
        )
        with self._lock:
            self._codes[code] = grant
        return code

    def redeem_code(self, form: Mapping[str, str]) -> Grant:
        """RFC 6749, 4.1.3 and RFC 7636, 4.6. Raises Refused."""
        with self._lock:
            grant = self._codes.pop(form.get("code", ""), None)
        if grant is None or self._clock() >= grant.ends or form.get("redirect_uri") != grant.redirect_uri:
            raise Refused("invalid_grant")
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != grant.challenge:
            raise Refused("invalid_grant")
        return grant

    def begin_device(self, form: Mapping[str, str], issuer_url: str) -> Response:
        """RFC 8628, 3.1 and 3.2."""
        device_code = secrets.token_urlsafe(24)
        user_code = "-".join("".join(secrets.choice("BCDFGHJKLMNPQRSTVWXZ") for _ in range(4)) for _ in range(2))
        device = Device(user_code, form.get("scope", ""), self._clock() + DEVICE_SECONDS, self.interval)
        with self._lock:
            self._devices[device_code] = device
        return Response.of_json(
            {
                "device_code": device_code,
                "user_code": user_code,
                "verification_uri": f"{issuer_url}/device",
                "verification_uri_complete": f"{issuer_url}/device?user_code={user_code}",
                "expires_in": int(DEVICE_SECONDS),
                "interval": self.interval,
            }
        )

    def settle_device(self, user_code: str, claims: dict[str, Any] | None) -> None:
        with self._lock:
            device = next((one for one in self._devices.values() if one.user_code == user_code), None)
            if device is None:
                raise UsageError(f"no device waits with the code {user_code!r}")
            device.outcome = "access_denied" if claims is None else ""
            device.claims = claims or {}

    def waiting_user_codes(self) -> list[str]:
        with self._lock:
            return [one.user_code for one in self._devices.values() if one.outcome == "authorization_pending"]

    def redeem_device(self, form: Mapping[str, str]) -> Grant:
        """RFC 8628, 3.4 and 3.5: who asks more often than told is slowed down. Raises Refused."""
        presented = form.get("device_code", "")
        with self._lock:
            device, now = self._devices.get(presented), self._clock()
            if device is None:
                raise Refused("invalid_grant")
            if now >= device.ends:
                raise Refused("expired_token")
            early = device.asked_at is not None and now - device.asked_at < device.interval
            device.asked_at = now
            if early:
                device.interval += 5
                raise Refused("slow_down")
            if device.outcome:
                raise Refused(device.outcome)
            del self._devices[presented]
            return Grant(device.claims, device.scope, device.ends)

    def _is_registered(self, uri: str) -> bool:
        """As registered; on loopback with any port (RFC 8252, 7.3)."""
        return uri in self._redirect_uris or _without_port(uri) in map(_without_port, self._redirect_uris)


def _without_port(uri: str) -> str:
    try:
        parts = urlsplit(uri)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return f"{parts.scheme}://{host}{parts.path}" if host in _LOOPBACK and parts.scheme == "http" else uri
