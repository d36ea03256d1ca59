"""The Traefik configuration of docs/forward-auth.md, run by Traefik itself before `/auth` over TLS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import yaml

from tests.integration import forward_auth_scene as behind
from tests.integration.forward_auth_scene import Places, Scene
from tests.peers.wheels import find_wheel_program

TRAEFIK = find_wheel_program("traefik")
pytestmark = [
    pytest.mark.skipif(TRAEFIK is None, reason="traefik is not there: python -m tests.peers.wheels"),
    pytest.mark.timeout(60),
]


def traefik(places: Places) -> Sequence[str]:
    text = behind.configuration_in_the_document("yaml", under="## Traefik")
    for before, after in (
        ("kubeauthn.example:8443", places.kubeauthn),
        ("127.0.0.1:9000", places.service),
        ("/etc/traefik/kubeauthn-ca.pem", str(places.authority)),
    ):
        assert before in text
        text = text.replace(before, after)
    (places.folder / "dynamic.yaml").write_text(text)
    own = {
        "global": {"checkNewVersion": False, "sendAnonymousUsage": False},
        "entryPoints": {"web": {"address": places.proxy}},
        "providers": {"file": {"filename": str(places.folder / "dynamic.yaml")}},
    }
    (places.folder / "traefik.yaml").write_text(yaml.safe_dump(own))
    return str(TRAEFIK), f"--configFile={places.folder / 'traefik.yaml'}"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("traefik")
    with behind.scene_behind(traefik, folder, tls=True, original_uri="X-Forwarded-Uri") as made:
        yield made


@behind.cases()
def test_what_holds_behind_a_proxy(scene: Scene, case: behind.Case):
    case(scene)


def test_anonymous_paths_are_those_of_the_request_and_not_of_a_header(scene: Scene):
    behind.anonymous_paths_are_those_of_the_request_and_not_of_a_header(scene, cleaned=["//healthz"])
