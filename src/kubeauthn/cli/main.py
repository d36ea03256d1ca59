"""`kubeauthn` and `kubectl-authn`: finds the command, loads its module and no other, and runs it.

A command is a module with `HELP`, `add_arguments(parser)` and `run(arguments, world) -> int`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from kubeauthn import __version__
from kubeauthn.cli import failure
from kubeauthn.cli.text import aligned, escaped
from kubeauthn.cli.world import World, real_world
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "raw": ("raw", "one request with the kubeconfig's own credentials"),
    "whoami": ("whoami", "who the server thinks you are"),
    "credential": ("credential", "what the credential plugin returned, redacted unless you ask"),
    "doctor": ("doctor", "the client side explained: files, context, user, plugin, policy, proxy, expiry"),
    "plugin check": ("plugin_check", "runs a credential plugin as a client would, and reports"),
    "signer doctor": ("signer_doctor", "modules, tokens, keys, certificates, a test signature, the kubeconfig entry"),
    "signer agent": ("signer_agent", "keeps a token open and its PIN for some minutes"),
    "signer request-certificate": ("signer_request", "a certificate for a token's key, from the Kubernetes CSR API"),
    "check": ("check", "validates AuthenticationConfiguration files: every fault with its place, and hints"),
    "explain": ("explain", "what becomes of a token, step by step, and why"),
    "test": ("suite", "runs a file of cases against a configuration, like unit tests"),
    "migrate": ("migrate", "the kube-apiserver --oidc-* flags, turned into a configuration file"),
    "schema": ("schema", "the JSON Schema of the configuration file, for editors"),
    "cel": ("cel", "one CEL expression tried on claims: value, type and cost, or every fault"),
    "serve": ("serve", "the webhook, forward-auth, health and metrics server"),
    "revoke": ("revoke", "revokes a token, a subject's tokens or an issuer's, for serve"),
    "kubectl": ("kubectl", "kubectl through the bridge, so that external signers and proxy plugins work in it"),
    "bridge run": ("bridge_run", "the same for any program that reads a kubeconfig: helm, k9s"),
    "bridge kubeconfig": ("bridge_kubeconfig", "a kubeconfig that starts the bridge by itself, for plain tools"),
    "bridge list": ("bridge_list", "the bridges of this user, and which of them run"),
    "bridge stop": ("bridge_stop", "ends a bridge, or all"),
    "playground": ("playground", "a local page to try a configuration on a token"),
    "demo": ("demo", "the whole thing end to end on this machine"),
    "completion": ("completion", "a script that completes commands, options and values in bash, zsh or fish"),
}
"""Name, module and one line each: the list can be shown without loading any of them."""

FOLLOWED_BY = {"plugin check": " -- COMMAND", "bridge run": " -- COMMAND"}
"""What a command cannot do without, for those of two words."""

EXIT_CODES = """\
exit codes:
  0  yes
  1  no: refused, or faults were found
  2  the command line is wrong
  3  not mine: no issuer of the configuration made the token
  4  the environment failed: a file, the network, a plugin"""


def main(argv: Sequence[str] | None = None, world: World | None = None) -> int:
    """The exit code. Without arguments: those of the process."""
    world = world or real_world()
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv), world)
        world.stdout.flush()
    except BrokenPipeError:
        _stop_writing(world)
        return failure.NOBODY_READS
    except KeyboardInterrupt:
        return failure.INTERRUPTED
    except SystemExit as ending:  # argparse, after --help
        return ending.code if isinstance(ending.code, int) else failure.YES
    except Exception as error:
        if isinstance(error, OSError):
            _stop_writing(world)
        return failure.report(error, world)
    return code


def _dispatch(words: list[str], world: World) -> int:
    if not words:
        world.stderr.write(overview(world.program))
        return failure.USAGE
    if words[0] in ("--help", "-h", "help"):
        world.stdout.write(overview(world.program))
        return failure.YES
    if words[0] == "--version":
        world.say(f"kubeauthn {__version__}")
        return failure.YES
    name, rest = _command(words, world)
    return run_command(name, rest, world)


def run_command(name: str, rest: list[str], world: World) -> int:
    from kubeauthn.cli.arguments import CommandParser

    module = import_module(f"kubeauthn.cli.{COMMANDS[name][0]}")
    parser = CommandParser(world, name, description=module.__doc__.partition("\n\n")[0] if module.__doc__ else None)
    module.add_arguments(parser)
    code: int = module.run(parser.parse_args(rest), world)
    return code


def overview(program: str) -> str:
    rows = [(f"  {name}", line) for name, (_, line) in COMMANDS.items()]
    return "\n".join(
        [
            f"usage: {program} COMMAND …",
            "",
            "Kubernetes authentication: the client side as kubectl does it, tokens as kube-apiserver does.",
            "",
            "commands:",
            *aligned(rows),
            "",
            f"{program} COMMAND --help says more about one; --version says which this is",
            "",
            EXIT_CODES,
            "",
        ]
    )


def _command(words: list[str], world: World) -> tuple[str, list[str]]:
    """The command's name, of one word or two, and what follows it."""
    if words[0] in COMMANDS:
        return words[0], words[1:]
    if len(words) > 1 and f"{words[0]} {words[1]}" in COMMANDS:
        return f"{words[0]} {words[1]}", words[2:]
    if words[0].startswith("-"):
        option = escaped(words[0].partition("=")[0])  # what is given to it may be a token
        raise UsageError(f"a command comes first, not {option}", hint=_order(option, words, world))
    group = [name for name in COMMANDS if name.startswith(f"{words[0]} ")]
    if group:
        given = f", not {escaped(words[1])}" if len(words) > 1 else ""
        forms = ", ".join(f"{world.program} {name}{FOLLOWED_BY.get(name, '')}" for name in group)
        raise UsageError(f"{words[0]} needs a subcommand{given}: {forms}")
    raise UsageError(f"there is no command {escaped(words[0])}", hint=_suggestion(words[0], world))


def _order(option: str, words: list[str], world: World) -> str:
    # From the end, because what is given to an option may be called like a command: --context test whoami.
    for end in range(len(words), 1, -1):
        for name in (" ".join(words[end - 2 : end]), words[end - 1]):
            if name in COMMANDS:
                return f"options come after the command: {world.program} {name} {option} …"
    return f"{world.program} --help lists them"


def _suggestion(word: str, world: World) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word[:50], COMMANDS, n=1, cutoff=0.5)
    if near:
        return f"did you mean {world.program} {near[0]}?"
    return f"{world.program} --help lists them"


def _stop_writing(world: World) -> None:
    """Python flushes standard output once more when it ends, and would complain about a closed pipe or a full disk."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), world.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real stream: nothing will flush it
