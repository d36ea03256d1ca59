"""Get a certificate for a key that stays where it is: the request is signed by the signer.

It goes to the Kubernetes CSR API with the credentials of the context, waits until somebody approved it, and puts the
certificate where the signer looks for it: the token, or the file `pathCert`. `--renew` takes the name from the
certificate that is there.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.cli.client_options import access_options, add_client_options
from kubeauthn.cli.signer_entry import add_signer_options, chosen, open_signer
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from kubeauthn.cli.world import World

HELP = "a certificate for a token's key, from the Kubernetes CSR API"
DEFAULT_SIGNER = "kubernetes.io/kube-apiserver-client"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--name", metavar="USER", help="the user that the certificate is for (its common name)")
    parser.add_argument("--group", action="append", default=[], metavar="NAME", help="a group; may be repeated")
    parser.add_argument(
        "--renew", action="store_true", help="the same name again, if a third of its time or less is left"
    )
    parser.add_argument("--force", action="store_true", help="with --renew: however much time is left")
    parser.add_argument("--signer-name", default=DEFAULT_SIGNER, metavar="NAME", help=f"who signs ({DEFAULT_SIGNER})")
    parser.add_argument(
        "--expires", type=int, metavar="SECONDS", help="how long the certificate should hold; 600 or more"
    )
    parser.add_argument(
        "--wait", type=float, default=600.0, metavar="SECONDS", help="how long to wait for approval (600)"
    )
    parser.add_argument("--print", action="store_true", help="print the request for another authority, and stop")
    add_signer_options(parser)
    add_client_options(parser)


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.cli import signer_csr

    found = chosen(arguments, arguments.kubeconfig)
    if found is None:
        raise UsageError("say which key: --signer-user NAME, or --signer KIND --set KEY=VALUE …")
    if bool(arguments.name) == arguments.renew:
        raise UsageError("give --name USER, or --renew for the name of the certificate that is there")
    if arguments.expires is not None and arguments.expires < 600:
        raise UsageError("--expires takes 600 seconds or more, as Kubernetes does")
    kind, configuration = found
    installed = signer_csr.place_to_install(kind, configuration)
    signer = open_signer(kind, configuration)
    if arguments.renew:
        subject, left = signer_csr.present_subject(signer, world.clock())
        if left > 1 / 3 and not arguments.force:
            world.say(f"nothing to do: {left:.0%} of the certificate's time is left")
            return failure.YES
    else:
        subject = signer_csr.subject_of(arguments.name, arguments.group)
    request = signer_csr.build_request(signer, subject)
    if arguments.print:
        world.say(request.rstrip("\n"))
        return failure.YES
    chain = _issued(arguments, world, request)
    signer_csr.check_issued(chain, signer.public_key())
    where = signer_csr.install(signer, configuration, chain, installed)
    world.say(f"the certificate is in {where}")
    return failure.YES


def _issued(arguments: Namespace, world: World, request: str) -> bytes:
    from kubeauthn.cli.csr_api import submitted, waited_for
    from kubeauthn.cli.log import show_warnings
    from kubeauthn.cli.progress import waiting_for
    from kubeauthn.cli.request import connection
    from kubeauthn.client.access import open_access

    show_warnings(world)
    options: dict[str, Any] = access_options(arguments)
    with connection(open_access(**options)) as api:
        name = submitted(api, request, arguments.signer_name, arguments.expires)
        world.complain("waiting", f"for the approval of {name}: kubectl certificate approve {name}")
        with waiting_for(world, f"somebody who approves {name}") as waiting:

            def progress(text: str) -> None:
                if not waiting.live:
                    world.complain("waiting", text)

            return waited_for(api, name, arguments.wait, progress)
