"""The options of every command that talks to a cluster, named as kubectl names them."""

from __future__ import annotations

import math

from kubeauthn._core import limits
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any


def add_client_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("which cluster, as whom")
    group.add_argument("--kubeconfig", metavar="FILE", help="this file instead of KUBECONFIG and ~/.kube/config")
    group.add_argument("--context", metavar="NAME", help="the context to use instead of the current one")
    group.add_argument("--cluster", metavar="NAME", help="the cluster entry to use")
    group.add_argument("--user", metavar="NAME", help="the user entry to use")
    group.add_argument("-n", "--namespace", metavar="NAME", help="the namespace to use")
    group.add_argument("-s", "--server", metavar="URL", help="the address of the API server")
    group.add_argument("--tls-server-name", metavar="NAME", help="the name that the server's certificate must be for")
    group.add_argument("--token", metavar="TOKEN", help="a bearer token; other users can see it in the process list")
    group.add_argument("--as", dest="as_user", metavar="USER", help="act as this user")
    group.add_argument("--as-uid", metavar="UID", help="… with this uid")
    group.add_argument("--as-group", action="append", default=[], metavar="GROUP", help="… in this group; may repeat")
    group.add_argument(
        "--plugin-timeout",
        type=float,
        default=limits.PLUGIN_SECONDS,
        metavar="SECONDS",
        help=f"how long a plugin may take when no person is typing ({limits.PLUGIN_SECONDS:g}; 0: no limit)",
    )


def target_options(arguments: Namespace) -> dict[str, Any]:
    """For `resolve`: all but the context's name, and with `path` for the file."""
    if not arguments.as_user and (arguments.as_uid or arguments.as_group):
        raise UsageError("--as-uid and --as-group need --as")
    return {
        "path": arguments.kubeconfig,
        "cluster": arguments.cluster,
        "user": arguments.user,
        "namespace": arguments.namespace,
        "server": arguments.server,
        "tls_server_name": arguments.tls_server_name,
        "token": arguments.token,
        "impersonate_user": arguments.as_user,
        "impersonate_uid": arguments.as_uid,
        "impersonate_groups": tuple(arguments.as_group),
    }


def plugin_seconds(arguments: Namespace) -> float | None:
    seconds: float = arguments.plugin_timeout
    if not math.isfinite(seconds) or seconds < 0:
        raise UsageError(f"--plugin-timeout takes a number of seconds, 0 or more, not {seconds:g}")
    return seconds or None


def access_options(arguments: Namespace) -> dict[str, Any]:
    """For `open_access`."""
    options = target_options(arguments)
    options["kubeconfig"] = options.pop("path")
    return {"context": arguments.context, "plugin_timeout": plugin_seconds(arguments), **options}
