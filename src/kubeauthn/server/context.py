"""What a worker's parts are given: the decider of the configuration in force, the options, the numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeauthn.server.decisions import Decider
    from kubeauthn.server.metrics import Registry
    from kubeauthn.server.runtime import Runtime


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `kubeauthn serve` was told, for the workers. Plain values: they travel to other processes."""

    api_audiences: tuple[str, ...] = ()
    show_reasons: bool = False
    ready_policy: str = "all"
    debug_explain: bool = False
    keep_keys: str = ""
    keep_keys_seconds: float = 86_400.0
    log_format: str = "json"
    parts: Mapping[str, Any] = field(default_factory=dict)
    """Options of the parts that are not the core's, by the name argparse gave them."""


@dataclass(frozen=True, slots=True)
class Context:
    """`decider` is always that of the configuration in force: keep the context, and ask it anew for each token."""

    decider: Decider
    options: ServeOptions
    metrics: Registry
    runtime: Runtime
    at_end: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """A part adds what is to be done in the worker's loop when it has answered its last request."""
    on_hangup: list[Callable[[], None]] = field(default_factory=list)
    """A part adds what is to be done when SIGHUP came."""
