"""The CONNECT and SOCKS5 proxies."""

from __future__ import annotations

import socket
import threading

import httpx2
import pytest

from kubeauthn.errors import UsageError
from kubeauthn.testing import ApiServer, ConnectProxy, Socks5Proxy, Tunnel

# httpcore2 does not close its socket when a SOCKS proxy refuses.
REFUSAL = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
PROXIES = pytest.mark.parametrize("proxy_class", [ConnectProxy, Socks5Proxy])


@pytest.fixture(scope="module")
def server():
    with ApiServer(tokens={"good": "jane"}) as running:
        yield running


def status_through(server: ApiServer, proxy_url: str, url: str | None = None) -> int:
    headers = {"Authorization": "Bearer good"}
    context = server.ca.client_context()
    with httpx2.Client(proxy=proxy_url, verify=context, headers=headers, trust_env=False) as client:
        return client.get(f"{url or server.url}/version").status_code


@PROXIES
def test_a_tunnel_is_recorded(server, proxy_class):
    with proxy_class() as proxy:
        assert status_through(server, proxy.url) == 200
        assert proxy.tunnels == [Tunnel("127.0.0.1", server.port)]
        assert status_through(server, proxy.url, f"https://localhost:{server.port}") == 200
        assert str(proxy.tunnels[1]) == f"localhost:{server.port}"
        assert proxy.refused == []


@PROXIES
def test_a_password_that_holds(server, proxy_class):
    with proxy_class(username="user", password="secret") as proxy:
        assert status_through(server, proxy.url_with_password) == 200
        assert [tunnel.username for tunnel in proxy.tunnels] == ["user"]


@REFUSAL
@PROXIES
def test_without_the_password_there_is_no_tunnel(server, proxy_class):
    with proxy_class(username="user", password="secret") as proxy:
        for url in (proxy.url, proxy.url.replace("://", "://user:wrong@")):
            with pytest.raises(httpx2.ProxyError):
                status_through(server, url)
        assert proxy.tunnels == []
        assert len(proxy.refused) == 2


@REFUSAL
@PROXIES
def test_a_target_that_cannot_be_reached(server, proxy_class):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with proxy_class() as proxy:
        with pytest.raises(httpx2.ProxyError):
            status_through(server, proxy.url, f"https://127.0.0.1:{port}")
        assert proxy.tunnels == []
        assert f"127.0.0.1:{port} cannot be reached" in proxy.refused[0]


@PROXIES
def test_nothing_is_left_after_the_end(server, proxy_class):
    before = set(threading.enumerate())
    context = server.ca.client_context()
    with proxy_class() as proxy:
        client = httpx2.Client(proxy=proxy.url, verify=context, trust_env=False)
        assert client.get(f"{server.url}/version").status_code == 401
        connection = server.connections[-1].id
    server.wait_for(lambda: [entry for entry in server.connections if entry.id == connection and not entry.is_open])
    server.wait_for(lambda: set(threading.enumerate()) <= before)
    client.close()


@PROXIES
def test_misuse(proxy_class):
    with pytest.raises(UsageError):
        proxy_class(username="only a name")
    with pytest.raises(UsageError, match="not started"):
        _ = proxy_class().url
    with proxy_class() as proxy:
        with pytest.raises(UsageError, match="once"):
            proxy.__enter__()
        with pytest.raises(UsageError, match="no password"):
            _ = proxy.url_with_password


def test_a_connect_proxy_knows_connect_only():
    with ConnectProxy() as proxy, httpx2.Client(proxy=proxy.url, trust_env=False) as client:
        assert client.get("http://127.0.0.1:1/").status_code == 405
        assert proxy.refused == ["GET is not CONNECT"]


@pytest.mark.parametrize(
    ("request_head", "status"),
    [
        (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nProxy-Authorization: Basic x\r\n\r\n", b"407"),
        (b"CONNECT 127.0.0.1:1 HTTP/1.1\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n", b"502"),
        (b"CONNECT nowhere HTTP/1.1\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n", b"400"),
    ],
)
def test_what_a_connect_proxy_answers(request_head, status):
    with ConnectProxy(username="user", password="secret") as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
            connection.sendall(request_head)
            assert connection.recv(100).split(b" ")[1] == status
        assert len(proxy.refused) == 1
        assert "secret" not in proxy.refused[0]


@pytest.mark.parametrize(
    ("greeting", "reason"),
    [
        (b"\x04\x01\x00", "SOCKS version 4 is not 5"),
        (b"\x05\x01\x00\x05\x02\x00\x01", "command 2 is not CONNECT"),
        (b"\x05\x01\x00\x05\x01\x00\x09", "address type 9 is not known"),
        (b"\x05\x01\x02", "the client insists on authentication"),
        (b"\x05\x01\x00\x05\x01", "the client closed inside its request"),
    ],
)
def test_what_a_socks_proxy_refuses(server, greeting, reason):
    with Socks5Proxy() as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
            connection.sendall(greeting)
            connection.shutdown(socket.SHUT_WR)
            server.wait_for(lambda: proxy.refused)
        assert proxy.refused == [reason]


def test_a_socks_proxy_takes_an_address_as_bytes(server):
    with Socks5Proxy() as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), 10) as connection:
            target = socket.inet_aton("127.0.0.1") + server.port.to_bytes(2, "big")
            connection.sendall(b"\x05\x01\x00\x05\x01\x00\x01" + target)
            server.wait_for(lambda: proxy.tunnels)
        assert proxy.tunnels == [Tunnel("127.0.0.1", server.port)]
