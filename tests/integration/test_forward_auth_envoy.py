"""The Envoy configuration of docs/forward-auth.md, run by Envoy itself before `/auth` over TLS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import yaml

from tests.integration import forward_auth_scene as behind
from tests.integration.forward_auth_scene import Places, Scene
from tests.peers.wheels import find_wheel_program

ENVOY = find_wheel_program("envoy")
pytestmark = [
    pytest.mark.skipif(ENVOY is None, reason="envoy is not there: python -m tests.peers.wheels"),
    pytest.mark.timeout(60),
]
_TYPES = "type.googleapis.com/envoy.extensions"


def cluster(name: str, place: str, **more: Any) -> dict[str, Any]:
    endpoint = {"endpoint": {"address": address(place)}}
    load = {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]}
    return {"name": name, "type": "STATIC", "connect_timeout": "5s", "load_assignment": load, **more}


def address(place: str) -> dict[str, Any]:
    host, _, port = place.rpartition(":")
    return {"socket_address": {"address": host, "port_value": int(port)}}


def envoy(places: Places) -> Sequence[str]:
    text = behind.configuration_in_the_document("yaml", under="## Envoy")
    assert "kubeauthn.example:8443" in text
    filters = yaml.safe_load(text.replace("kubeauthn.example:8443", places.kubeauthn))
    route = {"match": {"prefix": "/"}, "route": {"cluster": "application"}}
    connections = {
        "@type": f"{_TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "ingress",
        "max_request_headers_kb": 96,
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        **filters,
    }
    trusted = {
        "@type": f"{_TYPES}.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": "localhost",
        "common_tls_context": {"validation_context": {"trusted_ca": {"filename": str(places.authority)}}},
    }
    tls = {"transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": trusted}}
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": connections}]}
    own = {
        "static_resources": {
            "listeners": [{"name": "all", "address": address(places.proxy), "filter_chains": [chain]}],
            "clusters": [cluster("application", places.service), cluster("kubeauthn", places.kubeauthn, **tls)],
        }
    }
    (places.folder / "envoy.yaml").write_text(yaml.safe_dump(own))
    return str(ENVOY), "-c", str(places.folder / "envoy.yaml"), "--use-dynamic-base-id", "--concurrency", "1"


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("envoy")
    with behind.scene_behind(envoy, folder, tls=True, original_uri="X-Original-URI") as made:
        yield made


@behind.cases()
def test_what_holds_behind_a_proxy(scene: Scene, case: behind.Case):
    case(scene)


def test_a_client_cannot_say_what_was_asked_for(scene: Scene):
    for path in ("/", "/healthz"):  # this configuration does not tell it, so nobody is let in without a token
        assert scene.get(path, **{scene.original_uri: "/healthz"}).status_code == 401
