"""Key sets from a file: one for every issuer, or an object with one for each."""

from __future__ import annotations

import json
from typing import Any

from kubeauthn.errors import EnvironmentFailure, KeySetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration

FILE_BYTES = 16 << 20

WHERE = "a key set is what the issuer serves at the jwks_uri of its discovery document: --online fetches it"
_BY_BEGINNING = (
    (b"-----BEGIN", "it is PEM: a certificate or a key is no key set; a key set is JSON, at the issuer's jwks_uri"),
    (b"<", "it is a page or XML: was a login asked for instead of the issuer's jwks_uri?"),
    (b"ey", "it looks like a token: --token-file is for that"),
)
_MOST_ISSUERS = 3


def keys_by_issuer(content: bytes, name: str, config: AuthenticationConfiguration) -> dict[str, dict[str, Any]]:
    """`{"keys": […]}` serves all issuers; `{"https://issuer": {"keys": […]}, …}` each its own."""
    from kubeauthn._core.jose.keys import parse_key_set

    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        begin = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:10]
        hint = next((hint for known, hint in _BY_BEGINNING if begin.startswith(known)), WHERE)
        raise EnvironmentFailure(f"{name}: not JSON, and a key set is", hint=hint) from None
    if not isinstance(document, dict):
        hint = 'a list of keys is put into an object: {"keys": […]}' if isinstance(document, list) else WHERE
        raise EnvironmentFailure(f"{name}: no key set: a JSON object is expected", hint=hint)
    urls = [entry.issuer.url for entry in config.jwt]
    is_key_set = any(name.lower() == "keys" for name in document)  # Go takes it in any case, and so do we
    found = dict.fromkeys(urls, document) if is_key_set else {url: document.get(url) for url in urls}
    known = {url: key_set for url, key_set in found.items() if isinstance(key_set, dict)}
    if urls and not known:
        hint = _what_it_is(document, urls)
        raise EnvironmentFailure(f"{name}: it has neither keys nor an issuer of the configuration", hint=hint)
    try:
        for key_set in known.values():
            parse_key_set(key_set)
    except KeySetError as error:
        raise EnvironmentFailure(f"{name}: {error}") from None
    return known


def _what_it_is(document: dict[str, Any], urls: list[str]) -> str:
    if "jwks_uri" in document:
        return "it is the issuer's discovery document: the keys are at the jwks_uri that it names"
    if "kty" in document:
        return 'it is one key: put it into a list, {"keys": […]}'
    if any("://" in name for name in document):
        more = " and others" if len(urls) > _MOST_ISSUERS else ""
        return f"it has key sets of other issuers: here they are {', '.join(urls[:_MOST_ISSUERS])}{more}"
    return WHERE
