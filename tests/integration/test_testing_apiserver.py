"""The test API server over TLS: who is let in, what goes wrong on request, what is recorded."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import gc
import json
import socket
import threading
import time

import httpx2
import pytest
import yaml

from kubeauthn.errors import UsageError
from kubeauthn.testing import ApiServer, CertificateAuthority, Leaf, User

NAMESPACES = "/api/v1/namespaces"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def client(server: ApiServer, token: str | None = None, leaf: Leaf | None = None) -> httpx2.Client:
    context = server.ca.client_context()
    if leaf is not None:
        leaf.load_into(context)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    return httpx2.Client(base_url=server.url, verify=context, headers=headers, trust_env=False)


@pytest.fixture
def server():
    with ApiServer(tokens={"good": User("jane", ("dev",))}) as running:
        yield running


# who is let in


def test_a_token_says_who_it_is(server):
    with client(server, "good") as api:
        info = api.post(REVIEW, json={}).raise_for_status().json()["status"]["userInfo"]
    assert info == {"username": "jane", "groups": ["dev", "system:authenticated"]}
    (request,) = server.requests
    assert (request.method, request.path, request.user, request.token) == ("POST", REVIEW, "jane", "good")
    assert request.certificate_serial is None
    assert request.header("authorization") == "Bearer good"
    assert request.body == b"{}"


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_a_credential_that_holds_it_is_a_401(server, token):
    with client(server, token) as api:
        response = api.get(NAMESPACES)
    assert response.status_code == 401
    assert response.json() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }
    assert [request.user for request in server.requests] == [None]


def test_a_certificate_says_who_it_is(server):
    leaf = server.ca.issue_client("cert-user", ["ops"])
    with client(server, leaf=leaf) as api:
        info = api.post(REVIEW, json={}).json()["status"]["userInfo"]
    assert info == {"username": "cert-user", "groups": ["ops", "system:authenticated"]}
    assert server.requests[0].certificate_serial == leaf.serial
    assert server.connections[0].certificate_serial == leaf.serial


def test_token_and_certificate_are_both_recorded(server):
    leaf = server.ca.issue_client("cert-user")
    with client(server, "good", leaf) as api:
        assert api.get(NAMESPACES).status_code == 200
    (request,) = server.requests
    assert (request.user, request.token, request.certificate_serial) == ("cert-user", "good", leaf.serial)


def test_accept_and_revoke_token(server):
    server.accept_token("second", user="bob", groups=["g"], uid="7", extra={"k": ["v"]})
    with client(server, "second") as api:
        info = api.post(REVIEW, json={}).json()["status"]["userInfo"]
        assert info == {"username": "bob", "uid": "7", "groups": ["g", "system:authenticated"], "extra": {"k": ["v"]}}
        server.revoke_token("second")
        assert api.get(NAMESPACES).status_code == 401
    with pytest.raises(UsageError):
        server.revoke_token("second")
    with pytest.raises(UsageError):
        server.accept_token("")


def test_accept_only(server):
    server.accept_only("new")
    with client(server, "good") as old, client(server, "new") as new:
        assert old.get(NAMESPACES).status_code == 401
        assert new.get(NAMESPACES).status_code == 200


def test_a_revoked_serial_is_a_401_and_another_is_not(server):
    first, second = server.ca.issue_client("a"), server.ca.issue_client("b")
    server.revoke_serial(first.serial)
    with client(server, leaf=first) as refused, client(server, leaf=second) as taken:
        assert refused.get(NAMESPACES).status_code == 401
        assert taken.get(NAMESPACES).status_code == 200
    assert [request.user for request in server.requests] == [None, "b"]


def test_certificates_can_be_switched_off(server):
    with client(server, leaf=server.ca.issue_client("a")) as api:
        server.accept_certificates(False)
        assert api.get(NAMESPACES).status_code == 401
        server.accept_certificates(True)
        assert api.get(NAMESPACES).status_code == 200


def test_basic_authentication(server):
    server.accept_password("jane", "pa:ss")
    with client(server) as api:
        assert api.get(NAMESPACES, auth=("jane", "pa:ss")).status_code == 200
        assert api.get(NAMESPACES, auth=("jane", "wrong")).status_code == 401
        assert api.get(NAMESPACES, headers={"Authorization": "Basic !"}).status_code == 401


def test_impersonation(server):
    with client(server, "good") as api:
        headers = [("Impersonate-User", "bob"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
        info = api.post(REVIEW, json={}, headers=headers).json()["status"]["userInfo"]
    assert info == {"username": "bob", "groups": ["a", "b", "system:authenticated"]}
    assert server.requests[0].user == "jane"


def test_anonymous_only_where_allowed_and_only_without_a_credential():
    with ApiServer(allow_anonymous=True) as server:
        with client(server) as api:
            info = api.post(REVIEW, json={}).json()["status"]["userInfo"]
        assert info == {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
        assert server.requests[0].user is None
        with client(server, "wrong") as api:
            assert api.get(NAMESPACES).status_code == 401


def test_token_review(server):
    with client(server, "good") as api:
        path = "/apis/authentication.k8s.io/v1/tokenreviews"
        known = api.post(path, json={"spec": {"token": "good"}}).json()["status"]
        unknown = api.post(path, json={"spec": {"token": "bad"}}).json()["status"]
    assert known["authenticated"] is True
    assert known["user"]["username"] == "jane"
    assert unknown["authenticated"] is False


# TLS


def test_client_certificates_none():
    with ApiServer(client_certificates="none") as server:
        with client(server, leaf=server.ca.issue_client("a")) as api:
            assert api.get(NAMESPACES).status_code == 401
        assert server.requests[0].certificate_serial is None


def test_client_certificates_required():
    with ApiServer(client_certificates="required", tokens={"good": "jane"}) as server:
        with client(server, "good") as api, pytest.raises(httpx2.TransportError):
            api.get(NAMESPACES)
        with client(server, leaf=server.ca.issue_client("a")) as api:
            assert api.get(NAMESPACES).status_code == 200
        server.wait_for(lambda: server.connections[0].closed_at)
        assert "certificate" in server.connections[0].error
        assert [request.user for request in server.requests] == ["a"]


def test_another_authoritys_certificate_ends_in_the_handshake(server):
    stranger = CertificateAuthority().issue_client("jane")
    with client(server, leaf=stranger) as api, pytest.raises(httpx2.TransportError):
        api.get(NAMESPACES)
    server.wait_for(lambda: server.connections[0].closed_at)
    assert server.connections[0].error
    assert server.requests == []


def test_a_wrong_mode_is_refused():
    with pytest.raises(UsageError, match="client_certificates"):
        ApiServer(client_certificates="maybe")


@pytest.mark.parametrize(("only", "version"), [(False, "TLSv1.3"), (True, "TLSv1.2")])
def test_tls_version(only, version):
    with ApiServer(tokens={"good": "jane"}, tls12_only=only) as server:
        with client(server, "good", server.ca.issue_client("a")) as api:
            assert api.get(NAMESPACES).status_code == 200
        assert server.requests[0].tls_version == version


def test_server_names_and_sni():
    with ApiServer(tokens={"good": "jane"}, server_names=["api.example"]) as server:
        with client(server, "good") as api:
            with pytest.raises(httpx2.ConnectError, match="verify failed"):
                api.get(NAMESPACES)
            extensions = {"sni_hostname": "api.example"}
            assert api.get(NAMESPACES, extensions=extensions).status_code == 200
        assert server.requests[0].server_name == "api.example"
        assert server.connections[-1].sni == "api.example"


def test_an_authority_of_ones_own():
    authority = CertificateAuthority("mine")
    with ApiServer(ca=authority) as server:
        assert server.ca is authority
        with httpx2.Client(verify=authority.client_context(), trust_env=False) as api:
            assert api.get(server.url + NAMESPACES).status_code == 401


# what goes wrong on request


def test_unauthorized_for_a_number_of_requests(server):
    server.unauthorized(2)
    with client(server, "good") as api:
        assert [api.get(NAMESPACES).status_code for _ in range(3)] == [401, 401, 200]
    assert [request.user for request in server.requests] == ["jane"] * 3


def test_unauthorized_until_switched_off(server):
    with client(server, "good") as api:
        server.answer_401 = True
        assert [api.get(NAMESPACES).status_code for _ in range(3)] == [401] * 3
        assert server.answer_401
        server.answer_401 = False
        assert api.get(NAMESPACES).status_code == 200
        server.unauthorized()
        assert api.get(NAMESPACES).status_code == 401
        server.unauthorized(0)
        assert api.get(NAMESPACES).status_code == 200


def test_forbidden(server):
    with client(server, "good") as api:
        server.forbidden(1)
        refused = api.get(NAMESPACES)
        assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
        assert api.get(NAMESPACES).status_code == 200
        server.answer_403 = True
        assert api.get(NAMESPACES).status_code == 403
        assert server.answer_403
        server.answer_403 = False
        assert api.get(NAMESPACES).status_code == 200


def test_other_failures(server):
    with client(server, "good") as api:
        server.fail(503, 1)
        assert api.get(NAMESPACES).json()["reason"] == "ServiceUnavailable"
        assert api.get(NAMESPACES).status_code == 200
    with pytest.raises(UsageError):
        server.fail(200)
    with pytest.raises(UsageError):
        server.fail(401, -1)


def test_delay_records_first_and_answers_later(server):
    server.delay(0.2)
    with client(server, "good") as api, concurrent.futures.ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        answer = pool.submit(api.get, NAMESPACES)
        server.wait_for(lambda: server.requests)
        assert not answer.done()
        assert answer.result().status_code == 200
        assert time.monotonic() - begun >= 0.2
        server.delay(0)
        assert api.get(NAMESPACES).status_code == 200
    with pytest.raises(UsageError):
        server.delay(-1)


def test_the_end_does_not_wait_for_a_delay():
    begun = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with ApiServer(tokens={"good": "jane"}) as server, client(server, "good") as api:
            server.delay(50)
            answer = pool.submit(api.get, NAMESPACES)
            server.wait_for(lambda: server.requests)
            server.__exit__(None, None, None)
            with pytest.raises(httpx2.TransportError):
                answer.result(10)
    assert time.monotonic() - begun < 10


# HTTP


def test_connections_are_kept_and_their_end_is_seen_while_idle(server):
    with client(server, "good") as api:
        api.get(NAMESPACES)
        api.get(NAMESPACES)
        (connection,) = server.connections
        assert connection.is_open
        assert [request.connection_id for request in server.requests] == [connection.id] * 2
    closed = server.wait_for(lambda: server.connections[0].closed_at)
    assert closed >= connection.opened_at


def test_connection_close_is_honoured(server):
    with client(server, "good") as api:
        assert api.get(NAMESPACES, headers={"Connection": "close"}).headers["connection"] == "close"
        server.wait_for(lambda: server.connections[0].closed_at)


def test_a_chunked_body_is_read(server):
    document = json.dumps({"metadata": {"name": "chunked"}}).encode()
    with client(server, "good") as api:
        pieces = (document[at : at + 7] for at in range(0, len(document), 7))
        created = api.post(NAMESPACES, content=pieces, headers={"Content-Type": "application/json"})
        assert created.status_code == 201
        assert api.get(f"{NAMESPACES}/chunked").status_code == 200
    assert server.requests[0].header("transfer-encoding") == "chunked"
    assert server.requests[0].body == document


def test_what_is_no_http_is_a_400_and_the_end(server):
    context = server.ca.client_context()
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    server.wait_for(lambda: server.connections[0].closed_at)
    assert "request line" in server.connections[0].error
    assert server.requests == []


def test_query_and_headers_are_recorded(server):
    with client(server, "good") as api:
        api.get(NAMESPACES, params={"limit": "5", "labelSelector": "a=b"}, headers=[("X-Twice", "1"), ("X-Twice", "2")])
    (request,) = server.requests
    assert request.query == {"limit": "5", "labelSelector": "a=b"}
    assert [value for name, value in request.headers if name.lower() == "x-twice"] == ["1", "2"]
    assert abs(request.at - time.time()) < 60
    assert not request.is_watch


def test_connections_can_be_dropped(server):
    with client(server, "good") as api:
        api.get(NAMESPACES)
        server.drop_connections()
        server.wait_for(lambda: not server.connections[0].is_open)


def test_a_thousand_connections_at_once(server):
    """All are open together: none answers before the last one has come."""
    number = 1000
    context = server.ca.client_context()
    statuses: list[bytes] = []

    def one_call(barrier: threading.Barrier) -> None:
        with socket.create_connection(("127.0.0.1", server.port), 30) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                barrier.wait(45)
                connection.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n")
                statuses.append(connection.recv(15))

    barrier = threading.Barrier(number)
    threads = [threading.Thread(target=one_call, args=(barrier,)) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert statuses == [b"HTTP/1.1 200 OK"] * number
    assert len(server.requests) == number
    server.wait_for(lambda: all(not connection.is_open for connection in server.connections))


# life


def test_nothing_is_left_after_the_end():
    gc.collect()
    before = set(threading.enumerate())
    with ApiServer(tokens={"good": "jane"}) as server:
        idle = socket.create_connection(("127.0.0.1", server.port))  # never begins its handshake
        api = client(server, "good")
        api.get(NAMESPACES)
        server.wait_for(lambda: len(server.connections) == 2)
    assert set(threading.enumerate()) <= before
    assert all(not connection.is_open for connection in server.connections)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), 5)
    idle.close()
    api.close()
    gc.collect()  # a socket that was left open would be a ResourceWarning here


def test_it_is_started_once_and_before_use(server):
    with pytest.raises(UsageError, match="once"):
        server.__enter__()
    with pytest.raises(UsageError, match="not started"):
        _ = ApiServer().url


def test_wait_for_is_bounded(server):
    assert server.wait_for(lambda: "value", 1) == "value"
    with pytest.raises(TimeoutError, match=r"0\.05 s"):
        server.wait_for(lambda: False, 0.05)


async def wait_both_ways(server: ApiServer) -> str:
    with pytest.raises(TimeoutError):
        await server.wait_for_async(lambda: None, 0.05)
    return await server.wait_for_async(lambda: "value", 1)


def test_wait_for_async(server):
    assert asyncio.run(wait_both_ways(server)) == "value"


# kubeconfig


def test_kubeconfig_points_here(server, tmp_path):
    path = server.write_kubeconfig(tmp_path / "deep" / "config", user={"token": "good"}, namespace="prod")
    assert path.stat().st_mode & 0o777 == 0o600
    document = yaml.safe_load(path.read_text())
    assert document == server.kubeconfig({"token": "good"}, namespace="prod")
    assert document["current-context"] == "test"
    assert document["contexts"][0]["context"] == {"cluster": "test", "user": "test", "namespace": "prod"}
    assert document["clusters"][0]["cluster"]["server"] == server.url


def test_kubeconfig_overrides(server, tmp_path):
    document = server.kubeconfig(
        server.ca.issue_client("a").kubeconfig_user(),
        cluster={"tls-server-name": "x", "certificate-authority-data": None, "certificate-authority": "ca.pem"},
        path=tmp_path / "config",
        context_name="c",
        cluster_name="k",
        user_name="u",
    )
    assert document["clusters"] == [
        {"name": "k", "cluster": {"server": server.url, "tls-server-name": "x", "certificate-authority": "ca.pem"}}
    ]
    assert document["contexts"] == [{"name": "c", "context": {"cluster": "k", "user": "u"}}]
    assert set(document["users"][0]["user"]) == {"client-certificate-data", "client-key-data"}
    assert yaml.safe_load((tmp_path / "config").read_text()) == document


def test_tls_is_never_optional(server):
    with socket.create_connection(("127.0.0.1", server.port)) as plain:
        plain.sendall(b"GET /version HTTP/1.1\r\n\r\n")
        plain.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert not plain.recv(100).startswith(b"HTTP")
    server.wait_for(lambda: server.connections[0].closed_at)
    assert server.connections[0].error
    assert server.requests == []


# service accounts


def test_a_service_accounts_token_is_given_out_and_let_in(server: ApiServer):
    server.emit("serviceaccounts", "robot")
    path = "/api/v1/namespaces/default/serviceaccounts/{}/token"
    with client(server, "good") as api:
        given = api.post(path.format("robot"), json={"spec": {"expirationSeconds": 600}})
        elsewhere = api.post(path.format("robot"), json={"spec": {"audiences": ["vault"]}})
        assert api.post(path.format("nobody"), json={}).status_code == 404
        assert api.get(path.format("robot")).status_code == 405
        short = api.post(path.format("robot"), json={"spec": {"expirationSeconds": 599}})
    assert (short.status_code, short.json()["reason"]) == (422, "Invalid")
    assert "may not specify a duration less than 10 minutes" in short.json()["message"]
    with client(server, given.json()["status"]["token"]) as api:
        who = api.post(REVIEW, json={}).json()["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in who["groups"]
    with client(server, elsewhere.json()["status"]["token"]) as api:
        assert api.get(NAMESPACES).status_code == 401
