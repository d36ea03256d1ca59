"""Kubernetes' selectors for authorizer checks: declared, as the authorizer's functions are, and never called."""

from __future__ import annotations

from math import ceil
from typing import Any

from ..overloads import Overload
from ..values import size_of
from . import costs

__all__ = ["OVERLOADS", "TYPES"]

TYPES: tuple[str, ...] = ()
_STRUCT_BASE = 40
_RESOURCE = "kubernetes.authorization.ResourceCheck"


def _selector_cost(arguments: tuple[Any, ...], result: object) -> int:
    """Reading the selector, and a requirement for every two characters of it."""
    size = size_of(arguments[1])
    requirements = ceil(ceil(size * 0.5) * float(costs.LIST_BASE + _STRUCT_BASE))
    return costs.LIST_BASE + ceil(size * costs.STRING_FACTOR) + requirements


OVERLOADS = tuple(
    Overload(
        f"authorizer_{function.lower()}",
        function,
        (_RESOURCE, "string"),
        _RESOURCE,
        member=True,
        cost=_selector_cost,
        cost_by_name=True,
    )
    for function in ("fieldSelector", "labelSelector")
)
