"""An issuer's key is withdrawn: what it signed is refused, and every client asks its plugin for something better."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from kubeauthn.testing import Issuer, ScriptedPlugin
from tests.e2e.cluster import Cluster
from tests.e2e.processes import poll
from tests.integration.adapters.conftest import found_drivers
from tests.integration.adapters.driver import Client

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


def accepted(cluster: Cluster, token: str) -> bool:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    return bool(cluster.post(REVIEWS, review)["status"].get("authenticated", False))


def test_each_adapter_gets_a_401_and_then_a_new_token(
    direct: Cluster, issuers: tuple[Issuer, Issuer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """All of them at once: kube-apiserver remembers for ten seconds whom it saw, and that is waited for once."""
    issuer = issuers[0]
    direct.grant("first:withdrawn")
    with ExitStack() as sessions:
        clients: dict[str, tuple[Client, ScriptedPlugin]] = {}
        kid = issuer.rotate()
        for number, driver in enumerate(found_drivers()):
            name = f"{driver.name}-{number}"  # two drivers may be of one library
            plugin = ScriptedPlugin(tmp_path / name / "plugin")
            plugin.reply(token=signed(issuer, kid, name))
            # a file for each: clients of one process share what a plugin returned
            monkeypatch.setenv("KUBECONFIG", str(direct.write_kubeconfig(f"withdrawn-{name}", plugin.user())))
            clients[name] = sessions.enter_context(driver.session()), plugin
        for name, (client, _) in clients.items():
            assert client.list_namespaces().error is None, name

        new = issuer.rotate()
        issuer.withdraw(kid)
        # kube-apiserver asks for keys when it sees one it does not know, and then forgets the old ones
        poll(lambda: accepted(direct, signed(issuer, new, "new")), 40, "the new key is known", interval=1)
        assert not accepted(direct, signed(issuer, kid, "fresh, but with the old key"))
        used = [signed(issuer, kid, name) for name in clients]
        poll(lambda: not any(accepted(direct, token) for token in used), 30, "the old tokens are forgotten")

        for name, (client, _) in clients.items():
            outcome = client.list_namespaces()
            assert (outcome.status, bool(outcome.names)) in ((401, False), (None, False)), (name, outcome)
        for name, (_, plugin) in clients.items():
            plugin.reply(token=signed(issuer, new, name))
        for name, (client, plugin) in clients.items():
            poll(lambda client=client: "kube-system" in client.list_namespaces().names, 30, f"{name} goes on")
            assert plugin.runs >= 2


EXPIRES = int(time.time()) + 1200


def signed(issuer: Issuer, kid: str, number: str) -> str:
    """The same text every time, up to an ECDSA signature; RS256 has none that differs."""
    claims = {"iss": issuer.url, "aud": issuer.client_id, "exp": EXPIRES, "sub": "withdrawn", "n": number}
    return issuer.sign(claims, kid=kid)
