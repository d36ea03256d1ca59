"""A value that cannot be printed by accident."""

from __future__ import annotations

try:
    # What `hmac` takes where there is no OpenSSL. To import `hmac` is to load OpenSSL, and plugins start often.
    from _operator import _compare_digest as compare_digest
except ImportError:  # an interpreter that has it elsewhere
    from hmac import compare_digest  # type: ignore[no-redef]


class Secret:
    """Holds a secret text. `repr`, `str` and `format` show none of it.

    The one way out is `reveal()`, so that every use can be found with grep.
    Equality is by value and takes the same time wherever the two differ.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return compare_digest(
            self._value.encode("utf-8", "surrogatepass"), other._value.encode("utf-8", "surrogatepass")
        )

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not pickled")
