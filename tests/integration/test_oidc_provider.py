"""The `oidc` auth-provider against an issuer that refreshes tokens."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from kubeauthn._core import limits
from kubeauthn._core.kubeconfig.model import AuthProvider
from kubeauthn._io.http import get_json, post_form
from kubeauthn.client.oidc_source import OidcProvider, shared_oidc_source
from kubeauthn.errors import AuthProviderError, CredentialWaiting, EnvironmentFailure
from kubeauthn.testing.issuer import Issuer


def entry(issuer: Issuer, **config: str) -> AuthProvider:
    values = {
        "idp-issuer-url": issuer.url,
        "client-id": "kubernetes",
        "idp-certificate-authority-data": base64.b64encode(issuer.ca.certificate_pem).decode(),
    } | config
    return AuthProvider("oidc", tuple(values.items()))


def token_requests(issuer: Issuer) -> list[dict[str, str]]:
    return [dict(request.form) for request in issuer.requests if request.method == "POST"]


def test_a_valid_id_token_is_used_as_it_is() -> None:
    with Issuer() as issuer:
        token = issuer.token("jane")
        credential = OidcProvider(entry(issuer, **{"id-token": token})).make_credential()
        assert credential.token is not None
        assert credential.token.reveal() == token
        assert credential.expires_at == pytest.approx(time.time() + 3590, abs=5)
        assert issuer.requests == []


def test_an_ended_id_token_is_refreshed_in_memory() -> None:
    with Issuer(client_secret="hush") as issuer:
        issuer.accept_refresh_token("first", "jane")
        config = {"id-token": issuer.token("jane", expires_in=5), "refresh-token": "first", "client-secret": "hush"}
        credential = OidcProvider(entry(issuer, **config)).make_credential()
        assert credential.token is not None
        assert credential.token.reveal() != config["id-token"]
        assert [form["grant_type"] for form in token_requests(issuer)] == ["refresh_token"]


def test_a_rotated_refresh_token_is_the_one_used_next() -> None:
    with Issuer(rotate_refresh_tokens=True) as issuer:
        issuer.accept_refresh_token("first", "jane")
        provider = OidcProvider(entry(issuer, **{"refresh-token": "first"}))
        provider.make_credential()
        provider.make_credential()
        first, second = token_requests(issuer)
        assert first["refresh_token"] == "first"
        assert second["refresh_token"] != "first"


def test_a_refused_id_token_is_refreshed_not_sent_again() -> None:
    with Issuer() as issuer:
        issuer.accept_refresh_token("first", "jane")
        source = shared_oidc_source(entry(issuer, **{"id-token": issuer.token("jane"), "refresh-token": "first"}))
        first = source.get()
        source.refused(first)
        assert source.get() is not first
        assert len(token_requests(issuer)) == 1


def test_without_refresh_token_an_ended_one_is_an_error() -> None:
    with Issuer() as issuer:
        provider = OidcProvider(entry(issuer, **{"id-token": issuer.token("jane", expires_in=5)}))
        with pytest.raises(AuthProviderError, match="no valid id-token, and cannot refresh without refresh-token"):
            provider.make_credential()


@pytest.mark.parametrize("missing", ["idp-issuer-url", "client-id"])
def test_what_it_needs_is_named(missing: str) -> None:
    config = {"idp-issuer-url": "https://127.0.0.1", "client-id": "x"}
    del config[missing]
    with pytest.raises(AuthProviderError, match=missing):
        OidcProvider(AuthProvider("oidc", tuple(config.items())))


def test_a_failing_issuer_is_not_asked_in_a_hot_loop_and_no_secret_is_told() -> None:
    with Issuer() as issuer:
        issuer.fail_next(100, 500)
        source = shared_oidc_source(entry(issuer, **{"refresh-token": "SECRET-REFRESH", "client-secret": "SECRET"}))
        with pytest.raises(AuthProviderError) as caught:
            source.get()
        assert "SECRET" not in str(caught.value)
        seen = len(issuer.requests)
        for _ in range(20):
            with pytest.raises(CredentialWaiting) as waiting:
                source.get()
            assert "SECRET" not in str(waiting.value)
        assert len(issuer.requests) == seen


def test_a_refused_refresh_token_says_so() -> None:
    with Issuer() as issuer:
        with pytest.raises(AuthProviderError, match=r"answered 400 \(invalid_grant\)"):
            OidcProvider(entry(issuer, **{"refresh-token": "unknown"})).make_credential()


def test_another_ca_is_not_trusted() -> None:
    with Issuer() as issuer, Issuer() as other:
        config = {
            "refresh-token": "SECRET",
            "idp-certificate-authority-data": base64.b64encode(other.ca.certificate_pem).decode(),
        }
        with pytest.raises(AuthProviderError, match="cannot be reached"):
            OidcProvider(entry(issuer, **config)).make_credential()
        assert token_requests(issuer) == []


def test_secrets_are_not_sent_over_plain_http_to_elsewhere() -> None:
    config = (("idp-issuer-url", "http://issuer.example"), ("client-id", "x"), ("refresh-token", "r"))
    with pytest.raises(AuthProviderError, match="is not https"):
        OidcProvider(AuthProvider("oidc", config)).make_credential()


def test_the_entry_does_not_print_its_secrets() -> None:
    assert "SECRET" not in repr(AuthProvider("oidc", (("client-secret", "SECRET"),)))


def test_what_could_not_be_sent_is_not_found_in_what_the_error_carries() -> None:
    with Issuer() as issuer:
        context = issuer.ca.client_context()
    with pytest.raises(EnvironmentFailure, match="cannot be reached") as caught:
        post_form(f"{issuer.url}/token", context, {"refresh_token": "SECRET"})
    assert caught.value.__context__ is None


@contextmanager
def answering(pieces: Callable[[], Iterable[bytes]]) -> Iterator[str]:
    """A server that sends these to its one client, for as long as that stays. Its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                for piece in pieces():
                    connection.sendall(piece)

        serving = threading.Thread(target=serve)
        serving.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        serving.join()


