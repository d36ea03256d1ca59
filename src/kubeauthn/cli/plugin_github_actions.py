"""The id token of the running GitHub Actions job, as a credential plugin for a cluster that trusts GitHub's issuer.

    kubeauthn plugin github-actions --audience my-cluster

The job needs the permission `id-token: write`; no secret is stored anywhere.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "the id token of the running GitHub Actions job"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--audience", required=True, metavar="NAME", help="for whom the token is: an audience that the cluster names"
    )
    parser.add_argument(
        "--certificate-authority",
        default="",
        metavar="FILE",
        help="who signed the certificate of your own GitHub server",
    )


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.plugin import credential
    from kubeauthn.plugins.github_actions import Settings, credential_function

    credential.run(credential_function(Settings(arguments.audience, arguments.certificate_authority)))
