"""Kubernetes' authorizer functions. Authentication has no authorizer: they are declared, and nothing calls them."""

from __future__ import annotations

from typing import Any

from ..overloads import Overload

__all__ = ["OVERLOADS", "TYPES"]

_PREFIX = "kubernetes.authorization."
_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION = (
    _PREFIX + name for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
TYPES = (_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION)
_CHECK_COST = 350_000


def _check_cost(arguments: tuple[Any, ...], result: object) -> int:
    return _CHECK_COST


def _row(id: str, function: str, params: tuple[str, ...], result: str, cost: Any = None) -> Overload:
    return Overload(id, function, params, result, member=True, cost=cost, cost_by_name=cost is not None)


OVERLOADS = (
    _row("authorizer_path", "path", (_AUTHORIZER, "string"), _PATH),
    _row("authorizer_group", "group", (_AUTHORIZER, "string"), _GROUP),
    _row("authorizer_serviceaccount", "serviceAccount", (_AUTHORIZER, "string", "string"), _AUTHORIZER),
    _row("groupcheck_resource", "resource", (_GROUP, "string"), _RESOURCE),
    _row("resourcecheck_subresource", "subresource", (_RESOURCE, "string"), _RESOURCE),
    _row("resourcecheck_namespace", "namespace", (_RESOURCE, "string"), _RESOURCE),
    _row("resourcecheck_name", "name", (_RESOURCE, "string"), _RESOURCE),
    _row("pathcheck_check", "check", (_PATH, "string"), _DECISION, _check_cost),
    _row("resourcecheck_check", "check", (_RESOURCE, "string"), _DECISION, _check_cost),
    _row("decision_errored", "errored", (_DECISION,), "bool"),
    _row("decision_error", "error", (_DECISION,), "string"),
    _row("decision_allowed", "allowed", (_DECISION,), "bool"),
    _row("decision_reason", "reason", (_DECISION,), "string"),
)
