"""`kubeauthn` and `kubectl-authn`: finds the command, loads its module and no other, and runs it.

A command is a module with `HELP`, `add_arguments(parser)` and `run(arguments, world) -> int`.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

from kubeauthn import __version__
from kubeauthn.cli import entry, failure
from kubeauthn.cli.text import escaped
from kubeauthn.cli.world import World, real_world, terminal_width
from kubeauthn.errors import KubeauthnError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS = {
    "raw": ("raw", "one request with the kubeconfig's own credentials"),
    "whoami": ("whoami", "who the server thinks you are"),
    "credential": ("credential", "what the credential plugin returned, redacted unless you ask"),
    "doctor": ("doctor", "the client side explained: files, context, user, plugin, policy, proxy, expiry"),
    "plugin check": ("plugin_check", "runs a credential, signer or proxy plugin as a client would, and reports"),
    "plugin oidc": ("plugin_oidc", "a login at an OpenID Connect issuer, as a credential plugin"),
    "plugin cache": ("plugin_cache", "keeps any plugin's credential on the disk until it ends"),
    "plugin eks": ("plugin_eks", "the token that an Amazon EKS cluster takes"),
    "plugin service-account": (
        "plugin_service_account",
        "a short-lived token of a service account, asked for as another user",
    ),
    "plugin github-actions": ("plugin_github_actions", "the id token of the running GitHub Actions job"),
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
    "bridge run": ("bridge_run", "helm, k9s or any program that reads a kubeconfig, through the bridge"),
    "bridge kubeconfig": ("bridge_kubeconfig", "a kubeconfig that starts the bridge by itself, for plain tools"),
    "bridge list": ("bridge_list", "the bridges of this user, and which of them run"),
    "bridge stop": ("bridge_stop", "ends a bridge, or all"),
    "playground": ("playground", "a local page to try a configuration on a token"),
    "demo": ("demo", "the whole thing end to end on this machine"),
    "completion": ("completion", "a script that completes commands, options and values in bash, zsh or fish"),
}
"""Name, module and one line each: the list can be shown without loading any of them."""

HEADINGS = {
    "raw": "requests with a kubeconfig",
    "plugin check": "credential plugins",
    "signer doctor": "keys outside the process",
    "check": "tokens, and the configuration that judges them",
    "kubectl": "unmodified kubectl and its like, through the bridge",
    "playground": "to begin with",
}
"""In the list of commands, before the one that each names."""

FOLLOWED_BY = {"plugin check": " -- COMMAND", "plugin cache": " -- COMMAND", "bridge run": " -- COMMAND"}
"""What a command cannot do without, for those of two words."""

PROGRAMS = {
    "kubeauthn-signer-pkcs11": "signs TLS handshakes with a key on a smart card, YubiKey or HSM",
    "kubeauthn-signer-tpm2": "… with a key in this machine's TPM",
    "kubeauthn-signer-file": "… with an encrypted key in a file",
    "kubeauthn-signer-kms": "… with a key in AWS KMS",
    "kubeauthn-proxy-tls": "shows a client certificate for clients that cannot",
    "kubeauthn-proxy-sigv4": "signs each request with AWS Signature Version 4",
    "kubeauthn-proxy-headers": "adds the headers that a command prints",
}
"""What is installed beside us: a kubeconfig names these by their path, so they are no commands."""

OTHER_NAMES = {
    "validate": "check",
    "lint": "check",
    "verify": "explain",
    "decode": "explain",
    "version": "--version",
    "server": "serve",
}
"""What people look for, and what it is called here."""

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
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _dispatch(words, world)
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
        if isinstance(error, KubeauthnError):
            _hide_tokens(error, words)
        return failure.report(error, world)
    return code


def _hide_tokens(error: KubeauthnError, words: list[str]) -> None:
    """A token that was given in a wrong place is not repeated, whichever command complains of it."""
    from kubeauthn.cli.arguments import without_tokens

    error.args = tuple(without_tokens(part, words) if isinstance(part, str) else part for part in error.args)
    error.hint = without_tokens(error.hint, words) if error.hint else error.hint


def _dispatch(words: list[str], world: World) -> int:
    if not words:
        world.stderr.write(overview(world.program, terminal_width(world.stderr)))
        return failure.USAGE
    if words[0] == "help" and len(words) > 1:
        words = [*words[1:3], "--help"]
    if words[0] in ("--help", "-h", "help"):
        world.stdout.write(overview(world.program, terminal_width(world.stdout)))
        return failure.YES
    if words[0] == "--version":
        world.say(f"kubeauthn {__version__}")
        return failure.YES
    if len(words) > 1 and words[1] in ("--help", "-h") and _group(words[0]):
        world.stdout.write(_group_overview(words[0], world.program, terminal_width(world.stdout)))
        return failure.YES
    name, rest = _command(words, world)
    return run_command(name, rest, world)


def run_command(name: str, rest: list[str], world: World) -> int:
    from kubeauthn.cli.arguments import CommandParser

    module = import_module(f"kubeauthn.cli.{COMMANDS[name][0]}")
    parser = CommandParser(world, name, description=module.__doc__.partition("\n\n")[0] if module.__doc__ else None)
    module.add_arguments(parser)
    arguments = parser.parse_args(rest)
    entry.raise_again()
    code: int = module.run(arguments, world)
    return code


def overview(program: str, width: int | None = None) -> str:
    from kubeauthn.cli.look import Look

    about = "Kubernetes authentication: the client side as kubectl does it, tokens as kube-apiserver does."
    return "\n".join(
        [
            f"usage: {program} COMMAND …",
            "",
            *Look(width=width).folded(about, 0),
            *_listed({name: line for name, (_, line) in COMMANDS.items()}, width, HEADINGS),
            "",
            *Look(width=width).folded("further programs, which a kubeconfig names; each has --help:", 0),
            *_listed(PROGRAMS, width),
            "",
            f"{program} COMMAND --help says more about one; --version says which this is",
            "",
            EXIT_CODES,
            "",
        ]
    )


def _group(word: str) -> list[str]:
    """The commands of two words that begin with this one."""
    return [name for name in COMMANDS if name.startswith(f"{word} ")]


def _listed(named: Mapping[str, str], width: int | None, headings: Mapping[str, str] | None = None) -> list[str]:
    """A name to a line, or to more where the terminal is narrow: then what is said of it stays in its column."""
    from kubeauthn.cli.look import Look

    look, left = Look(width=width), max(map(len, named)) + 5
    lines = []
    for name, text in named.items():
        if headings and name in headings:
            lines += ["", f"{headings[name]}:"]
        first, *more = look.folded(text, left)
        lines += [f"  {name}".ljust(left) + first, *(" " * left + line for line in more)]
    return lines


def _group_overview(word: str, program: str, width: int | None = None) -> str:
    listed = _listed({name: COMMANDS[name][1] for name in _group(word)}, width)
    lines = [f"usage: {program} {word} SUBCOMMAND …", "", "subcommands:", *listed, ""]
    return "\n".join([*lines, f"{program} {word} SUBCOMMAND --help says more about one", ""])


def _command(words: list[str], world: World) -> tuple[str, list[str]]:
    """The command's name, of one word or two, and what follows it."""
    if words[0] in COMMANDS:
        return words[0], words[1:]
    if len(words) > 1 and f"{words[0]} {words[1]}" in COMMANDS:
        return f"{words[0]} {words[1]}", words[2:]
    if words[0].startswith("-"):
        option = escaped(words[0].partition("=")[0])  # what is given to it may be a token
        raise UsageError(f"a command comes first, not {option}", hint=_order(option, words, world))
    group = _group(words[0])
    if group:
        given = f", not {_shown(words[1])}" if len(words) > 1 else ""
        forms = ", ".join(f"{world.program} {name}{FOLLOWED_BY.get(name, '')}" for name in group)
        near = _near(words[1], [name.partition(" ")[2] for name in group]) if len(words) > 1 else ""
        hint = f"did you mean {world.program} {words[0]} {near}?" if near else None
        raise UsageError(f"{words[0]} needs a subcommand{given}: {forms}", hint=hint)
    raise UsageError(f"there is no command {_shown(words[0])}", hint=_suggestion(words, world))


