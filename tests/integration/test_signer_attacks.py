"""Attacks on the external signer: answers made to cost time or to pass for a signature, and the agent's place."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from kubeauthn._core import signerwire
from kubeauthn._core.signerwire import API_VERSION, SigningAlgorithm
from kubeauthn.client import signing_context
from kubeauthn.errors import EnvironmentFailure, KubeauthnError, PluginReplyError, SigningFailed
from kubeauthn.plugins.agent.server import AgentServer
from kubeauthn.testing import CertificateAuthority
from tests.integration.signer_scene import NEW_KEY, MemorySigner, demanding_server, issue


@pytest.fixture(scope="module")
def ca() -> CertificateAuthority:
    return CertificateAuthority()


# -- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["DER", "PEM"])
def test_a_chain_of_very_many_certificates_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch, form: str):
    """As many as the largest answer holds. Each that is taken out copies the rest, so that would be minutes."""
    taken: list[bytes] = []
    add = signerwire._add
    monkeypatch.setattr(signerwire, "_add", lambda content, chain: (taken.append(content), add(content, chain)))
    small = b"\x30\x01\x00"
    pem = f"-----BEGIN CERTIFICATE-----\n{'MAEA'}\n-----END CERTIFICATE-----\n"
    content: bytes | str = small * 250_000 if form == "DER" else pem * 15_000
    with pytest.raises(PluginReplyError, match="a chain of more than 16 certificates"):
        signerwire.certificate_chain(content)
    assert taken == [small] * 17


@pytest.mark.parametrize(
    "reply",
    [
        b'{"a":' * 200_000,
        b"[" * 500_000,
        b'{"apiVersion":"' + API_VERSION.encode() + b'","kind":' + b"9" * 5000 + b"}",
        b'{"apiVersion":"' + API_VERSION.encode() + b'","kind":"CertificateResponse","certificate":"\\ud800"}',
        b'{"apiVersion":"' + API_VERSION.encode() + b'","kind":["CertificateResponse"],"certificate":{}}',
        b'{"apiVersion":null,"kind":NaN}',
        b"\xff\xfe{}",
        b"",
    ],
    ids=[
        "nested objects",
        "nested lists",
        "a huge number",
        "half a letter",
        "lists for texts",
        "nan",
        "utf-16",
        "empty",
    ],
)
def test_an_answer_that_is_made_to_break_the_reader(reply: bytes):
    for decode in (signerwire.decode_certificate_reply, signerwire.decode_sign_reply):
        with pytest.raises(PluginReplyError):
            decode(reply)


def changed(reply: bytes, seed: int) -> bytes:
    chosen = random.Random(seed)
    content = bytearray(reply)
    for _ in range(chosen.randint(1, 4)):
        at = chosen.randrange(len(content))
        content[at : at + chosen.choice((0, 1, 3))] = chosen.randbytes(chosen.choice((0, 1, 2)))
    return bytes(content)


def test_changed_answers_are_understood_or_refused_by_our_error(ca: CertificateAuthority):
    key = MemorySigner(NEW_KEY["p256"]())
    reply = signerwire.encode_certificate_reply([issue(ca, key.key)]).encode()
    outcomes = {"read": 0, "refused": 0}
    for seed in range(1000):
        try:
            chain = signerwire.decode_certificate_reply(changed(reply, seed))
            signing_context(b"".join(chain), key, certificate_authority=ca.certificate_pem)
            outcomes["read"] += 1
        except KubeauthnError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 0


SHA256, SHA384 = hashes.SHA256(), hashes.SHA384()
Answer = Callable[[Any, bytes], bytes]
OTHER_WAYS: dict[str, tuple[str, Answer]] = {
    "pkcs1 for pss": ("rsa", lambda key, digest: key.sign(digest, padding.PKCS1v15(), utils.Prehashed(SHA256))),
    "a shorter salt": (
        "rsa",
        lambda key, digest: key.sign(digest, padding.PSS(padding.MGF1(SHA256), 20), utils.Prehashed(SHA256)),
    ),
    "another mask": (
        "rsa",
        lambda key, digest: key.sign(digest, padding.PSS(padding.MGF1(SHA384), 32), utils.Prehashed(SHA256)),
    ),
    "the digest hashed again": ("p256", lambda key, digest: key.sign(digest, ec.ECDSA(SHA256))),
    "ed25519 for ecdsa": ("p256", lambda key, digest: NEW_KEY["ed25519"]().sign(digest)),
    "the digest itself": ("p256", lambda key, digest: digest),
    "zeros in der": ("p256", lambda key, digest: utils.encode_dss_signature(0, 0)),
    "ed25519 over the digest": ("ed25519", lambda key, message: key.sign(hash_of(message))),
}


def hash_of(message: bytes) -> bytes:
    digest = hashes.Hash(SHA256)
    digest.update(message)
    return digest.finalize()


@pytest.mark.parametrize(("kind", "answer"), OTHER_WAYS.values(), ids=OTHER_WAYS)
def test_a_signature_made_in_another_way_is_not_sent(ca: CertificateAuthority, kind: str, answer: Answer):
    key = NEW_KEY[kind]()

    def sign(digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        return answer(key, digest)

    context = signing_context(issue(ca, key), sign, certificate_authority=ca.certificate_pem)
    with demanding_server(ca, "1.3") as server:
        with pytest.raises(SigningFailed, match="the signer returned "):
            server.ask(context)
        assert server.full_handshakes == 0


class Public:
    """Only the half of a key that a certificate needs."""

    def __init__(self, bits: int, exponent: int) -> None:
        number = random.Random(bits).getrandbits(bits) | 1 << (bits - 1) | 1
        self._numbers = rsa.RSAPublicNumbers(exponent, number)

    def public_key(self) -> rsa.RSAPublicKey:
        return self._numbers.public_key()


@pytest.mark.parametrize(
    ("bits", "exponent"),
    [(16384, 65537), (16384, (1 << 16000) + 1), (32768, 65537), (100_000, 3)],
    ids=["16k", "16k, long exponent", "32k", "100k"],
)
def test_a_certificate_with_an_enormous_key(ca: CertificateAuthority, bits: int, exponent: int):
    """The error is ours, and OpenSSL's bounds keep the check of a signature short."""
    certificate = issue(ca, Public(bits, exponent))

    def sign(digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        return b"\1" * ((bits + 7) // 8)

    with demanding_server(ca, "1.3") as server:
        with pytest.raises(KubeauthnError):
            server.ask(signing_context(certificate, sign, certificate_authority=ca.certificate_pem))
        assert server.full_handshakes == 0


# -- the agent's place ----------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir(mode=0o700)
    return folder / "agent.sock"


def test_of_agents_that_start_at_once_one_serves_and_keeps_its_socket(place: Path):
    """A socket was left. Each finds it dead; without a lock the later one would put away the earlier one's."""
    import socket

    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(place))
    agents = [AgentServer(str(place), []) for _ in range(8)]
    together = threading.Barrier(len(agents))
    said: list[str] = []

    def start(agent: AgentServer) -> None:
        together.wait()
        try:
            agent.serve()
        except EnvironmentFailure as error:
            said.append(str(error))

    threads = [threading.Thread(target=start, args=(agent,)) for agent in agents]
    for thread in threads:
        thread.start()
    while len(said) < len(agents) - 1 or not any(agent.ready.is_set() for agent in agents):
        threading.Event().wait(0.01)
    assert said == [f"an agent listens at {place} already"] * 7
    assert sum(agent.ready.is_set() for agent in agents) == 1
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(place))
    for agent in agents:
        agent.stop.set()
    for thread in threads:
        thread.join(10)
    assert not place.exists()


