"""The ExecCredential document. Case names follow those of client-go's own tests where there is one."""

from __future__ import annotations

import base64
import json

import pytest

from kubeauthn._core import execwire, limits
from kubeauthn._core.kubeconfig.model import Cluster, ClusterEntry
from kubeauthn._core.record import replace
from kubeauthn.errors import EnvironmentFailure, ExecInfoError, PluginReplyError
from kubeauthn.testing.pki import CertificateAuthority

NOW = 1_700_000_000.0
CA = CertificateAuthority()
LEAF = CA.issue_client("jane", ["dev"])
OTHER = CA.issue_client("joe")


def reply(status: object = None, *, version: object = execwire.V1, kind: object = "ExecCredential") -> bytes:
    document: dict[str, object] = {"apiVersion": version, "kind": kind}
    if status is not None:
        document["status"] = status
    return json.dumps(document).encode()


def pair(certificate: bytes = LEAF.certificate_pem, key: bytes = LEAF.key_pem) -> dict[str, str]:
    return {"clientCertificateData": certificate.decode(), "clientKeyData": key.decode()}


# -- the input ------------------------------------------------------------------------------------


def test_input_without_cluster_information() -> None:
    text = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=None)
    assert json.loads(text) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }


def test_input_with_every_cluster_field() -> None:
    cluster = Cluster(
        server="https://1.2.3.4:8080",
        tls_server_name="bar",
        insecure_skip_tls_verify=True,
        certificate_authority_data=b"pem",
        proxy_url="https://4.5.6.7:9090/proxy",
        disable_compression=True,
        config='{"audience":"snorlax","null":null,"n":[1,2.5]}',
    )
    text = execwire.encode_exec_info(execwire.V1BETA1, interactive=True, cluster=cluster)
    assert json.loads(text)["spec"] == {
        "interactive": True,
        "cluster": {
            "server": "https://1.2.3.4:8080",
            "tls-server-name": "bar",
            "insecure-skip-tls-verify": True,
            "certificate-authority-data": base64.b64encode(b"pem").decode(),
            "proxy-url": "https://4.5.6.7:9090/proxy",
            "disable-compression": True,
            "config": {"audience": "snorlax", "null": None, "n": [1, 2.5]},
        },
    }


def test_empty_cluster_fields_are_left_out() -> None:
    text = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=Cluster(server="https://a"))
    assert json.loads(text)["spec"]["cluster"] == {"server": "https://a"}


def test_v1alpha1_never_carries_the_cluster() -> None:
    text = execwire.encode_exec_info(execwire.V1ALPHA1, interactive=False, cluster=Cluster(server="https://a"))
    assert json.loads(text)["spec"] == {"interactive": False}


def test_a_ca_too_large_for_an_environment_names_the_switch() -> None:
    cluster = Cluster(server="https://a", certificate_authority_data=b"x" * 100_000)
    with pytest.raises(EnvironmentFailure) as caught:
        execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster)
    assert "provideClusterInfo" in str(caught.value.hint)


def test_the_largest_input_still_fits_into_linux_environment_strings() -> None:
    assert len(f"{execwire.VARIABLE}=") + limits.EXEC_INFO_BYTES + 1 == 128 * 1024


def test_spec_cluster_shadows_the_kubeconfig_cluster() -> None:
    """The seed's rule: the same fields, minus `certificate-authority` and `extensions`, plus `config`."""
    in_kubeconfig = set(ClusterEntry.__match_args__) - {"origin"}
    expected = in_kubeconfig - {"certificate_authority", "exec_extension"} | {"config"}
    assert set(execwire.CLUSTER_FIELDS.values()) == expected
    assert set(execwire.CLUSTER_FIELDS.values()) == set(Cluster.__match_args__)
    assert all(name.replace("-", "_") == attribute for name, attribute in execwire.CLUSTER_FIELDS.items())


def test_the_cluster_survives_the_way_to_the_plugin_and_back() -> None:
    cluster = Cluster(
        server="https://a",
        certificate_authority_data=LEAF.certificate_pem,
        proxy_url="socks5://b:1",
        disable_compression=True,
        config='{"a":[1,{"b":"ü"}]}',
    )
    text = execwire.encode_exec_info(execwire.V1, interactive=False, cluster=cluster)
    version, interactive, spec_cluster = execwire.decode_exec_info(text)
    assert (version, interactive) == (execwire.V1, False)
    assert spec_cluster is not None
    decoded = execwire.decode_cluster(spec_cluster)
    assert json.loads(decoded.config) == json.loads(cluster.config)
    assert decoded == replace(cluster, config=decoded.config)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "got none of none"),
        ('{"apiVersion":"v1","kind":"ExecCredential"}', "of v1"),
        ('{"apiVersion":"client.authentication.k8s.io/v1","kind":"Pod"}', "got Pod"),
        ('{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":[1]}', "must be objects"),
        (
            '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"cluster":1}}',
            "must be objects",
        ),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_exec_info_that_is_not_one(text: str, part: str) -> None:
    with pytest.raises(ExecInfoError, match=part):
        execwire.decode_exec_info(text)


