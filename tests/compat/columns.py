"""The columns of the page: which libraries, alone and with kubeauthn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

from tests.compat import adapted, bare
from tests.integration.adapters.driver import Driver


@dataclass(frozen=True)
class Library:
    title: str
    distribution: str
    alone: Callable[[], Driver] | None = None
    adapted: Callable[[], Driver] | None = None

    @property
    def version(self) -> str:
        return version(self.distribution)

    @property
    def columns(self) -> list[Column]:
        makers = ((self.alone, False), (self.adapted, True))
        return [Column(self, ours, make) for make, ours in makers if make is not None]


@dataclass(frozen=True)
class Column:
    library: Library
    ours: bool
    make_driver: Callable[[], Driver]

    @property
    def name(self) -> str:
        return f"{self.library.title} {'with kubeauthn' if self.ours else 'alone'}"


# One table for each group, narrow enough for a screen.
GROUPS: tuple[tuple[Library, ...], ...] = (
    (
        Library("kubernetes", "kubernetes", bare.KubernetesAlone, adapted.kubernetes_sync),
        Library("kubernetes.aio", "kubernetes", bare.kubernetes_aio_alone, adapted.kubernetes_aio),
    ),
    (
        Library("kubernetes_asyncio", "kubernetes_asyncio", bare.kubernetes_asyncio_alone, adapted.kubernetes_asyncio),
        Library("lightkube", "lightkube", bare.LightkubeAlone, adapted.lightkube),
    ),
    (
        Library("kr8s", "kr8s", bare.Kr8sAlone, adapted.kr8s),
        Library("pykube-ng", "pykube-ng", bare.PykubeAlone),
    ),
    (
        Library("httpx2", "httpx2", adapted=adapted.httpx2),
        Library("httpx", "httpx", adapted=adapted.httpx),
        Library("requests", "requests", adapted=adapted.requests),
        Library("aiohttp", "aiohttp", adapted=adapted.aiohttp),
        Library("kopf", "kopf", adapted=adapted.kopf),
    ),
)

COLUMNS = {column.name: column for group in GROUPS for library in group for column in library.columns}
