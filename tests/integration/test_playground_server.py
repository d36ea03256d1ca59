"""The playground's server: who may ask it, what it reads, what it says; and the command around it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time

import pytest

from kubeauthn.cli.playground_server import MOST_BYTES, MOST_CONNECTIONS, PlaygroundServer
from tests.integration.playground_process import PlaygroundProcess

JSON = {"Content-Type": "application/json"}
SECRET = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzM2NyM3QifQ."


@pytest.fixture
def server():
    yield from serving(PlaygroundServer(0, time.time))


@pytest.fixture
def impatient():
    yield from serving(PlaygroundServer(0, time.time, slow_seconds=0.3))


def serving(server: PlaygroundServer):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def ask(server: PlaygroundServer, method: str = "GET", path: str = "/", body: bytes | str | None = None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        content = body.encode() if isinstance(body, str) else body
        if content is not None and "Content_Length" not in headers:
            connection.putheader("Content-Length", str(len(content)))
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(content)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()
    finally:
        connection.close()


def judged(server: PlaygroundServer, body: bytes | str = "{}", **headers):
    return ask(server, "POST", "/judge", body, **{"Content_Type": "application/json", **headers})


# -- the page -------------------------------------------------------------------------------------


def test_it_listens_on_loopback_alone(server: PlaygroundServer):
    assert server.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/?x=1", "text/html; charset=utf-8"),
        ("/app.js", "text/javascript; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/icon.svg", "image/svg+xml"),
        ("/setting.json", "application/json"),
        ("/schema.json", "application/json"),
    ],
)
def test_its_documents_come_with_headers_that_lock_the_page_in(server: PlaygroundServer, path: str, kind: str):
    status, headers, body = ask(server, path=path)
    assert (status, headers["Content-Type"]) == (200, kind)
    assert body
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/nothing", "/judge", "/index.html", "/../main.py", "/%2e%2e/main.py", "/examples/kep.yaml",
        "/playground_page/app.js", "/app.js/", "/app.js%00", "/..%2f..%2fetc%2fpasswd", "/etc/passwd", "/setting",
    ],
)  # fmt: skip
def test_nothing_else_is_served(server: PlaygroundServer, path: str):
    status, _, body = ask(server, path=path)
    assert (status, json.loads(body)) == (404, {"error": "there is no such page"})


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD", "TRACE", "<b>"])
def test_other_methods_are_not_known_and_nothing_is_repeated(server: PlaygroundServer, method: str):
    status, headers, body = ask(server, method)
    assert status in (400, 501)
    assert "Content-Security-Policy" in headers
    assert b"<b>" not in body


# -- who may ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", "localhost."])
def test_another_name_for_this_machine_is_not_this_server(server: PlaygroundServer, host: str):
    """A name of somebody else's that leads to loopback (DNS rebinding) makes a page of theirs same-origin with us."""
    named = host.format(port=server.server_address[1])
    assert ask(server, Host=named)[0] == 421
    assert judged(server, Host=named)[0] == 421


