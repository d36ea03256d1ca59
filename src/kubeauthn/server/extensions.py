"""The options of `kubeauthn serve` for what is ours and not Kubernetes': revocation, introspection, audit, traces.

Each is off unless it is asked for. docs/serve-extensions.md explains them.
"""

from __future__ import annotations

from kubeauthn.errors import UsageError
from kubeauthn.server import request_details

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    import ssl
    from collections.abc import Callable, Mapping
    from typing import Any

    from kubeauthn._core.authentication.compiled import CompiledConfiguration
    from kubeauthn.server.audit_file import AuditFile
    from kubeauthn.server.context import Context
    from kubeauthn.server.decisions import Decider
    from kubeauthn.server.introspection_client import IntrospectionEndpoint
    from kubeauthn.server.revocation import RevocationCheck
    from kubeauthn.server.runtime import Runtime

OPTIONS = (
    "revocation_file",
    "revocation_redis",
    "revocation_unavailable",
    "introspection_url",
    "introspection_issuer",
    "introspection_client_id",
    "introspection_client_secret_file",
    "introspection_bearer_file",
    "introspection_ca_file",
    "introspection_token_prefix",
    "audit_log",
    "audit_required",
    "tracing",
)
"""What `add_arguments` adds, by the names that argparse gives them: plain values, which may travel to a worker."""

_WATCHED = "revocations_watched"
"""What `check_arguments` adds: the revocation file, as the process knows it that starts the workers."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("extensions, ours and not Kubernetes'")
    add = group.add_argument
    add("--revocation-file", metavar="FILE", help="refuse the tokens that this file names; read again when it changes")
    add("--revocation-redis", metavar="URL-FILE", help="the same in Redis; the file holds its address")
    add(
        "--revocation-unavailable",
        choices=("refuse", "allow"),
        default="refuse",
        help="what becomes of a token while Redis cannot be asked (default: refuse)",
    )
    add("--introspection-url", metavar="URL", help="ask this RFC 7662 endpoint about opaque tokens")
    add("--introspection-issuer", metavar="URL", help="the issuer of the configuration that the endpoint speaks for")
    add("--introspection-client-id", metavar="ID", help="who we are to the endpoint")
    add("--introspection-client-secret-file", metavar="FILE", help="the secret of that client")
    add("--introspection-bearer-file", metavar="FILE", help="a bearer token for the endpoint instead of id and secret")
    add("--introspection-ca-file", metavar="FILE", help="whom to trust for the endpoint's certificate, PEM")
    add("--introspection-token-prefix", metavar="TEXT", default="", help="ask only about tokens that begin so")
    add("--audit-log", metavar="FILE", help="append each decision as a line of JSON; - is standard output")
    add("--audit-required", action="store_true", help="authenticate nobody whose decision cannot be recorded")
    add("--tracing", action="store_true", help="an OpenTelemetry span for each decision")


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The extensions' options as plain values, checked against each other. Raises UsageError."""
    options = {name: getattr(arguments, name) for name in OPTIONS}
    if options["introspection_url"]:
        from kubeauthn._io.form_post import checked_https

        checked_https(options["introspection_url"])
        if not options["introspection_issuer"]:
            raise UsageError("--introspection-url needs --introspection-issuer")
        pair = bool(options["introspection_client_id"]), bool(options["introspection_client_secret_file"])
        if pair[0] != pair[1] or pair[0] == bool(options["introspection_bearer_file"]):
            raise UsageError(
                "--introspection-url needs --introspection-client-id with --introspection-client-secret-file, "
                "or --introspection-bearer-file"
            )
    elif stray := [name for name in OPTIONS if name.startswith("introspection_") and options[name]]:
        raise UsageError(f"--{stray[0].replace('_', '-')} needs --introspection-url")
    if options["audit_required"] and not options["audit_log"]:
        raise UsageError("--audit-required needs --audit-log")
    return options


