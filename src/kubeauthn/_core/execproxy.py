"""The wire of KEP-2718, both ways: what a client and a proxy plugin tell each other, and when a plugin is one.

The client adds `spec.lockFilePath` to the ExecCredential it hands over; the plugin adds `status.proxyConfig` to
the one it prints. Everything else is `execwire`'s. What the KEP left open is settled in docs/exec-proxy-client.md.
"""

from __future__ import annotations

import json

from kubeauthn._core import execwire, limits
from kubeauthn._core.credential import ClientIdentity, Credential
from kubeauthn._core.kubeconfig.model import EXEC_PROXY_EXTENSION
from kubeauthn.errors import EnvironmentFailure, ExecInfoError, PluginReplyError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EXTENSION = EXEC_PROXY_EXTENSION
"""Of the kubeconfig's user: `extensions: [{name: …, extension: {enabled: true}}]`."""
ENVIRONMENT = "KUBEAUTHN_EXEC_PROXY"
SWITCH_HINT = (
    f"if it is meant to be a proxy, switch it on: the user's extension {EXTENSION} with enabled: true, "
    f"connect(exec_proxy=True), or {ENVIRONMENT}=1"
)
VERSIONS = (execwire.V1, execwire.V1BETA1)
"""The ExecCredential versions that carry the new fields."""
TLS_NAME = "localhost"
"""What the proxy's certificate must name, wherever it listens."""
LOOPBACK = "127.0.0.1"
SOCKET_PATH_BYTES = 107
"""What fits into `sockaddr_un`, its final zero not counted."""

_ON = ("1", "true", "yes", "on")
_OFF = ("", "0", "false", "no", "off")


def switched_on(asked: bool | None, environment: str | None, entry: bool) -> bool:
    """Whether an exec plugin may be a proxy: what the caller says, else the variable's value, else the user entry."""
    if asked is not None:
        return asked
    if environment is None:
        return entry
    value = environment.strip().lower()
    if value in _ON:
        return True
    if value in _OFF:
        return entry if not value else False
    raise UsageError(f"{ENVIRONMENT} is expected to be 1 or 0, not {environment[:40]!r}")


# ------------------------------------------------------------------ client → plugin


def encode_exec_info(api_version: str, *, interactive: bool, cluster: Any, lock_file_path: str) -> str:
    """KUBERNETES_EXEC_INFO with `spec.lockFilePath`."""
    text = execwire.encode_exec_info(api_version, interactive=interactive, cluster=cluster)
    document = json.loads(text)
    document["spec"]["lockFilePath"] = lock_file_path
    text = json.dumps(document, separators=(",", ":"))
    if len(text) > limits.EXEC_INFO_BYTES:
        raise EnvironmentFailure(
            f"the cluster information for the exec plugin takes {len(text)} bytes, "
            f"and an environment variable takes {limits.EXEC_INFO_BYTES}",
            hint="shorten certificate-authority-data",
        )
    return text


def lock_file_path(exec_info: str) -> str:
    """For plugins: `spec.lockFilePath`; empty where the caller knows no proxies. Raises ExecInfoError."""
    execwire.decode_exec_info(exec_info)
    spec = json.loads(exec_info).get("spec") or {}
    path = spec.get("lockFilePath")
    if path is None:
        return ""
    if not isinstance(path, str) or "\0" in path or (path and not path.startswith("/")):
        raise ExecInfoError(f"{execwire.VARIABLE}: spec.lockFilePath must be an absolute path")
    return path


# ------------------------------------------------------------------ plugin → client


class ProxyRoute:
    """Where a proxy listens, and who vouches for it. Equal when both are; `lease` is the client's hold on it."""

    __slots__ = ("certificate_authority", "lease", "port", "socket_path", "url")

    def __init__(self, url: str, certificate_authority: bytes, lease: object = None) -> None:
        self.url = url
        self.socket_path, self.port = parse_proxy_url(url)
        self.certificate_authority = certificate_authority
        self.lease = lease

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProxyRoute):
            return NotImplemented
        return self.url == other.url and self.certificate_authority == other.certificate_authority

    def __hash__(self) -> int:
        return hash(self.url)

    def __repr__(self) -> str:
        return f"ProxyRoute({self.url!r})"


class ProxyIdentity(ClientIdentity):
    """The certificate that a client shows to its proxy, with the way to that proxy: connections are kept by both."""

    __slots__ = ("route",)

    def __init__(self, identity: ClientIdentity, route: ProxyRoute) -> None:
        super().__init__(
            identity.certificate, identity.key, not_before=identity.not_before, not_after=identity.not_after
        )
        self.route = route

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProxyIdentity):
            return False
        return self.route == other.route and self.certificate == other.certificate and self.key == other.key

    def __hash__(self) -> int:
        return hash((self.route, self.certificate))


def parse_proxy_url(url: str) -> tuple[str, int]:
    """The socket's path and 0, or an empty path and the port on 127.0.0.1. PluginReplyError for anything else."""
    if not url.isprintable() or len(url) > 4096:
        raise PluginReplyError("exec plugin returned a proxyConfig.url that is too long or not printable")
    if url.startswith("unix:///"):
        path = url.removeprefix("unix://")
        if path.endswith("/") or "/../" in path or path.endswith("/.."):
            raise PluginReplyError("exec plugin returned a proxyConfig.url that names no socket")
        return path, 0
    beginning = f"https://{LOOPBACK}:"
    port = url.removeprefix(beginning).removesuffix("/")
    if url.startswith(beginning) and port.isascii() and port.isdigit() and len(port) < 6 and 0 < int(port) < 65536:
        return "", int(port)
    raise PluginReplyError(
        f"exec plugin returned a proxyConfig.url that is not unix:///PATH or {beginning}PORT: {_beginning_of(url)}"
    )


