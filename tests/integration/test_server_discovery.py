"""Discovery and key sets against real loopback servers, those that misbehave among them."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.authentication.keyset_state import Intervals
from kubeauthn._core.authentication.model import Issuer as IssuerConfig
from kubeauthn.server.discovery import issuer_documents
from kubeauthn.server.keysets import DiscoveredKeys
from kubeauthn.testing import FakeClock
from kubeauthn.testing.issuer import DISCOVERY_PATH, Issuer
from tests.integration.rough_servers import RoughServer, json_reply, redirect, reply


def config_of(server: Issuer | RoughServer, **changes: Any) -> IssuerConfig:
    values = {"url": server.url, "certificate_authority": server.ca.certificate_pem.decode(), "audiences": ("k",)}
    return IssuerConfig(**(values | changes))


def keys_of(server: Issuer | RoughServer, clock: Callable[[], float] | None = None, **changes: Any) -> DiscoveredKeys:
    return DiscoveredKeys(config_of(server, **changes), clock=clock or FakeClock())


def fetch(source: DiscoveredKeys) -> Any:
    """One attempt, as the first token makes it."""
    return asyncio.run(source.newer_keys(source.keys_at_hand()))


def kids(source: DiscoveredKeys) -> set[str]:
    keys = source.keys_at_hand()
    assert keys is not None
    return set(keys.kids)


@pytest.fixture
def rough() -> Iterator[RoughServer]:
    with RoughServer() as server:
        yield server


def serve_discovery(server: RoughServer, *, keys: Any = None, **changes: Any) -> None:
    document = {"issuer": server.url, "jwks_uri": f"{server.url}/keys"} | changes
    server.routes[DISCOVERY_PATH] = json_reply(document)
    server.routes["/keys"] = json_reply(good_keys() if keys is None else keys)


def good_keys() -> dict[str, Any]:
    return Issuer(tls=False).jwks()


# -- what works -----------------------------------------------------------------------------------


def test_keys_are_found_by_discovery() -> None:
    with Issuer() as issuer:
        issuer.rotate()
        source = keys_of(issuer)
        assert source.keys_at_hand() is None
        assert fetch(source) is source.keys_at_hand()
        assert kids(source) == set(issuer.kids)
        assert [request.path for request in issuer.requests] == [DISCOVERY_PATH, "/keys"]
        assert source.status.fingerprint.startswith("sha256:")


def test_a_trailing_slash_makes_no_double_one(rough: RoughServer) -> None:
    serve_discovery(rough, issuer=f"{rough.url}/")
    source = keys_of(rough, url=f"{rough.url}/")
    assert fetch(source) is not None
    assert rough.paths() == [DISCOVERY_PATH, "/keys"]


def test_discovery_url_is_asked_instead_and_must_still_name_the_issuer(rough: RoughServer) -> None:
    serve_discovery(rough, issuer="https://issuer.example")
    rough.routes["/elsewhere"] = rough.routes.pop(DISCOVERY_PATH)
    source = keys_of(rough, url="https://issuer.example", discovery_url=f"{rough.url}/elsewhere")
    assert fetch(source) is not None
    assert rough.paths() == ["/elsewhere", "/keys"]
    wrong = keys_of(rough, url="https://other.example", discovery_url=f"{rough.url}/elsewhere")
    assert fetch(wrong) is None
    assert 'expected "https://other.example" got "https://issuer.example"' in wrong.status.failure


def test_a_redirect_on_the_same_host_is_followed(rough: RoughServer) -> None:
    serve_discovery(rough)
    rough.routes["/moved"] = rough.routes[DISCOVERY_PATH]
    rough.routes[DISCOVERY_PATH] = redirect("/moved")
    assert fetch(keys_of(rough)) is not None


def test_compression_is_not_asked_for(rough: RoughServer) -> None:
    serve_discovery(rough)
    assert fetch(keys_of(rough)) is not None
    assert {request.header("accept-encoding") for request in rough.requests} == {"identity"}


@pytest.mark.parametrize("content_type", ["text/plain", "application/jwk-set+json", "text/html; charset=utf-8"])
def test_json_under_a_wrong_content_type_is_still_json(rough: RoughServer, content_type: str) -> None:
    serve_discovery(rough)
    rough.routes["/keys"] = json_reply(good_keys(), content_type=content_type)
    assert fetch(keys_of(rough)) is not None


def test_the_issuer_may_be_down_at_start_and_is_asked_until_it_answers() -> None:
    async def come_up(issuer: Issuer, source: DiscoveredKeys) -> None:
        running = asyncio.create_task(source.run())
        async with asyncio.timeout(20):
            while source.keys_at_hand() is None:
                await asyncio.sleep(0.01)
        running.cancel()

    with Issuer() as issuer:
        issuer.fail_next(3)
        source = DiscoveredKeys(config_of(issuer), intervals=Intervals(first_retry=0.05))
        asyncio.run(come_up(issuer, source))
        assert [request.status for request in issuer.requests] == [503, 503, 503, 200, 200]
        assert source.status.failure == ""


def test_in_the_background_a_withdrawn_key_goes() -> None:
    async def wait_until_gone(source: DiscoveredKeys, kid: str) -> None:
        running = asyncio.create_task(source.run())
        async with asyncio.timeout(20):
            while source.keys_at_hand() is None or kid in kids(source):
                await asyncio.sleep(0.01)
        running.cancel()

    with Issuer() as issuer:
        old = issuer.rotate()
        source = DiscoveredKeys(config_of(issuer), intervals=Intervals(refresh=0.05))
        changes: list[int] = []
        source.on_change(lambda: changes.append(1))
        fetch(source)
        issuer.rotate()
        issuer.withdraw(old)
        asyncio.run(wait_until_gone(source, old))
        assert len(changes) == 2


# -- unknown keys and failures --------------------------------------------------------------------


def test_unknown_keys_cost_one_fetch_per_cool_down() -> None:
    with Issuer() as issuer:
        clock = FakeClock()
        issuer.rotate()
        source = keys_of(issuer, clock)
        first = fetch(source)
        issuer.rotate()
        second = fetch(source)
        assert second is not first
        assert len(kids(source)) == 2
        issuer.rotate()
        seen = len(issuer.requests)
        for _ in range(50):
            assert fetch(source) is second
        clock.advance(29.9)
        assert fetch(source) is second
        assert len(issuer.requests) == seen
        clock.advance(0.1)
        assert fetch(source) is not second
        assert len(kids(source)) == 3
        assert len(issuer.requests) == seen + 1


def test_a_failed_fetch_keeps_the_last_good_keys_and_starts_the_cool_down_too() -> None:
    with Issuer() as issuer:
        clock = FakeClock()
        issuer.rotate()
        source = keys_of(issuer, clock)
        good = fetch(source)
        issuer.fail_next(10_000)
        assert fetch(source) is good
        assert "answered 503" in source.status.failure
        seen = len(issuer.requests)
        for _ in range(50):
            assert fetch(source) is good
        assert len(issuer.requests) == seen
        clock.advance(30)
        assert fetch(source) is good
        assert len(issuer.requests) > seen


def test_an_issuer_that_was_never_there_is_asked_every_ten_seconds_at_most() -> None:
    with Issuer() as issuer:
        clock = FakeClock()
        issuer.fail_next(10_000)
        source = keys_of(issuer, clock)
        for _ in range(20):
            assert fetch(source) is None
        assert len(issuer.requests) == 1
        clock.advance(10)
        assert fetch(source) is None
        assert len(issuer.requests) == 2


def test_a_hundred_tokens_at_once_cause_one_fetch() -> None:
    async def all_at_once(source: DiscoveredKeys) -> list[Any]:
        return await asyncio.gather(*(source.newer_keys(None) for _ in range(100)))

    with Issuer() as issuer:
        found = asyncio.run(all_at_once(keys_of(issuer)))
        assert found[0] is not None
        assert all(keys is found[0] for keys in found)
        assert len(issuer.requests) == 2


def test_threads_with_loops_of_their_own_wait_for_one_fetch() -> None:
    """As the views of a threaded server do when it starts."""
    with Issuer() as issuer:
        issuer.rotate()
        source = keys_of(issuer, time.time)
        at_once = threading.Barrier(8)

        def ask() -> Any:
            at_once.wait(20)
            return fetch(source)

        with ThreadPoolExecutor(8) as threads:
            found = [asked.result(30) for asked in [threads.submit(ask) for _ in range(8)]]
        assert None not in found
        assert all(keys is found[0] for keys in found)
        assert len(issuer.requests) == 2


def test_a_thread_that_gives_up_and_one_whose_loop_ends_hold_nobody(rough: RoughServer) -> None:
    asked, held = threading.Event(), threading.Event()

    def wait_for_it(request: object) -> Iterator[bytes]:
        asked.set()
        held.wait(20)
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

    async def ask_for(seconds: float) -> None:
        async with asyncio.timeout(seconds):
            await source.newer_keys(None)

    rough.routes[DISCOVERY_PATH] = wait_for_it
    source = keys_of(rough, time.time)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(asyncio.run, ask_for(3))
        assert asked.wait(20)
        with pytest.raises(TimeoutError):
            asyncio.run(ask_for(0.05))
        second = threads.submit(asyncio.run, ask_for(20))
        with pytest.raises(TimeoutError):
            first.result(20)  # its loop ended with it, and the fetch with its loop
        assert second.result(20) is None
        held.set()
    assert source.status.failure == "the fetch was interrupted"


def test_who_gives_up_waiting_does_not_end_the_fetch_for_others() -> None:
    async def one_gives_up(source: DiscoveredKeys) -> Any:
        impatient = asyncio.create_task(source.newer_keys(None))
        patient = asyncio.create_task(source.newer_keys(None))
        await asyncio.sleep(0)
        impatient.cancel()
        return await patient

    with Issuer() as issuer:
        assert asyncio.run(one_gives_up(keys_of(issuer))) is not None


def test_a_fetch_that_its_event_loop_did_not_live_to_see_counts_as_failed(rough: RoughServer) -> None:
    async def leave_early(source: DiscoveredKeys) -> None:
        asyncio.create_task(source.newer_keys(None))  # noqa: RUF006  left alone on purpose
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    clock = FakeClock()
    source = keys_of(rough, clock)
    asyncio.run(leave_early(source))
    assert source.status.failure == "the fetch was interrupted"
    serve_discovery(rough)
    assert fetch(source) is None
    clock.advance(10)
    assert fetch(source) is not None


def test_keys_that_did_not_change_stay_the_same_object_and_tell_nobody() -> None:
    with Issuer() as issuer:
        issuer.rotate()
        source = keys_of(issuer)
        changes: list[int] = []
        source.on_change(lambda: changes.append(1))
        first = fetch(source)
        assert fetch(source) is first
        assert changes == [1]


def test_a_key_set_that_moved_is_found_again(rough: RoughServer) -> None:
    serve_discovery(rough)
    source = keys_of(rough)
    first = fetch(source)
    serve_discovery(rough, jwks_uri=f"{rough.url}/new", keys={"keys": []})
    rough.routes["/new"] = json_reply(good_keys() | {"moved": True})
    rough.routes["/keys"] = reply(b"gone", status="410 Gone")
    assert fetch(source) is not first


# -- bad input ------------------------------------------------------------------------------------


def endless(request: object) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
    yield from itertools.repeat(piece, 5 * (1 << 30) // 65536)  # 5 GB, if somebody reads it


@pytest.mark.parametrize("path", [DISCOVERY_PATH, "/keys"])
def test_a_stream_of_5_gb_is_not_read(rough: RoughServer, path: str) -> None:
    serve_discovery(rough)
    rough.routes[path] = endless
    source = keys_of(rough)
    started = time.monotonic()
    assert fetch(source) is None
    assert time.monotonic() - started < 10
    assert source.status.failure == f"{rough.url}{path} answered more than 1048576 bytes"
    assert rough.sent < 64 << 20


def test_a_length_that_is_too_large_is_not_even_begun(rough: RoughServer) -> None:
    rough.routes[DISCOVERY_PATH] = b"HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n{"
    source = keys_of(rough)
    assert fetch(source) is None
    assert "answered more than 1048576 bytes" in source.status.failure


def drip(request: object) -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    for _ in range(200):
        time.sleep(0.05)
        yield b" "


def silent(request: object) -> Iterator[bytes]:
    for _ in range(30):
        time.sleep(0.05)
        yield b""


@pytest.mark.parametrize("answer", [drip, silent])
def test_a_slow_answer_is_given_up_after_one_limit_for_all_of_it(
    rough: RoughServer, answer: Callable[[object], Iterator[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_limits, "ISSUER_SECONDS", 0.4)
    rough.routes[DISCOVERY_PATH] = answer
    source = keys_of(rough)
    started = time.monotonic()
    assert fetch(source) is None
    assert time.monotonic() - started < 3
    assert source.status.failure == f"{rough.url}{DISCOVERY_PATH} did not end its answer within 0.4 s"


def test_an_answer_in_pieces_of_one_byte_lets_others_go_on(rough: RoughServer) -> None:
    def crumbs(request: object) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        yield b"1\r\n \r\n" * 60_000
        yield b"0\r\n\r\n"

    async def longest_wait_for_a_turn(source: DiscoveredKeys) -> float:
        """In processor time: how busy the machine is does not count."""
        fetching = asyncio.create_task(source.newer_keys(None))
        longest, before = 0.0, time.thread_time()
        while not fetching.done():
            await asyncio.sleep(0)
            longest, before = max(longest, time.thread_time() - before), time.thread_time()
        return longest

    rough.routes[DISCOVERY_PATH] = crumbs
    documents = issuer_documents(config_of(rough))
    for _ in range(2):  # the first time everything is loaded
        source = DiscoveredKeys(config_of(rough), documents=documents, clock=FakeClock())
        longest = asyncio.run(longest_wait_for_a_turn(source))
    assert "expected a JSON object" in source.status.failure, "all of it was read"
    assert longest < 0.02


def test_a_redirect_loop_ends(rough: RoughServer) -> None:
    rough.routes[DISCOVERY_PATH] = redirect(DISCOVERY_PATH)
    source = keys_of(rough)
    assert fetch(source) is None
    assert "redirects more than 5 times" in source.status.failure
    assert len(rough.requests) == 6


def test_no_redirect_to_another_scheme(rough: RoughServer) -> None:
    rough.routes[DISCOVERY_PATH] = redirect(f"http://127.0.0.1:{rough.port}/plain")
    source = keys_of(rough)
    assert fetch(source) is None
    assert source.status.failure == f"http://127.0.0.1:{rough.port} is not https"
    assert len(rough.requests) == 1


def test_no_redirect_to_another_host(rough: RoughServer) -> None:
    with RoughServer(rough.ca) as other:
        serve_discovery(other, issuer=rough.url)
        rough.routes[DISCOVERY_PATH] = redirect(f"{other.url}{DISCOVERY_PATH}")
        source = keys_of(rough)
        assert fetch(source) is None
        assert f"redirects to {other.url}: only redirects within {rough.url} are followed" in source.status.failure
        assert other.requests == []


@pytest.mark.parametrize("location", ["https://[", "javascript:alert(1)", "https:///x", "//\x00"])
def test_a_redirect_to_nowhere(rough: RoughServer, location: str) -> None:
    rough.routes[DISCOVERY_PATH] = redirect(location)
    source = keys_of(rough)
    assert fetch(source) is None
    assert source.status.failure


def test_a_page_for_people_is_no_discovery_document(rough: RoughServer) -> None:
    rough.routes[DISCOVERY_PATH] = reply(b"<html>sign in</html>", content_type="text/html")
    source = keys_of(rough)
    assert fetch(source) is None
    assert 'expected a JSON object, got something else, content type "text/html"' in source.status.failure


@pytest.mark.parametrize(
    "named", ["https://evil.example", "", None, 5, ["x"], "https://127.0.0.1:1/", "HTTPS://127.0.0.1"]
)
def test_an_issuer_that_calls_itself_otherwise(rough: RoughServer, named: object) -> None:
    serve_discovery(rough, issuer=named)
    source = keys_of(rough)
    assert fetch(source) is None
    assert "oidc: issuer did not match the issuer returned by provider, expected " in source.status.failure
    assert rough.paths() == [DISCOVERY_PATH]


@pytest.mark.parametrize(
    "address", ["", None, 5, "/keys", "keys", "http://127.0.0.1/keys", "file:///etc/passwd", "https://u:p@h/k"]
)
def test_a_jwks_uri_that_is_none_or_not_https(rough: RoughServer, address: object) -> None:
    serve_discovery(rough, jwks_uri=address)
    source = keys_of(rough)
    assert fetch(source) is None
    assert source.status.failure
    assert "u:p" not in source.status.failure
    assert rough.paths() == [DISCOVERY_PATH]


BAD_KEY_SETS = {
    "no keys": {"keys": []},
    "nothing": {},
    "10,000 keys": {"keys": [{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}] * 10_000},
    "keys that cannot be used": {"keys": [{"kty": "oct", "k": "AAAA"}, {"kty": "RSA", "n": "AQAB", "e": "AQAB"}, None]},
    "a list": [],
    "a number": 5,
    "keys is a string": {"keys": "x"},
}


@pytest.mark.parametrize("document", BAD_KEY_SETS.values(), ids=BAD_KEY_SETS)
def test_a_key_set_that_cannot_be_used_replaces_nothing(rough: RoughServer, document: object) -> None:
    serve_discovery(rough, keys=document)
    source = keys_of(rough)
    assert fetch(source) is None
    assert source.status.failure
    serve_discovery(rough)
    fresh = keys_of(rough)
    good = fetch(fresh)
    assert good is not None
    serve_discovery(rough, keys=document)
    assert fetch(fresh) is good
    assert fresh.status.failure


@pytest.mark.parametrize("body", [b"[" * 500_000, b'{"keys":' * 100_000, b"\xff\xfe", b"", b"nonsense"])
def test_a_body_that_is_no_json(rough: RoughServer, body: bytes) -> None:
    serve_discovery(rough)
    rough.routes["/keys"] = reply(body)
    source = keys_of(rough)
    assert fetch(source) is None
    assert "failed to decode keys" in source.status.failure


def test_what_comes_compressed_is_not_unpacked(rough: RoughServer) -> None:
    rough.routes[DISCOVERY_PATH] = reply(b"\x1f\x8b\x08", Content_Encoding="gzip")
    source = keys_of(rough)
    assert fetch(source) is None
    assert "answered compressed, which was not asked for" in source.status.failure


@pytest.mark.parametrize("status", ["204 No Content", "301 Moved Permanently", "401 Unauthorized", "500 Oops"])
def test_any_status_but_200_is_a_failure_and_its_body_is_not_repeated(rough: RoughServer, status: str) -> None:
    rough.routes[DISCOVERY_PATH] = reply(b"" if status[0] == "2" else b"PRIVATE", status=status)
    source = keys_of(rough)
    assert fetch(source) is None
    assert f"answered {status[:3]}" in source.status.failure
    assert "PRIVATE" not in source.status.failure


def test_another_ca_is_not_trusted(rough: RoughServer) -> None:
    serve_discovery(rough)
    with Issuer() as other:
        source = keys_of(rough, certificate_authority=other.ca.certificate_pem.decode())
        assert fetch(source) is None
        assert "cannot be reached" in source.status.failure
        assert rough.requests == []
    unknown = keys_of(rough, certificate_authority="")
    assert fetch(unknown) is None
    assert rough.requests == []


def test_what_is_not_http_at_all(rough: RoughServer) -> None:
    rough.routes[DISCOVERY_PATH] = b"SSH-2.0-OpenSSH_9.9\r\n"
    source = keys_of(rough)
    assert fetch(source) is None
    assert "cannot be reached" in source.status.failure


def test_nobody_listens() -> None:
    with RoughServer() as gone:
        config = config_of(gone)
    source = DiscoveredKeys(config, clock=FakeClock())
    assert fetch(source) is None
    assert "cannot be reached: ConnectError" in source.status.failure


@pytest.mark.parametrize(
    ("proxy", "reason"),
    [
        ("http://127.0.0.1:1", "cannot be reached: ConnectError"),
        ("127.0.0.1:1", "cannot be reached: ConnectError"),
        ("nonsense://127.0.0.1:1", "cannot be reached through the proxy that the environment names"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_a_failure_and_is_not_gone_around(
    rough: RoughServer, monkeypatch: pytest.MonkeyPatch, proxy: str, reason: str
) -> None:
    serve_discovery(rough)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    source = keys_of(rough)
    assert fetch(source) is None
    assert reason in source.status.failure
    assert rough.requests == []
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert fetch(keys_of(rough)) is not None
