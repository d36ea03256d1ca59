"""What the server's certificates are handed on as."""

from __future__ import annotations

import os
import pickle
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server.certificates import CertificateFiles, Certificates, in_a_pipe, in_memory
from kubeauthn.testing import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority()


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs /dev/fd")
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(in_memory, marks=pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="of Linux")),
        in_a_pipe,
    ],
)
def test_what_is_read_is_what_was_given(make: Callable[[bytes], int]) -> None:
    content = os.urandom(40_000)
    descriptor = make(content)
    try:
        with open(f"/dev/fd/{descriptor}", "rb") as file:
            assert file.read() == content
    finally:
        os.close(descriptor)


def test_a_pipe_holds_no_more_than_it_holds() -> None:
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(EnvironmentFailure, match="larger than"):
        in_a_pipe(bytes(4 << 20))
    assert len(os.listdir("/dev/fd")) == before


def test_when_a_certificate_is_over_is_told_of_the_first_of_the_chain(authority: CertificateAuthority) -> None:
    ends = datetime(2031, 2, 3, 4, 5, 6, tzinfo=UTC)
    pair = authority.issue_server(not_after=ends)
    chain = b"of the server\n" + pair.certificate_pem + authority.certificate_pem
    assert Certificates(chain, pair.key_pem).ends() == ends.timestamp()
    assert Certificates(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"").ends() == float("inf")


def test_a_certificate_of_no_version_is_for_openssl_to_judge(authority: CertificateAuthority) -> None:
    """Else one put in place would be called a fault that nobody foresaw, and be tried again and again."""
    pair = authority.issue_server()
    version_3, version_6 = b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05"
    altered = ssl.PEM_cert_to_DER_cert(pair.certificate_pem.decode()).replace(version_3, version_6, 1)
    assert Certificates(ssl.DER_cert_to_PEM_cert(altered).encode(), pair.key_pem).ends() == float("inf")


def test_the_key_is_not_shown_and_travels() -> None:
    made = Certificates(b"chain", b"-----BEGIN PRIVATE KEY-----")
    assert "PRIVATE" not in repr(made)
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301  our own


def test_the_paths_are_gone_afterwards() -> None:
    with Certificates(b"chain", b"key", b"ca").as_paths() as paths:
        assert [Path(path).read_bytes() for path in paths] == [b"chain", b"key", b"ca"]
    assert [os.path.exists(path) for path in paths] == [False] * 3


def test_what_is_read_is_checked(authority: CertificateAuthority, tmp_path: Path) -> None:
    pair, other = authority.issue_server(), authority.issue_server()
    chain, key, clients = (str(tmp_path / name) for name in ("tls.crt", "tls.key", "ca.crt"))
    files = CertificateFiles(chain, key, clients)

    def fault() -> str:
        with pytest.raises(EnvironmentFailure) as caught:
            files.read()
        return str(caught.value)

    assert fault().startswith(f"{chain}: ")
    (tmp_path / "tls.crt").write_bytes(pair.chain_pem)
    (tmp_path / "tls.key").write_bytes(other.key_pem)
    (tmp_path / "ca.crt").write_bytes(authority.certificate_pem)
    assert fault() == f"certificate {chain} and key {key}: key values mismatch"
    (tmp_path / "tls.key").write_bytes(b"nothing")
    assert fault() == f"key {key}: it holds no private key in PEM"
    (tmp_path / "tls.crt").write_bytes(pair.key_pem)
    assert fault() == f"certificate {chain}: it holds no certificate in PEM"
    (tmp_path / "tls.crt").write_bytes(pair.chain_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    assert files.read() == Certificates(pair.chain_pem, pair.key_pem, authority.certificate_pem)
    (tmp_path / "ca.crt").write_bytes(b"nothing")
    assert fault().startswith(f"client CA {clients}: ")


def test_a_trial_that_does_not_end_says_nothing(
    authority: CertificateAuthority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kubeauthn.server import granian_tls, limits

    pair = authority.issue_server()
    (tmp_path / "tls.crt").write_bytes(pair.chain_pem)
    (tmp_path / "tls.key").write_bytes(pair.key_pem)
    files = CertificateFiles(str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    monkeypatch.setattr(limits, "TRIAL_SECONDS", 0.0)
    with pytest.raises(TimeoutError):
        granian_tls.try_out(files, files.read())
