"""The external signer under attack: a signer that lies, a kubeconfig that lures, a client that must not see the key."""

from __future__ import annotations

import _ssl
import asyncio
import ctypes
import gc
import json
import logging
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from kubeauthn._core import rfc3339
from kubeauthn._core.kubeconfig.model import AuthProvider
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn._core.signing_identity import signing_identity
from kubeauthn._io.tls_signer import installation
from kubeauthn._io.tls_signer.handshake import signing_failure
from kubeauthn.client import PluginPolicy, connect, open_access, signing_context
from kubeauthn.client.exec_source import ExecPlugin
from kubeauthn.client.refreshed import RefreshedSource
from kubeauthn.client.signer_source import ExternalSigner
from kubeauthn.errors import (
    CredentialWaiting,
    KubeauthnError,
    PluginDenied,
    PluginFailed,
    PluginReplyError,
    SigningFailed,
)
from kubeauthn.testing import ApiServer, CertificateAuthority, FakeClock, ScriptedPlugin
from tests.integration import signer_process
from tests.integration.signer_scene import NEW_KEY, MemorySigner, SignerProgram, demanding_server, issue
from tests.integration.softhsm import PIN, SoftHsm

URL = "/api/v1/namespaces"
VERSION = "external-signer.authentication.k8s.io/v1alpha1"
EC = SigningAlgorithm("ec", hash="sha256")


@pytest.fixture
def ca() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.fixture
def server(ca: CertificateAuthority) -> Iterator[ApiServer]:
    with ApiServer(ca=ca) as running:
        yield running


@pytest.fixture
def signer(tmp_path: Path, ca: CertificateAuthority) -> SignerProgram:
    return SignerProgram(tmp_path / "token", ca)


def use(server: ApiServer, folder: Path, user: dict[str, Any]) -> str:
    return str(server.write_kubeconfig(folder / "config", user))


def shell_signer(folder: Path, *lines: str) -> dict[str, Any]:
    path = folder / "hostile"
    path.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    path.chmod(0o700)
    return {"auth-provider": {"name": "externalSigner", "config": {"pathExec": str(path)}}}


# -- a signer that means no good ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["exec head -c 104857600 /dev/zero"], "printed more than"),
        (["exec head -c 5000 /dev/urandom"], "not UTF-8 text|not a JSON document"),
        (["sleep 600 &", "echo '{}'"], "keeps its standard output open"),
        (["kill -SEGV $$"], "was ended by signal 11"),
    ],
    ids=["100 MB", "noise", "leaves a child", "crashes"],
)
def test_a_signer_that_means_no_good(server: ApiServer, tmp_path: Path, lines: list[str], text: str):
    config = use(server, tmp_path, shell_signer(tmp_path, *lines))
    with connect(kubeconfig=config) as api, pytest.raises((PluginReplyError, PluginFailed), match=text):
        api.get(URL)
    assert server.requests == []


def test_a_chain_without_end(server: ApiServer, tmp_path: Path, signer: SignerProgram, ca: CertificateAuthority):
    signer.show(*[issue(ca, signer.key)] * 17)
    with connect(kubeconfig=use(server, tmp_path, signer.user())) as api:
        with pytest.raises(PluginReplyError, match="a chain of more than 16 certificates"):
            api.get(URL)


@pytest.mark.filterwarnings("ignore")  # of the library, about serial numbers below zero
def test_a_certificate_with_any_byte_changed_is_ours_to_refuse(ca: CertificateAuthority):
    """Whatever a signer calls a certificate: it can be used, or the error is ours."""
    key = MemorySigner(NEW_KEY["p256"]())
    good = issue(ca, key.key)
    refused = 0
    for place in range(len(good)):
        for change in (0x01, 0x80):
            bad = good[:place] + bytes([good[place] ^ change]) + good[place + 1 :]
            try:
                signing_identity([bad], key, 2e9)
                signing_context(bad, key)
            except KubeauthnError:
                refused += 1
    assert refused > 100


def test_a_certificate_swapped_between_handshakes_changes_nothing(
    server: ApiServer, tmp_path: Path, signer: SignerProgram, ca: CertificateAuthority
):
    """The certificate that was checked is the one that is shown, until it ends or is refused."""
    with connect(kubeconfig=use(server, tmp_path, signer.user())) as api:
        assert api.get(URL).status_code == 200
        signer.show(issue(ca, signer.key, user="mallory"))
        server.drop_connections()
        assert api.get(URL).status_code == 200
    assert {each.user for each in server.requests} == {"jane"}
    assert signer.count("CertificateRequest") == 1


