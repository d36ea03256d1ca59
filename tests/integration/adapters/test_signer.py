"""Every adapter with a key that is behind an external signer."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from kubeauthn.errors import SigningFailed
from tests.integration.adapters.driver import AsyncClient, Driver
from tests.integration.adapters.lab import Lab, our_error
from tests.integration.signer_scene import SignerProgram, issue

CERTIFICATE, SIGNATURE = "CertificateRequest", "SignRequest"


@pytest.fixture
def signer(lab: Lab) -> SignerProgram:
    program = SignerProgram(lab.folder / "token", lab.ca)
    lab.use(program.user())
    return program


def test_external_key(driver: Driver, lab: Lab, signer: SignerProgram):
    with driver.session() as client:
        outcome = client.list_namespaces()
        assert outcome.status == 200, outcome.error
        assert client.create_namespace("made").status in (200, 201)
    assert {each.user for each in lab.server.requests} == {"jane"}
    assert signer.count(CERTIFICATE) == 1


def test_the_signers_failure_is_ours_and_nothing_was_sent(driver: Driver, lab: Lab, signer: SignerProgram):
    signer.say(SignRequest={"exit": 7})
    with driver.session() as client:
        outcome = client.list_namespaces()
    error = our_error(outcome.error)
    assert isinstance(error, SigningFailed)
    assert "failed with exit code 7" in str(error)
    assert lab.server.requests == []


def test_a_refused_certificate_is_replaced(driver: Driver, lab: Lab, signer: SignerProgram):
    with driver.session() as client:
        assert client.list_namespaces().status == 200
        old = lab.serials()[0]
        assert old is not None
        signer.show(issue(lab.ca, signer.key))
        lab.server.revoke_serial(old)
        outcome = client.list_namespaces()
        assert outcome.status == 200, outcome.error
    assert signer.count(CERTIFICATE) == 2
    assert lab.serials()[-1] != old


def test_a_signer_that_takes_a_second_does_not_stop_the_loop(driver: Driver, lab: Lab, signer: SignerProgram):
    signer.say(SignRequest={"hang": 1})
    longest = Longest()
    with driver.session() as client:
        if isinstance(client, AsyncClient):
            client.run(longest.begin())
        outcome = client.list_namespaces()
        if isinstance(client, AsyncClient):
            client.run(longest.end())
    assert outcome.status == 200, outcome.error
    assert signer.count(SIGNATURE) >= 1
    # A loop stands still for a second and more where the signature is made on it.
    assert longest.seconds < 0.9


class Longest:
    """How long the loop did not come round, at the most."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._task: asyncio.Task[None] | None = None
        self._stop = threading.Event()

    async def begin(self) -> None:
        self._task = asyncio.create_task(self._tick())

    async def end(self) -> None:
        self._stop.set()
        assert self._task is not None
        await self._task

    async def _tick(self) -> None:
        last = time.monotonic()
        while not self._stop.is_set():
            await asyncio.sleep(0.01)
            now = time.monotonic()
            self.seconds, last = max(self.seconds, now - last), now
