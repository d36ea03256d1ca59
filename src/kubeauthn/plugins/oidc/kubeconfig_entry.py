"""The kubeconfig entry for a login, and the command line that a person would type for it."""

from __future__ import annotations

import os

from kubeauthn.plugins.kubeconfig_entry import exec_entry
from kubeauthn.plugins.oidc.settings import ACCESS_TOKEN, DEFAULT_LISTEN, GRANTS, STORES, Settings


def words_of(settings: Settings, *first: str) -> list[str]:
    """`plugin oidc FIRST …`, with what differs from the defaults. No secret is ever among them."""
    plain = Settings(issuer_url="", client_id="")
    words = ["plugin", "oidc", *first, f"--issuer-url={settings.issuer_url}", f"--client-id={settings.client_id}"]
    words += [f"--scope={scope}" for scope in settings.scopes if scope != "openid"]
    words += [f"--parameter={name}={value}" for name, value in settings.parameters]
    files = {"--certificate-authority": settings.certificate_authority, "--client-secret-file": settings.secret_file}
    words += [f"{option}={os.path.abspath(path)}" for option, path in files.items() if path]
    texts = {
        "--audience": settings.audience,
        "--client-secret-env": settings.secret_variable,
        "--redirect-url": settings.redirect_url,
        "--browser-command": settings.browser_command,
        "--grant": settings.grant if settings.grant != GRANTS[0] else "",
        "--store": settings.store if settings.store != STORES[0] else "",
        "--listen": ",".join(settings.listen) if settings.listen != DEFAULT_LISTEN else "",
        "--timeout": f"{settings.seconds:g}" if settings.seconds != plain.seconds else "",
    }
    words += [f"{option}={value}" for option, value in texts.items() if value]
    switches = {
        "--access-token": settings.token == ACCESS_TOKEN,
        "--no-browser": not settings.open_browser,
        "--without-terminal": settings.without_terminal,
    }
    return [*words, *(option for option, on in switches.items() if on)]


def kubeconfig_entry(settings: Settings, name: str = "oidc") -> list[str]:
    """Lines of YAML."""
    return [
        "# Put this user into your kubeconfig, then choose it for the current context:",
        f"#   kubectl config set-context --current --user={name}",
        *exec_entry(name, words_of(settings)),
    ]
