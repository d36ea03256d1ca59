"""What the playground serves: the files of its page, the examples, the schema for completion."""

from __future__ import annotations

import json
from importlib.resources import files

FOLDER = files("kubeauthn.cli") / "playground_page"
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
EXAMPLES = {
    "kep": "The example of KEP-3331",
    "auth0": "Auth0",
    "dex": "Dex",
    "entra": "Entra ID",
    "github-actions": "GitHub Actions",
    "gitlab": "GitLab CI",
    "google": "Google",
    "keycloak": "Keycloak",
    "okta": "Okta",
    "service-accounts": "Service accounts of another cluster",
    "spiffe": "SPIFFE",
}
"""Name and title, in the order of the list."""
_TIMES = ("iat", "nbf", "exp")
_AGE = 300


def documents() -> dict[str, tuple[str, bytes]]:
    """Media type and content by path: nothing else is ever served."""
    from kubeauthn._core.authentication.json_schema import configuration_schema

    found = {}
    for entry in FOLDER.iterdir():
        ending = entry.name.rpartition(".")[2]
        if ending in _TYPES:
            found["/" if entry.name == "index.html" else f"/{entry.name}"] = (_TYPES[ending], entry.read_bytes())
    found["/schema.json"] = ("application/json", json.dumps(configuration_schema()).encode())
    return found


def example(name: str, now: float) -> tuple[str, str]:
    """Configuration and claims. A token that is never over would be no example: times are moved to `now`."""
    folder = FOLDER / "examples"
    claims = (folder / f"{name}.json").read_text("utf-8")
    values = json.loads(claims)
    times = [values[time] for time in _TIMES if time in values]
    if times:
        moved = int(now) - _AGE - min(times)
        claims = json.dumps({key: value + moved if key in _TIMES else value for key, value in values.items()}, indent=2)
    return (folder / f"{name}.yaml").read_text("utf-8"), claims.strip() + "\n"


def setting(start: dict[str, str], now: float) -> bytes:
    """What the page needs to know before the first keystroke."""
    from kubeauthn._core.authentication.release import NEWEST, RELEASES

    examples = []
    for name, title in EXAMPLES.items():
        configuration, claims = example(name, now)
        examples.append({"name": name, "title": title, "configuration": configuration, "claims": claims})
    return json.dumps({"examples": examples, "start": start, "releases": list(RELEASES), "newest": NEWEST}).encode()