def test_two_hosts_are_none(server: PlaygroundServer):
    port = server.server_address[1]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_its_own_names_and_origins_are_taken(server: PlaygroundServer, host: str):
    own = f"{host}:{server.server_address[1]}"
    assert ask(server, Host=own)[0] == 200
    assert judged(server, Host=own, Origin=f"http://{own}", Sec_Fetch_Site="same-origin")[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://127.0.0.1:1", ""])
def test_other_origins_are_refused(server: PlaygroundServer, origin: str):
    status, headers, body = judged(server, Origin=origin)
    assert (status, json.loads(body)) == (403, {"error": "pages of other origins may not ask"})
    assert headers["Connection"] == "close"
    assert ask(server, path="/setting.json", Origin=origin)[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site", "odd"])
def test_what_another_site_embeds_or_fetches_is_refused(server: PlaygroundServer, site: str):
    assert judged(server, Sec_Fetch_Site=site)[0] == 403
    assert ask(server, path="/setting.json", Sec_Fetch_Site=site)[0] == 403
    framed = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"}
    assert ask(server, **framed)[0] == 403
    assert judged(server, **{**framed, "Sec_Fetch_Dest": "document"})[0] == 403


def test_a_link_to_the_page_may_be_followed(server: PlaygroundServer):
    """An address with a state in it is there to be shared; what is behind the # does not even come here."""
    followed = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert ask(server, **followed)[0] == 200


# -- what is read ---------------------------------------------------------------------------------


def test_a_question_is_answered(server: PlaygroundServer):
    status, _, body = judged(server, json.dumps({"configuration": "kind: x", "claims": "{}"}))
    assert status == 200
    assert json.loads(body)["findings"][0]["level"] == "error"


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_what_a_form_could_send_is_refused(server: PlaygroundServer, kind: str):
    assert judged(server, Content_Type=kind)[0] == 415


def test_the_size_is_bounded_and_known_beforehand(server: PlaygroundServer):
    assert judged(server, b"", Content_Length=str(MOST_BYTES + 1))[0] == 413
    assert judged(server, b"", Content_Length="9" * 5000)[0] == 413
    assert judged(server, b"", Content_Length="-1")[0] == 411
    assert judged(server, b"0\r\n\r\n", Content_Length="5", Transfer_Encoding="chunked")[0] == 411


@pytest.mark.parametrize("body", ["", "[]", "7", "{", '{"claims": 1}', '{"a": null}', "[" * 100_000, b"\xff\xfe"])
def test_what_is_no_object_of_texts_is_refused(server: PlaygroundServer, body: str | bytes):
    status, _, told = judged(server, body)
    assert (status, json.loads(told)) == (400, {"error": "a JSON object of texts is expected"})


def test_an_unknown_release_is_refused(server: PlaygroundServer):
    status, _, told = judged(server, '{"kubernetes": "9.99"}')
    assert status == 400
    assert "9.99" in json.loads(told)["error"]


def test_claims_nested_too_deeply_to_be_shown_are_said_to_be(server: PlaygroundServer):
    deep = '{"a":' * 5000 + "1" + "}" * 5000
    status, _, told = judged(server, json.dumps({"claims": deep}))
    # newer Pythons write what older ones cannot: then it is shown
    expected = (400, {"error": "nested too deeply to be shown"})
    assert (status, json.loads(told)) == expected or (status == 200 and told.startswith(b'{"kubernetes"'))


def test_a_client_that_falls_silent_is_let_go(impatient: PlaygroundServer):
    with socket.create_connection(("127.0.0.1", impatient.server_address[1]), timeout=10) as connection:
        connection.sendall(b"POST /judge HTTP/1.1\r\n")
        assert connection.recv(100) == b""


def test_a_client_that_sends_a_byte_now_and_then_is_let_go(impatient: PlaygroundServer):
    port = impatient.server_address[1]
    head = (
        f"POST /judge HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), timeout=0.05) as connection:
        connection.sendall(f"{head}\r\n".encode())
        for _ in range(200):  # each wait is shorter than the server's patience, all together are longer
            try:
                connection.sendall(b" ")
                if connection.recv(100) == b"":
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            pytest.fail("the connection is still open")


def test_more_connections_than_any_page_needs_are_not_kept(impatient: PlaygroundServer):
    address = ("127.0.0.1", impatient.server_address[1])
    connections = [socket.create_connection(address, timeout=10) for _ in range(MOST_CONNECTIONS + 8)]
    try:
        assert connections[-1].recv(1) == b""
    finally:
        for connection in connections:
            connection.close()
    assert ask(impatient)[0] == 200 or ask(impatient)[0] == 200


# -- the command ----------------------------------------------------------------------------------


def test_the_command_serves_files_says_where_logs_nothing_and_ends_with_ctrl_c(tmp_path):
    (tmp_path / "authn.yaml").write_text("kind: mine\n")
    (tmp_path / "claims.json").write_text('{"sub": "jane"}')
    arguments = (str(tmp_path / "authn.yaml"), "--claims", str(tmp_path / "claims.json"), "--no-browser", "--port", "0")
    with PlaygroundProcess(*arguments) as playground:
        connection = http.client.HTTPConnection("127.0.0.1", playground.port, timeout=20)
        connection.request("GET", "/setting.json")
        start = json.loads(connection.getresponse().read())["start"]
        assert start == {"configuration": "kind: mine\n", "claims": '{"sub": "jane"}'}
        connection.request("POST", "/judge", json.dumps({"token": SECRET}), JSON)
        assert connection.getresponse().read()
        connection.request("GET", f"/{SECRET}")
        assert connection.getresponse().status == 404
        code, said = playground.end()
        connection.close()
    assert code == 0
    assert said == f"the playground is at http://127.0.0.1:{playground.port}/\nCtrl-C ends it\n"


def test_a_taken_port_is_said_if_it_was_asked_for(server: PlaygroundServer):
    with PlaygroundProcess("--no-browser", "--port", str(server.server_address[1])) as playground:
        code, said = playground.process.wait(timeout=40), playground.process.communicate()[1]
    assert code == 4
    assert said == (
        f"error: cannot listen on port {server.server_address[1]}: address already in use\n"
        "hint: without --port it takes one that is free\n"
    )


def test_the_browser_is_opened_with_the_address_unless_told_not_to(tmp_path):
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with PlaygroundProcess("--port", "0", BROWSER=str(browser)) as playground:
        ends = time.monotonic() + 20
        while not opened.exists() and time.monotonic() < ends:
            time.sleep(0.02)
        playground.end()
    assert opened.read_text() == f"http://127.0.0.1:{playground.port}/\n"


def test_a_browser_for_the_terminal_is_not_started_in_it(tmp_path):
    """Where there is no display, Python's own `webbrowser` would hand this terminal to w3m, lynx or links."""
    for name in ("www-browser", "links", "elinks", "lynx", "w3m"):
        program = tmp_path / name
        program.write_text("#!/bin/sh\necho took the terminal\n")
        program.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    nowhere = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "", "WSL_DISTRO_NAME": ""}
    with PlaygroundProcess("--port", "0", PATH=path, TERM="xterm", **nowhere) as playground:
        connection = http.client.HTTPConnection("127.0.0.1", playground.port, timeout=20)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        connection.close()
        assert playground.end() == (0, playground.said)


def test_a_browser_that_cannot_be_started_is_no_reason_to_end():
    with PlaygroundProcess("--port", "0", BROWSER='"firefox') as playground:
        assert playground.end() == (0, playground.said)