def _shown(word: str) -> str:
    from kubeauthn.cli.arguments import HIDDEN, may_be_token

    return HIDDEN if may_be_token(word) else escaped(word.partition("=")[0] if word.startswith("-") else word)


def _order(option: str, words: list[str], world: World) -> str:
    # From the end, because what is given to an option may be called like a command: --context test whoami.
    for end in range(len(words), 1, -1):
        for name in (" ".join(words[end - 2 : end]), words[end - 1]):
            if name in COMMANDS:
                return f"options come after the command: {world.program} {name} {option} …"
    return f"{world.program} --help lists them"


def _suggestion(words: list[str], world: World) -> str:
    pairs = [name for name in COMMANDS if " " in name]
    near = (
        OTHER_NAMES.get(words[0].lower())
        or _near(" ".join(words[:2]), pairs)
        or _near(words[0], [*COMMANDS, *(name.partition(" ")[0] for name in pairs)])
    )
    if near:
        return f"did you mean {world.program} {near}?"
    return f"{world.program} --help lists them"


def _near(word: str, names: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word[:50], names, n=1, cutoff=0.75)
    return near[0] if near else ""


def _stop_writing(world: World) -> None:
    """Python flushes standard output once more when it ends, and would complain about a closed pipe or a full disk."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), world.stdout.fileno())
    except (OSError, ValueError):
        return  # not a real stream: nothing will flush it
