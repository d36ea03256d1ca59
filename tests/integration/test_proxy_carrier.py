"""What a proxy carries between real connections: streams, uploads, upgrades, and what goes wrong on the way."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
from pathlib import Path

import pytest

from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.testing import ApiServer
from kubeauthn.testing.proxy import ConnectProxy, Socks5Proxy
from tests.integration.proxy_parts import (
    PLAIN,
    RoughServer,
    ask,
    cluster_of,
    eventually,
    read_head,
    read_response,
    running,
)

NOTHING = """
from kubeauthn.plugin import proxy
proxy.run(lambda request: None)
"""


@pytest.fixture
def server():
    with ApiServer(tokens={"good": "jane"}) as started:
        yield started


def test_requests_on_one_connection(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy, proxy.connect() as connection:
        for _ in range(3):
            status, _, body = ask(connection, "GET /api/v1/namespaces HTTP/1.1", "X-Mine: kept")
            assert status == 200
            assert json.loads(body)["kind"] == "NamespaceList"
    assert [request.user for request in server.requests] == ["jane"] * 3
    assert {request.connection_id for request in server.requests} == {server.requests[0].connection_id}
    headers = {name.lower(): value for name, value in server.requests[0].headers}
    assert headers == {"host": f"127.0.0.1:{server.port}", "x-mine": "kept", "authorization": "Bearer good"}


def test_requests_that_come_at_once_are_answered_in_turn(server: ApiServer, tmp_path: Path):
    one = b"GET /version HTTP/1.1\r\nHost: a\r\n\r\n"
    with running(tmp_path, cluster_of(server)) as proxy, proxy.connect() as connection:
        connection.sendall(one * 5)
        file = connection.makefile("rb")
        for _ in range(5):
            assert file.readline().startswith(b"HTTP/1.1 200")
            length = 0
            while (line := file.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            file.read(length)
        file.close()
    assert len(server.requests) == 5


def test_a_watch_is_passed_on_as_it_comes(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy, proxy.connect() as watching:
        watching.sendall(b"GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: a\r\n\r\n")
        assert watching.recv(65536).startswith(b"HTTP/1.1 200")
        body = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "fresh"}}).encode()
        status, _, _ = proxy.ask(
            "POST /api/v1/namespaces HTTP/1.1",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            body=body,
        )
        assert status == 201
        seen = b""
        while b"fresh" not in seen:
            seen += watching.recv(65536)


def test_bodies_of_megabytes_both_ways(tmp_path: Path):
    size = 8 << 20

    def serve(connection: ssl.SSLSocket) -> None:
        data = read_head(connection).partition(b"\r\n\r\n")[2]
        while len(data) < size:
            data += connection.recv(1 << 18)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + data)

    body = os.urandom(1 << 16) * (size >> 16)
    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        status, _, got = proxy.ask("PUT /big HTTP/1.1", f"Content-Length: {size}", body=body)
    assert status == 200
    assert got == body


def test_chunks_and_trailers_arrive_byte_for_byte(tmp_path: Path):
    message = b"5;x=1\r\nhello\r\n3\r\nyou\r\n0\r\nX-Sum: 8\r\n\r\n"
    seen = []

    def serve(connection: ssl.SSLSocket) -> None:
        data = read_head(connection).partition(b"\r\n\r\n")[2]
        while not data.endswith(b"X-Sum: 8\r\n\r\n"):
            data += connection.recv(65536)
        seen.append(data)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n" + message)

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        for at in range(0, len(message), 7):
            connection.sendall(message[at : at + 7])
        got = b""
        while not got.endswith(b"X-Sum: 8\r\n\r\n"):
            got += connection.recv(65536)
    assert seen == [message]
    assert got.partition(b"\r\n\r\n")[2] == message
    assert b"Trailer: X-Sum" in got


def test_expect_continue_is_the_servers_to_answer(tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        assert b"Expect: 100-continue" in read_head(connection)
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert connection.recv(100) == b"body"
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"body")
        assert read_response(connection)[2] == b"ok"


def test_an_upgrade_is_a_tunnel_with_two_ends(tmp_path: Path):
    """Each direction ends on its own: after the client's last byte the server still speaks."""

    def serve(connection: ssl.SSLSocket) -> None:
        head = read_head(connection)
        assert b"Upgrade: SPDY/3.1" in head
        connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nhi")
        data = b""
        while piece := connection.recv(65536):
            data += piece
        connection.sendall(data[::-1])

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        with socket.socket(socket.AF_UNIX) as plain:
            plain.settimeout(20)
            plain.connect(proxy.path)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = proxy.context().wrap_bio(incoming, outgoing, server_hostname="localhost")

            def drive(step):
                while True:
                    try:
                        result = step()
                    except ssl.SSLWantReadError:
                        plain.sendall(outgoing.read())
                        incoming.write(plain.recv(65536))
                        continue
                    plain.sendall(outgoing.read())
                    return result

            drive(tls.do_handshake)
            drive(
                lambda: tls.write(b"POST /exec HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
            )
            got = drive(lambda: tls.read(65536))
            while not got.endswith(b"\r\n\r\nhi"):
                got += drive(lambda: tls.read(65536))
            assert got.startswith(b"HTTP/1.1 101 ")
            drive(lambda: tls.write(b"abcdef"))
            with pytest.raises(ssl.SSLWantReadError):
                tls.unwrap()
            plain.sendall(outgoing.read())
            incoming.write(plain.recv(65536))
            assert tls.read(100) == b"fedcba"


def test_what_follows_an_upgrade_that_was_refused_is_not_a_request(tmp_path: Path):
    """A client may be early with bytes of the other protocol, and they may be somebody else's: a forwarded port's."""
    heads = []

    def serve(connection: ssl.SSLSocket) -> None:
        heads.append(read_head(connection))
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        while head := read_head(connection):
            heads.append(head)

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        with proxy.connect() as connection:
            upgrade = b"GET /portforward HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
            connection.sendall(upgrade + b"DELETE /api/v1/namespaces/prod HTTP/1.1\r\nHost: a\r\n\r\n")
            status, headers, body = read_response(connection)
            assert (status, headers["connection"], body) == (403, "close", b"no")
            assert connection.recv(1) == b""
    assert len(heads) == 1


SMUGGLED = {
    "both lengths": b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bad chunk": b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\r\n0\r\n\r\n",
    "a newline in a header": b"GET / HTTP/1.1\r\nHost: a\r\nX: b\nTransfer-Encoding: chunked\r\n\r\n",
    "a null": b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n",
    "a whole address": b"GET http://169.254.169.254/ HTTP/1.1\r\nHost: a\r\n\r\n",
}


@pytest.mark.parametrize("message", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_a_smuggled_request_is_refused_and_nothing_is_forwarded(message: bytes, server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy, proxy.connect() as connection:
        connection.sendall(message + b"GET /admin HTTP/1.1\r\nHost: a\r\n\r\n")
        status, headers, _ = read_response(connection)
        assert status in (400, 501)
        assert headers["connection"] == "close"
        assert connection.recv(1) == b""
    assert server.requests == []


def test_a_head_without_end_is_refused(server: ApiServer, tmp_path: Path):
    with running(tmp_path, cluster_of(server)) as proxy, proxy.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 200_000)
        assert read_response(connection)[0] == 431
    assert server.requests == []


def test_a_head_that_comes_too_slowly_is_not_waited_for(server: ApiServer, tmp_path: Path):
    """A byte now and then does not prolong it; a connection that sends nothing at all may stay."""
    hurried = f"import kubeauthn._io.carrier.downstream as downstream\ndownstream.HEAD_SECONDS = 0.5\n{PLAIN}"
    with running(tmp_path, cluster_of(server), hurried) as proxy, proxy.connect() as idle, proxy.connect() as slow:
        ended = threading.Event()

        def drip() -> None:
            try:
                slow.sendall(b"GET / HTTP/1.1\r\nX: ")
                while not ended.wait(0.05):
                    slow.sendall(b"y")
            except OSError:
                pass

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert slow.recv(1) == b""
        except ConnectionError:
            pass
        finally:
            ended.set()
            dripping.join()
        assert ask(idle, "GET /version HTTP/1.1")[0] == 200
    assert len(server.requests) == 1


def test_a_server_that_is_down_is_named(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with running(tmp_path, Cluster(server=f"https://127.0.0.1:{port}"), NOTHING) as proxy:
        status, _, body = proxy.ask("GET / HTTP/1.1")
    assert status == 502
    message = body.decode().strip()
    assert message.startswith(f"127.0.0.1:{port} cannot be reached:")


def test_a_server_whose_name_is_none_is_told_and_not_waited_for(tmp_path: Path):
    """No resolver takes an empty label, and says so with an error that is not one of the network's."""
    with running(tmp_path, Cluster(server="https://a..b.test:1"), NOTHING) as proxy:
        status, _, body = proxy.ask("GET /version HTTP/1.1")
    assert status == 502
    assert b"a..b.test:1" in body


def test_a_server_with_another_authority_gets_nothing(server: ApiServer, tmp_path: Path):
    from kubeauthn.testing.pki import CertificateAuthority

    cluster = Cluster(server=server.url, certificate_authority_data=CertificateAuthority().certificate_pem)
    with running(tmp_path, cluster) as proxy:
        status, _, body = proxy.ask("GET / HTTP/1.1")
    assert status == 502
    assert "its certificate is not accepted" in body.decode().strip()
    assert server.requests == []


@pytest.mark.parametrize("whole", [False, True], ids=["in the head", "in the body"])
def test_a_server_that_breaks_off(whole: bool, tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + (b"Content-Length: 100\r\n\r\nshort" if whole else b""))

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
        if not whole:
            assert read_response(connection)[0] == 502
            return
        connection.suppress_ragged_eofs = False
        with pytest.raises((ssl.SSLError, ConnectionError)):  # not an orderly end: that would look complete
            read_until_the_end(connection)


def read_until_the_end(connection: ssl.SSLSocket) -> bytes:
    got = b""
    while piece := connection.recv(1000):
        got += piece
    return got


def test_an_idle_connection_that_the_server_closed_is_not_the_clients_trouble(tmp_path: Path):
    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        if rough.accepted == 1:
            read_head(connection)  # and closes in the face of the second request

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy, proxy.connect() as connection:
        assert ask(connection, "GET /1 HTTP/1.1")[2] == b"ok"
        assert ask(connection, "GET /2 HTTP/1.1")[2] == b"ok"
        assert rough.accepted == 2


def test_a_client_that_leaves_ends_its_watch_at_the_server(tmp_path: Path):
    ended = threading.Event()

    def serve(connection: ssl.SSLSocket) -> None:
        read_head(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        try:
            connection.recv(1)
        except OSError:
            pass
        ended.set()

    with RoughServer(serve) as rough, running(tmp_path, rough.cluster, NOTHING) as proxy:
        with proxy.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            connection.recv(1000)
        eventually(ended.is_set, "the watch's end at the server")


@pytest.mark.parametrize("kind", [ConnectProxy, Socks5Proxy])
def test_the_way_through_a_proxy(kind: type[ConnectProxy | Socks5Proxy], server: ApiServer, tmp_path: Path):
    with kind() as between:
        cluster = cluster_of(server, proxy_url=between.url)
        with running(tmp_path, cluster) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 200
        assert [str(tunnel) for tunnel in between.tunnels] == [f"127.0.0.1:{server.port}"]


@pytest.mark.parametrize(("name", "asked"), [("HTTPS_PROXY", True), ("https_proxy", True), ("HTTP_PROXY", False)])
def test_the_way_that_the_environment_names(name: str, asked: bool, server: ApiServer, tmp_path: Path):
    """The name is none that exists: who does not ask the proxy for it finds nobody."""
    cluster = Cluster(server="https://cluster.invalid", certificate_authority_data=server.ca.certificate_pem)
    with ConnectProxy(username="jane", password="s3cret") as between:
        with running(tmp_path, cluster, **{name: between.url}) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 502
        assert bool(between.refused) is asked
        with running(tmp_path, cluster, **{name: between.url, "NO_PROXY": "cluster.invalid"}) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 502
        assert len(between.refused) == asked


@pytest.mark.parametrize("kind", [ConnectProxy, Socks5Proxy])
def test_a_proxy_that_demands_authentication(kind: type[ConnectProxy | Socks5Proxy], server: ApiServer, tmp_path: Path):
    with kind(username="jane", password="s3cret") as between:
        with running(tmp_path, cluster_of(server, proxy_url=between.url)) as proxy:
            status, _, body = proxy.ask("GET /version HTTP/1.1")
            assert status == 502
            assert "the proxy demands authentication" in body.decode().strip()
        with running(tmp_path, cluster_of(server, proxy_url=between.url_with_password)) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 200
    assert len(between.tunnels) == 1


def test_the_name_that_the_servers_certificate_must_have(tmp_path: Path):
    with ApiServer(tokens={"good": "jane"}, server_names=["cluster.internal"]) as server:
        with running(tmp_path, cluster_of(server, tls_server_name="cluster.internal")) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 200
        with running(tmp_path, cluster_of(server)) as proxy:
            assert proxy.ask("GET /version HTTP/1.1")[0] == 502
