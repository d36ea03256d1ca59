"""What the fields of the cluster and the user in use must fulfil. Texts are kubectl's where it has one."""

from __future__ import annotations

from kubeauthn._core.kubeconfig.faults import Fault, printable
from kubeauthn._core.kubeconfig.proxy import check_proxy_url, is_possible_host, split_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.kubeconfig.model import ClusterEntry, ExecConfig, UserEntry

EXEC_VERSIONS = tuple(f"client.authentication.k8s.io/{version}" for version in ("v1", "v1beta1", "v1alpha1"))
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")


def cluster_faults(cluster: ClusterEntry, name: str, unreadable: Mapping[str, str]) -> list[Fault]:
    """`unreadable`: from the path of a file to why it could not be read."""
    faults: list[Fault] = []
    shown = printable(name)

    def fault(message: str, *field: str) -> None:
        faults.append(Fault(cluster.origin, ("clusters", name, "cluster", *field) if name else (), message))

    if not cluster.server:
        fault(f'no server found for cluster "{shown}"', "server")
    elif problem := _server_problem(cluster):
        fault(problem, "server")
    if cluster.proxy_url:
        try:
            check_proxy_url(cluster.proxy_url)
        except ValueError as error:
            fault(f"invalid 'proxy-url' for cluster \"{shown}\": {error}", "proxy-url")
    if _has_control(cluster.tls_server_name):
        fault("has control characters", "tls-server-name")
    elif cluster.tls_server_name and not is_possible_host(cluster.tls_server_name):
        fault("is not a host name", "tls-server-name")
    if cluster.certificate_authority and cluster.certificate_authority_data:
        fault(
            f"certificate-authority-data and certificate-authority are both specified for {shown}",
            "certificate-authority",
        )
    if reason := unreadable.get(cluster.certificate_authority):
        path = printable(cluster.certificate_authority)
        fault(f"unable to read certificate-authority {path} for {shown} due to {reason}", "certificate-authority")
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        fault("specifying a root certificates file with the insecure flag is not allowed", "insecure-skip-tls-verify")
    return faults


def user_faults(user: UserEntry, name: str, unreadable: Mapping[str, str]) -> list[Fault]:
    faults: list[Fault] = []
    shown = printable(name)

    def fault(message: str, *field: str) -> None:
        faults.append(Fault(user.origin, ("users", name, "user", *field) if name else (), message))

    certificate = user.client_certificate or user.client_certificate_data
    key = user.client_key or user.client_key_data
    if user.client_certificate and user.client_certificate_data:
        fault(f"client-cert-data and client-cert are both specified for {shown}", "client-certificate")
    if user.client_key and user.client_key_data:
        fault(f"client-key-data and client-key are both specified for {shown}", "client-key")
    if certificate and not key:
        fault(
            f"client-key-data or client-key must be specified for {shown} to use the clientCert authentication method",
            "client-key",
        )
    if key and not certificate:
        # kubectl ignores such a key, and goes on without a credential.
        fault(
            f"client-certificate-data or client-certificate must be specified for {shown} "
            "to use the clientCert authentication method",
            "client-certificate",
        )
    for label, field, path in (
        ("client-cert", "client-certificate", user.client_certificate),
        ("client-key", "client-key", user.client_key),
    ):
        if reason := unreadable.get(path):
            fault(f"unable to read {label} {printable(path)} for {shown} due to {reason}", field)
    if "\0" in user.token_file:
        fault("has control characters", "tokenFile")

    if user.exec is not None:
        if user.auth_provider is not None:
            fault(f"authProvider cannot be provided in combination with an exec plugin for {shown}", "auth-provider")
        for path_in_exec, message in _exec_problems(user.exec, shown):
            fault(message, "exec", *path_in_exec)
    if user.auth_provider is not None and not user.auth_provider.name:
        fault(f"name must be specified for {shown} to use an auth provider", "auth-provider", "name")

    methods = ["token"] if user.token else []
    methods += ["basicAuth"] if user.username or user.password else []
    if len(methods) > 1:
        fault(
            f"more than one authentication method found for {shown}; found [{' '.join(methods)}], only one is allowed"
        )
    if _has_control(user.token.reveal()):
        fault("has control characters, such as a line break", "token")

    impersonation = user.impersonation
    if impersonation and not impersonation.user:
        fault(f"requesting uid, groups or user-extra for {shown} without impersonating a user", "as")
    texts = [impersonation.user, impersonation.uid, *impersonation.groups]
    texts += [text for _, values in impersonation.extra for text in values]
    if any(_has_control(text) for text in (*texts, *(key for key, _ in impersonation.extra))):
        fault("what is to be impersonated has control characters", "as")
    if any(text != text.strip(" ") for text in texts):
        # kubectl sends what is left, and who is left may be another; where nothing is left, it is you yourself.
        fault("what is to be impersonated begins or ends with a blank, which no header keeps", "as")
    return faults


def _exec_problems(plugin: ExecConfig, user: str) -> list[tuple[tuple[str, ...], str]]:
    problems: list[tuple[tuple[str, ...], str]] = []
    if not plugin.command:
        problems.append((("command",), f"command must be specified for {user} to use exec authentication plugin"))
    if not plugin.api_version:
        problems.append((("apiVersion",), f"apiVersion must be specified for {user} to use exec authentication plugin"))
    elif plugin.api_version not in EXEC_VERSIONS:
        shown = printable(plugin.api_version)
        problems.append((("apiVersion",), f'exec plugin: invalid apiVersion "{shown}"'))
    for variable, value in plugin.env:
        if not variable:
            text = f"env variable name must be specified for {user} to use exec authentication plugin"
            problems.append((("env",), text))
        elif "=" in variable or "\0" in variable or "\0" in value:
            problems.append((("env",), "a variable has a name or value that no environment can hold"))
    if any("\0" in argument for argument in (plugin.command, *plugin.args)):
        problems.append((("command",), "command and args must not contain a NUL character"))
    if not plugin.interactive_mode:
        text = f"interactiveMode must be specified for {user} to use exec authentication plugin"
        problems.append((("interactiveMode",), text))
    elif plugin.interactive_mode not in INTERACTIVE_MODES:
        shown = printable(plugin.interactive_mode)
        problems.append((("interactiveMode",), f'invalid interactiveMode for {user}: "{shown}"'))
    return problems


def _server_problem(cluster: ClusterEntry) -> str | None:
    """A server is an http or https URL. Without a scheme it is taken as https, if anything says that TLS is meant."""
    server = cluster.server
    if "://" not in server:
        if not (
            cluster.insecure_skip_tls_verify or cluster.certificate_authority or cluster.certificate_authority_data
        ):
            return "server has no scheme: write https:// before it"
        server = f"https://{server}"
    try:
        parts = split_url(server)
    except ValueError:
        return "server is not a URL"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "server must be an http or https URL with a host"
    if not is_possible_host(parts.hostname):
        return "server has a host that is not a host name"
    if parts.username is not None or parts.password is not None:
        return "server must not contain a user or password"
    if parts.query or parts.fragment:
        return "server must not have a query or a fragment"
    return None


def _has_control(text: str) -> bool:
    return any(character < " " or character == "\x7f" for character in text)
