"""The ExecCredential document, both ways: the client and the plugin SDK meet here.

Kept light, with plain classes and no dataclasses: a plugin is started by every kubectl call.
"""

from __future__ import annotations

import json

from kubeauthn._core import limits, rfc3339
from kubeauthn._core.credential import Credential
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure, ExecInfoError, PluginReplyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn._core.kubeconfig.model import Cluster

GROUP = "client.authentication.k8s.io"
V1 = f"{GROUP}/v1"
V1BETA1 = f"{GROUP}/v1beta1"
V1ALPHA1 = f"{GROUP}/v1alpha1"
VERSIONS = (V1, V1BETA1, V1ALPHA1)
KIND = "ExecCredential"
VARIABLE = "KUBERNETES_EXEC_INFO"

CLUSTER_FIELDS = {
    "server": "server",
    "tls-server-name": "tls_server_name",
    "insecure-skip-tls-verify": "insecure_skip_tls_verify",
    "certificate-authority-data": "certificate_authority_data",
    "proxy-url": "proxy_url",
    "disable-compression": "disable_compression",
    "config": "config",
}
"""`spec.cluster`: the name on the wire, and the attribute of `Cluster`."""


def encode_exec_info(api_version: str, *, interactive: bool, cluster: Cluster | None) -> str:
    """The text of KUBERNETES_EXEC_INFO. `cluster` only where the entry asks for it; v1alpha1 never carries it."""
    spec: dict[str, Any] = {"interactive": interactive}
    if cluster is not None and api_version != V1ALPHA1:
        spec["cluster"] = _encode_cluster(cluster)
    text = json.dumps({"apiVersion": api_version, "kind": KIND, "spec": spec}, separators=(",", ":"))
    if len(text) > limits.EXEC_INFO_BYTES:
        raise EnvironmentFailure(
            f"the cluster information for the exec plugin takes {len(text)} bytes, "
            f"and an environment variable takes {limits.EXEC_INFO_BYTES}",
            hint="set provideClusterInfo to false, or shorten certificate-authority-data",
        )
    return text


def decode_exec_info(text: str) -> tuple[str, bool, dict[str, Any] | None]:
    """For plugins: the API version to answer in, whether a person is there, and the cluster's fields if given."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise ExecInfoError(f"{VARIABLE} is not JSON") from None
    if not isinstance(document, dict):
        raise ExecInfoError(f"{VARIABLE} is not a JSON object")
    version, kind = document.get("apiVersion"), document.get("kind")
    if version not in VERSIONS or kind != KIND:
        raise ExecInfoError(f"{VARIABLE}: wanted {KIND} of {GROUP}, got {_shown(kind)} of {_shown(version)}")
    spec = document.get("spec") or {}
    cluster = spec.get("cluster") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(cluster, dict | None):
        raise ExecInfoError(f"{VARIABLE}: spec and spec.cluster must be objects")
    return version, spec.get("interactive") is True, cluster


def decode_cluster(fields: dict[str, Any]) -> Cluster:
    """`spec.cluster` as the cluster a client can be made for."""
    from kubeauthn._core.kubeconfig.model import Cluster

    values: dict[str, Any] = {}
    for name, attribute in CLUSTER_FIELDS.items():
        value = fields.get(name)
        if value is None:
            continue
        if name == "config":
            values[attribute] = json.dumps(value, separators=(",", ":"))
        elif name in ("insecure-skip-tls-verify", "disable-compression"):
            if not isinstance(value, bool):
                raise ExecInfoError(f"{VARIABLE}: spec.cluster.{name} must be true or false")
            values[attribute] = value
        elif not isinstance(value, str):
            raise ExecInfoError(f"{VARIABLE}: spec.cluster.{name} must be a string")
        elif name == "certificate-authority-data":
            values[attribute] = _decode_base64(value)
        else:
            values[attribute] = value
    if not values.get("server"):
        raise ExecInfoError(f"{VARIABLE}: spec.cluster.server is missing")
    return Cluster(**values)


def encode_reply(
    api_version: str,
    *,
    token: str = "",
    certificate: str = "",
    key: str = "",
    expires_at: float | None = None,
) -> str:
    """What a plugin prints."""
    status: dict[str, str] = {}
    if expires_at is not None:
        status["expirationTimestamp"] = rfc3339.format(expires_at)
    if token:
        status["token"] = token
    if certificate:
        status["clientCertificateData"] = certificate
    if key:
        status["clientKeyData"] = key
    return json.dumps({"apiVersion": api_version, "kind": KIND, "status": status})


def decode_reply(data: bytes, api_version: str, now: float) -> Credential:
    """What a plugin printed, checked in Kubernetes' order and with its texts. Never quotes the reply: it is secret."""
    return decode_document(reply_document(data), api_version, now)


