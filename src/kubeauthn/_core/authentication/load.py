"""From the text of a file to a configuration that can be trusted to work: decode, then check everything."""

from __future__ import annotations

from kubeauthn._core.authentication.decode import decode_configuration
from kubeauthn._core.authentication.faults import config_error
from kubeauthn._core.authentication.release import NEWEST
from kubeauthn._core.authentication.validate import validate_configuration
from kubeauthn.errors import AuthenticationConfigError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from kubeauthn._core.authentication.model import AuthenticationConfiguration


def load_configuration(
    text: str | bytes, disallowed_issuers: Collection[str] = (), kubernetes: str = NEWEST
) -> AuthenticationConfiguration:
    """The configuration in `text`. Raises AuthenticationConfigError with every fault at once.

    `disallowed_issuers` are URLs that no entry may have: those of other authenticators. `kubernetes` is the
    release whose fields, rules and functions count.
    """
    if isinstance(disallowed_issuers, str):  # a collection too, of letters: it would disallow nobody
        raise UsageError("expected the URLs of disallowed issuers in a list, got one text")
    try:
        decoded = decode_configuration(text, kubernetes)
    except AuthenticationConfigError as error:
        from kubeauthn._core.authentication.fault_hints import fault_hint

        hint = error.hint or next(filter(None, map(fault_hint, error.errors)), None)
        raise AuthenticationConfigError(str(error), errors=error.errors, hint=hint) from None
    faults = validate_configuration(decoded.configuration, disallowed_issuers, kubernetes)
    if faults:
        raise config_error([decoded.placed(fault) for fault in faults])
    if decoded.second is not None:
        raise decoded.second
    return decoded.configuration
