"""`kubeauthn plugin service-account` and the TokenRequest API of a real kube-apiserver."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubeauthn._core import execwire
from kubeauthn.client import connect
from kubeauthn.errors import PluginFailed
from kubeauthn.testing import Issuer
from tests.e2e.cluster import Cluster

Issuers = tuple[Issuer, Issuer]
KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
QUESTION = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
ASKER = "asker"
"""Somebody to whom no other test gives rights on this cluster."""
ROLE = ("--verb=create", "--resource=serviceaccounts/token", "--resource-name=deployer", "-n", "ci")


@pytest.fixture(scope="module")
def cluster(direct: Cluster) -> Cluster:
    """With a service account whose token one person may ask for, and nobody else."""
    direct.kubectl("create", "namespace", "ci")
    direct.kubectl("create", "serviceaccount", "deployer", "-n", "ci")
    direct.kubectl("create", "role", "token-of-deployer", *ROLE)
    binding = ("create", "rolebinding", "token-of-deployer", "--role=token-of-deployer", "-n", "ci")
    direct.kubectl(*binding, f"--user=first:{ASKER}")
    return direct


def as_account(cluster: Cluster, issuers: Issuers, asking: str, *words: str, name: str = "deployer") -> Path:
    """A kubeconfig whose user is the service account, and for whom `asking` asks."""
    owner = cluster.token_kubeconfig(f"owner-{asking}", issuers[0].token(asking, expires_in=600))
    entry = {
        "apiVersion": execwire.V1,
        "command": KUBEAUTHN,
        "args": ["plugin", "service-account", name, "--namespace=ci", f"--kubeconfig={owner}", *words],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
    return cluster.write_kubeconfig(f"account-{asking}", {"exec": entry})


def test_the_server_takes_the_token_for_the_service_account(cluster: Cluster, issuers: Issuers):
    with connect(kubeconfig=str(as_account(cluster, issuers, ASKER))) as api:
        answer = api.post(REVIEW, json=QUESTION)
    assert answer.status_code == 201
    user = answer.json()["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:ci:deployer"
    assert "system:serviceaccounts:ci" in user["groups"]


def test_the_role_that_the_hint_names_is_the_one_that_is_missing(
    cluster: Cluster, issuers: Issuers, capfd: pytest.CaptureFixture[str]
):
    path = as_account(cluster, issuers, "stranger")
    with connect(kubeconfig=str(path)) as api, pytest.raises(PluginFailed):
        api.post(REVIEW, json=QUESTION)
    said = capfd.readouterr().err
    assert "no token for service account deployer in namespace ci may be asked for" in said
    assert " ".join(ROLE) in said


@pytest.mark.parametrize(
    ("words", "name", "told"),
    [
        ((), "nobody", "may be asked for"),  # the role is for one name, and comes before the search for it
        (("--audience=vault",), "deployer", None),
    ],
)
def test_another_name_and_another_audience(
    cluster: Cluster,
    issuers: Issuers,
    capfd: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    name: str,
    told: str | None,
):
    """A token for another audience is given out, and this server does not take it."""
    with connect(kubeconfig=str(as_account(cluster, issuers, ASKER, *words, name=name))) as api:
        if told is None:
            assert api.post(REVIEW, json=QUESTION).status_code == 401
        else:
            with pytest.raises(PluginFailed):
                api.post(REVIEW, json=QUESTION)
            assert told in capfd.readouterr().err
