"""Whether a signer's entry has its PIN from somewhere, so that nobody types it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_DESCRIPTOR = "fd:"
_PIN_WORDS = frozenset(("pin", "password", "passphrase", "passwd", "secret"))


def holds_pin(configuration: Mapping[str, str]) -> bool:
    """Whether a PIN stands in the configuration itself, as `pin` or within a token's URI."""
    return bool(configuration.get("pin")) or "pin-value=" in configuration.get("uri", "")


def stores_pin(configuration: Mapping[str, str]) -> bool:
    """Whether every signature gets the same PIN: what is wrong once stays wrong.

    Other people's signers have keys of their own for it (`userPin`, `pin-file`): a key that is called so counts.
    """
    return holds_pin(configuration) or any(
        bool(value) and (name, value) != ("pinSource", "prompt") and not _PIN_WORDS.isdisjoint(_words(name))
        for name, value in configuration.items()
    )


def _words(name: str) -> list[str]:
    """`userPin`, `user_pin` and `user-pin` are "user" and "pin"; and `mapping` has no PIN in it."""
    spaced = "".join(
        f" {letter}" if letter.isupper() and before.islower() else letter
        for before, letter in zip(f" {name}", name, strict=False)
    )
    return spaced.replace("_", " ").replace("-", " ").lower().split()


def pin_descriptor(configuration: Mapping[str, str]) -> int | None:
    """The file descriptor that `pinSource` names; None where it names none."""
    source = configuration.get("pinSource", "")
    number = source.removeprefix(_DESCRIPTOR)
    if number == source or not (number.isascii() and number.isdecimal() and len(number) < 7):
        return None
    return int(number)
