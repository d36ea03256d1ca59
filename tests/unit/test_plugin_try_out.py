"""`credential.try_out`: how an author tests a plugin, tested the way an author would use it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

import pytest

from kubeauthn.errors import PluginFailed, PluginReplyError, UsageError
from kubeauthn.plugin import credential
from kubeauthn.testing.pki import CertificateAuthority

CA = CertificateAuthority()
LEAF = CA.issue_client("jane")
OTHER = CA.issue_client("joe")


def test_a_token():
    reply = credential.try_out(lambda request: credential.Token("SECRET", expires_at=4e9))
    assert reply.token == "SECRET"
    assert reply.certificate is None
    assert reply.key is None
    assert reply.expires_at == 4e9
    assert reply.api_version == credential.V1
    assert "SECRET" not in repr(reply)


def test_token_and_certificate():
    reply = credential.try_out(
        lambda request: credential.Credential(token="t", certificate=LEAF.chain_pem, key=LEAF.key_pem)
    )
    assert reply.token == "t"
    assert reply.certificate == LEAF.chain_pem.decode()
    assert reply.key == LEAF.key_pem.decode()


def test_the_function_sees_what_was_asked():
    seen: list[credential.Request] = []

    def function(request: credential.Request) -> credential.Token:
        seen.append(request)
        return credential.Token("t")

    cluster = credential.Cluster(server="https://127.0.0.1:6443", certificate_authority_data=b"PEM")
    credential.try_out(
        function, api_version=credential.V1BETA1, interactive=True, cluster=cluster, config={"audience": "prod"}
    )
    (request,) = seen
    assert request.api_version == credential.V1BETA1
    assert request.interactive
    assert request.cluster is not None
    assert request.cluster.certificate_authority_data == b"PEM"
    assert request.cluster_config == {"audience": "prod"}


def test_an_address_is_enough_for_a_cluster():
    def function(request: credential.Request) -> credential.Token:
        assert request.cluster is not None
        return credential.Token(request.cluster.server)

    assert credential.try_out(function, cluster="https://127.0.0.1:1").token == "https://127.0.0.1:1"
    assert credential.try_out(function, config=7).token == "https://cluster.invalid"


def test_an_async_function():
    async def function(request: credential.Request) -> credential.Token:
        await asyncio.sleep(0)
        return credential.Token("t")

    assert credential.try_out(function).token == "t"


def test_what_is_printed_is_kept_apart():
    def function(request: credential.Request) -> credential.Token:
        print("one")
        subprocess.run([sys.executable, "-c", "print('two')"], check=True)
        os.write(1, b"three\n")
        return credential.Token("t")

    before = sys.stdout
    assert credential.try_out(function).printed == "one\ntwo\nthree\n"
    assert sys.stdout is before


def test_standard_output_comes_back_after_an_error(capfd: pytest.CaptureFixture[str]):
    def function(request: credential.Request) -> credential.Token:
        raise credential.Refuse("no")

    with pytest.raises(credential.Refuse, match="^no$"):
        credential.try_out(function)
    print("still here")
    os.write(1, b"and here\n")
    assert "still here" in (out := capfd.readouterr().out)
    assert "and here" in out


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "function returned None, expected a Token, Certificate or Credential"),
        ("token", "function returned a value of type str"),
        ({"token": "t"}, "function returned a value of type dict"),
    ],
)
def test_a_wrong_return_value_is_the_authors_fault(answer: object, text: str):
    def function(request: credential.Request) -> object:
        return answer

    with pytest.raises(PluginReplyError, match=text):
        credential.try_out(function)  # type: ignore[arg-type]


@pytest.mark.parametrize("late", [0.0, 0.5, 3600.0])
def test_a_credential_that_has_expired_is_not_sent(late: float):
    with pytest.raises(PluginReplyError, match="it expired .* s ago"):
        credential.try_out(lambda request: credential.Token("t", expires_at=time.time() - late))


def test_a_key_of_another_certificate_is_found_as_the_client_finds_it():
    with pytest.raises(PluginReplyError, match="private key does not match public key"):
        credential.try_out(lambda request: credential.Certificate(LEAF.chain_pem, OTHER.key_pem))


@pytest.mark.parametrize(("argument", "code"), [(0, 1), (None, 1), (3, 3), (256, 1), ("sorry", 1)])
def test_sys_exit_is_a_failure(argument: object, code: int):
    with pytest.raises(PluginFailed) as caught:
        credential.try_out(lambda request: sys.exit(argument))  # type: ignore[arg-type]
    assert caught.value.exit_code == code


def test_an_unknown_version_is_not_made_up():
    with pytest.raises(Exception, match=r"client\.authentication\.k8s\.io"):
        credential.try_out(lambda request: credential.Token("t"), api_version="v2")


def test_a_constructors_error_comes_through():
    with pytest.raises(UsageError, match="the token is empty"):
        credential.try_out(lambda request: credential.Token(""))


def test_every_public_name_is_there():
    assert not [name for name in credential.__all__ if not hasattr(credential, name)]
