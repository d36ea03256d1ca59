"""The shipped credential plugins that need nothing but a job, a key or another plugin, under kubectl and our client.

`plugin oidc` and `plugin service-account` have files of their own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn._core import execwire
from kubeauthn.client import connect
from kubeauthn.testing import ScriptedPlugin
from tests.e2e.aws_webhook import AwsWebhook
from tests.e2e.cluster import Cluster, Etcd, kubeconfig_text
from tests.e2e.processes import poll
from tests.e2e.serving import entry
from tests.integration.github_endpoint import AUDIENCE, Endpoint, serving_endpoint
from tests.integration.test_plugin_eks import KEY, SECRET

KUBEAUTHN = str(Path(sys.executable).parent / "kubeauthn")
ARN = "arn:aws:iam::123456789012:user/jane"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
QUESTION = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with serving_endpoint() as running:
        yield running


@pytest.fixture(scope="module")
def webhook() -> Iterator[AwsWebhook]:
    with AwsWebhook("prod", ARN) as running:
        yield running


@pytest.fixture(scope="module")
def cluster(
    directory: Path, etcd: Etcd, endpoint: Endpoint, webhook: AwsWebhook, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A kube-apiserver that believes the jobs of one repository, and asks the webhook about other tokens."""
    files = tmp_path_factory.mktemp("plugins")
    job = entry(
        endpoint.issuer,
        claimValidationRules=[{"expression": "claims.sub.startsWith('repo:octo/shop:')", "message": "another's job"}],
        claimMappings={"username": {"expression": "'github:' + claims.sub"}},
    )
    job["issuer"]["audiences"] = [AUDIENCE]
    document = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [job]}
    config = files / "authn.yaml"
    config.write_text(yaml.safe_dump(document))
    asked = files / "webhook.kubeconfig"
    asked.write_text(kubeconfig_text(webhook.url, webhook.ca, {}))
    flags = [
        f"--authentication-config={config}",
        f"--authentication-token-webhook-config-file={asked}",
        "--authentication-token-webhook-version=v1",
    ]
    with Cluster(directory, etcd, "plugins", flags) as running:
        yield running


def plugin_entry(*words: str, **variables: str) -> dict[str, Any]:
    return {
        "apiVersion": execwire.V1,
        "command": KUBEAUTHN,
        "args": ["plugin", *words],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "interactiveMode": "Never",
    }


def seen_by_kubectl(cluster: Cluster, config: Path) -> str:
    environment = {"HOME": os.environ["HOME"]}
    done = cluster.kubectl("auth", "whoami", "-o", "json", kubeconfig=config, check=False, environment=environment)
    return str(json.loads(done.stdout)["status"]["userInfo"]["username"]) if done.returncode == 0 else done.stderr


def seen_by_client(config: Path) -> str:
    with connect(kubeconfig=str(config)) as api:
        answer = api.post(REVIEW, json=QUESTION)
    return str(answer.json()["status"]["userInfo"]["username"]) if answer.status_code == 201 else answer.text


def test_a_job_of_github_actions(cluster: Cluster, endpoint: Endpoint):
    words = ("github-actions", f"--audience={AUDIENCE}")
    config = cluster.write_kubeconfig("job", {"exec": plugin_entry(*words, **endpoint.variables)})
    name = "github:repo:octo/shop:ref:refs/heads/main"
    # kube-apiserver fetches an issuer's keys in its own time
    poll(lambda: seen_by_kubectl(cluster, config) == name, 60, "kube-apiserver has the keys", interval=0.5)
    assert seen_by_client(config) == name


def test_a_token_of_eks(cluster: Cluster, webhook: AwsWebhook):
    variables = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_EC2_METADATA_DISABLED": "true"}
    words = ("eks", "--cluster-name=prod", "--region=eu-west-1")
    config = cluster.write_kubeconfig("eks", {"exec": plugin_entry(*words, **variables)})
    assert seen_by_kubectl(cluster, config) == ARN
    assert seen_by_client(config) == ARN
    for_another = plugin_entry("eks", "--cluster-name=staging", words[2], **variables)
    other = cluster.write_kubeconfig("eks-other", {"exec": for_another})
    asked = webhook.asked
    assert "Unauthorized" in seen_by_kubectl(cluster, other)
    assert webhook.asked > asked


def test_the_cache_keeps_a_token_over_many_commands(cluster: Cluster, endpoint: Endpoint, tmp_path: Path):
    behind = ScriptedPlugin(tmp_path / "bin" / "plugin")
    token = endpoint.issuer.token("repo:octo/shop:tag", audience=AUDIENCE, expires_in=600)
    behind.reply(token=token, expires_in=600)
    config = cluster.write_kubeconfig("cached", {"exec": plugin_entry("cache", "--", str(behind.path))})
    name = "github:repo:octo/shop:tag"
    poll(lambda: seen_by_kubectl(cluster, config) == name, 60, "kube-apiserver has the keys", interval=0.5)
    assert seen_by_kubectl(cluster, config) == name
    assert behind.runs == 1
