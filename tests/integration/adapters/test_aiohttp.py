"""What aiohttp asks for beyond the common suite: redirects, paths, middlewares, websockets, its own pool."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from kubeauthn.client import open_access
from kubeauthn.client.aiohttp import session, session_options
from kubeauthn.errors import PluginFailed, UsageError
from kubeauthn.testing import ApiServer, CertificateAuthority, ConnectProxy, ScriptedPlugin, Socks5Proxy

NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(tokens={"first": "jane"}) as running:
        yield running


@pytest.fixture
def plugin(tmp_path: Path) -> ScriptedPlugin:
    plugin = ScriptedPlugin(tmp_path)
    plugin.reply(token="first")
    return plugin


@pytest.fixture
def kubeconfig(server: ApiServer, plugin: ScriptedPlugin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = server.write_kubeconfig(tmp_path / "config", plugin.user())
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


@asynccontextmanager
async def web_server(ca: CertificateAuthority, app: web.Application) -> AsyncIterator[str]:
    """A server of the test's own, for what an API server does not do. Yields its address."""
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=ca.server_context()).start()
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def token_kubeconfig(address: str, ca: CertificateAuthority, folder: Path, **cluster: object) -> str:
    with ApiServer(ca=ca) as other:  # for its writer only
        entry = {"server": address, **cluster}
        return str(other.write_kubeconfig(folder / "other", {"token": "secret-token"}, cluster=entry))


# -- what goes out -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kubeconfig")
def test_impersonated_groups_are_repeated_headers(server: ApiServer):
    async def main() -> None:
        async with session(impersonate_user="eve", impersonate_groups=["a", "b"]) as api:
            (await api.get(NAMESPACES, headers={"Impersonate-User": "root"})).release()

    asyncio.run(main())
    headers = server.requests[-1].headers
    assert [value for name, value in headers if name == "Impersonate-Group"] == ["a", "b"]
    assert [value for name, value in headers if name == "Impersonate-User"] == ["eve"]


@pytest.mark.usefixtures("kubeconfig")
def test_an_explicit_authorization_is_left_alone(server: ApiServer, plugin: ScriptedPlugin):
    plugin.reply(token="first", certificate=server.ca.issue_client("al"))
    server.accept_token("mine", user="me")

    async def main() -> None:
        async with session() as api:
            (await api.get(NAMESPACES, headers={"Authorization": "Bearer mine"})).release()

    asyncio.run(main())
    assert plugin.runs == 0
    assert server.requests[-1].user == "me"
    assert server.requests[-1].certificate_serial is None


@pytest.mark.usefixtures("kubeconfig")
def test_the_token_is_not_in_what_errors_and_responses_show(server: ApiServer):
    async def main() -> tuple[str, str]:
        async with session() as api:
            async with api.get(NAMESPACES) as response:
                shown = repr(response) + repr(response.request_info)
            server.forbidden(1)
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await api.get(NAMESPACES, raise_for_status=True)
            return shown, repr(caught.value)

    shown, error = asyncio.run(main())
    assert server.requests[-1].token == "first"
    assert "first" not in shown
    assert "first" not in error


@pytest.mark.usefixtures("kubeconfig")
def test_nothing_is_sent_when_the_plugin_fails(server: ApiServer, plugin: ScriptedPlugin):
    plugin.fail(3)

    async def main() -> None:
        async with session() as api:
            with pytest.raises(PluginFailed, match="failed with exit code 3"):
                await api.get(NAMESPACES)

    asyncio.run(main())
    assert not server.requests
    assert not server.connections


