"""Where an access lets its credentials go."""

from __future__ import annotations

import pytest

from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._secret import Secret
from kubeauthn.client.access import Access
from kubeauthn.client.sources import FixedSource
from kubeauthn.errors import UsageError

ACCESS = Access(Cluster(server="https://server.test:6443/base"), FixedSource(Credential(token=Secret("SECRET"))))


@pytest.mark.parametrize("url", ["https://server.test:6443/", "https://SERVER.test:6443/x", "https://server.test:6443"])
def test_its_own_server(url: str):
    ACCESS.check_destination(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.test/",
        "https://server.test/",
        "http://server.test:6443/",
        "https://server.test.:6443/",
        "https://server.test:6443@evil.test/",
        "https://server.test:6443.evil.test/",
        "//server.test:6443/",
        # urllib3 goes to evil.test, the standard library reads server.test
        "https://evil.test\\@server.test:6443/",
        "https://server.test:6443\\@evil.test/",
        # no addresses at all, as a redirect may hold them
        "https://server.test:99999/",
        "https://server.test:x/",
        "https://[::1/",
    ],
)
def test_another_server(url: str):
    with pytest.raises(UsageError, match="sends nothing to"):
        ACCESS.check_destination(url)
