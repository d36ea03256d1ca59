"""Keys that were kept on disk: used for their issuer alone, while they are young, and where nobody else can write."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from kubeauthn._core.assertion import public_jwk
from kubeauthn._core.authentication.model import Issuer
from kubeauthn._core.jose.keys import KeySet
from kubeauthn.errors import EnvironmentFailure
from kubeauthn.server.key_store import KeyStore

if TYPE_CHECKING:
    from pathlib import Path

ISSUER = Issuer("https://login.example", audiences=("kubernetes",))
NOW = 1_800_000_000.0
HOUR = 3600.0


@pytest.fixture(scope="module")
def jwks() -> dict[str, Any]:
    return {"keys": [public_jwk(ec.generate_private_key(ec.SECP256R1()).public_key())]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "keys"
    made.mkdir(mode=0o700)
    return made


def store(folder: Path, *, hours: float = 24.0, now: float = NOW) -> KeyStore:
    return KeyStore(str(folder), hours * HOUR, clock=lambda: now)


def keep(folder: Path, jwks: dict[str, Any], *, at: float = NOW) -> Path:
    """As the server writes it."""
    store(folder)._write(ISSUER, json.dumps(jwks).encode(), at)
    [path] = folder.glob("*.json")
    return path


def test_what_was_kept_is_used_for_that_issuer_alone(folder: Path, jwks: dict[str, Any]) -> None:
    path = keep(folder, jwks)
    assert isinstance(store(folder).load(ISSUER), KeySet)
    assert path.stat().st_mode & 0o777 == 0o600
    for other in (
        Issuer("https://other.example"),
        Issuer(ISSUER.url, "https://elsewhere.example/.well-known/openid-configuration"),
        Issuer(ISSUER.url, certificate_authority="another CA"),
    ):
        assert store(folder).load(other) is None
    # Nor where somebody gave it the name that the other issuer's file has.
    path.rename(store(folder)._path(Issuer("https://other.example")))
    assert store(folder).load(Issuer("https://other.example")) is None


@pytest.mark.parametrize(
    ("age", "used"), [(0.0, True), (2 * HOUR, True), (2 * HOUR + 1, False), (-30.0, True), (-61.0, False)]
)
def test_keys_that_are_too_old_or_from_the_future_are_not_used(
    folder: Path, jwks: dict[str, Any], age: float, used: bool
) -> None:
    keep(folder, jwks, at=NOW - age)
    assert (store(folder, hours=2).load(ISSUER) is not None) is used


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"format": "kubeauthn.keys/v2"}',
        b'{"format": "kubeauthn.keys/v1", "issuer": "https://login.example", "fetchedAt": NaN, "keys": {"keys": []}}',
        b'{"format": "kubeauthn.keys/v1", "issuer": "https://login.example", "fetchedAt": 1800000000, "keys": 5}',
        b'{"format": "kubeauthn.keys/v1", "issuer": "https://login.example", "fetchedAt": 1800000000, "keys": {}}',
        b" " * (8 << 20),
    ],
)
def test_what_is_broken_is_passed_over(folder: Path, jwks: dict[str, Any], content: bytes) -> None:
    keep(folder, jwks).write_bytes(content)
    assert not store(folder).load(ISSUER)


def test_a_pipe_in_its_place_holds_nobody_up(folder: Path, jwks: dict[str, Any]) -> None:
    path = keep(folder, jwks)
    path.unlink()
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)  # somebody who writes nothing
    try:
        began = time.monotonic()
        assert store(folder).load(ISSUER) is None
        assert time.monotonic() - began < 5
    finally:
        os.close(writer)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_to_is_refused(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with pytest.raises(EnvironmentFailure, match="can be written by others"):
        store(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_another_user_is_refused(folder: Path) -> None:
    os.chown(folder, 65_534, 65_534)
    with pytest.raises(EnvironmentFailure, match="belongs to another user"):
        store(folder)


def test_a_disk_that_takes_nothing_is_said_and_ends_nothing(
    folder: Path, jwks: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    kept = store(folder)
    folder.rmdir()
    kept._write(ISSUER, json.dumps(jwks).encode(), NOW)
    assert "could not be kept: EnvironmentFailure" in caplog.text
