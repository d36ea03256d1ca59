"""Issuers whose users or groups nothing keeps apart: `jane` of one is then `jane` of the other, with all her rights."""

from __future__ import annotations

from kubeauthn._core.authentication import expression_hints as expressions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kubeauthn._core.authentication.model import JWTAuthenticator
    from kubeauthn.cel import Program

    Compiled = Callable[[str], Program | None]

FIELDS = ("username", "groups")


def shared_names(entries: Sequence[JWTAuthenticator], compiled: Compiled) -> Iterator[tuple[int, str, int]]:
    """The index of an entry, a field, and the first entry before it that may give the same names there."""
    for field in FIELDS:
        before: list[tuple[int, str]] = []
        for index, entry in enumerate(entries):
            starts = _starts(entry, field, compiled)
            if starts is None:
                continue
            other = next((at for at, one in before if one.startswith(starts) or starts.startswith(one)), None)
            if other is not None:
                yield index, field, other
            before.append((index, starts))


def _starts(entry: JWTAuthenticator, field: str, compiled: Compiled) -> str | None:
    """What every name begins with; None where there are none, or where they are put together in a way of their own."""
    mappings = entry.claim_mappings
    mapping = mappings.username if field == "username" else mappings.groups
    if mapping.claim:
        return mapping.prefix or ""
    program = compiled(mapping.expression)
    if program is None:
        return None
    starts = expressions.begins_with(program)
    return starts or (None if expressions.mentions(program, "") else "")
