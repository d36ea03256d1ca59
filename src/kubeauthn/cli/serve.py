"""Serve a configuration: TokenReview webhook, forward-auth, health and metrics.

The file is read again when it changes, every minute, and on SIGHUP; a file with a fault, or with an issuer that does
not answer, changes nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module

from kubeauthn.cli.arguments import refuse_empty_values
from kubeauthn.cli.failure import YES
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World
    from kubeauthn.server.certificates import CertificateFiles, Certificates
    from kubeauthn.server.context import ServeOptions
    from kubeauthn.server.listening import Listening

HELP = "the webhook, forward-auth, health and metrics server"

_A_DAY = 86_400
_OWN = ("file", "listen", "tls_cert", "tls_key", "client_ca", "self_signed", "workers", "grace_period")


def add_arguments(parser: ArgumentParser) -> None:
    refuse_empty_values(parser)
    parser.add_argument("file", metavar="FILE", help="the AuthenticationConfiguration")
    parser.add_argument(
        "--listen", default="127.0.0.1:8443", metavar="HOST:PORT|unix:PATH", help="where to listen (127.0.0.1:8443)"
    )
    parser.add_argument("--tls-cert", default="", metavar="FILE", help="read again when it changes")
    parser.add_argument("--tls-key", default="", metavar="FILE", help="of the certificate, not encrypted")
    parser.add_argument("--client-ca", default="", metavar="FILE", help="ask for a client certificate of this CA")
    parser.add_argument("--self-signed", action="store_true", help="make a certificate, and print the webhook's file")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (1)")
    parser.add_argument("--grace-period", type=int, default=20, metavar="SECONDS", help="for requests under way (20)")
    parser.add_argument("--api-audiences", action="append", default=[], metavar="A[,B]", help="of the API server")
    parser.add_argument("--show-reasons", action="store_true", help="put the public reason into status.error")
    parser.add_argument("--ready-policy", choices=("all", "any"), default="all", help="issuers that /readyz needs")
    parser.add_argument("--keep-keys", default="", metavar="DIR", help="keep the issuers' last good keys there")
    parser.add_argument(
        "--keep-keys-hours", type=float, default=24.0, metavar="HOURS", help="how old kept keys may be (24)"
    )
    parser.add_argument("--log-format", choices=("json", "text"), default="", help="json, but text on a terminal")
    parser.add_argument("--debug-explain", action="store_true", help="POST /debug/explain, for loopback only")
    from kubeauthn.server.parts import PARTS

    for name in PARTS:
        add = getattr(import_module(name), "add_arguments", None)
        if add is not None:
            add(parser)


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._core.authentication.decode import TEXT_BYTES
    from kubeauthn._io.files import read_bounded
    from kubeauthn.cli.config_file import with_patterns
    from kubeauthn.errors import EnvironmentFailure
    from kubeauthn.server import log_lines
    from kubeauthn.server.granian_server import Server
    from kubeauthn.server.granian_tls import try_out
    from kubeauthn.server.listening import parse_listen
    from kubeauthn.server.supervisor import Supervisor
    from kubeauthn.server.worker import load

    _check_parts(arguments)  # first: a part may add to the arguments what all workers must share
    options = _options(arguments)
    with with_patterns():
        listening = parse_listen(arguments.listen)
        files = _certificate_files(arguments, listening)
        certificates = files.read() if files is not None else None
        if files is not None and certificates is not None:
            try:
                try_out(files, certificates)
            except TimeoutError:
                raise EnvironmentFailure(f"{files.shown()}: could not be tried in time on this busy machine") from None
        log_lines.configure(options.log_format)
        content = read_bounded(arguments.file, TEXT_BYTES)
        supervisor = Supervisor(
            arguments.file,
            content,
            files,
            respawn=lambda found: server.replace_workers(found),
            in_use=certificates,
        )
        server = Server(
            listening,
            certificates,
            workers=arguments.workers,
            grace_seconds=arguments.grace_period,
            log_config=log_lines.granian_logging(options.log_format),
            on_hangup=supervisor.reload_soon,
            on_listening=lambda address: _announce(address, certificates, arguments, world),
        )
        server.on_startup(supervisor.start)
        server.serve_application(load, options, supervisor.doorbell)
    return YES


def _options(arguments: Namespace) -> ServeOptions:
    from kubeauthn.server.context import ServeOptions

    if arguments.workers < 1 or arguments.workers > 256:
        raise UsageError("--workers expects a number from 1 to 256")
    if not 1 <= arguments.grace_period <= _A_DAY:
        raise UsageError(f"--grace-period expects a number of seconds from 1 to {_A_DAY}")
    if not arguments.keep_keys_hours > 0:  # not `<= 0`: what is no number is not more than none
        raise UsageError("--keep-keys-hours expects more than none")
    given = vars(arguments)
    audiences = [entry for text in arguments.api_audiences for entry in text.split(",") if entry]
    own = {*_OWN, *ServeOptions.__match_args__, "keep_keys_hours"}
    return ServeOptions(
        api_audiences=tuple(dict.fromkeys(audiences)),
        show_reasons=arguments.show_reasons,
        ready_policy=arguments.ready_policy,
        debug_explain=arguments.debug_explain,
        keep_keys=arguments.keep_keys,
        keep_keys_seconds=arguments.keep_keys_hours * 3600,
        log_format=arguments.log_format or ("text" if sys.stderr.isatty() else "json"),
        parts={name: value for name, value in given.items() if name not in own},
    )


def _check_parts(arguments: Namespace) -> None:
    """A worker that finds out is too late: it would be started again and again."""
    from kubeauthn.server.parts import PARTS

    for name in PARTS:
        check = getattr(import_module(name), "check_arguments", None)
        if check is not None:
            check(arguments)


def _certificate_files(arguments: Namespace, listening: Listening) -> CertificateFiles | None:
    from kubeauthn.server.certificates import CertificateFiles

    if arguments.self_signed:
        if arguments.tls_cert or arguments.tls_key:
            raise UsageError("--self-signed makes a certificate; --tls-cert and --tls-key name one")
        from kubeauthn.server.self_signed import make

        return CertificateFiles(client_ca=arguments.client_ca, made=make(listening.host))
    if bool(arguments.tls_cert) != bool(arguments.tls_key):
        raise UsageError("--tls-cert and --tls-key belong together")
    if arguments.client_ca and not arguments.tls_cert:
        raise UsageError("--client-ca needs TLS: --tls-cert and --tls-key, or --self-signed")
    if arguments.tls_cert:
        return CertificateFiles(arguments.tls_cert, arguments.tls_key, arguments.client_ca)
    if not listening.unix_path and not _is_loopback(listening.host):
        raise UsageError(
            "tokens do not travel in the clear: TLS is needed beyond loopback",
            hint="--tls-cert and --tls-key, or --self-signed",
        )
    return None


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _announce(address: str, certificates: Certificates | None, arguments: Namespace, world: World) -> None:
    import logging

    fields = {"address": address, "workers": arguments.workers, "file": arguments.file}
    logging.getLogger("kubeauthn.server").info("listening", extra={"fields": fields})
    if arguments.self_signed and certificates is not None:
        from kubeauthn.server.self_signed import webhook_kubeconfig

        world.stdout.write(webhook_kubeconfig(address, certificates.chain))
        world.stdout.flush()
