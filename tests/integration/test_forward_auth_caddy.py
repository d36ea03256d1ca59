"""The Caddy configuration of docs/forward-auth.md, run by Caddy itself before `/auth` over TLS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.integration import forward_auth_scene as behind
from tests.integration.forward_auth_scene import Places, Scene

pytestmark = [pytest.mark.needs("caddy"), pytest.mark.timeout(60)]


def caddy(places: Places) -> Sequence[str]:
    text = behind.configuration_in_the_document("caddyfile")
    for before, after in (
        ("app.example", f"http://{places.proxy}"),
        ("kubeauthn.example:8443", places.kubeauthn),
        ("127.0.0.1:9000", places.service),
        ("/etc/caddy/kubeauthn-ca.pem", str(places.authority)),
    ):
        assert before in text
        text = text.replace(before, after)
    own = f"{{\nadmin off\nauto_https off\nstorage file_system {places.folder}/storage\n}}\n"
    (places.folder / "Caddyfile").write_text(own + text)
    return "caddy", "run", "--config", str(places.folder / "Caddyfile"), "--adapter", "caddyfile"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with behind.scene_behind(caddy, tmp_path_factory.mktemp("caddy"), tls=True, original_uri="X-Forwarded-Uri") as made:
        yield made


@behind.cases(behind.anonymous_paths_are_those_of_the_request_and_not_of_a_header)
def test_what_holds_behind_a_proxy(scene: Scene, case: behind.Case):
    case(scene)
