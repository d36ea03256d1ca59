"""Revocation (file, real Redis) and introspection around a real authenticator, a real issuer and its real tokens."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kubeauthn._core.authentication.compiled import compile_configuration
from kubeauthn._core.revocation import Revocation, store_key, write_list
from kubeauthn._io.files import write_atomically
from kubeauthn.errors import EnvironmentFailure, UsageError
from kubeauthn.server import Authenticator, load_configuration
from kubeauthn.server.cache import CachedAuthenticator
from kubeauthn.server.decisions import AuthenticatorDecider, Decider, Decision
from kubeauthn.server.extensions import Extensions, add_arguments, options_of
from kubeauthn.server.revocation import RevocationCheck, RevocationDecider
from kubeauthn.server.revocation_file import FileRevocations
from kubeauthn.testing import CertificateAuthority, Issuer
from kubeauthn.testing._http import HttpConnection, Response
from kubeauthn.testing._listener import Listener, handshake

OPAQUE = "opaque-0123456789"


def configuration(url: str):
    return load_configuration(
        json.dumps(
            {
                "apiVersion": "apiserver.config.k8s.io/v1",
                "kind": "AuthenticationConfiguration",
                "jwt": [
                    {
                        "issuer": {"url": url, "audiences": ["api"]},
                        "claimValidationRules": [{"claim": "hd", "requiredValue": "corp"}],
                        "claimMappings": {"username": {"claim": "sub", "prefix": "u:"}},
                    }
                ],
            }
        )
    )


@pytest.fixture
def inner(issuer: Issuer) -> Decider:
    authenticator = Authenticator(configuration(issuer.url), keys={issuer.url: issuer.jwks()})
    return AuthenticatorDecider(CachedAuthenticator(authenticator))


def token(issuer: Issuer, subject: str = "jane", **claims: Any) -> str:
    return issuer.token(subject, audience="api", hd="corp", **claims)


def ask(decider: Decider, text: str) -> Decision:
    return decider.decide_now(text) or asyncio.run(decider.decide(text))


def until(condition: Callable[[], object], seconds: float = 8.0) -> None:
    for _ in range(int(seconds * 100)):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not become so")


# -- revocation by a file -------------------------------------------------------------------------


def test_a_cached_token_is_refused_as_soon_as_the_file_names_it(issuer: Issuer, inner: Decider, tmp_path: Path):
    path = tmp_path / "revoked.json"
    path.write_text(write_list([]))
    source = FileRevocations(str(path))
    decider = RevocationDecider(inner, RevocationCheck([source]))
    jane, john = token(issuer, jti="id-1"), token(issuer, "john", jti="id-2")
    assert [ask(decider, text).outcome for text in (jane, john)] == ["authenticated"] * 2
    assert ask(inner, jane).cached

    path.write_text(write_list([Revocation(issuer.url, "id-1")]))
    until(lambda: ask(decider, jane).outcome == "refused")
    refused = ask(decider, jane)
    assert (refused.user, refused.public_message, refused.rule) == (None, "the token is revoked", "revocation")
    assert refused.reason == "the token is revoked by its id"
    assert ask(decider, john).outcome == "authenticated"

    path.write_text("revocations: [{")  # wrong: what was good stays
    until(lambda: ask(decider, jane) and source.complaint)
    assert str(path) in source.complaint
    assert ask(decider, jane).outcome == "refused"
    path.unlink()
    until(lambda: ask(decider, jane) and "no such file" in source.complaint)
    assert ask(decider, jane).outcome == "refused"

    os.mkfifo(path)  # nobody writes to it, and it must not keep the next list waiting
    until(lambda: ask(decider, jane) and "is a pipe" in source.complaint)
    path.unlink()

    path.write_text(write_list([Revocation(issuer.url, issued_until=time.time() + 5)]))
    until(lambda: ask(decider, john).outcome == "refused")
    assert source.complaint == ""
    asyncio.run(source.close())


def test_a_server_that_nobody_asked_for_a_while_knows_what_was_revoked_meanwhile(
    issuer: Issuer, inner: Decider, tmp_path: Path
):
    """One request, after the change: there is no second one that could find it in force."""
    path = tmp_path / "revoked.json"
    path.write_text(write_list([]))
    source = FileRevocations(str(path))
    decider = RevocationDecider(inner, RevocationCheck([source]))
    jane, john = token(issuer, jti="id-1"), token(issuer, "john", jti="id-2")
    for text, revoked in ((jane, "id-1"), (john, "id-2")):
        path.write_text(write_list([Revocation(issuer.url, revoked)]))
        time.sleep(3.0)
        assert ask(decider, text).outcome == "refused"
    asyncio.run(source.close())


def test_a_list_that_is_being_written_or_was_emptied_lets_nobody_back_in(
    issuer: Issuer, inner: Decider, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Each beginning of it is a list of its own that is right, and shorter; on a full disk it stays empty."""
    path = tmp_path / "revoked.yaml"
    entries = "".join(f"- {{tokenID: other-{number}}}\n" for number in range(60))
    path.write_text("revocations:\n- tokenID: id-1\n")
    source = FileRevocations(str(path))
    decider = RevocationDecider(inner, RevocationCheck([source]))
    jane = token(issuer, jti="id-1")

    def longest_pause() -> float:
        outcomes, moments = set(), []
        with path.open("w") as slow:
            for line in ("revocations:\n" + entries + "- {tokenID: id-1}\n").splitlines(keepends=True):
                slow.write(line)
                slow.flush()
                moments.append(time.monotonic())
                time.sleep(0.03)
                outcomes.add(ask(decider, jane).outcome)
        longest = max(after - before for before, after in pairwise(moments))
        assert outcomes == {"refused"} or longest > 0.4, "a pause in writing is what an end looks like"
        until(lambda: ask(decider, jane).outcome == "refused")
        return longest

    assert any(longest_pause() <= 0.4 for _ in range(5))
    path.write_text("")
    until(lambda: "is empty" in source.complaint)
    assert ask(decider, jane).outcome == "refused"
    path.write_text("revocations: []\n")
    until(lambda: ask(decider, jane).outcome == "authenticated")
    assert [record.levelname for record in caplog.records if "revocation" in record.name] == ["ERROR", "WARNING"]
    asyncio.run(source.close())


