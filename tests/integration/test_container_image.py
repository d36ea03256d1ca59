"""deploy/Containerfile, built and run: with the arguments, mounts and rights that deploy/kubernetes gives the pod."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kubeauthn.testing import Issuer
from tests.integration.container_image import ROOT, ContainerImage, PackagesOutOfReachError, first_process, why_not
from tests.integration.serve_process import PATIENCE, Serve, configuration, review, until, write_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator

# Packages are downloaded, unpacked and installed twice over: a minute and a half to three, on a busy machine.
pytestmark = [pytest.mark.needs("buildah", "mmdebstrap"), pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ContainerImage]:
    if reason := why_not():
        pytest.skip(reason)
    built = ContainerImage(tmp_path_factory.mktemp("image"))
    try:
        try:
            built.build()
        except PackagesOutOfReachError as error:
            pytest.skip(str(error))
        yield built
    finally:
        built.remove()


@pytest.fixture(scope="module")
def pod() -> dict[str, Any]:
    deployment = yaml.safe_load((ROOT / "deploy/kubernetes/base/deployment.yaml").read_text())
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]
    return found


@pytest.fixture
def volumes(pod: dict[str, Any], image: ContainerImage, tmp_path: Path) -> dict[str, Path]:
    """Folders as kubelet makes them: root's, and readable for the group of the pod."""
    mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
    folders = {mounts[name]: tmp_path / name for name in ("configuration", "certificate")}
    for folder in folders.values():
        folder.mkdir(mode=0o750)
        os.chown(folder, 0, pod["securityContext"]["fsGroup"])
    return folders


def readable(folder: Path, group: int) -> None:
    for file in folder.iterdir():
        os.chown(file, 0, group)
        file.chmod(0o440)


def test_the_pod_of_the_manifests_serves_from_the_image(
    image: ContainerImage, pod: dict[str, Any], volumes: dict[str, Path]
) -> None:
    configuration_at, certificate_at = volumes
    group = pod["securityContext"]["fsGroup"]
    command, file, *options = pod["containers"][0]["args"]
    assert command == "serve"
    options = [option for option in options if not option.startswith(("--listen=", "--log-format="))]
    grace = next(int(option.partition("=")[2]) for option in options if option.startswith("--grace-period="))

    with Issuer() as issuer:
        (volumes[configuration_at] / Path(file).name).write_text(configuration(issuer))
        serve = Serve(Path(file), *options, program=image.command(volumes))
        write_certificate(serve.ca, volumes[certificate_at])
        for folder in volumes.values():
            readable(folder, group)
        token = issuer.token("jane", audience="kubernetes", groups=["dev"])
        with serve:
            serve.ready()
            with serve.client() as client:
                assert client.get("/healthz").text == "ok"
                answer = client.post("/", json=review(token))
            assert answer.json()["status"] == {"authenticated": True, "user": {"username": "jane", "groups": ["dev"]}}
            first = first_process(serve.process.pid)
            assert rights(first) == {
                "Uid": "65532 65532 65532 65532",
                "Gid": "65532 65532 65532 65532",
                "Groups": "",
                "CapEff": "0" * 16,
                "CapBnd": "0" * 16,
                "NoNewPrivs": "1",
                "NSpid": f"{first} 1",
            }
            assert root_is_read_only(first)
            asked = time.monotonic()
            os.kill(first, signal.SIGTERM)
            assert serve.process.wait(PATIENCE) == 0
            assert time.monotonic() - asked < grace
        assert until(lambda: serve.lines, "a log")
        assert [json.loads(line) for line in serve.raw] == serve.lines  # nothing but JSON lines
        assert token not in "".join(serve.raw)


def test_nothing_in_the_image_belongs_to_its_user_or_installs_anything(image: ContainerImage) -> None:
    installed = image.root / "opt/kubeauthn"
    owned = [path for path in installed.rglob("*") if path.lstat().st_uid != 0]
    writable = [path for path in installed.rglob("*") if not path.is_symlink() and path.lstat().st_mode & 0o022]
    assert (owned, writable) == ([], [])
    packages = {path.name.partition("-")[0] for path in installed.glob("lib/python3*/site-packages/*.dist-info")}
    assert {"kubeauthn", "granian", "google_re2", "redis", "opentelemetry_api"} <= packages
    assert not packages & {"pip", "setuptools", "hatchling", "pytest"}


def rights(process: int) -> dict[str, str]:
    rows = (line.partition(":") for line in Path(f"/proc/{process}/status").read_text().splitlines())
    wanted = {"Uid", "Gid", "Groups", "CapEff", "CapBnd", "NoNewPrivs", "NSpid"}
    return {name: " ".join(value.split()) for name, _, value in rows if name in wanted}


def root_is_read_only(process: int) -> bool:
    rows = (line.split() for line in Path(f"/proc/{process}/mountinfo").read_text().splitlines())
    return ["ro" in row[5].split(",") for row in rows if row[4] == "/"][-1:] == [True]