def dripping(*first: bytes, then: bytes) -> Callable[[], Iterator[bytes]]:
    def pieces() -> Iterator[bytes]:
        yield from first
        for _ in range(100):
            yield then
            time.sleep(0.1)

    return pieces


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\n\r\n", then=b" "), id="body"),
        pytest.param(dripping(b"HTTP/1.1 200 OK\r\nx: ", then=b"x"), id="head"),
        pytest.param(dripping(then=b"HTTP/1.1 103 Early Hints\r\n\r\n"), id="answers before the answer"),
        pytest.param(dripping(b"H", then=b""), id="nothing"),
    ],
)
def test_an_answer_that_never_ends_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, pieces: Callable[[], Iterator[bytes]]
) -> None:
    monkeypatch.setattr(limits, "HTTP_SECONDS", 0.5)
    with answering(pieces) as url:
        started = time.monotonic()
        with pytest.raises(EnvironmentFailure, match=r"did not end its answer within 0\.5 s"):
            get_json(url, ssl.create_default_context())
        assert time.monotonic() - started < 5


def test_a_head_without_end_is_not_kept() -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        yield b"HTTP/1.1 200 OK\r\n"
        for number in range(100_000):
            line = b"x-%d: %s\r\n" % (number, b"x" * 1000)
            sent += len(line)
            yield line

    with answering(pieces) as url, pytest.raises(EnvironmentFailure, match="cannot be reached: RemoteProtocolError"):
        get_json(url, ssl.create_default_context())
    assert sent < 16 << 20, "what the two ends' buffers hold, and not all of it"


def test_a_thread_that_has_an_event_loop_may_ask_too() -> None:
    async def asked(issuer: Issuer) -> dict[str, Any]:
        return get_json(f"{issuer.url}/.well-known/openid-configuration", issuer.ca.client_context())

    with Issuer() as issuer:
        assert asyncio.run(asked(issuer))["issuer"] == issuer.url


def test_an_address_that_is_none_is_an_error_of_ours() -> None:
    config = {"idp-issuer-url": "https://[", "client-id": "kubernetes", "refresh-token": "SECRET"}
    with pytest.raises(AuthProviderError, match="is not a URL"):
        OidcProvider(AuthProvider("oidc", tuple(config.items()))).make_credential()


def test_a_proxy_of_the_environment_that_is_none_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://jane:s3cret@proxy.test")
    with pytest.raises(EnvironmentFailure, match="cannot be reached: ValueError") as caught:
        get_json("https://issuer.test/", ssl.create_default_context())
    assert "s3cret" not in str(caught.value)


def test_an_id_token_whose_end_is_no_date_is_not_used() -> None:
    claims = base64.urlsafe_b64encode(b'{"exp": 9e11}').decode().rstrip("=")
    config = {"idp-issuer-url": "https://x.test", "client-id": "kubernetes", "id-token": f"e30.{claims}.sig"}
    with pytest.raises(AuthProviderError, match="no valid id-token"):
        OidcProvider(AuthProvider("oidc", tuple(config.items()))).make_credential()
