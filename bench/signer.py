"""A TLS 1.3 handshake whose client key is outside, beside one with the same key in memory; its memory; eight threads.

Both ends are in this process and talk through buffers, so that neither network nor scheduler counts. The signature is
made by OpenSSL in both cases, outside through a Python function whose time is taken. What remains is the way to that
function, and the check of its signature before it is used. No session is resumed. The rows with a goal leave out the
time of signing on both sides; those beside them have all of it.
"""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from bench import signer_plugin
from bench.measure import Row, cpu_per_call, growth_rows, in_turns, interleaved, ratio_row, seconds_per_call
from bench.processes import resident_megabytes
from kubeauthn.client.signing import SigningAlgorithm, signing_context
from kubeauthn.testing import CertificateAuthority

GOAL = 1.3
CALLS = 20
HANDSHAKES = 10_000
THREADS = 8
SIZES = (1, 10, 100, 1000)
GROWTH_KIB = 1024.0


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    ca = CertificateAuthority()
    server = ca.server_context()
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=ca.certificate_pem.decode())
    server.num_tickets = 0
    contexts: dict[str, ssl.SSLContext] = {}
    for name, leaf in (
        ("RSA-2048", ca.issue_client("jane", key_type="rsa")),
        ("P-256", ca.issue_client("jane", key_type="ec")),
    ):
        in_memory = ca.client_context()
        leaf.load_into(in_memory)
        key = Timed(load_pem_private_key(leaf.key_pem, None))
        outside = contexts[name] = signing_context(leaf.chain_pem, key, certificate_authority=ca.certificate_pem)
        ours, theirs = partial(shake_hands, outside, server), partial(shake_hands, in_memory, server)
        rounds = 5 if quick else 31
        yield ratio_row(
            f"signer: handshake, {name} outside, signing time excluded",
            interleaved(key.excluded_within(ours), key.excluded_beside(theirs), rounds),
            peer_name="the same key in memory, its signing time excluded",
            goal=GOAL,
        )
        yield ratio_row(
            f"signer: handshake, {name} outside, all of it",
            interleaved(seconds_per_call(ours, CALLS), seconds_per_call(theirs, CALLS), rounds),
            peer_name="the same key in memory",
            goal=None,
        )
    sizes = SIZES[:3] if quick else SIZES
    yield from _growing(partial(shake_hands, contexts["P-256"], server), sizes, 3 if quick else 5)
    yield from signer_plugin.rows(folder, quick=quick)
    yield memory_row(partial(converse, contexts["P-256"], server), HANDSHAKES // 20 if quick else HANDSHAKES)
    yield threads_row(partial(converse, contexts["P-256"], server), HANDSHAKES // 20 if quick else HANDSHAKES)


def _growing(handshake: Callable[[], object], sizes: tuple[int, ...], rounds: int) -> Iterator[Row]:
    """In processor time, as both ends compute here."""
    readers = {str(size): lambda size=size: cpu_per_call(handshake, size)() * size for size in sizes}
    readings = in_turns(readers, rounds)
    found = {size: readings[str(size)] for size in sizes}
    yield from growth_rows("signer: handshakes one after the other, P-256 outside", found, 11, unit="ms", scale=1e3)


class Timed:
    """Signs with a key at hand, and knows how long it took."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self.seconds = 0.0

    def __call__(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        started = time.perf_counter()
        how = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}[algorithm.hash]
        signature: bytes
        if algorithm.key_kind == "ec":
            signature = self._key.sign(digest, ec.ECDSA(utils.Prehashed(how)))
        else:
            mask = padding.PSS(padding.MGF1(how), algorithm.salt)
            signature = self._key.sign(digest, mask, utils.Prehashed(how))
        self.seconds += time.perf_counter() - started
        return signature

    def excluded_within(self, handshake: Callable[[], object]) -> Callable[[], float]:
        """A reading of a handshake that signs through this object."""

        def reading() -> float:
            self.seconds = 0.0
            return seconds_per_call(handshake, CALLS)() - self.seconds / CALLS

        return reading

    def excluded_beside(self, handshake: Callable[[], object]) -> Callable[[], float]:
        """A reading of a handshake in which OpenSSL signs unseen: as many signatures are timed apart."""
        kind = "ec" if isinstance(self._key, ec.EllipticCurvePrivateKey) else "rsa"
        algorithm = SigningAlgorithm(kind, padding="none" if kind == "ec" else "pss", hash="sha256", salt=32)

        def reading() -> float:
            whole = seconds_per_call(handshake, CALLS)()
            self.seconds = 0.0
            for number in range(CALLS):
                self(number.to_bytes(32), algorithm)
            return whole - self.seconds / CALLS

        return reading


def shake_hands(client_context: ssl.SSLContext, server_context: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server, server_hostname="localhost")
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client.do_handshake, server.do_handshake]
    for _ in range(10):
        for step in list(waiting):
            try:
                step()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(step)
        if not waiting:
            assert server.getpeercert(True)
            return client, server
    raise RuntimeError("the handshake does not end")


def converse(client_context: ssl.SSLContext, server_context: ssl.SSLContext) -> None:
    """With a question and an answer: what a connection keeps, such as its session, it has when it reads."""
    client, server = shake_hands(client_context, server_context)
    client.write(b"?")
    assert server.read() == b"?"
    server.write(b"!")
    assert client.read() == b"!"


def memory_row(handshake: Callable[[], object], count: int) -> Row:
    for _ in range(min(500, count)):  # caches fill first
        handshake()
    before = resident_megabytes(os.getpid()) * 1024
    for _ in range(count):
        handshake()
    grown = max(0.0, resident_megabytes(os.getpid()) * 1024 - before)
    name = f"signer: growth over {count:,} handshakes"
    met, told = grown <= GROWTH_KIB, f"over {count:,}"
    return Row(name, grown, before, "KiB", grown / before, f"≤ {GROWTH_KIB:g} KiB", met, told, "the process before")


def threads_row(handshake: Callable[[], object], count: int) -> Row:
    """Counts errors: a failed handshake is one."""

    def one(_: int) -> int:
        try:
            handshake()
        except Exception:
            return 1
        return 0

    with ThreadPoolExecutor(THREADS) as pool:
        failed = sum(pool.map(one, range(count)))
    name = f"signer: errors in {count:,} handshakes on {THREADS} threads"
    return Row(name, failed, count, "errors", failed / count, "0", failed == 0, f"over {count:,}", "all of them")
