"""A login at an OpenID Connect issuer, as a credential plugin: browser or device code, refresh, and a private cache.

    kubeauthn plugin oidc --issuer-url https://id.example.com --client-id kubernetes --print-kubeconfig

Clients start it through the kubeconfig. The token is verified before it is given out, and kept outside of the
kubeconfig.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.errors import UsageError
from kubeauthn.plugins.oidc.settings import ACCESS_TOKEN, DEFAULT_LISTEN, GRANTS, ID_TOKEN, STORES, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "a login at an OpenID Connect issuer, as a credential plugin"

_LONGEST_SECONDS = 3600.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--issuer-url", required=True, metavar="URL", help="the issuer, exactly as its tokens name it")
    parser.add_argument("--client-id", required=True, metavar="ID", help="the client that the issuer knows us as")
    secrets = parser.add_mutually_exclusive_group()
    secrets.add_argument("--client-secret-file", default="", metavar="FILE", help="the client's secret, if it has one")
    secrets.add_argument(
        "--client-secret-env", default="", metavar="NAME", help="or the variable of the environment that holds it"
    )
    parser.add_argument(
        "--scope", action="append", default=[], metavar="NAME", help="asked for beside openid; may repeat"
    )
    parser.add_argument("--audience", default="", metavar="NAME", help="asked for where the issuer wants to be told")
    parser.add_argument(
        "--parameter", action="append", default=[], metavar="NAME=VALUE", help="a further one of the login; may repeat"
    )
    parser.add_argument(
        "--certificate-authority", default="", metavar="FILE", help="who signed the issuer's certificate"
    )
    tokens = parser.add_mutually_exclusive_group()
    tokens.add_argument("--id-token", action="store_true", help="give out the id token (this is the default)")
    tokens.add_argument("--access-token", action="store_true", help="give out the access token")
    parser.add_argument("--grant", choices=GRANTS, default=GRANTS[0], help="how to log in (authorization-code)")
    parser.add_argument(
        "--listen",
        default=",".join(DEFAULT_LISTEN),
        metavar="ADDRESS,…",
        help=f"where the browser comes back to: the first that is free ({','.join(DEFAULT_LISTEN)})",
    )
    parser.add_argument(
        "--redirect-url", default="", metavar="URL", help="what the issuer knows that address as, if it is another"
    )
    browser = parser.add_mutually_exclusive_group()
    browser.add_argument("--no-browser", action="store_true", help="only print the address, and open nothing")
    browser.add_argument(
        "--browser-command", default="", metavar="COMMAND", help="what opens the browser; %%s stands for the address"
    )
    parser.add_argument("--store", choices=STORES, default=STORES[0], help="where tokens are kept (file)")
    parser.add_argument(
        "--timeout", type=float, default=180.0, metavar="SECONDS", help="how long a person may take to log in (180)"
    )
    parser.add_argument(
        "--without-terminal", action="store_true", help="open the browser also where there is no terminal"
    )
    parser.add_argument("--force-refresh", action="store_true", help="do not give out the token that is kept")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--login", action="store_true", help="log in now, in this terminal, and say who you are")
    actions.add_argument("--logout", action="store_true", help="forget the tokens, and have the issuer forget them too")
    actions.add_argument("--print-kubeconfig", action="store_true", help="print the user entry for the kubeconfig")


def run(arguments: Namespace, world: World) -> int:
    settings = settings_of(arguments)
    if arguments.print_kubeconfig:
        from kubeauthn.plugins.oidc.checks import check
        from kubeauthn.plugins.oidc.kubeconfig_entry import kubeconfig_entry

        check(settings)
        for line in kubeconfig_entry(settings):
            world.say(line)
        return failure.YES
    if arguments.login:
        return _log_in(settings, world)
    if arguments.logout:
        return _log_out(settings, world)
    from kubeauthn.plugin import credential
    from kubeauthn.plugins.oidc.plugin import credential_function

    credential.run(credential_function(settings))


def settings_of(arguments: Namespace) -> Settings:
    """Checked as far as it can be without asking anybody. The cached path goes through here: nothing heavy."""
    if not 0 < arguments.timeout <= _LONGEST_SECONDS:
        raise UsageError(f"--timeout takes seconds, up to {_LONGEST_SECONDS:g}")
    settings = Settings(
        issuer_url=arguments.issuer_url,
        client_id=arguments.client_id,
        scopes=tuple(dict.fromkeys(("openid", *(word for text in arguments.scope for word in text.split())))),
        audience=arguments.audience,
        parameters=tuple(_parameter(text) for text in arguments.parameter),
        token=ACCESS_TOKEN if arguments.access_token else ID_TOKEN,
        grant=arguments.grant,
        listen=tuple(part.strip() for part in arguments.listen.split(",") if part.strip()),
        redirect_url=arguments.redirect_url,
        certificate_authority=arguments.certificate_authority,
        secret_file=arguments.client_secret_file,
        secret_variable=arguments.client_secret_env,
        browser_command=arguments.browser_command,
        open_browser=not arguments.no_browser,
        store=arguments.store,
        seconds=arguments.timeout,
        without_terminal=arguments.without_terminal,
        force_refresh=arguments.force_refresh,
    )
    if not (settings.issuer_url and settings.client_id and settings.listen):
        raise UsageError("--issuer-url, --client-id and --listen must not be empty")
    return settings


def _log_in(settings: Settings, world: World) -> int:
    from kubeauthn._core import rfc3339
    from kubeauthn._core.record import replace
    from kubeauthn.cli.text import escaped
    from kubeauthn.plugins.oidc.plugin import renewed
    from kubeauthn.plugins.oidc.storage import Storage

    if settings.store == "none":
        raise UsageError("--login with --store none: the login would be forgotten at once")
    session = renewed(replace(settings, force_refresh=True), Storage(settings), person=True)
    world.say(f"logged in at {escaped(settings.issuer_url)} as {escaped(session.subject)}")
    then = "then it is refreshed" if session.refresh_token else "then you must log in again: there is no refresh token"
    world.say(f"the token is good until {rfc3339.format(session.until)}, {then}")
    return failure.YES


def _log_out(settings: Settings, world: World) -> int:
    from kubeauthn.plugins.oidc.logout import log_out

    for line in log_out(settings):
        world.say(line)
    return failure.YES


def _parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise UsageError("--parameter takes NAME=VALUE")
    return name, value