def test_what_a_signer_prints_on_standard_error_is_the_persons_and_in_no_error(
    server: ApiServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    config = use(server, tmp_path, shell_signer(tmp_path, "echo the PIN is 92736451 >&2", "exit 9"))
    with connect(kubeconfig=config) as api, pytest.raises(PluginFailed) as caught:
        api.get(URL)
    assert "92736451" in capfd.readouterr().err
    assert "92736451" not in f"{caught.value!r} {caught.value} {caught.value.__cause__!r} {caught.value.hint}"


def test_after_a_failed_signature_none_is_asked_for_at_once(signer: SignerProgram):
    """A client opens connection after connection. Each would bring the wrong PIN to a token that counts."""
    clock = FakeClock()
    signer.say(SignRequest={"exit": 1})
    entry = AuthProvider("externalSigner", (("pathExec", str(signer.path)),))
    client = ExternalSigner(entry, clock=clock, is_terminal=lambda: False)
    with pytest.raises(PluginFailed):
        client.sign(bytes(32), EC)
    for _ in range(5):
        with pytest.raises(CredentialWaiting, match="failed with exit code 1; next attempt in 1.0 s"):
            client.sign(bytes(32), EC)
    assert signer.count("SignRequest") == 1
    clock.advance(1.1)
    signer.say(SignRequest={})
    assert client.sign(bytes(32), EC)
    assert client.sign(bytes(32), EC)


# -- a kubeconfig that lures ----------------------------------------------------------------------


def test_the_policy_is_not_led_astray(server: ApiServer, tmp_path: Path, signer: SignerProgram):
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    good = allowed / "signer"
    good.write_text("#!/bin/sh\nexit 1\n")
    good.chmod(0o700)
    inner = tmp_path / "elsewhere" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "elsewhere" / "signer").symlink_to(signer.path)
    (allowed / "link").symlink_to(inner)
    policy = PluginPolicy(mode="Allowlist", allowlist=(str(good),))
    for path in (
        str(signer.path),
        f"{allowed}/../token/signer",  # the same name in another directory
        "./allowed/../token/signer",
        "../" * 20 + str(signer.path)[1:],
        f"{allowed}/link/../signer",  # reads as the allowed one, and leads elsewhere behind the link
        str(tmp_path / "elsewhere" / "signer"),
    ):
        user = {"auth-provider": {"name": "externalSigner", "config": {"pathExec": path}}}
        with pytest.raises((PluginDenied, PluginFailed, CredentialWaiting)):  # the allowed one itself fails
            with connect(kubeconfig=use(server, tmp_path, user), policy=policy) as api:
                api.get(URL)
        assert signer.requests == [], path


# -- what the signer's process gets ---------------------------------------------------------------