def encode_proxy_config(url: str, certificate_authority: bytes) -> dict[str, str]:
    """`status.proxyConfig`. The CA is PEM here and base64 on the wire, as `[]byte` is in Kubernetes."""
    from base64 import b64encode

    parse_proxy_url(url)
    return {"url": url, "certificate-authority-data": b64encode(certificate_authority).decode()}


def encode_reply(
    api_version: str,
    *,
    url: str,
    certificate_authority: bytes,
    certificate: str,
    key: str,
    token: str = "",
    expires_at: float | None = None,
) -> str:
    """What a proxy plugin prints: where it listens, its CA, and the client's own certificate and key (PEM)."""
    text = execwire.encode_reply(api_version, token=token, certificate=certificate, key=key, expires_at=expires_at)
    document = json.loads(text)
    document["status"]["proxyConfig"] = encode_proxy_config(url, certificate_authority)
    return json.dumps(document)


def has_proxy_config(data: bytes) -> bool:
    """Whether this whole document speaks of a proxy. One that cannot be read does not: its reader will say why."""
    try:
        status = execwire.reply_document(data).get("status")
    except PluginReplyError:
        return False
    return isinstance(status, dict) and status.get("proxyConfig") is not None


def decode_reply(data: bytes, api_version: str, now: float, lease: object) -> Credential:
    """What a plugin that may be a proxy printed. Without `proxyConfig` it is an ordinary credential."""
    document = execwire.reply_document(data)
    credential = execwire.decode_document(document, api_version, now, proxies=True)
    config = document["status"].get("proxyConfig")
    if config is None:
        return credential
    route = decode_proxy_config(config, lease)
    if credential.identity is None:
        raise PluginReplyError(
            "exec plugin returned a proxyConfig without clientCertificateData and clientKeyData to show to the proxy"
        )
    # Past its end the certificate opens no connection to the proxy, whatever expirationTimestamp says.
    ends = credential.identity.not_after
    expires_at = ends if credential.expires_at is None else min(ends, credential.expires_at)
    return Credential(
        token=credential.token, identity=ProxyIdentity(credential.identity, route), expires_at=expires_at, route=route
    )


def decode_proxy_config(config: object, lease: object = None) -> ProxyRoute:
    """`status.proxyConfig`, checked. Raises PluginReplyError."""
    if not isinstance(config, dict):
        raise PluginReplyError("decoding stdout: status.proxyConfig must be an object")
    url, authority = config.get("url"), config.get("certificate-authority-data")
    if not url:
        raise PluginReplyError("exec plugin returned a proxyConfig without url")
    if not authority:
        raise PluginReplyError("exec plugin returned a proxyConfig without certificate-authority-data")
    if not isinstance(url, str) or not isinstance(authority, str):
        raise PluginReplyError("decoding stdout: url and certificate-authority-data of proxyConfig must be strings")
    parse_proxy_url(url)  # before the CA: a wrong address is the more telling fault
    return ProxyRoute(url, _decode_authority(authority), lease)


def _decode_authority(text: str) -> bytes:
    from base64 import b64decode

    try:
        authority = b64decode(text, validate=True)
    except ValueError:
        raise PluginReplyError("certificate-authority-data of proxyConfig is not base64") from None
    from cryptography import x509

    from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE

    try:
        x509.load_pem_x509_certificates(authority)
    except NOT_A_CERTIFICATE:
        raise PluginReplyError("certificate-authority-data of proxyConfig holds no PEM certificate") from None
    return authority


def _beginning_of(url: str) -> str:
    """Scheme and host, and nothing that could be a password."""
    scheme, separator, rest = url.partition("://")
    host = rest.partition("/")[0].rpartition("@")[2]
    return f"{scheme[:20]}{separator}{host[:60]}"


class DocumentEnd:
    """Finds where the first JSON object of a stream ends, in one pass and without parsing it."""

    __slots__ = ("_depth", "_escaped", "_in_text", "never")

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = self._escaped = self.never = False
        """`never`: something else came first."""

    def feed(self, chunk: bytes) -> bool:
        """Whether the object is complete with this chunk. A stream that begins with anything else never is."""
        if self._depth == 0:
            chunk = chunk.lstrip()
            self.never = self.never or (bool(chunk) and not chunk.startswith(b"{"))
        if self.never:
            return False
        for byte in chunk:
            if self._in_text:
                if self._escaped:
                    self._escaped = False
                elif byte == 0x5C:  # backslash
                    self._escaped = True
                elif byte == 0x22:  # quotation mark
                    self._in_text = False
            elif byte == 0x22:
                self._in_text = True
            elif byte in (0x7B, 0x5B):  # opening brace or bracket
                self._depth += 1
            elif byte in (0x7D, 0x5D):
                self._depth -= 1
                if self._depth == 0:
                    return True
        return False