class Extensions:
    """What was asked for, around a decider. Made in each worker, because connections and threads are its own.

    `close` is for the end of the worker.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Raises EnvironmentFailure for a file that cannot be read, MissingExtra for what is not installed."""
        self._options = options
        self._check = _revocations(options)
        self._endpoint = _endpoint(options)
        self._audit = _audit(options)
        self._provider: Any = None
        if options.get("tracing"):
            from kubeauthn.server.tracing import exporters_of_environment

            exporters_of_environment()  # named now if it is missing, and not with the first token
        if self._audit is not None or options.get("tracing"):
            request_details.wanted = True

    def wrap(self, decider: Decider, configuration: Callable[[], CompiledConfiguration]) -> Decider:
        """The decider with all of it. `configuration` returns the one in force whenever it is asked."""
        if self._check is not None:
            from kubeauthn.server.revocation import RevocationDecider

            decider = RevocationDecider(decider, self._check)
        if self._endpoint is not None:
            from kubeauthn.server.introspection import IntrospectionDecider

            decider = IntrospectionDecider(
                decider,
                self._endpoint,
                configuration,
                issuer=self._options["introspection_issuer"],
                token_prefix=self._options.get("introspection_token_prefix") or "",
                check=self._check,
            )
        if self._audit is not None:
            from kubeauthn.server.audit import AuditDecider

            decider = AuditDecider(decider, self._audit, required=bool(self._options.get("audit_required")))
        if self._options.get("tracing"):
            from kubeauthn.server.tracing import TracingDecider, provider_of_environment

            self._provider = provider_of_environment()
            decider = TracingDecider(decider)
        return decider

    def reopen(self) -> None:
        """The audit log was renamed."""
        if self._audit is not None:
            self._audit.reopen()

    async def close(self) -> None:
        """In the loop that served: connections end, and what waits for the audit log is written."""
        if self._endpoint is not None:
            await self._endpoint.close()
        for source in () if self._check is None else self._check.sources:
            await source.close()
        if self._audit is not None:
            self._audit.close()
        if self._provider is not None:
            self._provider.shutdown()  # spans that wait are sent


def check_arguments(arguments: argparse.Namespace) -> None:
    """What could not work is told before there are workers. Raises UsageError or EnvironmentFailure."""
    import asyncio

    extensions = Extensions(options_of(arguments))
    asyncio.run(extensions.close())
    if arguments.revocation_file:
        from kubeauthn.server.revocation_file import FileRevocations

        # A worker may have to start while the file is wrong, or empty: it then gets the last good list.
        setattr(arguments, _WATCHED, FileRevocations(arguments.revocation_file))


def wrap(decider: Decider, context: Context) -> Decider:
    """The part's contract (see `server/parts.py`): the decider with what the options ask for."""
    extensions = Extensions({name: context.options.parts.get(name) for name in (*OPTIONS, _WATCHED)})
    context.at_end.append(extensions.close)
    context.on_hangup.append(extensions.reopen)
    return extensions.wrap(decider, ConfigurationInForce(context.runtime))


class ConfigurationInForce:
    """The compiled configuration of the generation in force; compiled anew only after a reload."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._of: object = None
        self._compiled: CompiledConfiguration | None = None

    def __call__(self) -> CompiledConfiguration:
        generation = self._runtime.current
        if generation is None:
            raise UsageError("no configuration is in force")
        if self._compiled is None or self._of is not generation:
            from kubeauthn._core.authentication.compiled import compile_configuration

            self._of, self._compiled = generation, compile_configuration(generation.configuration)
        return self._compiled


def redis_address(path: str) -> str:
    """From a file and not from the command line: it may hold a password, and everybody sees a command line."""
    from kubeauthn._core.limits import CREDENTIAL_FILE_BYTES
    from kubeauthn._io.files import read_bounded

    return read_bounded(path, CREDENTIAL_FILE_BYTES).decode("utf-8", "replace").strip()


def _revocations(options: Mapping[str, Any]) -> RevocationCheck | None:
    file, redis = options.get("revocation_file"), options.get("revocation_redis")
    if not file and not redis:
        return None
    from kubeauthn.server.revocation import RevocationCheck, RevocationSource

    sources: list[RevocationSource] = []
    if file:
        from kubeauthn.server.revocation_file import FileRevocations

        sources.append(options.get(_WATCHED) or FileRevocations(file))
    if redis:
        from kubeauthn.server.revocation_redis import RedisRevocations

        sources.append(RedisRevocations(redis_address(redis)))
    return RevocationCheck(tuple(sources), options.get("revocation_unavailable") or "refuse")


def _endpoint(options: Mapping[str, Any]) -> IntrospectionEndpoint | None:
    url = options.get("introspection_url")
    if not url:
        return None
    from kubeauthn.server.introspection_client import IntrospectionEndpoint, basic_from_file, bearer_from_file

    bearer = options.get("introspection_bearer_file")
    if bearer:
        credentials = bearer_from_file(bearer)
    else:
        credentials = basic_from_file(options["introspection_client_id"], options["introspection_client_secret_file"])
    credentials()  # a file that is missing is told now, and not with the first token
    return IntrospectionEndpoint(url, credentials, _trust(options.get("introspection_ca_file")))


def _trust(path: str | None) -> ssl.SSLContext:
    import ssl

    from kubeauthn._core.limits import CREDENTIAL_FILE_BYTES
    from kubeauthn._io.files import read_bounded
    from kubeauthn.errors import EnvironmentFailure

    if not path:
        return ssl.create_default_context()
    pem = read_bounded(path, CREDENTIAL_FILE_BYTES).decode("ascii", "replace")
    try:
        return ssl.create_default_context(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise EnvironmentFailure(f"{path}: holds no certificate in PEM") from None


def _audit(options: Mapping[str, Any]) -> AuditFile | None:
    if not options.get("audit_log"):
        return None
    from kubeauthn.server.audit_file import AuditFile

    return AuditFile(options["audit_log"])
