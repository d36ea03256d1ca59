"""A key outside the process, in an ordinary `ssl.SSLContext`."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import utils

from kubeauthn._io.tls_signer import install
from kubeauthn.client import signing_context
from kubeauthn.errors import CredentialError, PluginReplyError, SigningFailed
from kubeauthn.testing import CertificateAuthority
from tests.integration.signer_scene import NEW_KEY, DemandingServer, MemorySigner, demanding_server, issue


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture(params=["1.2", "1.3"])
def server(request: pytest.FixtureRequest, ca: CertificateAuthority) -> Iterator[DemandingServer]:
    with demanding_server(ca, request.param) as running:
        yield running


def context_for(ca: CertificateAuthority, signer: object, kind: str = "p256", key: object = None) -> ssl.SSLContext:
    key = key or NEW_KEY[kind]()
    return signing_context(issue(ca, key), signer, certificate_authority=ca.certificate_pem)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", NEW_KEY)
def test_every_kind_of_key(ca: CertificateAuthority, server: DemandingServer, kind: str):
    signer = MemorySigner(NEW_KEY[kind]())
    assert server.ask(context_for(ca, signer, key=signer.key)) == "jane"
    (algorithm,) = signer.asked
    assert algorithm.key_kind == {"rsa": "rsa", "ed25519": "ed25519"}.get(kind, "ec")
    if kind == "rsa":
        assert (algorithm.padding, algorithm.salt) == ("pss", 32)


def test_pkcs1_where_the_server_knows_no_pss(ca: CertificateAuthority):
    # Python's ssl cannot set signature algorithms before 3.15; openssl's own server can.
    signer = MemorySigner(NEW_KEY["rsa"]())
    leaf = ca.issue_server()
    from kubeauthn._io.tls import path_to_memory

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with path_to_memory(leaf.chain_pem + leaf.key_pem) as pair, path_to_memory(ca.certificate_pem) as authority:
        number = [int(path.rpartition("/")[2]) for path in (pair, authority)]
        command = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", pair, "-key", pair]
        command += ["-CAfile", authority, "-Verify", "2", "-verify_return_error", "-tls1_2", "-www"]
        command += ["-client_sigalgs", "RSA+SHA256"]
        with subprocess.Popen(
            command, pass_fds=number, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ) as process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    if line.startswith(b"ACCEPT"):
                        break
                context = context_for(ca, signer, key=signer.key)
                with socket.create_connection(("127.0.0.1", port), 10) as plain:
                    with context.wrap_socket(plain, server_hostname="localhost") as connection:
                        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                        assert connection.recv(100).startswith(b"HTTP/1.0 200")
            finally:
                process.kill()
    assert [(each.padding, each.hash) for each in signer.asked] == [("pkcs1", "sha256")]


def test_the_chain_is_sent(ca: CertificateAuthority, server: DemandingServer):
    below = ca.intermediate()
    signer = MemorySigner(NEW_KEY["p256"]())
    leaf = ssl.DER_cert_to_PEM_cert(issue(below, signer.key))  # type: ignore[arg-type]
    chain = leaf.encode() + below.certificate_pem
    assert server.ask(signing_context(chain, signer, certificate_authority=ca.certificate_pem)) == "jane"


def test_twenty_connections_take_as_many_signatures_as_full_handshakes(
    ca: CertificateAuthority, server: DemandingServer
):
    signer = MemorySigner(NEW_KEY["p256"]())
    context = context_for(ca, signer, key=signer.key)
    assert {server.ask(context) for _ in range(20)} == {"jane"}
    assert len(signer.asked) == server.full_handshakes == 1


def test_without_tickets_every_connection_is_signed(ca: CertificateAuthority):
    signer = MemorySigner(NEW_KEY["p256"]())
    with demanding_server(ca, "1.3", tickets=False) as server:
        context = context_for(ca, signer, key=signer.key)
        for _ in range(5):
            server.ask(context)
        assert len(signer.asked) == server.full_handshakes == 5


def test_threads_each_get_their_own_signature(ca: CertificateAuthority):
    signer = MemorySigner(NEW_KEY["p256"]())
    with demanding_server(ca, "1.3", tickets=False) as server, ThreadPoolExecutor(8) as pool:
        context = context_for(ca, signer, key=signer.key)
        answers = list(pool.map(lambda _: server.ask(context), range(64)))
        assert answers == ["jane"] * 64
        assert len(signer.asked) == server.full_handshakes == 64


def test_the_signers_exception_is_the_cause(ca: CertificateAuthority, server: DemandingServer):
    class TokenIsGoneError(Exception):
        pass

    def sign(digest: bytes, algorithm: object) -> bytes:
        raise TokenIsGoneError("the PIN was 123456")

    with pytest.raises(SigningFailed) as caught:
        server.ask(context_for(ca, sign))
    assert isinstance(caught.value.__cause__, TokenIsGoneError)
    assert "123456" not in str(caught.value)


def test_our_own_errors_keep_their_text(ca: CertificateAuthority, server: DemandingServer):
    def sign(digest: bytes, algorithm: object) -> bytes:
        raise CredentialError("the token is locked", hint="unlock it")

    with pytest.raises(SigningFailed, match="(?m)^the token is locked$") as caught:
        server.ask(context_for(ca, sign))
    assert caught.value.hint == "unlock it"


def test_an_interrupt_passes_as_it_is(ca: CertificateAuthority, server: DemandingServer):
    def sign(digest: bytes, algorithm: object) -> bytes:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.ask(context_for(ca, sign))


def test_a_signature_by_another_key(ca: CertificateAuthority, server: DemandingServer):
    with pytest.raises(SigningFailed, match="does not verify with the certificate's public key"):
        server.ask(context_for(ca, MemorySigner(NEW_KEY["p256"]())))


def test_a_signature_over_another_digest(ca: CertificateAuthority, server: DemandingServer):
    signer = MemorySigner(NEW_KEY["rsa"]())
    with pytest.raises(SigningFailed, match="does not verify"):
        server.ask(context_for(ca, lambda digest, algorithm: signer(bytes(len(digest)), algorithm), key=signer.key))


@pytest.mark.parametrize("kind", ["p256", "p384", "p521"])
def test_a_raw_signature(ca: CertificateAuthority, server: DemandingServer, kind: str):
    signer = MemorySigner(NEW_KEY[kind]())
    size = (signer.key.curve.key_size + 7) // 8

    def sign(digest: bytes, algorithm: object) -> bytes:
        both = utils.decode_dss_signature(signer(digest, algorithm))  # type: ignore[arg-type]
        return b"".join(number.to_bytes(size, "big") for number in both)

    with pytest.raises(SigningFailed, match=r"raw form r \|\| s, and TLS wants it in DER"):
        server.ask(context_for(ca, sign, key=signer.key))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda signature: signature[:-1], "a signature of 255 bytes, and this key's have 256"),
        (lambda signature: signature + b"\0", "a signature of 257 bytes, and this key's have 256"),
        (lambda signature: b"", "an empty signature"),
        (lambda signature: "text", "the signer returned a str, not bytes"),
        (lambda signature: None, "the signer returned a NoneType, not bytes"),
    ],
)
def test_a_signature_of_the_wrong_form(ca: CertificateAuthority, server: DemandingServer, answer, text: str):
    signer = MemorySigner(NEW_KEY["rsa"]())
    with pytest.raises(SigningFailed, match=text):
        server.ask(context_for(ca, lambda digest, algorithm: answer(signer(digest, algorithm)), key=signer.key))


def test_what_the_signer_leaves_in_openssls_queue_does_not_fail_the_handshake(
    ca: CertificateAuthority, server: DemandingServer
):
    signer = MemorySigner(NEW_KEY["p256"]())

    def sign(digest: bytes, algorithm: object) -> bytes:
        with pytest.raises(ssl.SSLError):
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata="-----BEGIN CERTIFICATE-----\nAAAA\n")
        return signer(digest, algorithm)  # type: ignore[arg-type]

    assert server.ask(context_for(ca, sign, key=signer.key)) == "jane"


def test_contexts_are_collected_and_their_signers_with_them(ca: CertificateAuthority, server: DemandingServer):
    signer = MemorySigner(NEW_KEY["p256"]())
    context = context_for(ca, signer, key=signer.key)
    server.ask(context)
    failing = context_for(ca, MemorySigner(NEW_KEY["p256"]()))
    with pytest.raises(SigningFailed):
        server.ask(failing)
    references = [weakref.ref(each) for each in (context, failing, signer)]
    del context, failing, signer
    gc.collect()
    assert [each() for each in references] == [None, None, None]


def test_a_fork_can_go_on_signing(ca: CertificateAuthority):
    signer = MemorySigner(NEW_KEY["p256"]())
    with demanding_server(ca, "1.3", tickets=False) as server:
        context = context_for(ca, signer, key=signer.key)
        server.ask(context)
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if server.ask(context) == "jane" else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert server.ask(context) == "jane"


EXITS = {
    "plain": "",
    "sys.exit": "sys.exit(0)",
    "in a cycle": "cycle = [context]; cycle.append(cycle); del context",
    "kept by a module": "sys.kept = context",
    "kept by a thread": "threading.Thread(target=lambda c=context: time.sleep(60), daemon=True).start()",
}


@pytest.mark.parametrize("ending", EXITS.values(), ids=EXITS)
def test_the_interpreter_ends_with_live_contexts(ca: CertificateAuthority, ending: str):
    key = NEW_KEY["p256"]()
    program = f"""
