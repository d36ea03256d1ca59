"""A SoftHSM2 token of a test's own: keys are made inside it by pkcs11-tool, and cannot be taken out."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_der_public_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

MODULE = next(
    (
        path
        for path in ("/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so", "/usr/lib/softhsm/libsofthsm2.so")
        if Path(path).exists()
    ),
    "/usr/lib/softhsm/libsofthsm2.so",
)
SPY = "/usr/lib/x86_64-linux-gnu/pkcs11-spy.so"
PIN = "92736451"
SO_PIN = "61524378"
KEYS = {"01": "rsa:2048", "02": "EC:prime256v1", "03": "EC:secp384r1", "04": "EC:edwards25519", "05": "EC:secp521r1"}


class SoftHsm:
    """One token with a key of each kind and a certificate for each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokens = folder / "tokens"
        self.tokens.mkdir(parents=True)
        self.conf = folder / "softhsm2.conf"
        self.conf.write_text(f"directories.tokendir = {self.tokens}\nobjectstore.backend = file\nlog.level = ERROR\n")
        self.environ = {**os.environ, "SOFTHSM2_CONF": str(self.conf)}
        said = self.run("softhsm2-util", "--init-token", "--free", "--label", "desk", "--pin", PIN, "--so-pin", SO_PIN)
        self.slot = said.rsplit(" ", 1)[1].strip()
        assert self.slot.isdecimal(), said

    def run(self, *argv: str) -> str:
        return subprocess.run(argv, env=self.environ, capture_output=True, text=True, check=True, timeout=30).stdout

    def tool(self, *argv: str) -> str:
        return self.run("pkcs11-tool", "--module", MODULE, "--slot", self.slot, *argv)

    def make_key(self, object_id: str, kind: str) -> None:
        login = ("--login", "--pin", PIN)
        self.tool(*login, "--keypairgen", "--key-type", kind, "--id", object_id, "--label", f"key-{object_id}")

    def public_key(self, object_id: str) -> object:
        # Not by pkcs11-tool: it cannot write the points of every curve.
        program = (
            "import sys\n"
            "from kubeauthn.plugin.signer import Configuration\n"
            "from kubeauthn.plugins.signer_pkcs11 import Pkcs11Signer\n"
            f"configuration = Configuration({self.configuration('0x' + object_id)!r})\n"
            "sys.stdout.buffer.write(Pkcs11Signer(configuration).public_key())\n"
        )
        result = subprocess.run([sys.executable, "-c", program], env=self.environ, capture_output=True, timeout=30)
        assert result.returncode == 0, result.stderr.decode()
        return load_der_public_key(result.stdout)

    def install(self, object_id: str, certificate: x509.Certificate) -> None:
        path = self.folder / f"{object_id}.der"
        path.write_bytes(certificate.public_bytes(Encoding.DER))
        login = ("--login", "--pin", PIN)
        self.tool(
            *login, "--write-object", str(path), "--type", "cert", "--id", object_id, "--label", f"key-{object_id}"
        )

    def configuration(self, object_id: str = "2", **more: str) -> dict[str, str]:
        return {"pathLib": MODULE, "slotId": self.slot, "objectId": object_id, **more}


def client_certificate(public_key: object, user: str = "jane") -> x509.Certificate:
    """For tests that look at the key alone: signed by an authority nobody knows."""
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)])
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "nobody")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ec.generate_private_key(ec.SECP256R1()), SHA256())
    )


def filled(folder: Path) -> SoftHsm:
    hsm = SoftHsm(folder)
    for object_id, kind in KEYS.items():
        hsm.make_key(object_id, kind)
        hsm.install(object_id, client_certificate(hsm.public_key(object_id)))
    return hsm