@pytest.mark.parametrize(
    ("cluster", "part"),
    [
        ({}, "server is missing"),
        ({"server": 1}, "server must be a string"),
        ({"server": "a", "insecure-skip-tls-verify": "true"}, "must be true or false"),
        ({"server": "a", "certificate-authority-data": "*"}, "not base64"),
    ],
)
def test_cluster_information_of_wrong_types(cluster: dict[str, object], part: str) -> None:
    with pytest.raises(ExecInfoError, match=part):
        execwire.decode_cluster(cluster)


# -- the output -----------------------------------------------------------------------------------


def test_basic_response() -> None:
    credential = execwire.decode_reply(reply({"token": "foo-bar"}), execwire.V1, NOW)
    assert credential.token is not None
    assert credential.token.reveal() == "foo-bar"
    assert credential.authorization is not None
    assert credential.authorization.reveal() == "Bearer foo-bar"
    assert credential.expires_at is None
    assert credential.identity is None


def test_token_and_certificate_are_both_kept() -> None:
    credential = execwire.decode_reply(reply({"token": "t", **pair()}), execwire.V1, NOW)
    assert credential.authorization is not None
    assert credential.identity is not None
    assert credential.identity.certificate == LEAF.certificate_pem


def test_response_with_expiry() -> None:
    status = {"token": "t", "expirationTimestamp": "2023-11-14T22:14:20Z"}
    assert execwire.decode_reply(reply(status), execwire.V1, NOW).expires_at == NOW + 60


def test_expiry_is_not_inferred_from_the_certificate() -> None:
    assert execwire.decode_reply(reply(pair()), execwire.V1, NOW).expires_at is None


def test_null_is_absent() -> None:
    status = {"token": "t", "expirationTimestamp": None, "clientCertificateData": None, "clientKeyData": None}
    credential = execwire.decode_reply(reply(status), execwire.V1, NOW)
    assert (credential.expires_at, credential.identity) == (None, None)


def test_unknown_fields_are_ignored() -> None:
    assert execwire.decode_reply(reply({"token": "t", "later": {"a": 1}}), execwire.V1, NOW).token


@pytest.mark.parametrize("kind", ["", None])
def test_a_missing_kind_is_filled_in_as_kubernetes_does(kind: str | None) -> None:
    assert execwire.decode_reply(reply({"token": "t"}, kind=kind), execwire.V1, NOW).token


def test_yaml_is_read_as_kubernetes_reads_it() -> None:
    text = f"""\
# made by hand
apiVersion: {execwire.V1}
kind: ExecCredential
status:
  token: t0ken
  expirationTimestamp: 2023-11-14T22:14:20Z
"""
    credential = execwire.decode_reply(text.encode(), execwire.V1, NOW)
    assert credential.token is not None
    assert (credential.token.reveal(), credential.expires_at) == ("t0ken", NOW + 60)


def with_version(pem: bytes, version: int) -> bytes:
    """The certificate with another number of its version; 2 is the one that certificates have."""
    from base64 import encodebytes

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    der = x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)
    changed = der.replace(b"\xa0\x03\x02\x01\x02", bytes((0xA0, 0x03, 0x02, 0x01, version)), 1)
    assert changed != der
    return b"-----BEGIN CERTIFICATE-----\n" + encodebytes(changed) + b"-----END CERTIFICATE-----\n"


def expired(days: int) -> dict[str, str]:
    from datetime import UTC, datetime, timedelta

    then = datetime.fromtimestamp(NOW, UTC)
    window = {"not_before": then - timedelta(days=2), "not_after": then - timedelta(days=1)}
    if days > 0:
        window = {"not_before": then + timedelta(days=1), "not_after": then + timedelta(days=2)}
    leaf = CA.issue_client("jane", **window)
    return pair(leaf.certificate_pem, leaf.key_pem)


