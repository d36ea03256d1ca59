"""What becomes of a token: a user. (The other two outcomes are errors: `NotMine` and `TokenError`.)"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from kubeauthn.errors import ClaimUnavailable, KeysUnavailable, SignatureRefused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn.errors import TokenError

NO_EXTRA: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class UserInfo(NamedTuple):
    """Who a token stands for, in the words of `authentication.k8s.io` UserInfo. It cannot be changed.

    So it can be a key, be copied, and go to another process.
    """

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = NO_EXTRA

    @classmethod
    def of(cls, mapped: dict[str, Any]) -> UserInfo:
        """From a user as expressions see it, with lists and dicts."""
        extra = mapped["extra"]
        if extra:
            extra = MappingProxyType({key: tuple(values) for key, values in extra.items()})
        return cls(mapped["username"], mapped["uid"], tuple(mapped["groups"]), extra or NO_EXTRA)

    def __hash__(self) -> int:
        return hash((self.username, self.uid, self.groups, frozenset(self.extra.items())))

    def __reduce__(self) -> tuple[Callable[[dict[str, Any]], UserInfo], tuple[dict[str, Any]]]:
        # a view of a dict, as `extra` is, can neither be pickled nor copied
        return UserInfo.of, (self.as_dict(),)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain lists and dicts, for JSON."""
        return {
            "username": self.username,
            "uid": self.uid,
            "groups": list(self.groups),
            "extra": {key: list(values) for key, values in self.extra.items()},
        }


class Authenticated(NamedTuple):
    """A verdict with what a cache must know."""

    user: UserInfo
    issuer: str
    expires_at: float
    """The token's `exp`, or that of a claim source's token which is sooner: from then on the verdict is another one."""


def may_change(error: TokenError) -> bool:
    """Whether the refusal is about the world and not the token, which may be good a moment later."""
    if isinstance(error, SignatureRefused):
        return error.newer_keys_may_help
    return isinstance(error, KeysUnavailable | ClaimUnavailable)
