"""Servers that ask for client certificates, keys of every kind, and a signer whose answers a test decides."""

from __future__ import annotations

import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.testing import CertificateAuthority

HASHES = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}
NEW_KEY: dict[str, Callable[[], Any]] = {
    "rsa": lambda: rsa.generate_private_key(65537, 2048),
    "p256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "p384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "p521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "ed25519": ed25519.Ed25519PrivateKey.generate,
}
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def issue(
    ca: CertificateAuthority,
    key: Any,
    *,
    user: str = "jane",
    usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.CLIENT_AUTH,
    starts: timedelta = timedelta(days=-1),
    ends: timedelta = timedelta(days=1),
) -> bytes:
    """A client certificate for `key`, as DER."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)]))
        .issuer_name(ca.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + starts)
        .not_valid_after(now + ends)
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    return builder.sign(ca._key, hashes.SHA256()).public_bytes(Encoding.DER)


class MemorySigner:
    """Signs with a key at hand, as a token would, and remembers what it was asked."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.asked: list[SigningAlgorithm] = []

    def __call__(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        self.asked.append(algorithm)
        if algorithm.key_kind == "ed25519":
            return self.key.sign(digest)
        prehashed = utils.Prehashed(HASHES[algorithm.hash])
        if algorithm.key_kind == "ec":
            return self.key.sign(digest, ec.ECDSA(prehashed))
        if algorithm.padding == "pss":
            mask = padding.MGF1(HASHES[algorithm.hash])
            return self.key.sign(digest, padding.PSS(mask, algorithm.salt), prehashed)
        return self.key.sign(digest, padding.PKCS1v15(), prehashed)


class DemandingServer:
    """Answers whoever shows a certificate of the authority with that certificate's name."""

    def __init__(self, ca: CertificateAuthority, version: str, *, tickets: bool = True) -> None:
        self.context = ca.server_context()
        self.context.verify_mode = ssl.CERT_REQUIRED
        self.context.load_verify_locations(cadata=ca.certificate_pem.decode())
        self.context.minimum_version = self.context.maximum_version = VERSIONS[version]
        if not tickets:
            self.context.options |= ssl.OP_NO_TICKET
            self.context.num_tickets = 0
        self.full_handshakes = 0
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.address: tuple[str, int] = self._listener.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def ask(self, context: ssl.SSLContext) -> str:
        with socket.create_connection(self.address, 10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                connection.sendall(b"?")
                return connection.recv(200).decode()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                plain, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(10)
        with suppress(OSError), self.context.wrap_socket(plain, server_side=True) as connection:
            with self._lock:
                self.full_handshakes += not connection.session_reused
            if not connection.recv(1):
                return  # gone after the handshake
            shown = connection.getpeercert()
            assert shown is not None
            connection.sendall(str(dict(part[0] for part in shown["subject"])["commonName"]).encode())


@contextmanager
def demanding_server(ca: CertificateAuthority, version: str, **options: Any) -> Iterator[DemandingServer]:
    server = DemandingServer(ca, version, **options)
    try:
        yield server
    finally:
        server.close()


SIGNER = """#!{python} -IS
import base64, json, os, sys, time
sys.path[:] = {path!r}
request = json.loads(os.environ["EXTERNAL_SIGNER_PLUGIN_CONFIG"])
folder = os.path.dirname(os.path.abspath(__file__))
with open(folder + "/script.json") as file:
    script = json.load(file)
with open(folder + "/requests", "a") as file:
    file.write(json.dumps(request) + "\\n")
kind = request["kind"]
step = script.get(kind, {{}})
if "alone" in step:
    os.mkdir(folder + "/alone")
    time.sleep(0.05)
    os.rmdir(folder + "/alone")
for _ in range(1000 if "together" in step else 0):
    with open(folder + "/requests") as file:
        if file.read().count("SignRequest") >= step["together"]:
            break
    time.sleep(0.02)
if "until" in step:
    for _ in range(500):
        if os.path.exists(step["until"]):
            break
        time.sleep(0.02)
    else:
        with open(folder + "/late", "a") as file:
            file.write(kind + "\\n")
if "hang" in step:
    time.sleep(step["hang"])
if "exit" in step:
    print("no", file=sys.stderr)
    sys.exit(step["exit"])
if "module" in step:
    import ctypes
    ctypes.CDLL(step["module"])
if "print" in step:
    sys.stdout.write(step["print"])
    sys.exit(0)
version = request["apiVersion"]
if kind == "CertificateRequest":
    print(json.dumps({{"apiVersion": version, "kind": "CertificateResponse", "certificate": script["certificate"]}}))
    sys.exit(0)
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
with open(folder + "/key.pem", "rb") as file:
    key = serialization.load_pem_private_key(file.read(), None)
digest = base64.b64decode(request["digest"])
if "digest" in step:
    digest = bytes(len(digest))
options = json.loads(request["signerOpts"])
numbers = {{5: hashes.SHA256(), 6: hashes.SHA384(), 7: hashes.SHA512()}}
if request["signerOptsType"] == "*rsa.PSSOptions":
    assert options["SaltLength"] == -1
    how = numbers[options["Hash"]]
    signature = key.sign(digest, padding.PSS(padding.MGF1(how), how.digest_size), utils.Prehashed(how))
elif options == 0:
    signature = key.sign(digest)
elif isinstance(key, ec.EllipticCurvePrivateKey):
    signature = key.sign(digest, ec.ECDSA(utils.Prehashed(numbers[options])))
    if "raw" in step:
        size = (key.curve.key_size + 7) // 8
        signature = b"".join(part.to_bytes(size, "big") for part in utils.decode_dss_signature(signature))
else:
    signature = key.sign(digest, padding.PKCS1v15(), utils.Prehashed(numbers[options]))
signature = signature[: step.get("cut")]
reply = {{"apiVersion": version, "kind": "SignResponse", "signature": base64.b64encode(signature).decode()}}
print(json.dumps(reply))
"""


class SignerProgram:
    """A signer in a process of its own. `script` says how it goes wrong, by the kind of the request."""

    def __init__(self, folder: Path, ca: CertificateAuthority, kind: str = "p256", **certificate: Any) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.path = folder / "signer"
        self.key = NEW_KEY[kind]()
        self.key_path = folder / "key.pem"
        self.key_path.write_bytes(self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.key_path.chmod(0o600)
        self.path.write_text(SIGNER.format(python=sys.executable, path=sys.path))
        self.path.chmod(0o700)
        self.script: dict[str, Any] = {}
        self.show(issue(ca, self.key, **certificate))

    def show(self, *chain: bytes) -> None:
        from base64 import b64encode

        self.say(certificate=b64encode(b"".join(chain)).decode())

    def say(self, **script: Any) -> None:
        self.script.update(script)
        (self.folder / "script.json").write_text(json.dumps(self.script))

    def user(self, **config: Any) -> dict[str, Any]:
        return {"auth-provider": {"name": "externalSigner", "config": {"pathExec": str(self.path), **config}}}

    @property
    def requests(self) -> list[dict[str, Any]]:
        path = self.folder / "requests"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def late(self) -> list[str]:
        """Requests that waited in vain for the file that `until` names."""
        path = self.folder / "late"
        return path.read_text().splitlines() if path.exists() else []

    def count(self, kind: str) -> int:
        return sum(request["kind"] == kind for request in self.requests)
