"""Write an external signer: where the certificate is, and how the key signs a digest.

    from kubeauthn.plugin import signer

    class Vault:
        def __init__(self, configuration):
            configuration.require("keyName")
            self.key = open_key(configuration["keyName"])

        def certificate(self):
            return self.key.certificate_pem

        def sign(self, digest, algorithm):
            return self.key.sign(digest, hash=algorithm.hash, pss=algorithm.padding == "pss")

    signer.run(Vault)

`run` takes a class or function that is given the configuration, or an object that is ready. One process answers one
request. The request leaves the environment before anything of the author's runs, what is printed comes out on
standard error, and `ask_secret` and `tell` reach the person. `try_out` runs a signer in a unit test.
"""

from __future__ import annotations

import os
import sys

from kubeauthn._core import signerwire
from kubeauthn._core.signature_forms import digest_info, ecdsa_der
from kubeauthn._core.signerwire import SigningAlgorithm, SignRequest
from kubeauthn.errors import (
    EnvironmentFailure,
    KeyStoreAbsent,
    KubeauthnError,
    NotSigned,
    PinRefused,
    PluginReplyError,
    SignerRequestError,
    UsageError,
)
from kubeauthn.plugin._environment import take_out
from kubeauthn.plugin._stdout import GuardedStdout
from kubeauthn.plugin.prompt import ask_secret, confirm, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn, Protocol

    from kubeauthn.plugin._signer_rehearsal import Rehearsal as Rehearsal

    class Signer(Protocol):
        """What an author writes."""

        def certificate(self) -> bytes | str:
            """The certificate: PEM or DER, and behind it the intermediates, if the server needs them."""

        def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
            """The signature in the form TLS carries: DER for ECDSA (see `ecdsa_der`), else as it is."""

    Makes = Callable[["Configuration"], Signer]

__all__ = [
    "run",
    "try_out",
    "Configuration",
    "SigningAlgorithm",
    "Rehearsal",
    "ask_secret",
    "confirm",
    "tell",
    "ecdsa_der",
    "digest_info",
]

DEBUG_VARIABLE = "KUBEAUTHN_DEBUG"
"""Set it to see where an error came from. A text that a library wrote is shown only then: it may hold a secret."""

_LONGEST_MESSAGE = 500


class Configuration(dict[str, str]):
    """Every key of the kubeconfig entry, `pathExec` included. A PIN may be among the values: `repr` shows none."""

    def require(self, *names: str) -> None:
        """Each name that is missing or empty is named in one `SignerRequestError`."""
        missing = [name for name in names if not self.get(name)]
        if missing:
            raise SignerRequestError(
                f"the signer's configuration lacks {', '.join(missing)}",
                hint="they stand in the kubeconfig: users[].user.auth-provider.config",
            )

    def __repr__(self) -> str:
        return f"Configuration({', '.join(sorted(self))})"


def run(signer: Signer | Makes) -> NoReturn:
    """Answer the client's one request, and end the program.

    Exit code 0 and one document on standard output; or 1 (77 for `PinRefused`, 75 for `KeyStoreAbsent`, `NotSigned`
    and `EnvironmentFailure`, 130 after Ctrl-C), a line on standard error, and nothing on standard output.
    """
    text = take_out(signerwire.VARIABLE)  # before anything else: it may hold a PIN
    _no_core_dumps()
    code = 0
    try:
        stdout = GuardedStdout()
        stdout.end_when_nobody_reads()
        stdout.send(answer(signer, text))
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code & 0xFF if isinstance(end.code, int) else 0
        code = code or 1
        _say("error", end.code if isinstance(end.code, str) else "the signer ended the program before it answered")
    except BaseException as error:
        code = _exit_code(error)
        _report(error)
    sys.exit(code)


