"""What a plugin is asked. The names of the first cases follow client-go's tests of LoadExecCredential."""

from __future__ import annotations

import json

import pytest

from kubeauthn._core import execwire
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.errors import ExecInfoError
from kubeauthn.plugin import credential

CLUSTER = Cluster(
    server="https://127.0.0.1:6443",
    tls_server_name="api",
    certificate_authority_data=b"PEM",
    proxy_url="http://127.0.0.1:3128",
    disable_compression=True,
    config='{"audience":["a",1,null]}',
)


@pytest.mark.parametrize("version", [credential.V1, credential.V1BETA1])
def test_a_good_document_with_cluster_information(version: str, monkeypatch: pytest.MonkeyPatch):
    text = execwire.encode_exec_info(version, interactive=True, cluster=CLUSTER)
    monkeypatch.setenv("KUBERNETES_EXEC_INFO", text)
    request = credential.load()
    assert request.api_version == version
    assert request.interactive is True
    assert request.cluster == CLUSTER
    assert request.cluster is request.cluster
    assert request.cluster_config == {"audience": ["a", 1, None]}


def test_v1alpha1_is_read_too():
    request = credential.load(f'{{"apiVersion":"{credential.V1ALPHA1}","kind":"ExecCredential"}}')
    assert request.api_version == credential.V1ALPHA1
    assert request.interactive is False


def test_without_cluster_information_there_is_no_client():
    request = credential.load(execwire.encode_exec_info(credential.V1, interactive=False, cluster=None))
    assert request.cluster is None
    assert request.cluster_config is None
    with pytest.raises(ExecInfoError, match="(?m)^ExecCredential does not contain cluster information$") as caught:
        request.connect()
    assert "provideClusterInfo: true" in str(caught.value.hint)


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_the_variable_must_be_set(value: str | None, monkeypatch: pytest.MonkeyPatch):
    if value is not None:
        monkeypatch.setenv("KUBERNETES_EXEC_INFO", value)
    with pytest.raises(ExecInfoError, match="(?m)^KUBERNETES_EXEC_INFO env var is unset or empty$") as caught:
        credential.load()
    assert "kubeauthn plugin check --" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bad", "KUBERNETES_EXEC_INFO is not JSON"),
        ("[]", "KUBERNETES_EXEC_INFO is not a JSON object"),
        ('{"apiVersion":"v1","kind":"Pod"}', "wanted ExecCredential of client.authentication.k8s.io, got Pod of v1"),
    ],
)
def test_invalid_data(text: str, message: str):
    with pytest.raises(ExecInfoError, match=message):
        credential.load(text)


def test_a_cluster_is_decoded_only_when_asked_for():
    info = {"apiVersion": credential.V1, "kind": "ExecCredential", "spec": {"cluster": {"server": 1}}}
    request = credential.load(json.dumps(info))
    with pytest.raises(ExecInfoError, match=r"spec\.cluster\.server must be a string"):
        _ = request.cluster
