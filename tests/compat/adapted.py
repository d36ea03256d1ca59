"""The same libraries with kubeauthn: the drivers of the adapters' suite, and one for kopf's login."""

from __future__ import annotations

from typing import Any

from tests.integration.adapters.driver import Client, Driver


def kubernetes_sync() -> Driver:
    from tests.integration.adapters.drivers_urllib3 import KubernetesDefaultDriver

    return KubernetesDefaultDriver()


def kubernetes_aio() -> Driver:
    import kubernetes.aio

    from tests.integration.adapters.drivers_aiohttp import GeneratedDriver, kubernetes_aio_adapter

    return GeneratedDriver(kubernetes.aio, kubernetes_aio_adapter, by_default=True)


def kubernetes_asyncio() -> Driver:
    import kubernetes_asyncio

    from tests.integration.adapters.drivers_aiohttp import GeneratedDriver, kubernetes_asyncio_adapter

    return GeneratedDriver(kubernetes_asyncio, kubernetes_asyncio_adapter, by_default=True)


def lightkube() -> Driver:
    from tests.integration.adapters.drivers_httpx import LightkubeDriver

    return LightkubeDriver()


def kr8s() -> Driver:
    from tests.integration.adapters.drivers_httpx import Kr8sDriver

    return Kr8sDriver()


def httpx2() -> Driver:
    from tests.integration.adapters.drivers_httpx import Httpx2Driver

    return Httpx2Driver()


def httpx() -> Driver:
    from tests.integration.adapters.drivers_httpx import HttpxDriver

    return HttpxDriver()


def requests() -> Driver:
    from tests.integration.adapters.drivers_urllib3 import RequestsDriver

    return RequestsDriver()


def aiohttp() -> Driver:
    from tests.integration.adapters.drivers_aiohttp import AiohttpDriver

    return AiohttpDriver()


def kopf() -> Driver:
    return KopfDriver()


class KopfDriver(Driver):
    """What kopf does with a login handler: it calls it, and sends its requests in the session that it gets."""

    name = "kopf"
    library = "kopf"

    def open(self, **options: Any) -> Client:
        from kubeauthn.client.kopf import login
        from tests.integration.adapters.drivers_aiohttp import AiohttpClient, LoopClient

        class KopfClient(AiohttpClient):
            def __init__(self) -> None:
                LoopClient.__init__(self)
                try:
                    info = self.run(login(param=options))
                except BaseException:
                    self.stop_loop()
                    raise
                self.session = AtServer(info.aiohttp_session, info.server)

        return KopfClient()


class AtServer:
    """kopf puts the server's address before each path itself."""

    def __init__(self, session: Any, server: str) -> None:
        self._session = session
        self._server = server

    def request(self, method: str, path: str, **options: Any) -> Any:
        return self._session.request(method, self._server + path, **options)

    async def close(self) -> None:
        await self._session.close()
