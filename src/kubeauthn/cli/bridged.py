"""What the commands of the bridge share: its options, and a program run with a kubeconfig for it."""

from __future__ import annotations

import os
from contextlib import contextmanager

from kubeauthn.cli.arguments import may_be_token
from kubeauthn.cli.client_options import add_client_options, target_options
from kubeauthn.cli.text import escaped
from kubeauthn.errors import EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterator

    from kubeauthn.cli.world import World
    from kubeauthn.plugins.bridge.definition import Definition

_BEFORE_THE_DASHES = (
    "--kubeconfig",
    "--context",
    "--cluster",
    "--user",
    "--server",
    "--kube-context",
    "--kube-apiserver",
)
"""Options of the program that would lead it past the bridge."""
_HELM_VARIABLES = "HELM_KUBE"
"""helm's own cluster, context, token and authority: they would win over the kubeconfig."""


def add_bridge_options(parser: ArgumentParser) -> None:
    add_client_options(parser)
    parser.add_argument(
        "--idle", type=float, metavar="SECONDS", help="the bridge ends after so long without connections (300)"
    )


def definition(arguments: Namespace, *, apart: str = "") -> Definition:
    """The bridge for these options. Its definition is written down; nothing runs yet."""
    from kubeauthn.plugins.bridge.definition import define

    if arguments.token:
        raise UsageError("a bridge takes no --token: it would have to be written to a file")
    if arguments.idle is not None and not 1 <= arguments.idle <= 86400:
        raise UsageError(f"--idle takes seconds from 1 to 86400, not {arguments.idle:g}")
    options = target_options(arguments)
    options["kubeconfig"] = options.pop("path")
    return define(
        arguments.context, {name: value for name, value in options.items() if value}, arguments.idle, environment=apart
    )


@contextmanager
def definition_at_hand(arguments: Namespace) -> Iterator[Definition]:
    """The same, or one beside it where programs with another environment use it: its plugin ran there, not here."""
    from kubeauthn.plugins.bridge.environment import whole
    from kubeauthn.plugins.bridge.starting import serves_others

    found = definition(arguments)
    if not serves_others(found.name):
        yield found
        return
    from kubeauthn.plugins.bridge.apart import in_use

    environment = whole(os.environ)
    with in_use(definition(arguments, apart=environment).name):
        yield definition(arguments, apart=environment)


def run_program(command: list[str], found: Definition, world: World, *, by: str) -> int:
    """The program's own exit code. Its kubeconfig is in a private directory that goes away with it."""
    import subprocess
    import tempfile

    from kubeauthn.plugins.bridge.kubeconfig import document

    spelled = [_spelled_out(command[0], word) for word in command]
    for index, word in enumerate(spelled[1:], 1):
        if word == "--":
            break
        if word.partition("=")[0] in _BEFORE_THE_DASHES:
            raise UsageError(
                f"{word.partition('=')[0]} would lead past the bridge",
                hint=f"give it before the dashes: {world.program} {by} {_reordered(spelled, index, by)}",
            )
    if world.stdin.isatty():
        from kubeauthn.plugins.bridge.foreground import bring_credential

        bring_credential(found)
    with tempfile.TemporaryDirectory(prefix="kubeauthn-") as folder:
        path = os.path.join(folder, "kubeconfig")
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(document(found))
        environ = {name: value for name, value in world.environ.items() if not name.startswith(_HELM_VARIABLES)}
        environ["KUBECONFIG"] = path
        world.stdout.flush()
        try:
            process = subprocess.Popen(command, env=environ)
        except OSError as error:
            raise EnvironmentFailure(f"{command[0]} cannot be run: {(error.strerror or 'unusable').lower()}") from None
        with _asked_to_end(process.send_signal):
            return _wait(process.wait)


def _spelled_out(program: str, word: str) -> str:
    """kubectl has a short form of one option, however its value is joined to it."""
    if os.path.basename(program) != "kubectl" or not word.startswith("-s"):
        return word
    value = word[2:].removeprefix("=")
    return f"--server={value}" if value else "--server"


def _reordered(command: list[str], index: int, by: str) -> str:
    """The command line with its option where it belongs. Other options are left out: one may be a token."""
    option, joined, value = command[index].partition("=")
    after = index + 1
    if not joined:
        value, after = "".join(command[after : after + 1]), after + 1
    option = {"--kube-context": "--context", "--kube-apiserver": "--server"}.get(option, option)
    words = command[:index] + command[after:]
    if by == command[0]:
        words = words[1:]
    plain = words and not any(word.startswith("-") or may_be_token(word) for word in words)
    value = "…" if not value or may_be_token(value) else escaped(value)
    return f"{option} {value} -- {escaped(' '.join(words)) if plain else '…'}"


@contextmanager
def _asked_to_end(pass_on: Callable[[int], None]) -> Iterator[None]:
    """Whoever asks us to end, `timeout` or the container's runtime, means the program: it would go on alone.

    What is ignored, as under nohup, stays ignored.
    """
    import signal

    def asked(number: int, frame: object) -> None:
        pass_on(number)

    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, asked)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _wait(wait: object) -> int:
    """Ctrl-C goes to the program too, and it is the one to decide."""
    while True:
        try:
            code: int = wait()  # type: ignore[operator]  # Popen.wait
        except KeyboardInterrupt:
            continue
        return code if code >= 0 else 128 - code