def test_a_list_that_is_changed_without_a_rest_revokes_and_takes_nothing_back(
    issuer: Issuer, inner: Decider, tmp_path: Path
):
    """A script that revokes one token after the other, and mistook one for another before."""
    path = tmp_path / "revoked.json"
    path.write_text(write_list([Revocation(token_id="mistaken")]))
    source = FileRevocations(str(path))
    decider = RevocationDecider(inner, RevocationCheck([source]))
    mistaken, stolen = token(issuer, jti="mistaken"), token(issuer, jti="stolen")
    entries = [Revocation(token_id="stolen")]

    def outcomes() -> list[str]:
        entries.append(Revocation(token_id=f"other-{len(entries)}"))
        write_atomically(str(path), write_list(entries).encode())
        return [ask(decider, jane).outcome for jane in (mistaken, stolen)]

    assert outcomes() == ["refused", "authenticated"]
    until(lambda: outcomes() == ["refused", "refused"])
    until(lambda: ask(decider, mistaken).outcome == "authenticated")
    assert ask(decider, stolen).outcome == "refused"
    asyncio.run(source.close())


def test_a_worker_that_starts_later_has_the_last_good_list_and_what_is_new_in_the_file(
    issuer: Issuer, inner: Decider, tmp_path: Path
):
    path = tmp_path / "revoked.json"
    path.write_text(write_list([Revocation(token_id="id-1")]))
    watched = FileRevocations(str(path))
    jane, joe = token(issuer, jti="id-1"), token(issuer, jti="id-2")

    def outcomes_in_a_new_worker() -> Iterator[str]:
        source = pickle.loads(pickle.dumps(watched))  # noqa: S301  our own bytes
        decider = RevocationDecider(inner, RevocationCheck([source]))
        yield from (ask(decider, one).outcome for one in (jane, joe))
        if path.exists() and "id-2" in path.read_text():
            until(lambda: ask(decider, jane).outcome == "authenticated")
        else:
            until(lambda: source.complaint)
            assert ask(decider, jane).outcome == "refused"
        asyncio.run(source.close())

    for wrong in ("", "revocations: ["):
        path.write_text(wrong)
        assert list(outcomes_in_a_new_worker()) == ["refused", "authenticated"]
    path.unlink()
    assert list(outcomes_in_a_new_worker()) == ["refused", "authenticated"]
    path.write_text(write_list([Revocation(token_id="id-2")]))
    assert list(outcomes_in_a_new_worker()) == ["refused", "refused"]
    until(lambda: list(outcomes_in_a_new_worker()) == ["authenticated", "refused"])
    asyncio.run(watched.close())