BAD_REPLIES = {
    "nothing": (b"", "printed nothing"),
    "white space": (b" \n", "printed nothing"),
    "half a document": (reply({"token": "SECRET"})[:-5], "not a JSON document"),
    "two documents": (reply({"token": "SECRET"}) * 2, "not a JSON document"),
    "binary": (b"\x80\x81\xfe\xff\x00SECRET", "not UTF-8"),
    "not an object": (b'["SECRET"]', "not a JSON object"),
    "nested too deep": (b"[" * 200_000, "nested too deep"),
    "another kind": (reply({"token": "SECRET"}, kind="TokenReview"), "expected kind ExecCredential, got TokenReview"),
    "no version": (
        b'{"kind": "ExecCredential", "status": {"token": "SECRET"}}',
        "exec plugin is configured to use API version client.authentication.k8s.io/v1, plugin returned version none",
    ),
    "text that is no YAML mapping": (b"SECRET\n", "not a JSON document"),
    "YAML after other text": (b"Logging in...\nkind: ExecCredential\nSECRET\n", "not a JSON document"),
    "YAML with a key given twice": (b"status: {token: SECRET}\nstatus: {token: SECRET}\n", "not a JSON document"),
    "YAML with a tag": (b"!!python/object/apply:os.system [SECRET]\n", "not a JSON document"),
    "JSON that only YAML would take": (b'{"status": {"token": SECRET}}', "not a JSON document"),
    "mismatched api version": (
        reply({"token": "SECRET"}, version=execwire.V1BETA1),
        "exec plugin is configured to use API version client.authentication.k8s.io/v1, "
        "plugin returned version client.authentication.k8s.io/v1beta1",
    ),
    "no status": (reply(), "exec plugin didn't return a status field"),
    "status of the wrong type": (reply("SECRET"), "status must be an object"),
    "no token": (reply({}), "exec plugin didn't return a token or cert/key pair"),
    "empty token": (reply({"token": ""}), "exec plugin didn't return a token or cert/key pair"),
    "token that is a number": (reply({"token": 12345}), "status.token must be a string"),
    "token with a newline": (reply({"token": "SECRET\r\nX-Evil: 1"}), "no header may carry"),
    "token with a blank in front": (reply({"token": " SECRET"}), "no header may carry"),
    "token of blanks": (reply({"token": "  "}), "no header may carry"),
    "token outside ASCII": (reply({"token": "SECRET\u2028"}), "no header may carry"),
    "half a character": (
        reply({"clientCertificateData": "SECRET\ud800", "clientKeyData": "SECRET"}),
        "status.clientCertificateData is not Unicode text",
    ),
    "certificate but no key": (
        reply({"clientCertificateData": LEAF.certificate_pem.decode()}),
        "exec plugin returned only certificate or key, not both",
    ),
    "key but no certificate": (
        reply({"token": "SECRET", "clientKeyData": LEAF.key_pem.decode()}),
        "exec plugin returned only certificate or key, not both",
    ),
    "key that does not fit": (reply(pair(key=OTHER.key_pem)), "private key does not match public key"),
    "certificate that is none": (reply(pair(certificate=b"SECRET")), "the certificate is not PEM"),
    "certificate of a version that there is not": (
        reply(pair(certificate=with_version(LEAF.certificate_pem, 3))),
        "the certificate is not PEM",
    ),
    "key that is none": (reply(pair(key=b"SECRET")), "the private key is not PEM"),
    "expired certificate": (reply(expired(-1)), "client certificate that expired at"),
    "certificate not yet valid": (reply(expired(1)), "not valid before"),
    "expiry in the past": (
        reply({"token": "SECRET", "expirationTimestamp": "2023-11-14T22:13:10Z"}),
        "expired at 2023-11-14T22:13:10Z, 10 s ago",
    ),
    "expiry that is no time": (
        reply({"token": "SECRET", "expirationTimestamp": "soon"}),
        "expirationTimestamp is not an RFC 3339 time",
    ),
    "expiry that is empty": (
        reply({"token": "SECRET", "expirationTimestamp": ""}),
        "expirationTimestamp is not an RFC 3339 time",
    ),
    "expiry that is a number": (
        reply({"token": "SECRET", "expirationTimestamp": 1_700_000_060}),
        "expirationTimestamp must be a string",
    ),
}


@pytest.mark.parametrize("name", BAD_REPLIES)
def test_bad_reply(name: str) -> None:
    data, text = BAD_REPLIES[name]
    with pytest.raises(PluginReplyError) as caught:
        execwire.decode_reply(data, execwire.V1, NOW)
    assert text in str(caught.value)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None, "the parser's own error may quote what it read"
    # A decoding error holds, in an attribute, all that was read; `from None` hides it from print only.
    context = caught.value.__context__
    while context is not None:
        assert not isinstance(context, json.JSONDecodeError | UnicodeError)
        context = context.__context__


def test_encrypted_key_is_an_error_and_not_a_prompt() -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    locked = load_pem_private_key(LEAF.key_pem, None).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pass")
    )
    with pytest.raises(PluginReplyError, match="encrypted"):
        execwire.decode_reply(reply(pair(key=locked)), execwire.V1, NOW)


def test_what_the_sdk_writes_the_client_reads() -> None:
    text = execwire.encode_reply(
        execwire.V1BETA1,
        token="t",
        certificate=LEAF.certificate_pem.decode(),
        key=LEAF.key_pem.decode(),
        expires_at=NOW + 60,
    )
    credential = execwire.decode_reply(text.encode(), execwire.V1BETA1, NOW)
    assert credential.expires_at == NOW + 60
    assert credential.identity is not None
