"""Get the credential of a context as a client would, running its plugin if it has one, and describe it.

Tokens and keys are not printed unless --reveal asks for it.
"""

from __future__ import annotations

from kubeauthn.cli import failure, kind
from kubeauthn.cli.client_options import add_client_options, plugin_seconds, target_options
from kubeauthn.cli.text import aligned, escaped, time_left
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from kubeauthn._core.credential import Credential
    from kubeauthn._core.kubeconfig.model import Target
    from kubeauthn.cli.world import World

HELP = "what the credential plugin returned, redacted unless you ask"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default=None, help="how to print the description (text)"
    )
    parser.add_argument(
        "--reveal", action="store_true", help="print the ExecCredential document itself, secrets included"
    )
    add_client_options(parser)


def run(arguments: Namespace, world: World) -> int:
    if arguments.reveal and arguments.output:
        raise UsageError("--reveal prints the document itself: it takes no --output")
    target, credential = obtain(arguments, world)
    if arguments.reveal:
        _reveal(target, credential, world)
        return failure.YES
    description = describe(target, credential, world.clock())
    if arguments.output == "json":
        import json

        world.say(json.dumps(description, indent=2))
    else:
        for line in aligned(_rows(description, world.clock())):
            world.say(line)
    return failure.YES


def obtain(arguments: Namespace, world: World) -> tuple[Target, Credential]:
    """The same path as every client's, less the HTTP library."""
    from kubeauthn._core.execwire import V1ALPHA1
    from kubeauthn._io.kuberc import read_policy
    from kubeauthn.client.exec_source import ExecOptions, exec_proxy_switched_on
    from kubeauthn.client.kubeconfig import resolve
    from kubeauthn.client.sources import source_for

    seconds = plugin_seconds(arguments)
    target = resolve(arguments.context, **target_options(arguments))
    if target.user.exec is not None and target.user.exec.api_version == V1ALPHA1:
        from kubeauthn.cli.log import show_warnings

        show_warnings(world)
    proxies = exec_proxy_switched_on(target.user)
    options = ExecOptions(policy=read_policy(), seconds=seconds, exec_proxy=proxies)
    source = source_for(target.user, target.cluster, options)
    return target, source.get()


def describe(target: Target, credential: Credential, now: float) -> dict[str, Any]:
    """The documented JSON shape, version 1."""
    from kubeauthn._core import rfc3339

    user = target.user
    wins = kind.kinds_present(user)[0]
    token = certificate = None
    if credential.token:
        from kubeauthn.cli.token_view import token_as_json

        token = token_as_json(credential.token.reveal())
    if credential.identity is not None:
        from kubeauthn.cli.certificate_view import certificate_views

        certificate = certificate_views(credential.identity.certificate)[0].as_json()
    expires_at = credential.expires_at
    through = {"proxy": credential.route.url} if credential.route is not None else {}
    return {
        "version": 1,
        "context": target.context_name,
        "user": target.user_name,
        "kind": wins,
        "plugin": {"command": user.exec.command, "apiVersion": user.exec.api_version}
        if wins == kind.EXEC and user.exec
        else None,
        "token": token,
        "certificate": certificate,
        "expirationTimestamp": None if expires_at is None else rfc3339.format(expires_at),
        "secondsLeft": None if expires_at is None else max(0, int(expires_at - now)),
        **through,
    }


def _rows(description: dict[str, Any], now: float) -> list[tuple[str, str]]:
    wins = description["kind"]
    rows = [("user", escaped(description["user"]) or "(none)"), ("credential", _sentence(description))]
    if description["plugin"]:
        rows.append(("plugin", escaped(description["plugin"]["command"])))
        rows.append(("api version", escaped(description["plugin"]["apiVersion"])))
    if "proxy" in description:
        rows.append(("proxy", f"{escaped(description['proxy'])}, for as long as this command runs"))
    rows += _token_rows(description["token"], now) if description["token"] else []
    rows += _certificate_rows(description["certificate"], now) if description["certificate"] else []
    if description["expirationTimestamp"]:
        rows.append(("valid until", _moment(description["expirationTimestamp"], now)))
    elif wins == kind.EXEC:
        rows.append(("valid until", "the process ends or the server answers 401: the plugin named no time"))
    return rows


def _sentence(description: dict[str, Any]) -> str:
    wins = description["kind"]
    if wins == kind.NONE:
        return "none: the user entry holds no credential, and requests go out anonymously"
    parts = [name for name, key in (("token", "token"), ("client certificate", "certificate")) if description[key]]
    if wins == kind.BASIC:
        parts.insert(0, "user name and password")
    return f"{' and '.join(parts)}: {kind.IN_WORDS[wins]}"


def _token_rows(token: dict[str, Any], now: float) -> list[tuple[str, str]]:
    claims = token["jwt"]
    if claims is None:
        return [("token", f"{token['length']} characters, not a JWT")]
    rows = [("token", f"{token['length']} characters, a JWT; its claims, which nobody has verified here:")]
    rows += [(f"  {name}", escaped(claims[name])) for name in ("issuer", "subject") if claims[name] is not None]
    if claims["audiences"]:
        rows.append(("  audience", ", ".join(escaped(audience) for audience in claims["audiences"][:20])))
    if claims["expiresAt"]:
        rows.append(("  expires", _moment(claims["expiresAt"], now)))
    return rows


def _certificate_rows(certificate: dict[str, Any], now: float) -> list[tuple[str, str]]:
    return [
        ("certificate", escaped(certificate["subject"])),
        ("  issuer", escaped(certificate["issuer"])),
        ("  serial", certificate["serial"]),
        ("  not before", certificate["notBefore"]),
        ("  not after", _moment(certificate["notAfter"], now)),
    ]


def _moment(text: str, now: float) -> str:
    from kubeauthn._core import rfc3339

    return f"{text} ({time_left(rfc3339.parse(text), now)})"


def _reveal(target: Target, credential: Credential, world: World) -> None:
    from kubeauthn._core import execwire

    if not credential.token and credential.identity is None:
        raise UsageError("this credential cannot be written as an ExecCredential: it is neither token nor certificate")
    if credential.route is not None:
        # Whoever reads it would show the certificate for the proxy to the server.
        raise UsageError(
            "this credential cannot be written as an ExecCredential: it opens a local proxy, not the server",
            hint="kubeauthn kubectl and kubeauthn bridge let other programs through it",
        )
    if world.stdout.isatty():
        world.complain("warning", "what follows is a secret, and this is a terminal")
    if credential.identity is not None and not credential.identity.key:
        raise UsageError("this credential cannot be written as an ExecCredential: its key is behind an external signer")
    entry = target.user.exec if kind.kinds_present(target.user)[0] == kind.EXEC else None
    identity = credential.identity
    document = execwire.encode_reply(
        entry.api_version if entry else execwire.V1,
        token=credential.token.reveal() if credential.token else "",
        certificate=identity.certificate.decode() if identity else "",
        key=identity.key.reveal() if identity else "",
        expires_at=credential.expires_at,
    )
    world.say(document)