import sys, threading, time, ssl, socket
from kubeauthn.client import signing_context
context = signing_context({issue(ca, key)!r}, lambda digest, algorithm: b"")
left, right = socket.socketpair()
pending = context.wrap_socket(left, server_hostname="localhost", do_handshake_on_connect=False)
{ending}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("drive", ["socket", "asyncio"])
def test_a_servers_alert_about_the_certificate_is_told(ca: CertificateAuthority, version: str, drive: str):
    told = threading.Event()
    signer = MemorySigner(NEW_KEY["p256"]())
    stranger = CertificateAuthority("somebody else's")
    context = ca.client_context()
    install(context, [issue(stranger, signer.key)], signer, refused=told.set)
    listen = listen_plainly if drive == "socket" else lambda *given: asyncio.run(listen_asyncio(*given))
    with demanding_server(ca, version) as server, pytest.raises(ssl.SSLError):
        listen(server, context)
    assert len(signer.asked) == 1
    assert told.is_set()


def test_a_server_that_hangs_up_tells_nothing_about_the_certificate(ca: CertificateAuthority):
    told = threading.Event()
    signer = MemorySigner(NEW_KEY["p256"]())
    context = ca.client_context()
    install(context, [issue(ca, signer.key)], signer, refused=told.set)
    left, right = socket.socketpair()
    right.close()
    with left, pytest.raises((ssl.SSLError, ConnectionError)):
        context.wrap_socket(left, server_hostname="localhost")
    assert not told.is_set()


