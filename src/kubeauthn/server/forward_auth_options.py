"""The options of `kubeauthn serve` for forward-auth and the assertion. Their values travel to the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace


class MadeKey:
    """A private key in PEM that was made at start. It travels to the workers, and is never shown."""

    def __init__(self, pem: str) -> None:
        self._pem = pem

    def reveal(self) -> str:
        return self._pem

    def __repr__(self) -> str:
        return "MadeKey(…)"


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument_group("forward-auth, at /auth").add_argument
    add(
        "--forward-auth-header-prefix",
        metavar="PREFIX",
        default="X-Remote-",
        help="how the headers with the user begin (X-Remote-)",
    )
    add(
        "--forward-auth-original-uri",
        metavar="HEADER",
        default="",
        help="where the proxy, and nobody else, says what was asked for, such as X-Original-URI; "
        "only with it the file's `anonymous` section counts at /auth",
    )
    add(
        "--assertion-key",
        metavar="FILE",
        default="",
        help="private keys on P-256, PEM, for X-Kubeauthn-Assertion; the first signs (one is made at start)",
    )
    add("--no-assertion", action="store_true", help="do not sign an assertion of the user")
    add("--assertion-issuer", metavar="NAME", default="kubeauthn", help="its iss (kubeauthn)")
    add(
        "--assertion-audience",
        metavar="NAME",
        action="append",
        default=[],
        help="its aud; of several a proxy chooses with /auth?audience=NAME (kubeauthn-upstream)",
    )
    add("--assertion-seconds", metavar="SECONDS", type=float, default=60.0, help="how long it holds (60)")


def check_arguments(arguments: Namespace) -> None:
    """What could not work is told before there are workers, and a key that is made here is the key of all of them.

    Raises UsageError or EnvironmentFailure.
    """
    from kubeauthn.server.assertion import new_key_pem
    from kubeauthn.server.forward_auth import names_of, signer_of

    if not arguments.no_assertion and not arguments.assertion_key:
        arguments.assertion_made_key = MadeKey(new_key_pem())
    names_of(vars(arguments))
    signer_of(vars(arguments))
