"""The wire of the exec proxy: switch, exec info, reply, address, and where a document ends."""

from __future__ import annotations

import json

import pytest

from kubeauthn._core import execproxy, execwire
from kubeauthn._core.kubeconfig.decode import decode
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.errors import ExecInfoError, KubeconfigError, PluginReplyError, UsageError
from kubeauthn.testing import CertificateAuthority

NOW = 1_800_000_000.0


@pytest.mark.parametrize(
    ("asked", "variable", "entry", "expected"),
    [
        (None, None, False, False),
        (None, None, True, True),
        (None, "1", False, True),
        (None, "true", False, True),
        (None, "0", True, False),
        (None, "", True, True),
        (False, "1", True, False),
        (True, "0", False, True),
    ],
)
def test_the_caller_then_the_variable_then_the_entry(
    asked: bool | None, variable: str | None, entry: bool, expected: bool
):
    assert execproxy.switched_on(asked, variable, entry) is expected


def test_a_variable_that_says_neither():
    with pytest.raises(UsageError, match="KUBEAUTHN_EXEC_PROXY is expected to be 1 or 0, not 'perhaps'"):
        execproxy.switched_on(None, "perhaps", False)


def test_the_lock_file_goes_there_and_back():
    cluster = Cluster(server="https://a.example")
    text = execproxy.encode_exec_info(execwire.V1, interactive=False, cluster=cluster, lock_file_path="/run/x/lock")
    assert execproxy.lock_file_path(text) == "/run/x/lock"
    assert execwire.decode_exec_info(text) == (execwire.V1, False, {"server": "https://a.example"})
    plain = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster)
    assert "lockFilePath" not in plain
    assert execproxy.lock_file_path(plain) == ""


@pytest.mark.parametrize("path", ["relative", 7, "/with\0zero"])
def test_a_lock_file_that_is_no_path(path: object):
    info = {"apiVersion": execwire.V1, "kind": "ExecCredential", "spec": {"lockFilePath": path}}
    with pytest.raises(ExecInfoError, match=r"spec\.lockFilePath must be an absolute path"):
        execproxy.lock_file_path(json.dumps(info))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("unix:///run/user/1/p/s", ("/run/user/1/p/s", 0)),
        ("https://127.0.0.1:8443", ("", 8443)),
        ("https://127.0.0.1:8443/", ("", 8443)),
    ],
)
def test_addresses(url: str, expected: tuple[str, int]):
    assert execproxy.parse_proxy_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "unix://relative/s",
        "unix:///",
        "unix:///a/../b/..",
        "unix:///run/s\n",
        "http://127.0.0.1:80",
        "https://127.0.0.1",
        "https://127.0.0.1:0",
        "https://127.0.0.1:65536",
        "https://127.0.0.1:065535999",
        "https://127.0.0.1:80/path",
        "https://127.0.0.1:80@elsewhere",
        "https://user:secret@127.0.0.1:80",
        "https://localhost:80",
        "https://10.0.0.1:80",
        "https://127.0.0.1:٣",
        "unix:///" + "a" * 5000,
    ],
)
def test_other_addresses_are_refused_without_their_password(url: str):
    with pytest.raises(PluginReplyError) as caught:
        execproxy.parse_proxy_url(url)
    assert "secret" not in str(caught.value)


def test_a_reply_goes_there_and_back():
    ca = CertificateAuthority()
    leaf = ca.issue_client("the client")
    text = execproxy.encode_reply(
        execwire.V1,
        url="unix:///run/x/s",
        certificate_authority=ca.certificate_pem,
        certificate=leaf.chain_pem.decode(),
        key=leaf.key_pem.decode(),
        token="one",
    )
    assert execproxy.has_proxy_config(text.encode())
    lease = object()
    credential = execproxy.decode_reply(text.encode(), execwire.V1, NOW, lease)
    assert credential.route is not None
    assert credential.route.socket_path == "/run/x/s"
    assert credential.route.lease is lease
    assert credential.route.certificate_authority == ca.certificate_pem
    assert credential.expires_at == leaf.not_after.timestamp()
    assert credential.token is not None
    again = execproxy.decode_reply(text.encode(), execwire.V1, NOW, object())
    assert again.identity == credential.identity
    assert hash(again.identity) == hash(credential.identity)
    elsewhere = execproxy.decode_reply(text.replace("/run/x/s", "/run/y/s").encode(), execwire.V1, NOW, None)
    assert elsewhere.identity != credential.identity


def test_a_proxy_is_refused_where_it_is_not_switched_on():
    reply = {"apiVersion": execwire.V1, "kind": "ExecCredential", "status": {"token": "x", "proxyConfig": {}}}
    with pytest.raises(PluginReplyError, match="the exec proxy is not switched on for it") as caught:
        execwire.decode_reply(json.dumps(reply).encode(), execwire.V1, NOW)
    assert execproxy.EXTENSION in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '{"a": "}"}', '{"a": "\\"}"}', '{"a": [{}, {"b": []}]}', '\n  {"a": {}}', '{"a": "\\\\"}']
)
def test_a_document_is_complete_with_its_last_byte_and_not_before(text: str):
    data = text.encode()
    for cut in range(len(data)):
        end = execproxy.DocumentEnd()
        assert not end.feed(data[:cut])
        assert end.feed(data[cut:])


@pytest.mark.parametrize("text", ["apiVersion: {}", "[1]", "garbage {}", '"{}"'])
def test_what_does_not_begin_with_a_brace_is_never_complete(text: str):
    end = execproxy.DocumentEnd()
    assert not end.feed(text.encode())
    assert not end.feed(b"{}")


def kubeconfig(extension: str) -> str:
    return (
        "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user:\n    token: x\n    extensions:\n"
        f"    - name: {execproxy.EXTENSION}\n      extension: {extension}\n"
    )


def test_the_extension_of_the_user():
    assert decode(kubeconfig("{enabled: true}")).users["u"].exec_proxy is True
    assert decode(kubeconfig("{enabled: false}")).users["u"].exec_proxy is False
    assert decode(kubeconfig("null")).users["u"].exec_proxy is False
    with pytest.raises(KubeconfigError, match="is expected to be an object with enabled: true or false"):
        decode(kubeconfig("{enabled: 'yes'}"))