@pytest.mark.usefixtures("kubeconfig")
def test_middlewares_of_one_request_do_not_switch_off_the_credential(server: ApiServer):
    async def other(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        return await handler(request)

    async def main() -> None:
        async with session() as api:
            with pytest.raises(UsageError, match="did not pass the middleware"):
                await api.get(NAMESPACES, middlewares=(other,))

    asyncio.run(main())
    assert not server.connections


@pytest.mark.usefixtures("kubeconfig")
def test_middlewares_of_the_session_run_and_do_not_see_the_token(server: ApiServer):
    seen: list[str] = []

    async def other(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        seen.append(repr(request.headers))
        response = await handler(request)
        seen.append(repr(request.headers))
        return response

    async def main() -> None:
        async with session(middlewares=(other,)) as api:
            (await api.get(NAMESPACES)).release()

    asyncio.run(main())
    assert server.requests[-1].token == "first"
    assert len(seen) == 2
    assert not [headers for headers in seen if "Authorization" in headers]


@pytest.mark.parametrize("option", ["auth", "request_class", "trust_env"])
@pytest.mark.usefixtures("kubeconfig")
def test_options_that_would_undo_the_credential_are_refused(option: str):
    async def main() -> None:
        with pytest.raises(UsageError, match=f"{option} of the session is not free"):
            session(**{option: None})

    asyncio.run(main())


@pytest.mark.usefixtures("kubeconfig")
def test_a_session_of_ones_own(server: ApiServer):
    async def main() -> int:
        access = open_access()
        async with aiohttp.ClientSession(**session_options(access)) as api:
            async with api.get(access.server + NAMESPACES) as response:
                return response.status

    assert asyncio.run(main()) == 200
    assert server.requests[-1].user == "jane"


@pytest.mark.usefixtures("kubeconfig")
def test_the_middleware_does_not_work_without_its_request_class(server: ApiServer):
    async def main() -> None:
        access = open_access()
        async with aiohttp.ClientSession(middlewares=session_options(access)["middlewares"]) as api:
            with pytest.raises(UsageError, match="request_class"):
                await api.get(access.server + NAMESPACES)

    asyncio.run(main())
    assert not server.connections


# -- where it goes -----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kubeconfig")
def test_another_server_gets_nothing(plugin: ScriptedPlugin):
    async def main() -> None:
        async with session() as api:
            with pytest.raises(UsageError, match=r"(?m)sends nothing to https://127\.0\.0\.1:1$"):
                await api.get("https://127.0.0.1:1/")

    asyncio.run(main())
    assert plugin.runs == 0


def test_a_redirect_is_followed_at_home_and_refused_elsewhere(tmp_path: Path):
    ca = CertificateAuthority()
    seen: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers.get("Authorization")))
        if request.path == "/home":
            raise web.HTTPTemporaryRedirect("/arrived")
        if request.path == "/away":
            raise web.HTTPTemporaryRedirect("https://127.0.0.1:1/")
        return web.Response(text="ok")

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        async with web_server(ca, app) as address:
            async with session(kubeconfig=token_kubeconfig(address, ca, tmp_path)) as api:
                async with api.get("/home") as response:
                    assert response.status == 200
                with pytest.raises(UsageError, match="sends nothing to"):
                    await api.get("/away")

    asyncio.run(main())
    assert seen == [(path, "Bearer secret-token") for path in ("/home", "/arrived", "/away")]


@pytest.mark.parametrize(
    ("asked", "arrived"),
    [
        ("/api/v1/namespaces", "/k8s/clusters/x/api/v1/namespaces"),
        ("api/v1/namespaces?limit=1&continue=a%26b", "/k8s/clusters/x/api/v1/namespaces?limit=1&continue=a%26b"),
        ("/api/v1/a%2Fb?watch=true", "/k8s/clusters/x/api/v1/a%2Fb?watch=true"),
        ("/k8s/clusters/x/version", "/k8s/clusters/x/version"),
        ("/k8s/clusters/xyz", "/k8s/clusters/x/k8s/clusters/xyz"),
        ("{address}/k8s/clusters/x/version", "/k8s/clusters/x/version"),
        ("", "/k8s/clusters/x/"),
    ],
)
def test_a_server_with_a_path_takes_paths_below_it(asked: str, arrived: str, tmp_path: Path):
    ca = CertificateAuthority()

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.raw_path)

    async def main() -> str:
        app = web.Application()
        app.router.add_get("/{path:.*}", answer)
        async with web_server(ca, app) as address:
            config = token_kubeconfig(f"{address}/k8s/clusters/x", ca, tmp_path)
            async with session(kubeconfig=config) as api:
                async with api.get(asked.format(address=address)) as response:
                    return await response.text()

    assert asyncio.run(main()) == arrived