def test_a_lock_that_is_a_link_is_not_followed(place: Path, tmp_path: Path):
    target = tmp_path / "target"
    Path(f"{place}.lock").symlink_to(target)
    with pytest.raises(EnvironmentFailure, match=r"agent\.sock\.lock: too many levels of symbolic links"):
        AgentServer(str(place), []).serve()
    assert not target.exists()


def test_a_killed_agent_leaves_no_lock_behind(place: Path, tmp_path: Path):
    settings = [f"--set=pathKey={tmp_path / 'key'}", f"--set=pathCert={tmp_path / 'cert'}"]
    argv = [sys.executable, "-m", "kubeauthn", "signer", "agent", "--socket", str(place), "--signer=file", *settings]
    agent = subprocess.Popen(argv, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        while not os.path.exists(place):
            assert agent.poll() is None
            threading.Event().wait(0.02)
    finally:
        agent.kill()
        agent.wait(20)
    assert place.exists()
    server = AgentServer(str(place), [])
    server.stop.set()
    server.serve()
    assert not place.exists()


def test_a_place_that_is_locked_is_taken_even_before_its_socket_is_there(place: Path):
    import fcntl

    with open(f"{place}.lock", "w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(EnvironmentFailure, match="an agent listens at .* already"):
            AgentServer(str(place), []).serve()
    assert not place.exists()
