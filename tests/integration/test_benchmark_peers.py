"""What is timed beside us does the same work: Kubernetes' own code comes to the same users with the same input.

Runs where the program has been built (`python -m bench` does it).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import peer, tokens
from bench.hot_path import STORM_SECONDS, StormPlugin
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.testing._signing import SigningKey
from kubeauthn.testing.plugins import PluginDirectory

pytestmark = pytest.mark.needs("go")


@pytest.fixture
def kubernetes() -> Iterator[peer.Peer]:
    if not os.access(peer.PROGRAM.path(), os.X_OK):
        pytest.skip("bench-peer is not built: python -m bench builds it")
    with peer.started() as running:
        assert running is not None
        yield running


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256"])
@pytest.mark.parametrize(
    ("text", "listed"),
    [(tokens.EXAMPLE, False), (tokens.PLAIN, True), (tokens.issuers(3), False)],
    ids=["example", "plain mappings", "three issuers"],
)
def test_both_come_to_the_same_user(kubernetes: peer.Peer, text: str, listed: bool, algorithm: str) -> None:
    key = SigningKey.new("key-1", algorithm)
    token = tokens.signed(key, 1, listed=listed)[0]
    keys = {"keys": [key.jwk()]}
    user = Authenticator(load_configuration(text), keys={tokens.ISSUER: keys}).authenticate(token)
    theirs = kubernetes.order(
        "prepare authenticate", name="x", config=tokens.for_kubernetes(text), keys=keys, tokens=[token]
    )
    assert theirs == {"username": user.username, "groups": list(user.groups)}
    assert kubernetes.cpu_per_call("x", 10)() >= 0


def test_a_token_that_is_refused_is_not_timed(kubernetes: peer.Peer) -> None:
    key, other = SigningKey.new("key-1", "ES256"), SigningKey.new("key-1", "ES256")
    keys = {"keys": [other.jwk()]}
    with pytest.raises(RuntimeError, match="failed to verify"):
        kubernetes.order(
            "prepare authenticate", name="x", config=tokens.PLAIN, keys=keys, tokens=tokens.signed(key, 1, listed=True)
        )


def test_client_go_runs_a_plugin_once_for_all_callers(kubernetes: peer.Peer, tmp_path: Path) -> None:
    plugin = StormPlugin(tmp_path / "storm")
    assert kubernetes.order("storm", command=str(plugin.path), callers=20)["seconds"] >= STORM_SECONDS
    assert plugin.runs == 1


def test_a_storm_whose_plugin_fails_is_not_timed(kubernetes: peer.Peer, tmp_path: Path) -> None:
    plugin = PluginDirectory(tmp_path).script("plugin", "exit 3\n")
    with pytest.raises(RuntimeError, match="exit code 3"):
        kubernetes.order("storm", command=str(plugin), callers=2)


def test_an_order_that_is_unknown_is_answered_with_an_error(kubernetes: peer.Peer) -> None:
    with pytest.raises(RuntimeError, match="no such order"):
        kubernetes.order("guess")


def test_without_go_there_is_no_peer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(peer, "go_version", lambda: "")
    peer.program.cache_clear()
    try:
        with peer.started() as running:
            assert running is None
        assert "there is no Go here" in capsys.readouterr().out
    finally:
        peer.program.cache_clear()
