"""Write a credential plugin: one function, from a request to a credential.

    from kubeauthn.plugin import credential

    def get_token(request):
        token, seconds = ask_the_identity_provider()
        return credential.Token(token, expires_in=seconds)

    credential.run(get_token)

The function may return `Token`, `Certificate` or (for both at once) `Credential`, raise `Refuse("why")`,
print what it likes (it comes out on standard error), and be async. `try_out` runs it in a unit test.

Start-up is a feature: kubectl starts a plugin on every call. What is not needed is not imported.
"""

from __future__ import annotations

import os
import sys

from kubeauthn._core.execwire import V1, V1ALPHA1, V1BETA1
from kubeauthn.errors import KubeauthnError
from kubeauthn.plugin._answer import Certificate, Credential, Refuse, Token, answer_to, reply_document
from kubeauthn.plugin._request import Request, load
from kubeauthn.plugin._stdout import GuardedStdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from kubeauthn._core.kubeconfig.model import Cluster as Cluster
    from kubeauthn.plugin._answer import Function
    from kubeauthn.plugin._rehearsal import Reply as Reply

__all__ = [
    "run",
    "Request",
    "Token",
    "Certificate",
    "Credential",
    "Refuse",
    "try_out",
    "Reply",
    "load",
    "Cluster",
    "V1",
    "V1BETA1",
    "V1ALPHA1",
]

DEBUG_VARIABLE = "KUBEAUTHN_DEBUG"
"""Set it to see where an error came from."""

_LONGEST_MESSAGE = 500


def run(function: Function) -> NoReturn:
    """Answer the client with what `function` returns, and end the program.

    Exit code 0 and one document on standard output; or 1 (130 after Ctrl-C, or the code that the function
    itself gave to `sys.exit`), a line on standard error, and nothing on standard output.
    """
    import time

    name = os.path.basename(sys.argv[0]) or "plugin"
    code = 0
    try:
        stdout = GuardedStdout()
        request = load()
        credential = answer_to(request, function)
        stdout.send(reply_document(credential, request.api_version, time.time()))
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code, message = end_of_program(end)
        _say(f"{name}: error: {message}")
    except BaseException as error:
        code = 1
        _report(name, error)
    sys.exit(code)


def try_out(
    function: Function,
    *,
    api_version: str = V1,
    interactive: bool = False,
    cluster: Cluster | str | None = None,
    config: Any = None,
) -> Reply:
    """For unit tests: run `function` as `run` would, in this process, and return what the client would make of it.

        reply = credential.try_out(get_token, cluster="https://cluster.test", config={"audience": "prod"})
        assert reply.token == "…"

    `cluster` is a server address or a `Cluster`; `config` what the cluster's exec extension holds.
    What the function raises comes through (`sys.exit` as PluginFailed); a reply that the client would
    not take raises what the client raises: a PluginReplyError.
    """
    from kubeauthn.plugin._rehearsal import rehearse

    return rehearse(function, api_version=api_version, interactive=interactive, cluster=cluster, config=config)


def end_of_program(end: SystemExit) -> tuple[int, str]:
    """The function called `sys.exit`, so there is no credential: never exit code 0."""
    if isinstance(end.code, str):
        return 1, end.code
    code = end.code & 0xFF if isinstance(end.code, int) else 0
    return code or 1, "the function ended the program before it returned a credential"


def _report(name: str, error: BaseException) -> None:
    ours = isinstance(error, KubeauthnError)
    hint = error.hint if isinstance(error, KubeauthnError) else f"{DEBUG_VARIABLE}=1 shows where"
    _say(f"{name}: error: {error if ours else f'{type(error).__name__}: {error}'}")
    if os.environ.get(DEBUG_VARIABLE):
        import traceback

        traceback.print_exception(error)
    elif hint:
        _say(f"{name}: hint: {hint}")


def _say(message: str) -> None:
    """One line, whatever an exception's text holds: it may quote a server, and a terminal obeys what it reads."""
    if sys.stderr is None:
        return
    line = "".join(letter if letter.isprintable() else " " for letter in message[:_LONGEST_MESSAGE])
    try:
        sys.stderr.write(f"{line}\n")
    except OSError:
        pass  # nobody listens; the exit code still tells


def __getattr__(name: str) -> object:
    # Types that only some need, and that are not cheap to import.
    if name == "Cluster":
        from kubeauthn._core.kubeconfig.model import Cluster

        return Cluster
    if name == "Reply":
        from kubeauthn.plugin._rehearsal import Reply

        return Reply
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
