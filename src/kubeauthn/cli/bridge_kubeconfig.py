"""Write a kubeconfig for plain kubectl, helm and k9s: its user starts the bridge if it is absent.

It goes to standard output, or to a new file. A file that exists is replaced only if it was written by this command.
"""

from __future__ import annotations

import os

from kubeauthn.cli import failure
from kubeauthn.cli.bridged import add_bridge_options, definition
from kubeauthn.errors import EnvironmentFailure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "a kubeconfig that starts the bridge by itself, for plain tools"

_FILE_BYTES = 1 << 20


def add_arguments(parser: ArgumentParser) -> None:
    add_bridge_options(parser)
    parser.add_argument("--write", metavar="FILE", help="to this file, mode 600, instead of standard output")
    parser.add_argument(
        "--v1", action="store_true", help="the exec plugin speaks v1 instead of v1beta1; not for kubectl before 1.22"
    )


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._core.execwire import V1, V1BETA1
    from kubeauthn.plugins.bridge.kubeconfig import document

    found = definition(arguments)
    content = document(found, api_version=V1 if arguments.v1 else V1BETA1)
    if arguments.write is None:
        world.write(content)
        return failure.YES
    _check(arguments.write, found.kubeconfig)
    from kubeauthn._io.files import write_atomically

    write_atomically(arguments.write, content)
    world.say(f"export KUBECONFIG={os.path.abspath(arguments.write)}")
    return failure.YES


def _check(path: str, own: str) -> None:
    """Never over the user's own kubeconfig, nor over anything else that this command did not write."""
    from kubeauthn._io.files import read_or_problem

    target = os.path.realpath(path)
    if target in {os.path.realpath(name) for name in own.split(os.pathsep)}:
        raise EnvironmentFailure(f"{path} is the kubeconfig that the bridge reads: it is not written over")
    content = read_or_problem(path, _FILE_BYTES)
    if isinstance(content, bytes):
        _check_ours(path, content)
    elif not content.missing:
        raise EnvironmentFailure(f"{path}: {content.reason}")


def _check_ours(path: str, content: bytes) -> None:
    """A file that exists may be replaced if it is a bridge's kubeconfig and nothing more, and nobody else's."""
    from kubeauthn.plugins.bridge.kubeconfig import is_document

    if not is_document(content):
        raise EnvironmentFailure(
            f"{path} exists and is not a bridge's kubeconfig", hint="choose a new file, or remove it first"
        )
    status = os.stat(path)
    # Replacing it would keep its owner and mode, and whoever can change a kubeconfig can make kubectl run programs.
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise EnvironmentFailure(f"{path} is another user's, or others may write to it", hint="choose a new file")