# -- event loops ----------------------------------------------------------------------------------


def listen_plainly(server: DemandingServer, context: ssl.SSLContext) -> None:
    with socket.create_connection(server.address, 10) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            connection.recv(1)


async def listen_asyncio(server: DemandingServer, context: ssl.SSLContext) -> None:
    reader, writer = await asyncio.open_connection(*server.address, ssl=context, server_hostname="localhost")
    try:
        await reader.read(1)
    finally:
        writer.close()


Run = Callable[[Coroutine[Any, Any, Any]], Any]


async def ask_asyncio(server: DemandingServer, context: ssl.SSLContext) -> str:
    reader, writer = await asyncio.open_connection(*server.address, ssl=context, server_hostname="localhost")
    writer.write(b"?")
    answer = await reader.read(200)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return answer.decode()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    return pytest.importorskip(request.param).run


def test_the_loop_goes_on_while_a_signature_is_made(ca: CertificateAuthority, server: DemandingServer, run: Run):
    signer = MemorySigner(NEW_KEY["p256"]())
    others_ran = threading.Event()

    def sign(digest: bytes, algorithm: object) -> bytes:
        # Only a loop that goes on can set it.
        assert others_ran.wait(10)
        return signer(digest, algorithm)  # type: ignore[arg-type]

    async def main() -> list[str]:
        context = context_for(ca, sign, key=signer.key)
        asking = [asyncio.create_task(ask_asyncio(server, context)) for _ in range(3)]
        for _ in range(20):
            await asyncio.sleep(0.01)
        others_ran.set()
        return await asyncio.gather(*asking)

    assert run(main()) == ["jane"] * 3
    assert len(signer.asked) == server.full_handshakes == 3


def test_a_loop_resumes_sessions_too(ca: CertificateAuthority, server: DemandingServer, run: Run):
    signer = MemorySigner(NEW_KEY["p256"]())

    async def main() -> set[str]:
        context = context_for(ca, signer, key=signer.key)
        return {await ask_asyncio(server, context) for _ in range(20)}

    assert run(main()) == {"jane"}
    assert len(signer.asked) == server.full_handshakes == 1


def test_in_a_loop_the_signers_error_is_ours(ca: CertificateAuthority, server: DemandingServer, run: Run):
    def sign(digest: bytes, algorithm: object) -> bytes:
        raise LookupError("gone")

    with pytest.raises(CredentialError) as caught:
        run(ask_asyncio(server, context_for(ca, sign)))
    assert isinstance(caught.value, SigningFailed)
    assert str(caught.value) == "the external signer failed: LookupError"
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_cancelled_connection_leaves_the_signature_behind(
    ca: CertificateAuthority, server: DemandingServer, run: Run
):
    signer = MemorySigner(NEW_KEY["p256"]())
    begun, go_on = threading.Event(), threading.Event()

    def sign(digest: bytes, algorithm: object) -> bytes:
        begun.set()
        assert go_on.wait(10)
        return signer(digest, algorithm)  # type: ignore[arg-type]

    async def main() -> str:
        context = context_for(ca, sign, key=signer.key)
        first = asyncio.create_task(ask_asyncio(server, context))
        await asyncio.to_thread(begun.wait, 10)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        go_on.set()
        return await ask_asyncio(server, context)

    assert run(main()) == "jane"


# -- certificates that cannot be used -------------------------------------------------------------


@pytest.mark.parametrize(
    ("certificate", "text"),
    [
        (b"", "the certificate is empty"),
        (b"no certificate", "neither DER nor PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n", "a PEM block that cannot be read"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n", "PEM without a certificate in it"),
        (b"\x30\x03\x02\x01\x00", "is not an X.509 certificate"),
    ],
)
def test_what_is_no_certificate(certificate: bytes, text: str):
    with pytest.raises(PluginReplyError, match=text):
        signing_context(certificate, lambda digest, algorithm: b"")
