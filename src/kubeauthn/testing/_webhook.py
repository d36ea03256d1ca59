"""The API server asks a webhook about a bearer token, as kube-apiserver does: one TokenReview, and its status.

kube-apiserver remembers answers (`--authentication-token-webhook-cache-ttl`); this one asks each time, so that a test
sees a change at once. A webhook that does not answer, or answers something else, lets nobody in.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import UsageError
from kubeauthn.testing._identity import User

if TYPE_CHECKING:
    import httpx2

API_VERSION = "authentication.k8s.io/v1"
SECONDS = 10.0
ANSWER_BYTES = 1 << 20


class TokenReviewWebhook:
    """Who a token belongs to, from the webhook at `url`; `ca` (PEM) is what its certificate is checked against."""

    def __init__(self, url: str, ca: bytes | None = None) -> None:
        if not url.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
            raise UsageError(f"a webhook is asked over https, or on loopback, not at {url!r}")
        self._url = url
        self._ca = ca
        self._client: httpx2.Client | None = None

    def start(self) -> None:
        import httpx2

        context = ssl.create_default_context(cadata=self._ca.decode() if self._ca else None)
        # Neither a proxy of the environment nor a redirection may see a token.
        self._client = httpx2.Client(verify=context, timeout=SECONDS, trust_env=False, follow_redirects=False)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def __call__(self, token: str) -> User | None:
        import httpx2

        if self._client is None:
            raise UsageError("the webhook is asked by a server that is started")
        review = {"apiVersion": API_VERSION, "kind": "TokenReview", "spec": {"token": token}}
        try:
            with self._client.stream("POST", self._url, json=review) as response:
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > ANSWER_BYTES:
                        return None
                return _user(httpx2.Response(response.status_code, content=body))
        except (httpx2.HTTPError, ValueError):
            return None


def _user(response: httpx2.Response) -> User | None:
    review = response.json() if response.status_code in (200, 201) else None
    if not isinstance(review, dict) or review.get("kind") != "TokenReview" or review.get("apiVersion") != API_VERSION:
        return None
    status = _object(review.get("status"))
    user = _object(status.get("user"))
    name = user.get("username")
    if status.get("authenticated") is not True or not isinstance(name, str):
        return None
    extra = {key: _texts(values) for key, values in _object(user.get("extra")).items()}
    return User(name, _texts(user.get("groups")), str(user.get("uid") or ""), extra)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