def test_a_websocket_is_authenticated(tmp_path: Path):
    ca = CertificateAuthority()

    async def answer(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_str(request.headers["Authorization"])
        await socket.close()
        return socket

    async def main() -> str:
        app = web.Application()
        app.router.add_get("/exec", answer)
        async with web_server(ca, app) as address:
            async with session(kubeconfig=token_kubeconfig(address, ca, tmp_path)) as api:
                async with api.ws_connect(address.replace("https", "wss") + "/exec") as socket:
                    return await socket.receive_str()

    assert asyncio.run(main()) == "Bearer secret-token"


def test_tls_server_name_is_what_the_certificate_is_checked_for(tmp_path: Path):
    async def status(kubeconfig: Path) -> int:
        async with session(kubeconfig=str(kubeconfig)) as api:
            async with api.get(NAMESPACES) as response:
                return response.status

    with ApiServer(server_names=["api.internal"], tokens={"t": "jane"}) as server:
        user = {"token": "t"}
        right = server.write_kubeconfig(tmp_path / "right", user, cluster={"tls-server-name": "api.internal"})
        wrong = server.write_kubeconfig(tmp_path / "wrong", user, cluster={"tls-server-name": "other.internal"})
        none = server.write_kubeconfig(tmp_path / "none", user)
        assert asyncio.run(status(right)) == 200
        assert server.requests[-1].server_name == "api.internal"
        for kubeconfig in (wrong, none):
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                asyncio.run(status(kubeconfig))
        assert len(server.requests) == 1


# -- proxies -----------------------------------------------------------------------------------------------------------


def test_a_proxy_with_a_password(server: ApiServer, tmp_path: Path):
    async def main(kubeconfig: Path) -> int:
        async with session(kubeconfig=str(kubeconfig)) as api:
            async with api.get(NAMESPACES) as response:
                return response.status

    with ConnectProxy(username="me", password="pass") as proxy:
        cluster = {"proxy-url": proxy.url_with_password}
        path = server.write_kubeconfig(tmp_path / "p", {"token": "first"}, cluster=cluster)
        assert asyncio.run(main(path)) == 200
        assert [tunnel.port for tunnel in proxy.tunnels] == [server.port]


def test_the_password_of_a_proxy_is_not_in_the_error_when_it_is_refused(server: ApiServer, tmp_path: Path):
    async def main(kubeconfig: Path) -> None:
        async with session(kubeconfig=str(kubeconfig)) as api:
            await api.get(NAMESPACES)

    with ConnectProxy(username="me", password="right") as proxy:
        cluster = {"proxy-url": f"http://me:HUNTER2@127.0.0.1:{proxy.port}"}
        path = server.write_kubeconfig(tmp_path / "p", {"token": "first"}, cluster=cluster)
        with pytest.raises(aiohttp.ClientHttpProxyError, match="407") as caught:
            asyncio.run(main(path))
    shown = f"{caught.value} {caught.value!r} {caught.value.args!r}"
    assert "HUNTER2" not in shown
    assert base64.b64encode(b"me:HUNTER2").decode() not in shown


@asynccontextmanager
async def tls_in_front_of(port: int, ca: CertificateAuthority) -> AsyncIterator[int]:
    """A port that speaks TLS and passes on to the given one what it hears."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer), return_exceptions=True)

    listener = await asyncio.start_server(relay, "127.0.0.1", 0, ssl=ca.server_context())
    async with listener:
        yield listener.sockets[0].getsockname()[1]


@pytest.mark.parametrize("trusted", [True, False])
def test_an_https_proxy_is_verified_with_the_authority_of_the_cluster(trusted: bool, server: ApiServer, tmp_path: Path):
    async def main() -> int:
        ca = server.ca if trusted else CertificateAuthority("another CA")
        async with tls_in_front_of(proxy.port, ca) as port:
            cluster = {"proxy-url": f"https://127.0.0.1:{port}"}
            path = server.write_kubeconfig(tmp_path / "p", {"token": "first"}, cluster=cluster)
            async with session(kubeconfig=str(path)) as api, api.get(NAMESPACES) as response:
                return response.status

    with ConnectProxy() as proxy:
        if trusted:
            assert asyncio.run(main()) == 200
            assert [tunnel.port for tunnel in proxy.tunnels] == [server.port]
        else:
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                asyncio.run(main())
            assert not proxy.tunnels


def test_the_proxy_does_not_see_the_credential(tmp_path: Path, server: ApiServer):
    heads: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        listener = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with listener:
            cluster = {"proxy-url": f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"}
            path = server.write_kubeconfig(tmp_path / "p", {"token": "first"}, cluster=cluster)
            async with session(kubeconfig=str(path), impersonate_user="eve") as api:
                with pytest.raises(aiohttp.ClientHttpProxyError):
                    await api.get(NAMESPACES)

    asyncio.run(main())
    (head,) = heads
    assert head.startswith(b"CONNECT ")
    assert b"first" not in head
    assert b"Impersonate" not in head


def test_a_socks_proxy_is_refused_and_not_gone_around(server: ApiServer, tmp_path: Path):
    async def main(path: Path) -> None:
        with pytest.raises(UsageError, match="http and https proxies, not socks5") as caught:
            session(kubeconfig=str(path))
        assert "pass" not in str(caught.value)

    with Socks5Proxy(username="me", password="pass") as proxy:
        cluster = {"proxy-url": proxy.url_with_password}
        path = server.write_kubeconfig(tmp_path / "p", {"token": "first"}, cluster=cluster)
        asyncio.run(main(path))
    assert not server.connections


# -- after a 401 -------------------------------------------------------------------------------------------------------


async def stream() -> AsyncIterator[bytes]:
    yield b'{"metadata": {"name": "default"}}'


@pytest.mark.parametrize(
    ("method", "body", "sent"),
    [
        ("GET", {}, 2),
        ("PUT", {"json": {"metadata": {"name": "default"}}}, 2),
        ("PUT", {"data": b'{"metadata": {"name": "default"}}'}, 2),
        ("PUT", {"data": stream}, 1),
        ("PATCH", {"json": {}}, 1),
    ],
)
@pytest.mark.usefixtures("kubeconfig")
def test_what_is_repeated(method: str, body: dict[str, Any], sent: int, server: ApiServer, plugin: ScriptedPlugin):
    async def main() -> list[int]:
        async with session() as api:
            (await api.get(NAMESPACES)).release()
            server.requests.clear()
            server.accept_only("second", user="jane")
            plugin.reply(token="second")
            kwargs = {name: value() if callable(value) else value for name, value in body.items()}
            headers = {"Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
            statuses = []
            async with api.request(method, f"{NAMESPACES}/default", headers=headers, **kwargs) as response:
                statuses.append(response.status)
            async with api.get(NAMESPACES) as response:
                statuses.append(response.status)
            return statuses

    assert asyncio.run(main()) == [200 if sent == 2 else 401, 200]
    assert [request.token for request in server.requests] == ["first", *["second"] * sent]
    assert plugin.runs == 2


# -- connections -------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("kubeconfig")
def test_a_new_certificate_closes_idle_connections_now_and_busy_ones_at_their_end(
    server: ApiServer, plugin: ScriptedPlugin
):
    old, new = server.ca.issue_client("jane"), server.ca.issue_client("jane")
    plugin.reply(token="first", certificate=old)

    def open_serials() -> list[int | None]:
        return [connection.certificate_serial for connection in server.connections if connection.is_open]

    async def main() -> None:
        async with session() as api:
            watch = await api.get(f"{NAMESPACES}?watch=true")
            (await api.get(NAMESPACES)).release()
            await server.wait_for_async(lambda: open_serials() == [old.serial, old.serial])
            server.revoke_serial(old.serial)
            server.accept_only("second", user="jane")
            plugin.reply(token="second", certificate=new)
            async with api.get(NAMESPACES) as response:
                assert response.status == 200
            await server.wait_for_async(lambda: open_serials() == [old.serial, new.serial])
            server.emit("namespaces", "later")
            while b"later" not in await watch.content.readline():
                pass
            server.close_watches()
            await watch.read()
            await server.wait_for_async(lambda: open_serials() == [new.serial])

    asyncio.run(main())
    assert plugin.runs == 2


@pytest.mark.usefixtures("kubeconfig")
def test_a_new_token_alone_keeps_the_connection(server: ApiServer, plugin: ScriptedPlugin):
    certificate = server.ca.issue_client("jane")
    server.accept_certificates(False)
    plugin.reply(token="first", certificate=certificate)

    async def main() -> None:
        async with session() as api:
            async with api.get(NAMESPACES) as response:
                await response.read()
            server.accept_only("second", user="jane")
            plugin.reply(token="second", certificate=certificate)
            async with api.get(NAMESPACES) as response:
                assert response.status == 200

    asyncio.run(main())
    assert [request.token for request in server.requests] == ["first", "first", "second"]
    assert len(server.connections) == 1


@pytest.mark.usefixtures("kubeconfig")
def test_a_rotation_seen_in_one_event_loop_closes_idle_connections_of_another(
    server: ApiServer, plugin: ScriptedPlugin
):
    """One access may serve sessions in several loops, as the default configuration of a library does."""
    old, new = server.ca.issue_client("jane"), server.ca.issue_client("jane")
    plugin.reply(token="first", certificate=old)
    access = open_access()
    options = session_options(access)
    idle, done = threading.Event(), threading.Event()

    async def elsewhere() -> None:
        async with aiohttp.ClientSession(**options) as api:
            async with api.get(access.server + NAMESPACES) as response:
                await response.read()
            idle.set()
            while not done.is_set():
                await asyncio.sleep(0.005)

    async def here() -> None:
        async with aiohttp.ClientSession(**options) as api:
            server.revoke_serial(old.serial)
            server.accept_only("second", user="jane")
            plugin.reply(token="second", certificate=new)
            async with api.get(access.server + NAMESPACES) as response:
                assert response.status == 200
            await server.wait_for_async(lambda: not server.connections[0].is_open)

    other = threading.Thread(target=lambda: asyncio.run(elsewhere()))
    other.start()
    try:
        assert idle.wait(10)
        assert server.connections[0].certificate_serial == old.serial
        assert server.connections[0].is_open
        asyncio.run(here())
    finally:
        done.set()
        other.join(10)


@pytest.mark.parametrize(
    ("module", "missing", "extra"),
    [
        ("aiohttp", "aiohttp", "aiohttp"),
        ("kubernetes_aio", "kubernetes", "kubernetes"),
        ("kubernetes_aio", "kubernetes.aio", "kubernetes"),
        ("kubernetes_asyncio", "kubernetes_asyncio", "kubernetes-asyncio"),
        ("kopf", "kopf", "kopf"),
    ],
)
def test_without_its_library_an_adapter_names_the_extra(module: str, missing: str, extra: str):
    program = f"""
import sys
from kubeauthn.errors import MissingExtra
sys.modules[{missing!r}] = None
try:
    import kubeauthn.client.{module}
except MissingExtra as error:
    print(error.extra)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=50)
    assert result.stdout.strip() == extra, result.stderr
