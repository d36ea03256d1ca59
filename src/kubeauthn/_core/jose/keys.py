"""An issuer's key set (RFC 7517, 5), and which of its keys may have signed a token."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from kubeauthn._core.jose.algorithms import PublicKey, Verifier, verifier
from kubeauthn._core.jose.jwk import UnusableKey, read_key
from kubeauthn._core.jose.limits import KEYS, KNOWN_HEADERS
from kubeauthn.errors import KeySetError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KIND_OF_JSON = {str: "string", bool: "bool", int: "number", float: "number", list: "array"}


class KeySet:
    """Keys that verify signatures. They are parsed once; it never changes, so threads may share it.

    `skipped` says of each key that is not used why; the others still serve.
    """

    __slots__ = ("_by_kid", "_verifiers", "known_headers", "skipped")

    def __init__(self, keys: Iterable[tuple[str, PublicKey]], skipped: tuple[str, ...] = ()) -> None:
        self.skipped = skipped
        self._by_kid: dict[str, list[PublicKey]] = {}
        for kid, key in keys:
            self._by_kid.setdefault(kid, []).append(key)
        self._verifiers: dict[tuple[str, str], tuple[Verifier, ...]] = {}
        self.known_headers: dict[bytes, tuple[Verifier, ...]] = {}
        """The verifiers for each header, still encoded, with which a token was verified before. To be read only."""

    @classmethod
    def parse(cls, document: bytes | str) -> KeySet:
        """What an issuer published. Raises KeySetError."""
        try:
            decoded = json.loads(document)
        except (ValueError, RecursionError):
            raise KeySetError("oidc: failed to decode keys: could not unmarshal as JSON") from None
        return cls.from_dict(decoded)

    @classmethod
    def from_dict(cls, document: object) -> KeySet:
        """A decoded key set: `{"keys": [...]}`. Raises KeySetError."""
        listed = listed_keys(document)
        if len(listed) > KEYS:
            raise KeySetError(f"oidc: failed to decode keys: {len(listed)} keys, at most {KEYS} are read")
        keys: list[tuple[str, PublicKey]] = []
        skipped: list[str] = []
        for index, jwk in enumerate(listed):
            try:
                keys.append(read_key(jwk))
            except UnusableKey as error:
                skipped.append(f"keys[{index}] is not used: {error}")
        return cls(keys, tuple(skipped))

    def __len__(self) -> int:
        return sum(map(len, self._by_kid.values()))

    def __repr__(self) -> str:
        return f"KeySet({len(self)} keys, {len(self.skipped)} skipped)"

    @property
    def kids(self) -> tuple[str, ...]:
        """The ids of the keys, "" among them if one has none."""
        return tuple(self._by_kid)

    def verifiers(self, kid: str, algorithm: str) -> tuple[Verifier, ...]:
        """For each key that may have made such a signature. A token without a `kid` may be of any of them."""
        if kid and kid not in self._by_kid:
            return ()
        found = self._verifiers.get((kid, algorithm))
        if found is None:
            keys = self._by_kid[kid] if kid else [key for keys in self._by_kid.values() for key in keys]
            made = (verifier(key, algorithm) for key in keys)
            found = self._verifiers[kid, algorithm] = tuple(check for check in made if check is not None)
        return found

    def remember_header(self, header: bytes, verifiers: tuple[Verifier, ...]) -> None:
        """Only for a header that was read and whose token was verified: then no stranger can fill this memory."""
        if len(self.known_headers) < KNOWN_HEADERS:
            self.known_headers[header] = verifiers


def listed_keys(document: object) -> list[object]:
    """The keys of a decoded key set, whatever they are. Raises KeySetError."""
    if not isinstance(document, dict):
        kind = _KIND_OF_JSON.get(type(document), "null")
        raise KeySetError(
            "oidc: failed to decode keys: got Content-Type = application/json, but could not unmarshal as JSON: "
            f"json: cannot unmarshal {kind} into Go value of type jose.JSONWebKeySet"
        )
    listed = _member(document, "keys")
    if listed is None:
        return []
    if not isinstance(listed, list):
        raise KeySetError("oidc: failed to decode keys: keys is no list")
    return listed


def _member(document: Mapping[str, object], name: str) -> object:
    """Go finds a member in any case, and takes the last; key sets that rely on it exist."""
    found = [value for key, value in document.items() if isinstance(key, str) and key.lower() == name]
    return found[-1] if found else None


def parse_key_set(document: bytes | str | Mapping[str, object]) -> KeySet:
    """A key set, as an issuer published it or decoded already. Raises KeySetError."""
    return KeySet.parse(document) if isinstance(document, bytes | str) else KeySet.from_dict(document)
