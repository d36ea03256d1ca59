"""Keep a token open and its PIN for some minutes, for the signers of this user.

Opt-in and in the foreground: it serves the keys of the kubeconfig's signer entries, and no others. A signer that
finds it asks it instead of opening the token; the PIN is asked for on that signer's terminal, once per N minutes.
The agent survives the token's removal; one that is put in its place gets no PIN that was typed for another.
"""

from __future__ import annotations

import math
import os

from kubeauthn.cli import failure
from kubeauthn.cli.signer_entry import add_signer_options
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World
    from kubeauthn.plugin.signer import Configuration
    from kubeauthn.plugins.agent.keeper import KeptKey

HELP = "keeps a token open and its PIN for some minutes"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=15.0, metavar="N", help="how long a PIN is kept (15)")
    parser.add_argument("--confirm", action="store_true", help="also ask here, once per N minutes, before signing")
    parser.add_argument("--socket", metavar="PATH", help="where to listen, in a directory that is yours alone")
    parser.add_argument("--kubeconfig", metavar="FILE", help="this file instead of KUBECONFIG and ~/.kube/config")
    add_signer_options(parser)


def run(arguments: Namespace, world: World) -> int:
    import signal

    from kubeauthn.plugins.agent.server import AgentServer
    from kubeauthn.plugins.agent.wire import VARIABLE, socket_path
    from kubeauthn.plugins.lockdown import lock_down

    if not math.isfinite(arguments.minutes) or not 0 < arguments.minutes <= 24 * 60:
        raise UsageError("--minutes takes a number above 0, and at most a day")
    path = os.path.abspath(arguments.socket) if arguments.socket else socket_path(world.environ)
    if not path:
        raise UsageError("XDG_RUNTIME_DIR is not set: say where to listen with --socket")
    entries = _entries(arguments)
    keys = [_kept(kind, configuration, arguments) for kind, configuration in entries]
    lock_down()
    server = AgentServer(path, keys, log=lambda line: world.complain("agent", line))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop.set())
    world.complain("agent", f"{len(keys)} keys at {path}, a PIN is kept for {arguments.minutes:g} minutes")
    if arguments.socket:
        world.complain("agent", f"signers find it with {VARIABLE}={path}")
    server.serve()
    return failure.YES


def _entries(arguments: Namespace) -> list[tuple[str, Configuration]]:
    from kubeauthn.cli.signer_entry import chosen, signer_entries
    from kubeauthn.client import kubeconfig as files

    one = chosen(arguments, arguments.kubeconfig)
    entries = [one] if one else list(signer_entries(files.load(arguments.kubeconfig)).values())
    entries = [(kind, configuration) for kind, configuration in entries if kind != "kms"]
    if not entries:
        raise UsageError(
            "there is no key to serve: no user entry names one of our signers that keeps a token or a key",
            hint="kubeauthn signer doctor --write NAME makes such an entry",
        )
    return entries


def _kept(kind: str, configuration: Configuration, arguments: Namespace) -> KeptKey:
    import time

    from kubeauthn.cli.signer_entry import open_signer
    from kubeauthn.plugin.prompt import confirm
    from kubeauthn.plugins.agent.keeper import KeptKey

    return KeptKey(
        kind,
        configuration,
        lambda entry, pins: open_signer(kind, entry, pins),
        seconds=arguments.minutes * 60,
        clock=time.monotonic,
        allow=confirm if arguments.confirm else None,
    )
