"""The nginx configuration of docs/forward-auth.md, run by nginx itself before `/auth` and a service that records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.integration import forward_auth_scene as behind
from tests.integration.forward_auth_scene import Places, Scene

pytestmark = [pytest.mark.needs("nginx"), pytest.mark.timeout(60)]


def nginx(places: Places) -> Sequence[str]:
    text = behind.configuration_in_the_document("nginx")
    for before, after in (
        ("127.0.0.1:8080", places.kubeauthn),
        ("127.0.0.1:9000", places.service),
        ("127.0.0.1:8000", places.proxy),
    ):
        assert before in text
        text = text.replace(before, after)
    folder = places.folder
    temporary = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/proxy.log;\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n"
    )
    return "nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "proxy.log")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with behind.scene_behind(nginx, tmp_path_factory.mktemp("nginx"), tls=False, original_uri="X-Original-URI") as made:
        yield made


@behind.cases(behind.anonymous_paths_are_those_of_the_request_and_not_of_a_header)
def test_what_holds_behind_a_proxy(scene: Scene, case: behind.Case):
    case(scene)


def test_the_header_about_what_was_asked_for_is_between_proxy_and_server(scene: Scene):
    assert scene.get("/page", scene.issuer.token("jane"), **behind.SMUGGLED).status_code == 200
    assert not [name for name, _ in scene.last() if name.lower() == "x-original-uri"]


def test_the_place_of_the_verdict_is_closed_to_clients(scene: Scene):
    assert scene.get("/kubeauthn-verdict", scene.issuer.token("jane")).status_code == 404


def test_an_unknown_path_and_methods_of_auth_itself(scene: Scene):
    token = {"Authorization": f"Bearer {scene.issuer.token('jane')}"}
    with scene.direct() as direct:
        assert direct.request("POST", "/auth", headers=token).status_code == 200
        assert direct.request("HEAD", "/auth", headers=token).headers["x-remote-user"] == "jane"
        assert direct.request("TRACE", "/auth", headers=token).status_code == 405
        assert direct.get("/auth?audience=other", headers=token).status_code == 403
        assert direct.get("/auth?audience=kubeauthn-upstream", headers=token).status_code == 200
        assert direct.get("/elsewhere", headers=token).status_code == 404


def test_all_workers_have_one_key(scene: Scene):
    assert len({scene.keys()["keys"][0]["kid"] for _ in range(30)}) == 1