def decode_document(document: dict[str, Any], api_version: str, now: float, *, proxies: bool = False) -> Credential:
    """The same of a document that is read already. `proxies`: `status.proxyConfig` is the caller's to read."""
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind not in (None, "", KIND):  # Kubernetes' decoder fills in a kind that is missing
        raise PluginReplyError(f"decoding stdout: expected kind {KIND}, got {_shown(kind)}")
    if version != api_version:
        raise PluginReplyError(
            f"exec plugin is configured to use API version {api_version}, plugin returned version {_shown(version)}"
        )
    status = document.get("status")
    if status is None:
        raise PluginReplyError("exec plugin didn't return a status field")
    if not isinstance(status, dict):
        raise PluginReplyError("decoding stdout: status must be an object")
    token, certificate, key, expiry = (
        _text(status, name) for name in ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
    )
    if status.get("proxyConfig") is not None and not proxies:
        from kubeauthn._core.execproxy import SWITCH_HINT

        raise PluginReplyError(
            "exec plugin returned a proxyConfig, and the exec proxy is not switched on for it", hint=SWITCH_HINT
        )
    signer = _signer(status.get("externalSigner")) if status.get("externalSigner") is not None else ()
    if signer and (certificate or key):
        raise PluginReplyError("exec plugin returned both an externalSigner and a certificate or key")
    if not token and not certificate and not key and not signer and not (proxies and status.get("proxyConfig")):
        raise PluginReplyError("exec plugin didn't return a token or cert/key pair")
    if bool(certificate) != bool(key):
        raise PluginReplyError("exec plugin returned only certificate or key, not both")
    if token and not fits_in_a_header(token):
        raise PluginReplyError("exec plugin returned a token with characters that no header may carry")

    expires_at = _expiry(expiry, now) if status.get("expirationTimestamp") is not None else None
    identity = None
    if certificate:
        from kubeauthn._core.certificates import client_identity

        identity = client_identity(certificate.encode(), Secret(key), now)
    bearer = Secret(token) if token else None
    return Credential(token=bearer, identity=identity, expires_at=expires_at, signer=signer)


def _signer(settings: object) -> tuple[tuple[str, str], ...]:
    """`status.externalSigner`, which is ours: the `config` of an `externalSigner` auth-provider."""
    if not isinstance(settings, dict) or not all(isinstance(value, str) for value in settings.values()):
        raise PluginReplyError("exec plugin returned an externalSigner that is not an object of strings")
    path = settings.get("pathExec", "")
    if not path or ("/" in path and not path.startswith("/")):  # there is no file that it could be relative to
        raise PluginReplyError("exec plugin returned an externalSigner whose pathExec is neither a name nor absolute")
    return tuple(settings.items())


def _encode_cluster(cluster: Cluster) -> dict[str, Any]:
    from base64 import b64encode

    fields: dict[str, Any] = {}
    for name, attribute in CLUSTER_FIELDS.items():
        value = getattr(cluster, attribute)
        if not value:
            continue
        if name == "config":
            fields[name] = json.loads(value)
        else:
            fields[name] = b64encode(value).decode() if isinstance(value, bytes) else value
    return fields


def reply_document(data: bytes) -> dict[str, Any]:
    """JSON, or YAML where it does not begin with a brace: that is how Kubernetes' decoder tells them apart."""
    if not data.strip():
        raise PluginReplyError("decoding stdout: the plugin printed nothing")
    document, problem = None, "not a JSON object"
    try:
        document = json.loads(data)
    except UnicodeDecodeError:
        problem = "not UTF-8 text"
    except RecursionError:
        problem = "nested too deep"
    except ValueError as error:
        document = None if data.lstrip().startswith(b"{") else _yaml_mapping(data)
        # Only the place: the parser's own text could grow to quote what it read.
        place = f"line {getattr(error, 'lineno', 1)}, column {getattr(error, 'colno', 1)}"
        problem = f"not a JSON document ({place})"
    if isinstance(document, dict):
        return document
    # Out here the parser's error, which holds the whole reply, is not the context of ours.
    raise PluginReplyError(f"decoding stdout: {problem}")


def _yaml_mapping(data: bytes) -> dict[str, Any] | None:
    from kubeauthn._core.yaml_document import YamlSyntaxError, parse

    try:
        document = parse(data.decode())
    except (YamlSyntaxError, UnicodeDecodeError):
        return None
    return document.value if isinstance(document.value, dict) and not document.faults else None


def _text(status: dict[str, Any], name: str) -> str:
    value = status.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise PluginReplyError(f"decoding stdout: status.{name} must be a string")
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        # JSON can spell half a character. Encoding it would fail later, with an error that holds the whole text.
        raise PluginReplyError(f"decoding stdout: status.{name} is not Unicode text")
    return value


def _expiry(text: str, now: float) -> float:
    try:
        expires_at = rfc3339.parse(text)
    except ValueError:
        raise PluginReplyError("decoding stdout: status.expirationTimestamp is not an RFC 3339 time") from None
    if expires_at < now:
        when = f"at {rfc3339.format(expires_at)}, {now - expires_at:.0f} s ago"
        raise PluginReplyError(f"exec plugin returned a credential that expired {when}")
    return expires_at


def fits_in_a_header(token: str) -> bool:
    """Visible ASCII and blanks, but none in front: a server takes what stands there for no token at all."""
    return token.isascii() and token.isprintable() and not token.startswith(" ")


def _decode_base64(text: str) -> bytes:
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise ExecInfoError(f"{VARIABLE}: spec.cluster.certificate-authority-data is not base64") from None


def _shown(value: object) -> str:
    """A name from a document, short and on one line."""
    if value is None:
        return "none"
    if not isinstance(value, str):
        return f"a {type(value).__name__}"
    return value if len(value) <= 80 and value.isprintable() else f"{value[:80]!r}"