def test_the_signer_can_find_the_agent(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signer: SignerProgram
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/77")
    monkeypatch.setenv("KUBEAUTHN_SIGNER_AGENT", "/run/user/77/else.sock")
    seen = tmp_path / "seen"
    lines = [f"env > {seen}", f'exec {signer.path} "$@"']
    with connect(kubeconfig=use(server, tmp_path, shell_signer(tmp_path, *lines))) as api:
        assert api.get(URL).status_code == 200
    lines = seen.read_text().splitlines()
    assert "XDG_RUNTIME_DIR=/run/user/77" in lines
    assert "KUBEAUTHN_SIGNER_AGENT=/run/user/77/else.sock" in lines


# -- certificates that are refused ----------------------------------------------------------------


@pytest.mark.parametrize("tls12_only", [True, False], ids=["1.2", "1.3"])
def test_a_certificate_that_the_server_refuses_by_alert_is_fetched_again(
    tmp_path: Path, ca: CertificateAuthority, signer: SignerProgram, tls12_only: bool
):
    stranger = CertificateAuthority("somebody else's")
    signer.show(issue(stranger, signer.key))
    with ApiServer(ca=ca, client_certificates="required", tls12_only=tls12_only) as server:
        with connect(kubeconfig=use(server, tmp_path, signer.user())) as api:
            for _ in range(20):  # a connection that is reset may lose the alert
                with pytest.raises(Exception) as caught:  # noqa: PT011  the library's, and it must not be ours
                    api.get(URL)
                assert not isinstance(caught.value, SigningFailed)
                if "ALERT" in str(caught.value).upper():
                    break
            assert signer.count("CertificateRequest") >= 1
            signer.show(issue(ca, signer.key))
            assert api.get(URL).status_code == 200
    assert [each.user for each in server.requests] == ["jane"]


def test_a_certificate_that_ends_is_fetched_again(signer: SignerProgram, ca: CertificateAuthority):
    clock = FakeClock(time.time())
    entry = AuthProvider("externalSigner", (("pathExec", str(signer.path)),))
    source = ExternalSigner(entry, clock=clock, is_terminal=lambda: False).source
    first = source.get()
    clock.advance(23 * 3600)
    assert source.get() is first
    clock.advance(2 * 3600)
    signer.show(issue(ca, signer.key, ends=timedelta(days=3)))
    assert source.get() is not first
    assert signer.count("CertificateRequest") == 2


def test_no_pin_and_no_digest_in_any_log(
    server: ApiServer, tmp_path: Path, signer: SignerProgram, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    user = signer.user(pin="92736451")
    with connect(kubeconfig=use(server, tmp_path, user)) as api:
        assert api.get(URL).status_code == 200
    _, request = signer.requests
    assert caplog.records
    assert "92736451" not in caplog.text
    assert request["digest"] not in caplog.text


def exec_with_signer(plugin: ScriptedPlugin, signer: SignerProgram, **status: str) -> None:
    document = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    plugin.raw(json.dumps({**document, "status": {"externalSigner": {"pathExec": str(signer.path)}, **status}}))


def test_a_signer_that_an_exec_plugin_names_is_asked_anew_after_a_401(
    server: ApiServer, tmp_path: Path, signer: SignerProgram, ca: CertificateAuthority
):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    exec_with_signer(plugin, signer)
    with connect(kubeconfig=use(server, tmp_path, plugin.user())) as api:
        assert api.get(URL).status_code == 200
        old = server.requests[0].certificate_serial
        assert old is not None
        signer.show(issue(ca, signer.key))
        server.revoke_serial(old)
        assert api.get(URL).status_code == 200
    assert (plugin.runs, signer.count("CertificateRequest")) == (2, 2)
    assert server.requests[-1].certificate_serial != old


def test_a_signer_that_an_exec_plugin_names_ends_with_the_plugins_credential(
    server: ApiServer, tmp_path: Path, signer: SignerProgram
):
    plugin = ScriptedPlugin(tmp_path / "plugin")
    clock = FakeClock(time.time())
    exec_with_signer(plugin, signer, expirationTimestamp=rfc3339.format(clock() + 60))
    access = open_access(kubeconfig=use(server, tmp_path, plugin.user()))
    assert access.target is not None
    assert access.target.user.exec is not None
    made = ExecPlugin(access.target.user.exec, access.cluster, clock=clock).make_credential
    source = RefreshedSource(made, clock=clock)
    first = source.get()
    assert source.get() is first
    clock.advance(61)
    exec_with_signer(plugin, signer, expirationTimestamp=rfc3339.format(clock() + 60))
    assert source.get() is not first
    assert (plugin.runs, signer.count("CertificateRequest")) == (2, 2)


# -- the key is another user's --------------------------------------------------------------------

CLIENT = """
import json, os, sys
from kubeauthn.client import connect
with connect(kubeconfig=sys.argv[1]) as api:  # another signer, so that everything is imported
    assert api.get("/api/v1/namespaces").status_code == 200
os.environ["KUBERC"] = "off"  # the home directory is not this user's
os.setgroups([]); os.setgid(65534); os.setuid(65534)
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event in ("open", "os.listdir") else None)
with connect(kubeconfig=sys.argv[2]) as api:
    status = api.get("/api/v1/namespaces").status_code
before = list(opened)
try:
    denied = not os.listdir(sys.argv[3])
except PermissionError:
    denied = True
with open("/proc/self/maps") as maps:
    print(json.dumps({"user": os.getuid(), "status": status, "opened": before, "denied": denied, "maps": maps.read()}))
"""

COUNTER = """#!/bin/sh
printf '%s\\n' "$EXTERNAL_SIGNER_PLUGIN_CONFIG" > {folder}/question
cat {folder}/answer
"""


@contextmanager
def counter(folder: Path, hsm: SoftHsm, asked: list[str]) -> Iterator[Path]:
    """The owner of the token, behind a counter: two pipes, through which a question goes in and an answer out."""
    for name in ("question", "answer"):
        os.mkfifo(folder / name)
        (folder / name).chmod(0o666)
    path = folder / "signer"
    path.write_text(COUNTER.format(folder=folder))
    path.chmod(0o755)
    stop = threading.Event()

    def attend() -> None:
        while True:
            request = (folder / "question").read_text()
            if stop.is_set():
                return
            asked.append(json.loads(request)["kind"])
            (folder / "answer").write_bytes(signer_process.ask("pkcs11", request, hsm.environ).stdout)

    owner = threading.Thread(target=attend, daemon=True)
    owner.start()
    try:
        yield path
    finally:
        stop.set()
        (folder / "question").write_text("{}")
        owner.join(10)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.needs("softhsm2-util", "pkcs11-tool")
def test_the_client_is_one_user_and_the_token_anothers(
    server: ApiServer, tmp_path: Path, signer: SignerProgram, ca: CertificateAuthority
):
    hsm = SoftHsm(tmp_path / "softhsm")
    hsm.make_key("02", "EC:prime256v1")
    key = type("Key", (), {"public_key": lambda self: hsm.public_key("02")})()
    hsm.install("02", x509.load_der_x509_certificate(issue(ca, key)))
    hsm.folder.chmod(0o700)
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    asked: list[str] = []
    try:
        with counter(folder, hsm, asked) as path:
            config = hsm.configuration("2", pin=PIN, pathExec=str(path))
            theirs = server.write_kubeconfig(
                folder / "config", {"auth-provider": {"name": "externalSigner", "config": config}}
            )
            theirs.chmod(0o644)
            argv = [sys.executable, "-c", CLIENT, use(server, tmp_path, signer.user()), str(theirs), str(hsm.tokens)]
            done = subprocess.run(argv, capture_output=True, text=True, timeout=60, start_new_session=True)
    finally:
        shutil.rmtree(folder)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["user"], seen["status"], seen["denied"]) == (65534, 200, True)
    assert asked == ["CertificateRequest", "SignRequest"]
    assert not [path for path in seen["opened"] if path.startswith(str(hsm.folder))]
    assert "softhsm" not in seen["maps"]
    assert "_ssl" in seen["maps"] or "libssl" in seen["maps"]
    assert server.requests[-1].user == "jane"


# -- the bridge to OpenSSL, under stress ----------------------------------------------------------


def test_contexts_made_used_and_dropped_on_many_threads_while_rubbish_is_collected(ca: CertificateAuthority):
    signers = [MemorySigner(NEW_KEY[kind]()) for kind in ("p256", "ed25519")]
    done = threading.Event()

    def collect() -> None:
        while not done.wait(0.001):
            gc.collect()

    collector = threading.Thread(target=collect)
    collector.start()
    try:
        with demanding_server(ca, "1.3", tickets=False) as server, ThreadPoolExecutor(6) as pool:

            def one(number: int) -> str:
                signer = signers[number % 2]
                context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
                cycle: list[object] = [context]
                cycle.append(cycle)
                return server.ask(context)

            assert list(pool.map(one, range(60))) == ["jane"] * 60
    finally:
        done.set()
        collector.join(10)


GROWTH = """
import gc, sys
sys.path[:] = {path!r}
from kubeauthn.client import signing_context
from kubeauthn.testing import CertificateAuthority
from tests.integration.signer_scene import NEW_KEY, MemorySigner, demanding_server, issue
ca, signer = CertificateAuthority(), MemorySigner(NEW_KEY["p256"]())
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4
with demanding_server(ca, "1.3", tickets={tickets}) as server:
    context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
    readings = []
    for _ in range(3):
        for _ in range(100):
            assert server.ask(context) == "jane"
        gc.collect()
        readings.append(resident())
    print(readings[2] - readings[0])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("tickets", [True, False], ids=["resumed", "full"])
def test_connections_that_are_read_from_leave_nothing_behind(tickets: bool):
    """Of 200 connections a copy of each session would be 1.2 MB, and a copy per look at it more."""
    program = GROWTH.format(path=[*sys.path, str(Path(__file__).parents[2])], tickets=tickets)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 700


def test_a_context_that_goes_while_its_connection_lives(ca: CertificateAuthority):
    """The connection holds what it needs: the signer is asked although nobody else has the context."""
    signer = MemorySigner(NEW_KEY["p256"]())
    with demanding_server(ca, "1.3", tickets=False) as server:
        for _ in range(20):
            plain = socket.create_connection(server.address, 10)
            context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
            with context.wrap_socket(plain, server_hostname="localhost", do_handshake_on_connect=False) as connection:
                del context
                gc.collect()
                connection.do_handshake()
                connection.sendall(b"?")
                assert connection.recv(10) == b"jane"
    assert len(signer.asked) == 20


def test_forks_one_after_the_other_while_contexts_live(ca: CertificateAuthority):
    signer = MemorySigner(NEW_KEY["p256"]())
    with demanding_server(ca, "1.3", tickets=False) as server:
        context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                try:
                    fresh = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
                    os._exit(0 if {server.ask(context), server.ask(fresh)} == {"jane"} else 1)
                finally:
                    os._exit(2)
            assert server.ask(context) == "jane"
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_chain_in_pem_with_rubbish_around_it(ca: CertificateAuthority):
    signer = MemorySigner(NEW_KEY["p256"]())
    pem = ssl.DER_cert_to_PEM_cert(issue(ca, signer.key))
    with demanding_server(ca, "1.3") as server:
        text = f"subject=jane\n{pem}\n# the root\n{ca.certificate_pem.decode()}"
        assert server.ask(signing_context(text, signer, certificate_authority=ca.certificate_pem)) == "jane"


def test_a_loop_that_is_not_asyncios_gets_an_error_that_is_also_an_ssl_error(ca: CertificateAuthority):
    """uvloop passes on nothing else: of any other error it says that it is fatal, and where it came from."""

    class OtherLoop(asyncio.SelectorEventLoop):
        pass

    def sign(digest: bytes, algorithm: object) -> bytes:
        raise LookupError("gone")

    async def main(address: tuple[str, int]) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = signing_context(issue(ca, NEW_KEY["p256"]()), sign, certificate_authority=ca.certificate_pem)
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(address, 10) as plain:
            for _ in range(10):
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    plain.sendall(outgoing.read())
                    incoming.write(plain.recv(65536))

    loop = OtherLoop()
    try:
        with demanding_server(ca, "1.3") as server, pytest.raises(ssl.SSLError) as caught:
            loop.run_until_complete(main(server.address))
    finally:
        loop.close()
    assert isinstance(caught.value, SigningFailed)
    assert isinstance(caught.value.__cause__, LookupError)


def test_pss_with_another_hash_for_its_mask_is_an_error_of_ours(ca: CertificateAuthority):
    """No request to a signer can say it. TLS does not ask for it either, so OpenSSL is asked by hand."""
    signer = MemorySigner(NEW_KEY["rsa"]())
    context = signing_context(issue(ca, signer.key), signer, certificate_authority=ca.certificate_pem)
    bridge = installation._the_bridge()
    openssl = ctypes.PyDLL(_ssl.__file__)
    openssl.SSL_CTX_get0_privatekey.restype = openssl.EVP_MD_CTX_new.restype = ctypes.c_void_p
    key = ctypes.c_void_p(openssl.SSL_CTX_get0_privatekey(ctypes.c_void_p(bridge.pointer.of(context))))
    signing, options = ctypes.c_void_p(openssl.EVP_MD_CTX_new()), ctypes.c_void_p()
    begun = openssl.EVP_DigestSignInit_ex(signing, ctypes.byref(options), b"SHA256", None, None, key, None)
    assert begun == 1
    assert openssl.EVP_PKEY_CTX_set_rsa_padding(options, 6) == 1
    assert openssl.EVP_PKEY_CTX_set_rsa_mgf1_md_name(options, b"SHA384", None) == 1
    room, size = ctypes.create_string_buffer(256), ctypes.c_size_t(256)
    made = openssl.EVP_DigestSign(signing, room, ctypes.byref(size), b"hello", ctypes.c_size_t(5))
    failure, bridge.provider.thread.failed = bridge.provider.thread.failed, None
    openssl.EVP_MD_CTX_free(signing)
    bridge.library.ERR_clear_error()
    assert made == 0
    assert isinstance(failure, SigningFailed)
    assert "PSS with one hash for the message and another for its mask" in str(signing_failure(failure))
    assert signer.asked == []
