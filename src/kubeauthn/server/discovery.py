"""Discovery: from an issuer's address to its key set (KEP-3331, issuer.url, discoveryURL, certificateAuthority)."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.model import Issuer
from kubeauthn._core.authentication.provider_document import discovery_address, json_object, key_set_address
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._core.record import record
from kubeauthn.errors import EnvironmentFailure

if TYPE_CHECKING:
    from kubeauthn._io.async_http import Document
    from kubeauthn._secret import Secret


class Documents(Protocol):
    """Where documents come from: `_io.async_http.AsyncDocuments`, or canned answers."""

    async def get(
        self, url: str, *, seconds: float, most_bytes: int = fetch_limits.DOCUMENT_BYTES, bearer: Secret | None = None
    ) -> Document:
        """The answer, whatever its status; an EnvironmentFailure if there is none."""


@record(frozen=True, slots=True)
class KeySetDocument:
    """A key set as it came, and where from."""

    address: str
    fingerprint: str
    document: dict[str, Any]


class Discovery:
    """One issuer's way from its address to its keys. Every failure is an EnvironmentFailure that says where and why."""

    def __init__(self, issuer: Issuer, documents: Documents) -> None:
        self._issuer = issuer
        self._documents = documents
        self._keys_at = ""

    async def key_set(self) -> KeySetDocument:
        """The key set, from where it was last time; if that fails, from where the issuer says it is now."""
        known = self._keys_at
        if known:
            try:
                return await self._key_set_at(known)
            except EnvironmentFailure as failure:
                self._keys_at = await self._named_address()
                if self._keys_at == known:
                    raise failure
        else:
            self._keys_at = await self._named_address()
        return await self._key_set_at(self._keys_at)

    async def _named_address(self) -> str:
        address = discovery_address(self._issuer)
        answer = await self._answer(address)
        try:
            return key_set_address(answer.body, answer.content_type, self._issuer.url)
        except ValueError as error:
            raise EnvironmentFailure(f"{address}: {error}") from None

    async def _key_set_at(self, address: str) -> KeySetDocument:
        answer = await self._answer(address)
        try:
            document = json_object(answer.body, answer.content_type, "keys")
        except ValueError as error:
            raise EnvironmentFailure(f"{address}: {error}") from None
        return KeySetDocument(address, f"sha256:{sha256(answer.body).hexdigest()}", document)

    async def _answer(self, address: str) -> Document:
        answer = await self._documents.get(address, seconds=fetch_limits.ISSUER_SECONDS)
        if answer.status != 200:
            raise EnvironmentFailure(f"{address} answered {answer.status}")
        return answer


def issuer_documents(issuer: Issuer) -> Documents:
    """With the issuer's own CA, or the system's roots where it has none."""
    from kubeauthn._io.async_http import AsyncDocuments

    return AsyncDocuments(issuer_trust(issuer))


def issuer_trust(issuer: Issuer) -> Callable[[], ssl.SSLContext]:
    def context() -> ssl.SSLContext:
        from kubeauthn._io.tls import server_context

        bundle = issuer.certificate_authority.encode()
        return server_context(Cluster(server=issuer.url, certificate_authority_data=bundle))

    return context
