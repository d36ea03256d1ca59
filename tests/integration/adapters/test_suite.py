"""The common suite: what every adapter promises, whatever its library."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from kubeauthn.errors import CredentialWaiting, PluginFailed, PluginNotFound
from kubeauthn.testing import ApiServer, CertificateAuthority, ConnectProxy
from tests.integration.adapters.driver import Driver
from tests.integration.adapters.lab import Lab, our_error

CREATED = (200, 201)  # some libraries do not tell which

# -- what a credential is -------------------------------------------------------------------------


def test_token(driver: Driver, lab: Lab):
    lab.server.accept_token("one", user="jane")
    lab.plugin.reply(token="one")
    lab.use()
    lab.server.emit("namespaces", "blue")
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status == 200, outcome.error
    assert "blue" in outcome.names
    assert lab.tokens() == ["one"]
    assert [each.user for each in lab.listings()] == ["jane"]
    assert lab.plugin.runs == 1


def test_blanks_behind_a_token_are_left_off_as_go_does(driver: Driver, lab: Lab):
    """Some libraries refuse such a header with an error that quotes it: the token would stand in the traceback."""
    lab.server.accept_token("one", user="jane")
    lab.plugin.reply(token="one  ")
    lab.use()
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status == 200, "refused, and perhaps with the token in the message"
    assert lab.tokens() == ["one"]


def test_certificate(driver: Driver, lab: Lab):
    certificate = lab.ca.issue_client("jane")
    lab.plugin.reply(certificate=certificate)
    lab.use()
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status == 200, outcome.error
    assert [each.user for each in lab.listings()] == ["jane"]
    assert lab.serials() == [certificate.serial]
    assert lab.tokens() == [None]


def test_token_and_certificate_on_the_same_request(driver: Driver, lab: Lab):
    certificate = lab.ca.issue_client("jane")
    lab.plugin.reply(token="one", certificate=certificate)
    lab.use()
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        assert client.create_namespace("made").status in CREATED
    assert {(each.token, each.certificate_serial) for each in lab.server.requests} == {("one", certificate.serial)}


def test_static_token_wins_over_exec(driver: Driver, lab: Lab):
    lab.server.accept_token("static")
    lab.plugin.reply(token="from-plugin")
    lab.use({"token": "static", **lab.plugin.user()})
    with driver.session() as client:
        assert client.list_namespaces().status == 200
    assert lab.tokens() == ["static"]
    assert lab.plugin.runs == 0


def test_static_certificate(driver: Driver, lab: Lab):
    certificate = lab.ca.issue_client("jane")
    lab.use(certificate.kubeconfig_user())
    with driver.session() as client:
        assert client.list_namespaces().status == 200
    assert lab.serials() == [certificate.serial]


def test_impersonation(driver: Driver, lab: Lab):
    lab.server.accept_token("static")
    lab.use({"token": "static", "as": "jörg", "as-uid": "7", "as-groups": ["dev", "opś"]})
    with driver.session() as client:
        assert client.list_namespaces().status == 200
    (request,) = lab.listings()
    # UTF-8 on the wire, as kubectl has it; the test server shows bytes as Latin-1.
    sent = [(name.lower(), value.encode("latin-1").decode()) for name, value in request.headers]
    assert sorted(header for header in sent if header[0].startswith("impersonate-")) == [
        ("impersonate-group", "dev"),
        ("impersonate-group", "opś"),
        ("impersonate-uid", "7"),
        ("impersonate-user", "jörg"),
    ]


# -- how long it is kept --------------------------------------------------------------------------


def test_a_credential_is_used_until_it_expires_and_not_longer(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.server.accept_token("two")
    lab.plugin.reply(token="one", expires_in=240)
    lab.use()
    with driver.session(access=lab.access()) as client:
        for _ in range(5):
            assert client.list_namespaces().status == 200
            lab.clock.advance(59)
        assert lab.plugin.runs == 1  # a credential of four minutes is one run, not one for each request
        assert lab.tokens() == ["one"] * 5
        lab.plugin.reply(token="two", expires_in=240)
        assert client.list_namespaces().status == 200
    assert lab.tokens()[5:] == ["two"]
    assert lab.plugin.runs == 2


def test_without_an_expiry_it_is_kept(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session(access=lab.access()) as client:
        assert client.list_namespaces().status == 200
        lab.clock.advance(30 * 86400)
        assert client.list_namespaces().status == 200
    assert lab.plugin.runs == 1


def test_two_clients_of_one_kubeconfig_share_a_run(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as first, driver.session() as second:
        assert first.list_namespaces().status == 200
        assert second.list_namespaces().status == 200
    assert lab.plugin.runs == 1


def test_twenty_parallel_calls_at_expiry_make_one_run(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.server.accept_token("two")
    lab.plugin.reply(token="one", expires_in=60)
    lab.use()
    with driver.session(access=lab.access()) as client:
        assert client.list_namespaces().status == 200
        lab.clock.advance(61)
        lab.plugin.reply(token="two", expires_in=60)
        lab.plugin.delay(0.1)  # so that all of them find it running
        outcomes = client.list_in_parallel(20)
    assert [outcome.status for outcome in outcomes] == [200] * 20, [outcome.error for outcome in outcomes]
    assert lab.tokens() == ["one"] + ["two"] * 20
    assert lab.plugin.runs == 2


# -- 401 and 403 ----------------------------------------------------------------------------------


def revoked_token(lab: Lab) -> None:
    """From now on the server takes only a token that the plugin has not given yet."""
    lab.plugin.reply(token="two")
    lab.server.accept_only("two")


def test_after_a_401_a_get_is_repeated_with_a_new_token(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        revoked_token(lab)
        outcome = client.list_namespaces()
        assert outcome.status == 200, outcome.error
        assert client.list_namespaces().status == 200
    assert lab.tokens() == ["one", "one", "two", "two"]
    assert lab.plugin.runs == 2


def test_after_a_401_a_post_is_not_repeated_but_the_next_call_works(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        revoked_token(lab)
        assert client.create_namespace("made").status == 401
        assert client.create_namespace("made").status in CREATED
    posts = [each.token for each in lab.server.requests if each.method == "POST"]
    assert posts == ["one", "two"]
    assert lab.plugin.runs == 2


def test_without_the_repeat_the_401_comes_back_and_the_next_call_works(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session(retry_unauthorized=False) as client:
        assert client.list_namespaces().status == 200
        revoked_token(lab)
        assert client.list_namespaces().status == 401
        assert client.list_namespaces().status == 200
    assert lab.tokens() == ["one", "one", "two"]
    assert lab.plugin.runs == 2


def test_a_server_that_always_answers_401_does_not_run_the_plugin_in_a_loop(driver: Driver, lab: Lab):
    lab.server.unauthorized()
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as client:
        outcomes = [client.list_namespaces() for _ in range(5)]
    assert outcomes[0].status == 401
    assert all(outcome.status == 401 or isinstance(our_error(outcome.error), CredentialWaiting) for outcome in outcomes)
    assert lab.plugin.runs == 2  # the first, and one because of the first 401


def test_a_403_neither_runs_the_plugin_nor_repeats_the_request(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        lab.server.forbidden()
        assert client.list_namespaces().status == 403
        assert client.create_namespace("made").status == 403
    assert len(lab.server.requests) == 3
    assert lab.plugin.runs == 1


def test_twenty_parallel_calls_that_all_get_401_make_one_more_run(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        revoked_token(lab)
        lab.server.delay(0.3)  # so that many are on their way when the first is refused
        outcomes = client.list_in_parallel(20)
    assert [outcome.status for outcome in outcomes] == [200] * 20, [outcome.error for outcome in outcomes]
    assert lab.tokens().count("one") > 2  # else nothing was put to the test
    assert lab.plugin.runs == 2


# -- rotation -------------------------------------------------------------------------------------


def test_a_new_certificate_gets_new_connections_and_the_old_ones_are_closed(driver: Driver, lab: Lab):
    old, new = lab.ca.issue_client("old"), lab.ca.issue_client("new")
    lab.plugin.reply(certificate=old, expires_in=60)
    lab.use()
    with driver.session(access=lab.access()) as client:
        assert client.list_namespaces().status == 200
        lab.clock.advance(61)
        lab.plugin.reply(certificate=new, expires_in=60)
        assert client.list_namespaces().status == 200
        assert client.list_namespaces().status == 200
        lab.wait_for(lambda: not open_connections(lab, old.serial))
        assert len(open_connections(lab, new.serial)) == 1
    assert lab.serials() == [old.serial, new.serial, new.serial]
    assert [each.user for each in lab.listings()] == ["old", "new", "new"]


def test_after_a_401_the_request_is_repeated_with_a_new_certificate(driver: Driver, lab: Lab):
    old, new = lab.ca.issue_client("old"), lab.ca.issue_client("new")
    lab.plugin.reply(certificate=old)
    lab.use()
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        lab.server.revoke_serial(old.serial)
        lab.plugin.reply(certificate=new)
        assert client.list_namespaces().status == 200
    assert lab.serials() == [old.serial, old.serial, new.serial]
    assert lab.plugin.runs == 2


def test_the_same_certificate_again_closes_nothing(driver: Driver, lab: Lab):
    certificate = lab.ca.issue_client("jane")
    lab.plugin.reply(certificate=certificate, expires_in=60)
    lab.use()
    with driver.session(access=lab.access()) as client:
        assert client.list_namespaces().status == 200
        lab.clock.advance(61)
        lab.plugin.reply(certificate=certificate, expires_in=60)
        assert client.list_namespaces().status == 200
        assert lab.plugin.runs == 2
        assert len(lab.server.connections) == len(open_connections(lab, certificate.serial)) == 1


def test_a_new_token_closes_nothing(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.server.accept_token("two")
    lab.plugin.reply(token="one", expires_in=60)
    lab.use()
    with driver.session(access=lab.access()) as client:
        assert client.list_namespaces().status == 200
        lab.clock.advance(61)
        lab.plugin.reply(token="two", expires_in=60)
        assert client.list_namespaces().status == 200
        assert lab.tokens() == ["one", "two"]
        assert len(lab.server.connections) == len(open_connections(lab, None)) == 1


def test_a_watch_goes_on_while_the_token_is_replaced(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use()
    with driver.session() as client:
        watch = client.watch_namespaces()
        lab.wait_for(lambda: lab.server.open_watches == 1)
        see(watch, lab, "before")
        revoked_token(lab)
        assert client.list_namespaces().status == 200
        assert client.list_namespaces().status == 200
        assert lab.tokens()[-2:] == ["two", "two"]
        see(watch, lab, "after")
        assert not watch.ended.is_set()
        assert lab.server.open_watches == 1
        (watched,) = (each for each in lab.server.requests if each.is_watch)
        (connection,) = (each for each in lab.server.connections if each.id == watched.connection_id)
        assert connection.is_open


def test_a_watch_goes_on_while_the_certificate_is_replaced(driver: Driver, lab: Lab):
    old, new = lab.ca.issue_client("old"), lab.ca.issue_client("new")
    lab.plugin.reply(certificate=old, expires_in=60)
    lab.use()
    with driver.session(access=lab.access()) as client:
        watch = client.watch_namespaces()
        lab.wait_for(lambda: lab.server.open_watches == 1)
        assert client.list_namespaces().status == 200  # beside the watch an idle connection
        see(watch, lab, "before")
        lab.clock.advance(61)
        lab.plugin.reply(certificate=new, expires_in=600)
        for _ in range(3):
            assert client.list_namespaces().status == 200
        assert lab.serials() == [old.serial, *[new.serial] * 3]
        assert [each.user for each in lab.listings()] == ["old", "new", "new", "new"]
        see(watch, lab, "after")
        # Only the watch is left on the old certificate, and when it ends, nothing is.
        lab.wait_for(lambda: len(open_connections(lab, old.serial)) == 1)
        lab.server.close_watches()
        lab.wait_for(lambda: not open_connections(lab, old.serial))


def open_connections(lab: Lab, serial: int | None) -> list[object]:
    return [each for each in lab.server.connections if each.is_open and each.certificate_serial == serial]


def see(watch, lab: Lab, name: str) -> None:
    """An event that is sent arrives. What is there already when a watch begins comes first."""
    lab.server.emit("namespaces", name)
    for _ in range(20):
        if watch.next() == name:
            return
    raise AssertionError(f"{name} did not arrive")


# -- a plugin that does not deliver ---------------------------------------------------------------


def test_a_missing_plugin_is_an_error_with_its_install_hint_and_nothing_is_sent(driver: Driver, lab: Lab):
    lab.use(command="/nonexistent/kube-login", installHint="get it from the shop")
    with driver.session() as client:
        error = our_error(client.list_namespaces().error)
    assert isinstance(error, PluginNotFound), error
    assert str(error) == "exec: executable /nonexistent/kube-login not found"
    assert error.hint == "get it from the shop"
    assert lab.server.requests == []


def test_a_failing_plugin_is_an_error_and_is_not_run_in_a_loop(driver: Driver, lab: Lab):
    lab.plugin.fail(7)
    lab.use()
    with driver.session() as client:
        first = our_error(client.list_namespaces().error)
        assert isinstance(first, PluginFailed), first
        assert first.exit_code == 7
        second = our_error(client.list_namespaces().error)
        assert isinstance(second, CredentialWaiting), second
        third = our_error(client.create_namespace("made").error)
        assert isinstance(third, CredentialWaiting), third
    assert lab.plugin.runs == 1
    assert lab.server.requests == []


def test_a_plugin_that_fails_later_lets_nothing_out_anonymously(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one", expires_in=60)
    lab.use()
    with driver.session(access=lab.access()) as client:
        assert client.list_namespaces().status == 200
        lab.clock.advance(61)
        lab.plugin.fail(1)
        assert isinstance(our_error(client.list_namespaces().error), PluginFailed)
    assert lab.tokens() == ["one"]


# -- the way to the server ------------------------------------------------------------------------


def test_proxy_url(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    with ConnectProxy() as proxy:
        lab.use(cluster={"proxy-url": proxy.url})
        with driver.session() as client:
            outcome = client.list_namespaces()
            assert outcome.status == 200, outcome.error
        assert [str(tunnel) for tunnel in proxy.tunnels] == [f"127.0.0.1:{lab.server.port}"]


def test_tls_server_name(driver: Driver, lab: Lab):
    server = lab.start_server(server_names=["kube.internal"])
    server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use(server=server, cluster={"tls-server-name": "kube.internal"})
    with driver.session() as client:
        outcome = client.list_namespaces()
        assert outcome.status == 200, outcome.error
    assert [each.server_name for each in server.requests] == ["kube.internal"]


@pytest.mark.parametrize("cluster", [{}, {"tls-server-name": "other.internal"}], ids=["none", "another"])
def test_a_certificate_for_another_name_is_refused(driver: Driver, lab: Lab, cluster: dict[str, str]):
    server = lab.start_server(server_names=["kube.internal"])
    refused(driver, lab, server, cluster)


def test_a_certificate_of_another_authority_is_refused(driver: Driver, lab: Lab):
    other = CertificateAuthority("another CA").certificate_pem
    refused(driver, lab, lab.server, {"certificate-authority-data": base64.b64encode(other).decode()})


def refused(driver: Driver, lab: Lab, server: ApiServer, cluster: dict[str, str]) -> None:
    server.accept_token("one")
    lab.plugin.reply(token="one", certificate=lab.ca.issue_client("jane"))
    lab.use(server=server, cluster=cluster)
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status is None
    assert outcome.error is not None
    assert server.requests == []
    assert not [each for each in server.connections if each.certificate_serial]


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")  # what urllib3 says to it, and rightly
def test_insecure_skip_tls_verify(driver: Driver, lab: Lab):
    server = lab.start_server(server_names=["kube.internal"])
    server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use(server=server, cluster={"certificate-authority-data": None, "insecure-skip-tls-verify": True})
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status == 200, outcome.error


def test_disable_compression(driver: Driver, lab: Lab):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one")
    lab.use(cluster={"disable-compression": True})
    with driver.session() as client:
        assert client.list_namespaces().status == 200
    assert {each.header("accept-encoding") for each in lab.listings()} <= {None, "identity"}


def test_several_kubeconfig_files(driver: Driver, lab: Lab):
    """The first file that sets a value wins, the current context included."""
    other = lab.start_server()
    lab.server.accept_token("first")
    lab.server.accept_token("second")
    first, second = lab.folder / "first", lab.folder / "second"
    lab.server.write_kubeconfig(first, {"token": "first"}, context_name="a", user_name="u")
    other.write_kubeconfig(second, {"token": "second"}, context_name="b", user_name="u")
    lab.use_files(lab.folder / "not-there", first, second)
    with driver.session() as client:
        assert client.list_namespaces().status == 200
    with driver.session(context="b") as client:  # its cluster and user have the names of the first file's
        assert client.list_namespaces().status == 200
    assert lab.tokens() == ["first", "first"]
    assert other.requests == []


class Redirects(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    target = ""

    def do_GET(self) -> None:
        self.send_response(307)
        self.send_header("Location", self.target + self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def redirecting(lab: Lab) -> Iterator[int]:
    """The port of a server that sends everybody on to `lab.server`."""
    handler = type("RedirectsToTheLab", (Redirects,), {"target": lab.server.url})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.socket = lab.ca.server_context().wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(5)


def test_a_redirect_to_another_server_takes_no_credential_along(driver: Driver, lab: Lab, redirecting: int):
    lab.server.accept_token("one")
    lab.plugin.reply(token="one", certificate=lab.ca.issue_client("jane"))
    lab.use(cluster={"server": f"https://127.0.0.1:{redirecting}"})
    with driver.session() as client:
        outcome = client.list_namespaces()
    assert outcome.status != 200
    assert not [each for each in lab.server.requests if each.token or each.certificate_serial]
    assert not [each for each in lab.server.connections if each.certificate_serial]