def test_a_server_does_not_start_with_a_wrong_list(tmp_path: Path):
    path = tmp_path / "revoked.yaml"
    with pytest.raises(EnvironmentFailure, match="no such file"):
        FileRevocations(str(path))
    path.write_text("revocations: 5")
    with pytest.raises(EnvironmentFailure, match="expected a list"):
        FileRevocations(str(path))


def test_a_token_that_no_list_could_name_is_refused(issuer: Issuer, inner: Decider, tmp_path: Path):
    path = tmp_path / "revoked.json"
    path.write_text(write_list([]))
    source = FileRevocations(str(path))
    decider = RevocationDecider(inner, RevocationCheck([source]))
    odd = token(issuer, jti=5)
    assert ask(inner, odd).outcome == "authenticated"
    assert ask(decider, odd).reason.startswith("jti is not a string")
    asyncio.run(source.close())


# -- revocation by Redis --------------------------------------------------------------------------


class RedisServer:
    """Debian's own, on a unix socket in a directory of the test's."""

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "redis.sock"
        self.url = f"unix://{self.socket}"
        program = shutil.which("redis-server")
        assert program
        self.process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", str(self.socket), "--dir", str(directory), "--save", ""],
            stdout=subprocess.DEVNULL,
        )
        until(self._answers)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self.socket))
            except OSError:
                return False
            connection.sendall(b"PING\r\n")
            return connection.recv(64) == b"+PONG\r\n"

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(40)


@pytest.fixture
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.mark.needs("redis-server")
def test_two_replicas_share_revocations_in_redis(issuer: Issuer, inner: Decider, redis_server: RedisServer):
    from kubeauthn.server.revocation_redis import RedisRevocations, add_revocation

    async def scene() -> None:
        sources = [RedisRevocations(redis_server.url) for _ in range(2)]
        replicas = [RevocationDecider(inner, RevocationCheck([source])) for source in sources]
        jane, john, other = token(issuer, jti="a"), token(issuer, "john", jti="b"), token(issuer, "eve", jti="c")

        async def outcomes() -> list[list[str]]:
            return [[(await replica.decide(text)).outcome for text in (jane, john, other)] for replica in replicas]

        yes, no = "authenticated", "refused"
        assert replicas[0].decide_now(jane) is None  # it must be asked
        assert await outcomes() == [[yes, yes, yes]] * 2
        await asyncio.to_thread(add_revocation, redis_server.url, Revocation(issuer.url, "a"))
        assert await outcomes() == [[no, yes, yes]] * 2
        john_until = Revocation(issuer.url, "", "john", time.time() + 5)
        await asyncio.to_thread(add_revocation, redis_server.url, john_until)
        # an earlier end does not shorten it
        await asyncio.to_thread(add_revocation, redis_server.url, Revocation(issuer.url, "", "john", 10.0))
        assert await outcomes() == [[no, no, yes]] * 2
        await asyncio.to_thread(add_revocation, redis_server.url, Revocation(issuer.url), keep_seconds=1000)
        assert await outcomes() == [[no, no, no]] * 2
        assert (await replicas[0].decide("garbage")).outcome == "not_mine"
        for source in sources:
            await source.close()

    asyncio.run(scene())


@pytest.mark.needs("redis-server")
def test_what_redis_holds_but_no_text_revokes_and_a_server_without_the_permission_lets_nobody_in(
    issuer: Issuer, inner: Decider, redis_server: RedisServer
):
    """Somebody used `SADD` where `SET` was meant: that key is there, and whoever made it wanted a revocation."""
    import redis

    from kubeauthn.server.revocation_redis import PREFIX, RedisRevocations

    url = f"unix://kubeauthn:pass@{redis_server.socket}"
    revoked, good = token(issuer, jti="a"), token(issuer, jti="b")

    async def outcomes() -> list[tuple[str, str]]:
        source = RedisRevocations(url)
        decider = RevocationDecider(inner, RevocationCheck([source]))
        decisions = [await decider.decide(text) for text in (good, revoked)]
        await source.close()
        return [(decision.outcome, decision.reason) for decision in decisions]

    with redis.Redis.from_url(redis_server.url) as administrator:
        administrator.acl_setuser("kubeauthn", True, passwords=["+pass"], keys=[f"{PREFIX}*"], commands=["+get"])
        administrator.sadd(store_key(Revocation(issuer.url, "a"), PREFIX), "x")
        assert asyncio.run(outcomes()) == [("authenticated", ""), ("refused", "the token is revoked by its id")]
        administrator.delete(store_key(Revocation(issuer.url, "a"), PREFIX))
        administrator.rpush(store_key(Revocation(issuer.url), PREFIX), "1")
        assert asyncio.run(outcomes()) == [("refused", "the tokens of its issuer are revoked")] * 2
        administrator.acl_setuser("kubeauthn", True, passwords=["+pass"], keys=[f"{PREFIX}*"], commands=["-get"])
    failed = "redis cannot be asked for revocations: NoPermissionError"
    assert asyncio.run(outcomes()) == [("failed", failed)] * 2


