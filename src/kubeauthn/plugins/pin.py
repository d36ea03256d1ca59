"""Where a PIN or passphrase comes from: the entry, a keyring, a file descriptor, or the person.

`pinSource` in the configuration says which: `prompt` (the default), `keyring:kubeauthn/NAME`, or `fd:NUMBER`.
A `pin` in the kubeconfig works, and is warned of: whoever reads the file has it.
"""

from __future__ import annotations

import os

from kubeauthn._core.stored_pin import pin_descriptor
from kubeauthn._secret import Secret
from kubeauthn.errors import EnvironmentFailure, KeyStoreError, MissingExtra, UsageError
from kubeauthn.plugin.prompt import LONGEST_ANSWER, ask_secret, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Pins = Callable[[str], Secret]
    """Given what to ask for, the PIN."""

PIN_IN_KUBECONFIG = (
    "warning: the kubeconfig holds a PIN: whoever reads that file can use the key; "
    "store it with `keyring set kubeauthn NAME`, then write pinSource: keyring:kubeauthn/NAME in its place"
)


KEYRING_SERVICE = "kubeauthn"
"""A kubeconfig may come from anywhere, and must not have another program's password sent to a token of its choice."""
WRONG_BEFORE = "(the last one was wrong)"
"""In a question: the token has counted a wrong PIN. A person may try again; what is stored stays wrong."""


def pins_of(configuration: Mapping[str, str]) -> Pins:
    """The source that the configuration names. Nothing is asked before it is called."""
    if configuration.get("pin"):
        return lambda question: written_pin(question, configuration["pin"])
    if not configuration.get("pinSource") and "pin-source=" in configuration.get("uri", ""):
        # Passed over, somebody would be asked for a PIN though the entry says where it is.
        raise UsageError(
            "uri: its pin-source is not read",
            hint="write pinSource beside it: prompt, keyring:kubeauthn/NAME or fd:NUMBER",
        )
    source = configuration.get("pinSource") or "prompt"
    kind, _, place = source.partition(":")
    if source == "prompt":
        return ask_secret
    if kind == "keyring" and place:
        return lambda question: _from_keyring(question, place)
    if (number := pin_descriptor(configuration)) is not None:
        return lambda question: _from_descriptor(question, number)
    # The value itself is not shown: somebody may have written the PIN there.
    raise UsageError("pinSource is prompt, keyring:kubeauthn/NAME or fd:NUMBER")


def check_not_wrong_before(question: str) -> None:
    """For every PIN that nobody is typing now."""
    if WRONG_BEFORE in question:
        asked = question.partition(WRONG_BEFORE)[0].strip()
        raise KeyStoreError(
            f"{asked}: the last one was wrong, and a stored one is not tried again",
            hint="correct what is stored, then log in once by hand: pkcs11-tool --module PATH --login --list-objects",
        )


def written_pin(question: str, pin: str) -> Secret:
    """One that the entry holds; the person is warned of it."""
    check_not_wrong_before(question)
    tell(PIN_IN_KUBECONFIG)
    return Secret(pin)


def _from_keyring(question: str, place: str) -> Secret:
    check_not_wrong_before(question)
    service, slash, name = place.partition("/")
    if not (service and slash and name):
        raise UsageError("pinSource: a keyring is written keyring:kubeauthn/NAME")
    if service != KEYRING_SERVICE:
        raise UsageError(
            f"pinSource: of the keyring only the secrets under {KEYRING_SERVICE} are given to a signer",
            hint=f"store it there: keyring set {KEYRING_SERVICE} NAME; then write keyring:{KEYRING_SERVICE}/NAME",
        )
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise MissingExtra("keyring", "keyring") from None
    try:
        value = keyring.get_password(service, name)
    except KeyringError as error:
        raise EnvironmentFailure(f"the keyring cannot be read: {type(error).__name__}") from None
    if not value:
        raise KeyStoreError(
            f"the keyring has nothing under {service}/{name}", hint=f"store it: keyring set {service} {name}"
        )
    return Secret(value)


def _from_descriptor(question: str, number: int) -> Secret:
    """Up to the end or the first line's end. The descriptor is closed, so nothing that is started later inherits it."""
    check_not_wrong_before(question)
    content = b""
    try:
        try:
            while b"\n" not in content and len(content) <= LONGEST_ANSWER:
                chunk = _read_at(number, len(content), LONGEST_ANSWER + 1 - len(content))
                if not chunk:
                    break
                content += chunk
        finally:
            os.close(number)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise EnvironmentFailure(f"pinSource: file descriptor {number}: {reason}") from None
    line = content.partition(b"\n")[0].rstrip(b"\r")
    if not line or len(line) > LONGEST_ANSWER:
        raise EnvironmentFailure(f"pinSource: file descriptor {number} gave no PIN, or one too long")
    return Secret(line.decode("utf-8", "surrogateescape"))


def _read_at(number: int, at: int, count: int) -> bytes:
    """A file from its beginning, wherever the last signer left off: its place is shared. A pipe gives it once."""
    import errno

    try:
        return os.pread(number, count, at)
    except OSError as error:
        if error.errno not in (errno.ESPIPE, errno.EINVAL):
            raise
    return os.read(number, count)
