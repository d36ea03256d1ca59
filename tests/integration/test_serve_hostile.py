"""Who wants to fill memory, logs or metrics, or to pass for somebody else, in the real server."""

from __future__ import annotations

import json
import select
import socket
import struct
import threading
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

from kubeauthn.server import limits
from kubeauthn.testing import Issuer
from tests.integration.serve_process import Serve, configuration, replace, review, until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def serve(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    file = tmp_path_factory.mktemp("serve") / "authn.yaml"
    file.write_text(configuration(issuer))
    with Serve(file, "--show-reasons") as running:
        yield running.ready()


def memory(serve: Serve) -> int:
    [worker] = serve.workers()
    return int(Path(f"/proc/{worker}/statm").read_text().split()[1]) * 4096


def test_tokens_that_are_all_different_leave_memory_as_it_was(serve: Serve, issuer: Issuer) -> None:
    good = issuer.token("jane", audience="kubernetes")
    head, payload, signature = good.split(".")

    def flood(count: int) -> None:
        with serve.client() as client:
            for number in range(count):
                forged = f"{head}.{payload}.{number:06d}{signature[6:]}" if number % 2 else f"x{number}." + "y" * 20_000
                assert "user" not in client.post("/", json=review(forged)).json()["status"]

    flood(1000)
    before = memory(serve)
    flood(2000)
    assert memory(serve) - before < 24 << 20
    assert serve.review(good)["authenticated"] is True


def test_requests_that_are_cut_off_anywhere_leave_nothing_behind(serve: Serve, issuer: Issuer) -> None:
    """Over HTTP/1.1 after any byte of the body, over HTTP/2 by resets, and by reset connections."""
    good = issuer.token("jane", audience="kubernetes")
    body = json.dumps(review(good)).encode()
    whole = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    chunk = b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(body), body)
    host, port = serve.address.removeprefix("http://").split(":")

    def send(sent: bytes, *, reset: bool) -> None:
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(sent)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def attack() -> None:
        for number, end in enumerate(range(60, len(whole), 7)):
            send((whole, chunk, whole + whole[:end])[number % 3][: len(whole) + end], reset=number % 2 == 0)
            send((whole, chunk)[number % 2][:end], reset=number % 3 == 0)
        for number in range(20):
            send(streams(body, number), reset=number % 2 == 0)

    [worker] = serve.workers()
    attack()
    until(lambda: serve.review(good)["authenticated"], "it still answers")
    opened = len(list(Path(f"/proc/{worker}/fd").iterdir()))
    attack()
    until(lambda: len(list(Path(f"/proc/{worker}/fd").iterdir())) <= opened, "their connections are gone")
    assert serve.review(good)["authenticated"] is True
    assert serve.workers() == [worker]
    assert not [line for line in serve.raw if "Traceback" in line]


def test_bodies_that_are_all_allowed_and_never_end_together_fill_no_memory(serve: Serve, issuer: Issuer) -> None:
    """A megabyte each. What goes beyond the bound is told to come again, and who brings little notices nothing."""
    head = f"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {limits.BODY_BYTES}\r\n\r\n".encode()
    host, _, port = serve.address.removeprefix("http://").rpartition(":")
    serve.review(issuer.token("jane", audience="kubernetes"))
    before = memory(serve)
    told: list[bytes] = []
    with ExitStack() as stack:
        for _ in range(160):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=30))
            with suppress(ConnectionError):  # told before all was sent
                connection.sendall(head + b"x" * (limits.BODY_BYTES - 1))
            if select.select([connection], [], [], 0.02)[0]:
                with suppress(ConnectionError):
                    told.append(connection.recv(65536)[:12])
        assert told.count(b"HTTP/1.1 429") > 20
        assert memory(serve) - before < 1.5 * limits.BODIES_BYTES
        assert serve.review(issuer.token("jane", audience="kubernetes"))["authenticated"] is True


def streams(body: bytes, number: int) -> bytes:
    """Forty requests on one HTTP/2 connection: reset at once, within the body or after it, or never ended."""
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    for way in range(number, number + 40):
        stream = client.get_next_available_stream_id()
        client.send_headers(stream, [(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "x")])
        if way % 4:
            client.send_data(stream, body[: 300 * (way % 4)])
        if way % 5:
            client.reset_stream(stream)
    return client.data_to_send()


def test_issuers_paths_and_request_ids_that_are_made_up_make_no_series(serve: Serve, issuer: Issuer) -> None:
    with serve.client() as client:
        for number in range(100):
            claims = {"iss": f"https://made-up-{number}.test", "aud": "kubernetes", "sub": "x", "exp": 9_999_999_999}
            status = client.post(f"/?{number}", json=review(issuer.sign(claims))).json()["status"]
            assert status["authenticated"] is False
            client.get(f"/made-up-{number}", headers={"X-Request-ID": f"made-up-{number}"})
    text = serve.metrics()
    assert "made-up" not in text
    assert len(text.splitlines()) < 400