@pytest.mark.needs("redis-server")
def test_without_redis_tokens_are_refused_unless_the_operator_chose_otherwise(
    issuer: Issuer, inner: Decider, tmp_path: Path
):
    from kubeauthn.server.revocation_redis import RedisRevocations, add_revocation

    directory = tmp_path / "r"
    directory.mkdir()
    server = RedisServer(directory)

    async def scene() -> None:
        now = [0.0]
        source = RedisRevocations(server.url, clock=lambda: now[0])
        refusing = RevocationDecider(inner, RevocationCheck([source]))
        allowing = RevocationDecider(inner, RevocationCheck([source], "allow"))
        jane = token(issuer, jti="a")
        assert (await refusing.decide(jane)).outcome == "authenticated"
        server.stop()
        failed = await refusing.decide(jane)
        assert (failed.outcome, failed.user, failed.rule) == ("failed", None, "revocation")
        assert failed.reason.startswith("redis cannot be asked for revocations: ")
        assert refusing.decide_now(jane).outcome == "failed"  # at once, while it cools down
        assert (await allowing.decide(jane)).outcome == "authenticated"
        again = RedisServer(directory)
        try:
            assert refusing.decide_now(jane).outcome == "failed"
            now[0] += 2.0
            assert (await refusing.decide(jane)).outcome == "authenticated"
        finally:
            await source.close()
            again.stop()
        with pytest.raises(EnvironmentFailure, match="did not take the revocation"):
            add_revocation(server.url, Revocation(issuer.url))

    asyncio.run(scene())


def test_a_silent_redis_costs_a_bounded_time_and_no_password_is_told(issuer: Issuer, inner: Decider):
    from kubeauthn.server.revocation_redis import RedisRevocations

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"redis://:hunter2@127.0.0.1:{silent.getsockname()[1]}/0"

        async def scene() -> Decision:
            source = RedisRevocations(url, seconds=0.2)
            decision = await RevocationDecider(inner, RevocationCheck([source])).decide(token(issuer, jti="a"))
            await source.close()
            return decision

        decision = asyncio.run(scene())
    assert decision.outcome == "failed"
    assert "hunter2" not in repr(decision)
    with pytest.raises(UsageError) as caught:
        RedisRevocations("http://:hunter2@x/")
    assert "hunter2" not in repr(caught.value) + str(caught.value.__cause__)


# -- introspection --------------------------------------------------------------------------------


class Endpoint:
    """An introspection endpoint over TLS. `answers` are by token; it records what it was asked."""

    def __init__(self, ca: CertificateAuthority) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str]] = []
        self.status = 200
        context = ca.server_context()
        self.listener = Listener(self._serve, name="introspection", context=context)
        self.url = f"https://127.0.0.1:{self.listener.port}/introspect"

    def _serve(self, connection: socket.socket) -> None:
        from urllib.parse import parse_qs

        try:
            http = HttpConnection(handshake(connection))
            while (request := http.read_request()) is not None:
                form = parse_qs(request.body.decode())
                self.asked.append((form["token"][0], request.header("authorization") or ""))
                answer = self.answers.get(form["token"][0], {"active": False})
                http.write_response(Response.of_json(answer, self.status), keep_alive=True)
        except (OSError, ssl.SSLError):
            pass


@pytest.fixture
def endpoint(issuer: Issuer) -> Iterator[Endpoint]:
    made = Endpoint(issuer.ca)
    yield made
    made.listener.stop()


