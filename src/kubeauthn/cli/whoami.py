"""Ask the API server who you are to it, after authentication and impersonation."""

from __future__ import annotations

import json
from typing import Any

from kubeauthn.cli import failure
from kubeauthn.cli.client_options import access_options, add_client_options
from kubeauthn.cli.text import aligned, escaped
from kubeauthn.errors import EnvironmentFailure, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    import httpx2

    from kubeauthn.cli.world import World

HELP = "who the server thinks you are"

GROUP = "authentication.k8s.io"
VERSIONS = ("v1", "v1beta1", "v1alpha1")
"""Newest first: servers before 1.28 know only the older ones."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print the answer (text)"
    )
    add_client_options(parser)


def run(arguments: Namespace, world: World) -> int:
    options = access_options(arguments)

    from kubeauthn.cli.log import show_warnings
    from kubeauthn.cli.request import connection
    from kubeauthn.client.access import open_access

    show_warnings(world)
    access = open_access(**options)
    with connection(access) as api:
        user = ask(api)
    if arguments.output == "json":
        world.say(json.dumps({"version": 1, **user}, indent=2))
    else:
        for line in aligned(_rows(user)):
            world.say(line)
    return failure.YES


def ask(api: httpx2.Client) -> dict[str, Any]:
    """The server's answer: username, uid, groups and extra. `RequestRefused` if it does not say."""
    from kubeauthn.cli.request import exchange, refusal

    for version in VERSIONS:
        review = {"apiVersion": f"{GROUP}/{version}", "kind": "SelfSubjectReview"}
        response, body = exchange(api, "POST", f"/apis/{GROUP}/{version}/selfsubjectreviews", json=review)
        if response.is_success:
            return _user(body)
        if response.status_code != 404:
            raise refusal(response, body)
    raise RequestRefused(
        "the server has no SelfSubjectReview: it is older than Kubernetes 1.26, or it is turned off", status=404
    )


def _user(body: bytes) -> dict[str, Any]:
    """`status.userInfo`, with every field there and of the right type."""
    try:
        info = json.loads(body)["status"]["userInfo"]
        extra = info.get("extra") or {}
        return {
            "username": str(info.get("username") or ""),
            "uid": str(info.get("uid") or ""),
            "groups": [str(group) for group in info.get("groups") or ()],
            "extra": {str(key): [str(value) for value in values or ()] for key, values in extra.items()},
        }
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        raise EnvironmentFailure("the server's answer is no SelfSubjectReview with a userInfo") from None


def _rows(user: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("ATTRIBUTE", "VALUE"), ("Username", escaped(user["username"]))]
    if user["uid"]:
        rows.append(("UID", escaped(user["uid"])))
    if user["groups"]:
        rows.append(("Groups", _list(user["groups"])))
    rows += [(f"Extra: {escaped(key)}", _list(values)) for key, values in sorted(user["extra"].items())]
    return rows


def _list(values: list[str]) -> str:
    return "[" + " ".join(escaped(value) for value in values) + "]"
