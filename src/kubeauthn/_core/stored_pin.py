"""Whether a signer's entry has its PIN from somewhere, so that nobody types it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DESCRIPTOR = "fd:"


def holds_pin(configuration: Mapping[str, str]) -> bool:
    """Whether a PIN stands in the configuration itself, as `pin` or within a token's URI."""
    return bool(configuration.get("pin")) or "pin-value=" in configuration.get("uri", "")


def stores_pin(configuration: Mapping[str, str]) -> bool:
    """Whether every signature gets the same PIN: what is wrong once stays wrong."""
    return holds_pin(configuration) or configuration.get("pinSource", "") not in ("", "prompt")


def pin_descriptor(configuration: Mapping[str, str]) -> int | None:
    """The file descriptor that `pinSource` names; None where it names none."""
    source = configuration.get("pinSource", "")
    number = source.removeprefix(_DESCRIPTOR)
    if number == source or not (number.isascii() and number.isdecimal() and len(number) < 7):
        return None
    return int(number)
