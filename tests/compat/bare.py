"""The libraries on their own, used as their documentation says.

Each driver imports its library when it is made: the others have no place in its process. The client that it opens
is the one of the adapters' suite, so the same calls are made with and without kubeauthn.
"""

from __future__ import annotations

import os
from typing import Any

from tests.integration.adapters.driver import Client, Driver, Outcome


def kubeconfig() -> str:
    """Given by name to the libraries that look at the variable only once, when they are imported, or remember
    their client by its arguments. It is what they would read by themselves."""
    return os.environ["KUBECONFIG"]


class KubernetesAlone(Driver):
    library = "kubernetes"

    def open(self, **options: Any) -> Client:
        from kubernetes import client, config

        from tests.integration.adapters.drivers_urllib3 import KubernetesClient

        config.load_kube_config(kubeconfig())
        return KubernetesClient(client.ApiClient(), lambda: client.Configuration.set_default(None))


class GeneratedAlone(Driver):
    """`kubernetes.aio` and `kubernetes_asyncio`, which look alike."""

    def __init__(self, package: Any) -> None:
        self.library = package.__name__.partition(".")[0]
        self._package = package

    def open(self, **options: Any) -> Client:
        from tests.integration.adapters.drivers_aiohttp import GeneratedClient

        package = self._package

        async def make() -> Any:
            await package.config.load_kube_config(kubeconfig())
            return package.client.ApiClient()

        return GeneratedClient(package, make, lambda: package.client.Configuration.set_default(None))


class LightkubeAlone(Driver):
    library = "lightkube"

    def open(self, **options: Any) -> Client:
        import lightkube

        from tests.integration.adapters.drivers_httpx import LightkubeClient

        return LightkubeClient(lightkube.Client())


class Kr8sAlone(Driver):
    library = "kr8s"

    def open(self, **options: Any) -> Client:
        import kr8s

        from tests.integration.adapters.drivers_httpx import Kr8sClient

        return Kr8sClient(kr8s.api(kubeconfig=kubeconfig()))


class PykubeAlone(Driver):
    library = "pykube-ng"

    def open(self, **options: Any) -> Client:
        import pykube

        return PykubeClient(pykube.HTTPClient(pykube.KubeConfig.from_file()))


class PykubeClient(Client):
    def __init__(self, api: Any) -> None:
        self._api = api

    def list_namespaces(self) -> Outcome:
        import pykube

        try:
            items = list(pykube.Namespace.objects(self._api))
        except Exception as error:
            return self._outcome(error)
        return Outcome(200, tuple(item.name for item in items))

    def create_namespace(self, name: str) -> Outcome:
        import pykube

        try:
            pykube.Namespace(self._api, {"metadata": {"name": name}}).create()
        except Exception as error:
            return self._outcome(error)
        return Outcome(201)

    def close(self) -> None:
        self._api.session.close()

    @staticmethod
    def _outcome(error: Exception) -> Outcome:
        """pykube has an error of its own for what the server explains, and that of requests for the rest."""
        response = getattr(error, "response", None)
        status = getattr(error, "code", None) or getattr(response, "status_code", None)
        return Outcome(status) if isinstance(status, int) else Outcome(error=error)


def kubernetes_aio_alone() -> Driver:
    import kubernetes.aio.client
    import kubernetes.aio.config

    return GeneratedAlone(kubernetes.aio)


def kubernetes_asyncio_alone() -> Driver:
    import kubernetes_asyncio.client
    import kubernetes_asyncio.config

    return GeneratedAlone(kubernetes_asyncio)