def test_a_name_cannot_write_log_lines_of_its_own(serve: Serve, issuer: Issuer) -> None:
    line = '\n{"message":"listening","level":"info","forged":true}\n\x1b[2J\u2028'
    expired = issuer.token(f"jane{line}", audience=f"other{line}")
    status = serve.review(expired)
    assert status["authenticated"] is False
    serve.said("token not authenticated")
    assert not [told for told in serve.lines if told.get("forged")]
    assert not [raw for raw in serve.raw if "\x1b" in raw or "\u2028" in raw]
    assert all(raw.startswith("{") for raw in serve.raw)


@pytest.mark.parametrize(
    "headers",
    [
        b"Authorization: Bearer {good}\r\nAuthorization: Bearer other\r\n",
        b"Authorization: Bearer {good}, Bearer other\r\n",
        b"Authorization: Basic {good}\r\n",
        b"Authorization : Bearer {good}\r\n",
        b"Authorization: Bearer\r\n {good}\r\n",
        b"X-Remote-User: admin\r\nX-Remote-Group: system:masters\r\nX-Original-URI: /healthz\r\n",
        b"Authorization: Bearer {good}\x00\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\nAuthorization: Bearer other\r\n",
    ],
)
def test_what_is_smuggled_into_auth_lets_nobody_in(serve: Serve, issuer: Issuer, headers: bytes) -> None:
    good = issuer.token("jane", audience="kubernetes").encode()
    host, port = serve.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"GET /auth HTTP/1.1\r\nHost: x\r\n" + headers.replace(b"{good}", good) + b"\r\n")
        answer = connection.recv(65536)
    assert answer.split(b" ")[1] in (b"400", b"401"), answer
    assert b"admin" not in answer
    assert b"x-remote-user" not in answer.lower()


def test_a_header_that_cannot_be_read_is_not_taken_for_none(issuer: Issuer, tmp_path: Path) -> None:
    """Granian shows only values of visible ASCII, so these look as if nobody had sent them."""
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(issuer, extra="anonymous: {enabled: true, conditions: [{path: /public}]}\n"))
    good = issuer.token("jane", audience="kubernetes").encode()
    public = (b"X-Original-URI", b"/public")

    def status(*headers: tuple[bytes, bytes]) -> int:
        with serve.client() as client:
            return client.get("/auth", headers=list(headers)).status_code

    with Serve(file, "--forward-auth-original-uri", "X-Original-URI") as serve:
        serve.ready()
        assert status(public) == 200
        assert status(public, (b"Authorization", b"Bearer \xff")) == 401
        assert status((b"Authorization", b"\xff"), (b"Authorization", b"Bearer " + good)) == 401
        assert status((b"X-Original-URI", b"/admin?\xff"), public) == 401


@pytest.mark.parametrize(
    "body",
    [
        b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x","n":'
        + b"9" * 100_000
        + b"}}",
        b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}} trailing',
        b'\xef\xbb\xbf{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}',
        '{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":"x"}}'.encode("utf-16"),
        b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"Token":"x"}}',
        b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":' + b'{"a":' * 50_000 + b"}" * 50_001,
        json.dumps(review("x", audiences=["a"] * 1001)).encode(),
    ],
)
def test_reviews_that_are_not_what_they_seem_are_400(serve: Serve, body: bytes) -> None:
    with serve.client() as client:
        assert client.post("/", content=body, headers={"content-type": "application/json"}).status_code == 400


def test_a_status_in_the_question_is_not_believed(serve: Serve) -> None:
    asked = review("x") | {"status": {"authenticated": True, "user": {"username": "admin"}}}
    with serve.client() as client:
        assert client.post("/", json=asked).json()["status"].get("user") is None


def test_reloads_by_file_and_by_signal_at_once_end_with_the_last_content(issuer: Issuer, tmp_path: Path) -> None:
    file = tmp_path / "authn.yaml"
    file.write_text(configuration(issuer, prefix="0:"))
    token = issuer.token("jane", audience="kubernetes")
    with Serve(file, "--workers", "2") as serve:
        serve.ready()
        stop, wrong = threading.Event(), []

        def ask() -> None:
            with serve.client() as client:
                while not stop.is_set():
                    name = client.post("/", json=review(token)).json()["status"].get("user", {}).get("username", "")
                    if not name.endswith(":jane"):
                        wrong.append(name)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for number in range(1, 30):
                # Every third one is torn: what a reader sees who does not replace files but writes into them.
                text = configuration(issuer, prefix=f"{number}:")
                replace(file, text[: len(text) // 2] if number % 3 == 0 else text)
                serve.hang_up()
            until(
                lambda: {serve.review(token)["user"]["username"] for _ in range(20)} == {"29:jane"},
                "the last content is in force",
            )
        finally:
            stop.set()
            asking.join(30)
        assert {serve.review(token)["user"]["username"] for _ in range(50)} == {"29:jane"}
        assert wrong == []
