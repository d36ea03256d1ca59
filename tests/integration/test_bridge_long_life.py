"""A bridge that never ends, since somebody is always connected."""

from __future__ import annotations

import json
import os
import ssl
import time
from pathlib import Path

import pytest

from kubeauthn.plugins.bridge import daemon, definition, environment, starting
from kubeauthn.testing import ApiServer

WEEK = 7 * 86400


@pytest.fixture
def bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> daemon.Bridge:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with ApiServer(tokens={"t": "jane"}) as server:
        config = server.write_kubeconfig(tmp_path / "config", {"token": "t"})
        monkeypatch.setenv("KUBECONFIG", str(config))
        return daemon.Bridge(definition.define(None, {}))


def credential(bridge: daemon.Bridge) -> dict[str, object]:
    return bridge._told(starting.CREDENTIAL + json.dumps(environment.marks(os.environ)))


def test_a_clients_certificate_is_renewed_before_it_ends_and_its_authority_outlives_it(
    bridge: daemon.Bridge, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(bridge.listener, "touch", lambda: None)  # no loop runs here
    first = credential(bridge)["certificate"]
    assert credential(bridge)["certificate"] == first
    ends = bridge._client.not_after
    assert 0 < ends - time.time() <= WEEK
    bridge._client.not_after = time.time() + 3600
    assert credential(bridge)["certificate"] != first
    (authority,) = bridge.listener._context.get_ca_certs()
    until = ssl.cert_time_to_seconds(str(authority["notAfter"]))
    assert until - time.time() > 52 * WEEK