def introspecting(issuer: Issuer, endpoint: Endpoint, tmp_path: Path, *more: str) -> list[str]:
    (tmp_path / "secret").write_text("s3cr:t/\n")
    (tmp_path / "ca.pem").write_bytes(issuer.ca.certificate_pem)
    return [
        f"--introspection-url={endpoint.url}",
        f"--introspection-issuer={issuer.url}",
        "--introspection-client-id=kubeauthn",
        f"--introspection-client-secret-file={tmp_path / 'secret'}",
        f"--introspection-ca-file={tmp_path / 'ca.pem'}",
        *more,
    ]


def parsed(words: list[str]) -> dict[str, Any]:
    import argparse

    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return options_of(parser.parse_args(words))


def told(issuer: Issuer, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {
        "active": True,
        "iss": issuer.url,
        "sub": "jane",
        "aud": "api",
        "hd": "corp",
        "exp": now + 600,
        "iat": now,
    }
    claims.update(changes)
    return {name: value for name, value in claims.items() if value is not ...}


def decisions(issuer: Issuer, inner: Decider, words: list[str], *texts: str) -> list[Decision]:
    compiled = compile_configuration(configuration(issuer.url))

    async def scene() -> list[Decision]:
        extensions = Extensions(parsed(words))
        decider = extensions.wrap(inner, lambda: compiled)
        made = [decider.decide_now(text) or await decider.decide(text) for text in texts]
        await extensions.close()
        return made

    return asyncio.run(scene())


def test_an_opaque_token_is_asked_about_once_and_mapped(issuer, inner, endpoint, tmp_path):
    endpoint.answers[OPAQUE] = told(issuer)
    words = introspecting(issuer, endpoint, tmp_path)
    first, second, unknown = decisions(issuer, inner, words, OPAQUE, OPAQUE, "another-opaque-one")
    assert (first.outcome, first.user.username, first.issuer) == ("authenticated", "u:jane", issuer.url)
    assert first.expires_at == endpoint.answers[OPAQUE]["exp"]
    assert (first.cached, second.cached) == (False, True)
    assert (unknown.outcome, unknown.rule) == ("refused", "introspection")
    basic = base64.b64encode(b"kubeauthn:s3cr%3At%2F").decode()
    assert endpoint.asked == [(OPAQUE, f"Basic {basic}"), ("another-opaque-one", f"Basic {basic}")]


ANSWERS = {
    "not active": ({"active": False}, "refused"),
    "active as a text": ({"active": "true"}, "failed"),
    "active left out": ({"active": ...}, "failed"),
    "another issuer": ({"iss": "https://elsewhere.test"}, "refused"),
    "no issuer": ({"iss": ...}, "authenticated"),
    "issuer null": ({"iss": None}, "refused"),
    "another audience": ({"aud": "x"}, "refused"),
    "no audience": ({"aud": ...}, "refused"),
    "ended": ({"exp": 1000}, "refused"),
    "no end": ({"exp": ...}, "refused"),
    "end as a text": ({"exp": "9999999999"}, "refused"),
    "not begun": ({"nbf": 9999999999}, "refused"),
    "a rule says no": ({"hd": "other"}, "refused"),
    "no subject": ({"sub": ...}, "refused"),
    "claims from elsewhere": (
        {
            "sub": ...,
            "_claim_names": {"sub": "s"},
            "_claim_sources": {"s": {"endpoint": "https://127.0.0.1:1/"}},
        },
        "refused",
    ),
}


@pytest.mark.parametrize(("changes", "outcome"), ANSWERS.values(), ids=ANSWERS)
def test_answers_of_the_endpoint(changes, outcome, issuer, inner, endpoint, tmp_path):
    endpoint.answers[OPAQUE] = told(issuer, **changes)
    (decision,) = decisions(issuer, inner, introspecting(issuer, endpoint, tmp_path), OPAQUE)
    assert decision.outcome == outcome
    assert (decision.user is None) == (outcome != "authenticated")
    assert OPAQUE not in repr(decision)


def test_only_opaque_tokens_go_out(issuer, inner, endpoint, tmp_path):
    foreign = issuer.sign({"iss": "https://cluster.test", "sub": "system:serviceaccount:a:b"})
    mine, damaged = token(issuer), token(issuer)[:-4]
    kept = [
        foreign,
        mine,
        foreign[:-300] + "!",
        "eyJhbGciOi.x.y",
        "abcdef.0123456789abcdef",
        "a b",
        "ä",
        "x" * 5000,
        "",
    ]
    made = decisions(issuer, inner, introspecting(issuer, endpoint, tmp_path), *kept, damaged)
    assert not endpoint.asked
    assert [d.outcome for d in made] == ["not_mine", "authenticated", *["not_mine"] * 7, "refused"]
    words = introspecting(issuer, endpoint, tmp_path, "--introspection-token-prefix=acme_")
    decisions(issuer, inner, words, OPAQUE, "acme_1")
    assert [text for text, _ in endpoint.asked] == ["acme_1"]


def test_an_endpoint_that_fails_fails_closed_and_is_left_alone_for_a_moment(issuer, inner, endpoint, tmp_path):
    endpoint.status = 503
    words = introspecting(issuer, endpoint, tmp_path)
    made = decisions(issuer, inner, words, OPAQUE, "opaque-2", "opaque-3")
    assert [decision.outcome for decision in made] == ["failed"] * 3
    assert len(endpoint.asked) == 1
    assert made[0].reason == f"{endpoint.url} answered 503"


@pytest.mark.parametrize("status", [302, 400, 413, 500])
def test_a_token_that_the_endpoint_chokes_on_keeps_nobody_else_out(issuer, inner, endpoint, tmp_path, status):
    endpoint.status = status
    words = introspecting(issuer, endpoint, tmp_path)
    made = decisions(issuer, inner, words, OPAQUE, "opaque-2", "opaque-3")
    assert [decision.outcome for decision in made] == ["failed"] * 3
    assert len(endpoint.asked) == 3


def test_an_endpoint_of_another_ca_is_not_told_the_token(issuer, inner, endpoint, tmp_path):
    words = introspecting(issuer, endpoint, tmp_path)
    (tmp_path / "ca.pem").write_bytes(CertificateAuthority("another").certificate_pem)
    (decision,) = decisions(issuer, inner, words, OPAQUE)
    assert decision.outcome == "failed"
    assert not endpoint.asked


def test_an_introspected_token_is_revoked_and_audited(issuer, inner, endpoint, tmp_path):
    endpoint.answers[OPAQUE] = told(issuer, jti="id-1")
    (tmp_path / "revoked.json").write_text(write_list([Revocation(issuer.url, "id-1")]))
    words = introspecting(
        issuer, endpoint, tmp_path,
        f"--revocation-file={tmp_path / 'revoked.json'}", f"--audit-log={tmp_path / 'audit'}",
    )  # fmt: skip
    (decision,) = decisions(issuer, inner, words, OPAQUE)
    assert (decision.outcome, decision.rule) == ("refused", "revocation")
    (line,) = map(json.loads, (tmp_path / "audit").read_text().splitlines())
    assert (line["outcome"], line["rule"], line["issuer"]) == ("refused", "revocation", issuer.url)
    assert OPAQUE not in (tmp_path / "audit").read_text()


def test_without_options_nothing_is_wrapped(inner: Decider):
    assert Extensions(parsed([])).wrap(inner, lambda: None) is inner


@pytest.mark.parametrize(
    "words",
    [
        ["--introspection-url=https://i.test/"],
        ["--introspection-url=http://i.test/", "--introspection-issuer=https://i.test"],
        ["--introspection-url=https://i.test/", "--introspection-issuer=https://i.test"],
        ["--introspection-bearer-file=x"],
        ["--audit-required"],
    ],
)
def test_options_that_do_not_fit_together(words: list[str]):
    with pytest.raises(UsageError):
        parsed(words)


# -- all of it in the real server -----------------------------------------------------------------


def test_the_server_revokes_and_records(issuer: Issuer, tmp_path: Path):
    from tests.integration import serve_process

    file, revoked, log = tmp_path / "authentication.yaml", tmp_path / "revoked.json", tmp_path / "audit"
    file.write_text(serve_process.configuration(issuer))
    revoked.write_text(write_list([]))
    options = ("--workers", "2", f"--revocation-file={revoked}", f"--audit-log={log}")
    jane = issuer.token("jane", audience="kubernetes", jti="id-1")
    with serve_process.Serve(file, *options) as server:
        server.ready()
        assert server.review(jane)["user"]["username"] == "jane"
        revoked.write_text(write_list([Revocation(issuer.url, "id-1")]))
        until(lambda: all(not server.review(jane).get("authenticated") for _ in range(8)))
        with server.client() as client:
            answer = client.post("/", json=serve_process.review(jane), headers={"X-Request-ID": "mine-7"})
        assert answer.headers["x-request-id"] == "mine-7"
        until(lambda: "mine-7" in log.read_text())
        revoked.write_text("revocations: [{")  # a worker that starts now has the last good list
        before = server.workers()
        os.kill(before[0], signal.SIGKILL)
        until(lambda: len(server.workers()) == 2 and server.workers() != before)
        time.sleep(1.0)
        assert not any(server.review(jane).get("authenticated") for _ in range(8))
        assert server.process.poll() is None
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert (lines[0]["outcome"], lines[0]["username"], lines[0]["credentialID"]) == (
        "authenticated",
        "jane",
        "JTI=id-1",
    )
    last = next(line for line in lines if line["requestID"] == "mine-7")
    assert (last["outcome"], last["rule"], last["path"]) == ("refused", "revocation", "/")
    assert last["client"].startswith("127.0.0.1")
    assert jane not in log.read_text()
    assert jane not in "".join(server.raw)


def test_a_worker_that_cannot_start_does_not_end_those_that_run(issuer: Issuer, tmp_path: Path):
    """The folder of the audit log is gone for a while, and a worker dies meanwhile."""
    from tests.integration import serve_process

    file, folder, away = tmp_path / "authentication.yaml", tmp_path / "audit", tmp_path / "away"
    file.write_text(serve_process.configuration(issuer))
    folder.mkdir()
    jane = issuer.token("jane", audience="kubernetes")
    with serve_process.Serve(file, "--workers", "2", f"--audit-log={folder / 'log'}") as server:
        server.ready()
        until(lambda: "kubeauthn_workers 2" in server.metrics(), seconds=60)  # ready is said by the first of them
        folder.rename(away)
        os.kill(server.workers()[0], signal.SIGKILL)
        cannot = "a worker cannot start, and another one is tried"
        until(lambda: sum(line["message"].startswith(cannot) for line in list(server.lines)) == 2, seconds=60)
        assert server.process.poll() is None
        assert server.review(jane)["user"]["username"] == "jane"
        away.rename(folder)
        until(lambda: "kubeauthn_workers 2" in server.metrics(), seconds=60)
    assert "Traceback" not in "".join(server.raw)


def test_the_last_lines_are_written_when_the_server_ends_and_a_renamed_log_is_left_alone(
    issuer: Issuer, tmp_path: Path
):
    from tests.integration import serve_process

    file, log, old = tmp_path / "authentication.yaml", tmp_path / "audit", tmp_path / "audit.1"
    file.write_text(serve_process.configuration(issuer))
    token = issuer.token("jane", audience="kubernetes")
    with serve_process.Serve(file, "--workers", "2", f"--audit-log={log}") as server:
        server.ready()
        for _ in range(20):
            server.review(token)
        until(lambda: len(log.read_text().splitlines()) == 20)
        log.rename(old)
        server.hang_up()
        file.write_text(serve_process.configuration(issuer, prefix="new:"))
        server.said("configuration reloaded")  # the hang-up came before it, on the same channel
        with server.client() as client:
            for _ in range(200):
                assert client.post("/", json=serve_process.review(token)).status_code == 200
        server.process.terminate()
        server.process.wait(30)
    assert len(old.read_text().splitlines()) == 20
    assert len(log.read_text().splitlines()) == 200


def test_traces_go_where_the_environment_says(issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from tests.integration import serve_process

    pytest.importorskip("opentelemetry.sdk")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    file = tmp_path / "authentication.yaml"
    file.write_text(serve_process.configuration(issuer))
    token = issuer.token("jane", audience="kubernetes")
    with serve_process.Serve(file, "--tracing") as server:
        server.ready()
        assert server.review(token)["authenticated"] is True
    # Spans wait to be sent together: the end of the worker sends them.
    printed = "".join(server.stdout)
    assert '"name": "kubeauthn.decide"' in printed
    assert "jane" not in printed
    assert token not in printed


def test_the_server_does_not_start_with_options_that_cannot_work(issuer: Issuer, tmp_path: Path):
    from tests.integration.serve_process import configuration as served

    file = tmp_path / "authentication.yaml"
    file.write_text(served(issuer))
    for option in (
        f"--revocation-file={tmp_path / 'none'}",
        f"--audit-log={tmp_path / 'no' / 'such'}",
        "--audit-required",
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "kubeauthn", "serve", str(file), "--listen", "127.0.0.1:0", option],
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert ended.returncode in (2, 4)
        assert ended.stderr.startswith("error: ")
