"""What a hostile or broken client sends, to the real server: the right answer, no stack trace, no worker lost."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
from typing import TYPE_CHECKING

import httpx2
import pytest
from h2.connection import H2Connection
from h2.events import Event, ResponseReceived, StreamReset

from kubeauthn.server import limits
from kubeauthn.testing import Issuer
from tests.integration.serve_process import Serve, configuration, review

if TYPE_CHECKING:
    from collections.abc import Iterator

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def running(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    directory = tmp_path_factory.mktemp("serve")
    file = directory / "authn.yaml"
    file.write_text(configuration(issuer))
    with Serve(file, "--workers", "1", tls=directory / "tls") as served:
        yield served.ready()


@pytest.fixture
def serve(running: Serve, issuer: Issuer) -> Iterator[Serve]:
    """After each test the same worker must still give the right answer, and no trace be in the log."""
    before = running.workers()
    yield running
    assert running.review(issuer.token("jane", audience="kubernetes"))["authenticated"] is True
    assert running.workers() == before
    assert "Traceback" not in "".join(running.raw)


def raw(serve: Serve, *, alpn: str = "http/1.1") -> ssl.SSLSocket:
    host, port = serve.address.removeprefix("https://").split(":")
    context = serve.ca.client_context()
    context.set_alpn_protocols([alpn])
    connection = socket.create_connection((host, int(port)), timeout=30)
    return context.wrap_socket(connection, server_hostname="127.0.0.1")


def answer_to(serve: Serve, sent: bytes) -> bytes:
    with raw(serve) as connection:
        connection.sendall(sent)
        return connection.recv(65536)


@pytest.mark.parametrize("http2", [False, True])
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"token", "the body is not JSON"),
        (b"\xff\xfe\x00", "the body is not JSON"),
        (b"[" * 100_000, "the body is not JSON"),
        (b"[]", "expected a TokenReview, not a list"),
        (b"{}", "expected kind TokenReview"),
        (json.dumps(review("x") | {"kind": "Pod"}).encode(), "expected kind TokenReview"),
        (json.dumps(review("x", version="v2")).encode(), "expected kind TokenReview"),
        (json.dumps(review("")).encode(), "token is required"),
        (json.dumps(review("x") | {"spec": []}).encode(), "token is required"),
        (json.dumps(review("x") | {"spec": {"token": 5}}).encode(), "token is required"),
        (json.dumps(review("x") | {"spec": {"token": "x", "audiences": "a"}}).encode(), "expected a list of strings"),
    ],
)
def test_what_is_no_review_is_400(serve: Serve, body: bytes, message: str, http2: bool) -> None:
    with serve.client(http2=http2) as client:
        answer = client.post("/", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["kind"]) == (400, "Status")
    assert message in answer.json()["message"]


def test_ten_megabytes_are_refused(serve: Serve) -> None:
    with serve.client() as client:
        declared = client.post("/", content=b"x" * 10_000_000, headers=JSON)
    assert declared.status_code == 413


def test_ten_megabytes_are_refused_before_they_are_sent(serve: Serve) -> None:
    """Over HTTP/2, with a client that listens while it sends: an answer, and then the stream is reset."""
    wire = H2Connection()
    wire.initiate_connection()
    fields = {":method": "POST", ":path": "/", ":scheme": "https", ":authority": "x", "content-length": "10000000"}
    wire.send_headers(1, list(fields.items()))
    seen: list[Event] = []
    with raw(serve, alpn="h2") as connection:
        connection.sendall(wire.data_to_send())
        while not any(isinstance(event, StreamReset) for event in seen):
            seen += wire.receive_data(connection.recv(65536))
    answers = [dict(event.headers)[b":status"] for event in seen if isinstance(event, ResponseReceived)]
    assert answers == [b"413"]


def test_a_body_that_does_not_say_how_long_it_is(serve: Serve) -> None:
    with serve.client() as client:
        answer = client.post("/", content=(b"x" * 65536 for _ in range(32)), headers=JSON)
    assert answer.status_code == 413


def kilobytes(pid: int, name: str) -> int:
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(f"{name}:"))


@contextlib.contextmanager
def in_bounded_memory(serve: Serve) -> Iterator[None]:
    (worker,) = serve.workers()
    with open(f"/proc/{worker}/clear_refs", "w") as file:
        file.write("5")  # the most that it has ever used is what it uses now
    before = kilobytes(worker, "VmHWM")
    yield
    assert kilobytes(worker, "VmHWM") - before < 16_000


HEAD = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"'
PART = b"a" * 65536
PARTS = 1600


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
def test_a_token_of_100_megabytes_is_refused_in_bounded_memory(serve: Serve, declared: bool) -> None:
    length = {"content-length": str(len(HEAD) + PARTS * len(PART))} if declared else {}
    content = (piece for pieces in ([HEAD], [PART] * PARTS) for piece in pieces)
    # who is still sending may find the connection closed, and see no answer
    with in_bounded_memory(serve), contextlib.suppress(httpx2.WriteError, httpx2.RemoteProtocolError):
        with serve.client() as client:
            assert client.post("/", content=content, headers=JSON | length).status_code == 413


def test_a_token_of_100_megabytes_over_http2(serve: Serve) -> None:
    """Sent by a client that listens to nothing but how much it may send, until the stream is reset."""
    wire = H2Connection()
    wire.initiate_connection()
    fields = {":method": "POST", ":path": "/", ":scheme": "https", ":authority": "x", **JSON}
    wire.send_headers(1, list(fields.items()))
    wire.send_data(1, HEAD)
    sent, seen = 0, []
    with in_bounded_memory(serve), raw(serve, alpn="h2") as connection:
        while sent < len(PART) * PARTS and not any(isinstance(event, StreamReset) for event in seen):
            room = min(wire.local_flow_control_window(1), wire.max_outbound_frame_size)
            if room:
                wire.send_data(1, PART[:room])
                sent += room
            connection.sendall(wire.data_to_send())
            if connection.pending() or select.select([connection], [], [], 0 if room else 30)[0]:
                seen += wire.receive_data(connection.recv(65536))
    answers = [dict(event.headers)[b":status"] for event in seen if isinstance(event, ResponseReceived)]
    assert answers == [b"413"]


@pytest.mark.parametrize("http2", [False, True])
def test_a_token_of_half_a_megabyte_is_refused_like_any_other(serve: Serve, http2: bool) -> None:
    with serve.client(http2=http2) as client:
        answer = client.post("/", json=review("a.b." + "c" * 500_000))
    assert (answer.status_code, answer.json()["status"]["authenticated"]) == (200, False)


@pytest.mark.parametrize("token", ["\x00", "\ud800", "a.b.c", "🙂", "..", "null", "eyJ.eyJ.x"])
def test_tokens_of_any_text(serve: Serve, token: str) -> None:
    with serve.client() as client:
        answer = client.post("/", content=json.dumps(review(token)).encode(), headers=JSON)
    assert (answer.status_code, answer.json()["status"]) == (200, {"authenticated": False})


def test_a_thousand_headers(serve: Serve) -> None:
    many = "".join(f"x-{number}: y\r\n" for number in range(1000))
    answer = answer_to(serve, f"GET /healthz HTTP/1.1\r\nhost: x\r\n{many}\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 431") or answer.startswith(b"HTTP/1.1 400") or answer == b""


def test_a_thousand_headers_over_http2(serve: Serve) -> None:
    many = [(f"x-{number}", "y") for number in range(1000)]
    fields = [(":method", "GET"), (":path", "/healthz"), (":scheme", "https"), (":authority", "x")]
    assert [http2_status(serve, fields + many[:count]) for count in (limits.HEADERS, 1000)] == [b"200", b"431"]


def http2_status(serve: Serve, headers: list[tuple[str, str]]) -> bytes:
    wire = H2Connection()
    wire.initiate_connection()
    wire.send_headers(1, headers, end_stream=True)
    with raw(serve, alpn="h2") as connection:
        connection.sendall(wire.data_to_send())
        while True:
            for event in wire.receive_data(connection.recv(65536)):
                if isinstance(event, ResponseReceived):
                    return dict(event.headers)[b":status"]


def test_a_head_without_end(serve: Serve) -> None:
    # A little more than is read: with much more the server is gone before the client has said it all.
    answer = answer_to(serve, b"GET /healthz HTTP/1.1\r\nx: " + b"y" * (limits.HEADER_BYTES_1 + 1000))
    assert answer.startswith(b"HTTP/1.1 431")


def test_unknown_paths_and_methods(serve: Serve) -> None:
    with serve.client() as client:
        assert client.get("/nothing/here").status_code == 404
        assert client.post("/../etc/passwd", content=b"x").status_code == 404
        for path, method, allowed in (
            ("/", "GET", "POST"),
            ("/authenticate", "DELETE", "POST"),
            ("/healthz", "POST", "GET, HEAD"),
            ("/readyz", "PATCH", "GET, HEAD"),
            ("/metrics", "PUT", "GET, HEAD"),
        ):
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, allowed)
        assert client.request("BREW", "/").status_code == 405
        assert client.head("/healthz").content == b""
        assert client.post("/debug/explain", content=b"x").status_code == 404


def test_wrong_content_types(serve: Serve) -> None:
    with serve.client() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "application/vnd.kubernetes.protobuf"):
            assert client.post("/", content=b"{}", headers={"content-type": kind}).status_code == 415
        good = {"content-type": "application/json; charset=utf-8"}
        assert client.post("/", content=json.dumps(review("x")).encode(), headers=good).status_code == 200


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http(serve: Serve, garbage: bytes) -> None:
    answer = answer_to(serve, garbage)
    assert answer == b"" or answer.split(b" ")[1].startswith(b"4")


def test_pipelined_garbage_after_a_good_request(serve: Serve) -> None:
    with raw(serve) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n\x16\x03garbage\r\n\r\n")
        received = b""
        while part := connection.recv(65536):
            received += part
    assert received.startswith(b"HTTP/1.1 200")
    assert received.count(b"HTTP/1.1 200") == 1


def test_connections_that_never_say_anything_do_not_keep_others_out(serve: Serve, issuer: Issuer) -> None:
    host, port = serve.address.removeprefix("https://").split(":")
    silent = [socket.create_connection((host, int(port)), timeout=30) for _ in range(100)]
    try:
        assert serve.review(issuer.token("jane", audience="kubernetes"))["authenticated"] is True
    finally:
        for connection in silent:
            connection.close()


def test_a_body_that_never_comes_is_408(serve: Serve) -> None:
    with raw(serve) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        assert connection.recv(65536).startswith(b"HTTP/1.1 408")


def test_half_a_body_and_gone(serve: Serve) -> None:
    with raw(serve) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
