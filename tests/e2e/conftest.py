"""One etcd and two API servers for all tests: one reads the configuration itself, one asks `kubeauthn serve`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kubeauthn.client.exec_source import forget_shared_sources
from kubeauthn.testing import Issuer
from tests.e2e.cluster import Cluster, Etcd
from tests.e2e.serving import Serving, configuration, webhook_kubeconfig
from tests.peers import find


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long watches run beside all other tests: they begin first, and are looked at last."""

    def place(item: pytest.Item) -> int:
        return item.name.startswith("test_last_") - item.name.startswith("test_first_")

    items.sort(key=place)


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    if find("kube-apiserver") is None or find("kubectl") is None:
        pytest.skip("kube-apiserver and kubectl are not built: `make e2e` does it")


@pytest.fixture(autouse=True)
def no_credential_from_another_test() -> Iterator[None]:
    forget_shared_sources()
    yield
    forget_shared_sources()


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="session")
def etcd(directory: Path, programs: None) -> Iterator[Etcd]:
    running = Etcd(directory)
    yield running
    running.stop()


@pytest.fixture(scope="session")
def issuers() -> Iterator[tuple[Issuer, Issuer]]:
    with Issuer() as first, Issuer() as second:
        yield first, second


@pytest.fixture(scope="session")
def config_file(directory: Path, issuers: tuple[Issuer, Issuer]) -> Path:
    file = directory / "authentication.yaml"
    file.write_text(configuration(*issuers))
    return file


@pytest.fixture(scope="session")
def direct(directory: Path, etcd: Etcd, config_file: Path) -> Iterator[Cluster]:
    """A kube-apiserver that reads the configuration itself."""
    with Cluster(directory, etcd, "direct", [f"--authentication-config={config_file}"]) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def serving(directory: Path, config_file: Path) -> Iterator[Serving]:
    with Serving(directory, config_file) as running:
        yield running


@contextmanager
def asking(directory: Path, etcd: Etcd, serving: Serving, name: str, *flags: str) -> Iterator[Cluster]:
    """A kube-apiserver that asks `kubeauthn serve`, and caches nothing, so that every answer is a fresh one."""
    file = webhook_kubeconfig(directory / f"{name}.webhook", serving)
    webhook = [f"--authentication-token-webhook-config-file={file}", "--authentication-token-webhook-cache-ttl=0s"]
    with Cluster(directory, etcd, name, [*webhook, *flags]) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def webhook(directory: Path, etcd: Etcd, serving: Serving) -> Iterator[Cluster]:
    with asking(directory, etcd, serving, "webhook", "--authentication-token-webhook-version=v1") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def webhook_v1beta1(directory: Path, etcd: Etcd, serving: Serving) -> Iterator[Cluster]:
    with asking(directory, etcd, serving, "webhook-v1beta1") as cluster:
        yield cluster
