"""Every adapter with a key that is behind an external signer."""

from __future__ import annotations

import asyncio
from pathlib import Path

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


def test_a_signer_that_takes_its_time_does_not_stop_the_loop(driver: Driver, lab: Lab, signer: SignerProgram):
    """The signer waits for a file that only another task of the loop makes: a loop that stands still never does."""
    released = signer.folder / "released"
    signer.say(SignRequest={"until": str(released)})
    with driver.session() as client:
        if isinstance(client, AsyncClient):
            client.start(release(signer, released))
        else:
            released.touch()
        outcome = client.list_namespaces()
    assert outcome.status == 200, outcome.error
    assert signer.count(SIGNATURE) >= 1
    assert signer.late == []


async def release(signer: SignerProgram, path: Path) -> None:
    while signer.count(SIGNATURE) == 0:
        await asyncio.sleep(0.01)
    for _ in range(5):  # and it goes on going round while the signer waits
        await asyncio.sleep(0.01)
    path.touch()


def test_twenty_connections_take_as_many_signatures_as_full_handshakes(driver: Driver, lab: Lab, signer: SignerProgram):
    with driver.session() as client:
        for _ in range(20):
            outcome = client.list_namespaces()
            assert outcome.status == 200, outcome.error
            lab.server.drop_connections()
    stats = lab.server._context.session_stats()
    connections = {each.connection_id for each in lab.server.requests}
    assert len(connections) >= 20
    assert signer.count(SIGNATURE) == stats["accept_good"] - stats["hits"]
    assert signer.count(SIGNATURE) < len(connections)
    assert signer.count(CERTIFICATE) == 1


def test_exec_into_a_pod_with_the_official_client(lab: Lab, signer: SignerProgram):
    """Websockets do not go through the library's connection pool, and its own way to them knows key files only."""
    from kubernetes import client, stream

    from kubeauthn.client.kubernetes import api_client

    lab.server.add_pod("web")
    with api_client() as api:
        execute = client.CoreV1Api(api).connect_get_namespaced_pod_exec
        socket = stream.stream(execute, "web", "default", command=["id"], stdout=True, _preload_content=False)
        try:
            socket.run_forever(timeout=20)
        finally:
            socket.sock.shutdown()
    (request,) = [each for each in lab.server.requests if each.path.endswith("/exec")]
    assert (request.user, request.header("authorization")) == ("jane", None)
    assert (signer.count(CERTIFICATE), signer.count(SIGNATURE)) == (1, 1)
