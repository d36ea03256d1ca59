"""Say that a token waits to be touched: to the person at the client, whichever process holds the token."""

from __future__ import annotations

from kubeauthn.plugin.prompt import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "touch"


def tell_of_touch(configuration: Mapping[str, str]) -> None:
    """Where the entry says `touch: "true"`: a module does not tell whether its key wants one."""
    if configuration.get(SETTING) == "true":
        tell("touch the token now")
