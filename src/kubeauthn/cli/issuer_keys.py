"""Key sets from a file: one for every issuer, or an object with one for each."""

from __future__ import annotations

import json
from typing import Any

from kubeauthn.errors import EnvironmentFailure, KeySetError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration

FILE_BYTES = 16 << 20


def keys_by_issuer(content: bytes, name: str, config: AuthenticationConfiguration) -> dict[str, dict[str, Any]]:
    """`{"keys": […]}` serves all issuers; `{"https://issuer": {"keys": […]}, …}` each its own."""
    from kubeauthn._core.jose.keys import parse_key_set

    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise EnvironmentFailure(f"{name}: not JSON, and a key set is") from None
    if not isinstance(document, dict):
        raise EnvironmentFailure(f"{name}: no key set: a JSON object is expected")
    urls = [entry.issuer.url for entry in config.jwt]
    is_key_set = any(name.lower() == "keys" for name in document)  # Go takes it in any case, and so do we
    found = dict.fromkeys(urls, document) if is_key_set else {url: document.get(url) for url in urls}
    known = {url: key_set for url, key_set in found.items() if isinstance(key_set, dict)}
    if urls and not known:
        raise EnvironmentFailure(f"{name}: it has neither keys nor an issuer of the configuration")
    try:
        for key_set in known.values():
            parse_key_set(key_set)
    except KeySetError as error:
        raise EnvironmentFailure(f"{name}: {error}") from None
    return known