def _exit_code(error: BaseException) -> int:
    if isinstance(error, PinRefused):
        return signerwire.PIN_REFUSED_EXIT
    passing = KeyStoreAbsent | NotSigned | EnvironmentFailure
    return signerwire.NOT_THE_PIN_EXIT if isinstance(error, passing) else 1


def _no_core_dumps() -> None:
    try:
        import resource
    except ImportError:
        return  # a system without them
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def answer(signer: Signer | Makes, text: str | None) -> str:
    """From one document to the other."""
    if not text:
        raise SignerRequestError(
            f"{signerwire.VARIABLE} env var is unset or empty",
            hint="a client sets it; to look at a token by hand: kubeauthn signer doctor",
        )
    request = signerwire.decode_request(text)
    ready = made(signer, Configuration(request.configuration))
    if isinstance(request, SignRequest):
        signature = ready.sign(request.digest, request.algorithm)
        if not isinstance(signature, bytes) or not signature:
            raise PluginReplyError(f"sign() must return bytes, not {_kind(signature)}")
        return signerwire.encode_sign_reply(signature)
    return signerwire.encode_certificate_reply(der_chain(ready.certificate()))


def made(signer: Signer | Makes, configuration: Configuration) -> Signer:
    """A class or a function makes the signer of the configuration; anything else is one already."""
    if not isinstance(signer, type) and hasattr(signer, "certificate") and hasattr(signer, "sign"):
        return signer
    if not callable(signer):
        raise UsageError("run() takes an object with certificate() and sign(), or what makes one of the configuration")
    ready = signer(configuration)
    if not (hasattr(ready, "certificate") and hasattr(ready, "sign")):
        raise UsageError(f"a signer has certificate() and sign(), and {type(ready).__name__} does not have both")
    return ready


def der_chain(certificate: bytes | str) -> tuple[bytes, ...]:
    """PEM or DER, one certificate or several, as DER with the leaf first; read as the client will read it."""
    content = certificate.encode() if isinstance(certificate, str) else certificate
    if not isinstance(content, bytes):
        raise PluginReplyError(f"certificate() must return bytes or PEM text, not {_kind(content)}")
    reply = signerwire.encode_certificate_reply((content,))
    return signerwire.decode_certificate_reply(reply.encode())


def try_out(signer: Signer | Makes, configuration: Mapping[str, str] | None = None) -> Rehearsal:
    """For unit tests: run a signer as `run` would, in this process, through the wire format and back.

        trial = signer.try_out(Vault, {"keyName": "test"})
        trial.certificate                     # DER, the leaf first
        trial.sign(b"message", trial.algorithms[0])   # verified against the certificate, as the client does

    What the signer raises comes through; a reply that the client would not take is a PluginReplyError.
    """
    from kubeauthn.plugin._signer_rehearsal import Rehearsal

    return Rehearsal(signer, configuration or {})


def _report(error: BaseException) -> None:
    if isinstance(error, KubeauthnError):
        _say("error", str(error))
        hint = error.hint
    else:
        _say("error", f"the signer failed: {type(error).__name__}")
        hint = f"{DEBUG_VARIABLE}=1 shows where, and the text, which may hold a secret"
    if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    elif hint:
        _say("hint", hint)


def _say(kind: str, message: str) -> None:
    """One line, whatever a text holds: it may quote a token's label, and a terminal obeys what it reads."""
    if sys.stderr is None:
        return
    name = os.path.basename(sys.argv[0]) or "signer"
    line = "".join(
        letter if letter.isprintable() else " " for letter in f"{name}: {kind}: {message}"[:_LONGEST_MESSAGE]
    )
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody listens; the exit code still tells


def _kind(value: object) -> str:
    return "none" if value is None else f"an empty {type(value).__name__}" if not value else f"a {type(value).__name__}"


def __getattr__(name: str) -> object:
    if name == "Rehearsal":  # for tests, and not cheap
        from kubeauthn.plugin._signer_rehearsal import Rehearsal

        return Rehearsal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
