"""etcd and kube-apiserver on loopback, with fresh certificates and RBAC. Everything ends with the `with` block."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kubeauthn.testing import CertificateAuthority
from tests.e2e.processes import Running, free_port, poll
from tests.peers import find

__all__ = ["Cluster", "Etcd", "kubeconfig_text"]

START_SECONDS = 90.0


class Etcd:
    """One etcd for all API servers; each has a prefix of its own in it."""

    def __init__(self, directory: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        program = find("etcd")
        assert program is not None, "python -m tests.peers.build etcd"
        command = [
            program,
            "--data-dir",
            directory / "etcd",
            "--listen-client-urls",
            self.url,
            "--advertise-client-urls",
            self.url,
            "--listen-peer-urls",
            peer,
            "--initial-advertise-peer-urls",
            peer,
            "--initial-cluster",
            f"default={peer}",
            "--unsafe-no-fsync",
        ]
        self._running = Running(command, directory / "etcd.log")

    def stop(self) -> None:
        self._running.stop()


class Cluster:
    """One kube-apiserver. `admin` is its kubeconfig, `ca` signs what it believes."""

    def __init__(self, directory: Path, etcd: Etcd, name: str, flags: Sequence[str] = ()) -> None:
        self.directory = directory / name
        self.directory.mkdir()
        self.name = name
        self.ca = CertificateAuthority(f"{name} CA")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._ca_file = self._write("ca.crt", self.ca.certificate_pem)
        server = self.ca.issue_server(["127.0.0.1", "localhost", "kubernetes.default.svc"])
        self._tls = (self._write("server.crt", server.chain_pem), self._write("server.key", server.key_pem))
        self._service_account_keys()
        kubelet_client = self.ca.issue_client("kube-apiserver-kubelet-client")
        self._write("kubelet-client.crt", kubelet_client.chain_pem)
        self._write("kubelet-client.key", kubelet_client.key_pem)
        admin = self.ca.issue_client("admin", ["system:masters"])
        self.admin = self.write_kubeconfig("admin", admin.kubeconfig_user())
        self.admin_context = self.ca.client_context()
        admin.load_into(self.admin_context)
        self._whole_command = self._command(etcd, flags)
        self._connection: http.client.HTTPSConnection | None = None
        self.start()

    def start(self) -> None:
        """Start, or start again on the same port with what is in etcd; `await_ready` waits for it."""
        self.running = Running(self._whole_command, self.directory / "kube-apiserver.log")

    def __enter__(self) -> Self:
        self.await_ready()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self.running.stop()

    def connection(self) -> http.client.HTTPSConnection:
        """The administrator's."""
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=self.admin_context)

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """As the administrator, on one connection: many times faster than a kubectl for each."""
        if self._connection is None:
            self._connection = self.connection()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self._connection.request("POST", path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        document: dict[str, Any] = json.loads(answer.read())
        assert answer.status < 300, document
        return document

    @property
    def log(self) -> str:
        return self.running.log.read_text(errors="replace")

    def await_ready(self) -> None:
        poll(self._is_ready, START_SECONDS, f"{self.name} is ready")

    def kubectl(
        self,
        *arguments: str,
        kubeconfig: Path | None = None,
        check: bool = True,
        stdin: str | None = None,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """The real kubectl, with a home and nothing else of its own."""
        program = find("kubectl")
        assert program is not None
        command = [str(program), "--kubeconfig", str(kubeconfig or self.admin), *arguments]
        variables = {"HOME": str(self.directory), "PATH": "/usr/bin:/bin", **(environment or {})}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=60, env=variables, input=stdin, check=False
        )
        if check and done.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done

    def grant(self, user: str, role: str = "cluster-admin") -> None:
        """Bind a cluster role to a user."""
        name = f"{role}-{''.join(c if c.isalnum() else '-' for c in user.lower()).strip('-')}"
        self.kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", f"--user={user}")

    def write_kubeconfig(self, name: str, user: dict[str, Any]) -> Path:
        return self._write(f"{name}.kubeconfig", kubeconfig_text(self.url, self.ca, user).encode())

    def token_kubeconfig(self, name: str, token: str) -> Path:
        return self.write_kubeconfig(name, {"token": token})

    def _write(self, name: str, content: bytes) -> Path:
        path = self.directory / name
        path.touch(mode=0o600)
        path.write_bytes(content)
        return path

    def _service_account_keys(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._write("sa.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self._write("sa.pub", key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))

    def _command(self, etcd: Etcd, flags: Sequence[str]) -> list[str]:
        program = find("kube-apiserver")
        assert program is not None, "python -m tests.peers.build kube-apiserver"
        own = {
            "etcd-servers": etcd.url,
            "etcd-prefix": f"/{self.name}",
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": self.port,
            "client-ca-file": self._ca_file,
            "tls-cert-file": self._tls[0],
            "tls-private-key-file": self._tls[1],
            "authorization-mode": "RBAC",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-cluster-ip-range": "10.0.0.0/24",
            "service-account-key-file": self.directory / "sa.pub",
            "cert-dir": self.directory,
            "service-account-signing-key-file": self.directory / "sa.key",
            "kubelet-certificate-authority": self._ca_file,
            "kubelet-client-certificate": self.directory / "kubelet-client.crt",
            "kubelet-client-key": self.directory / "kubelet-client.key",
            "kubelet-preferred-address-types": "InternalIP",
            "enable-priority-and-fairness": "false",
            "disable-admission-plugins": "ServiceAccount",
            "endpoint-reconciler-type": "none",
        }
        return [str(program), *(f"--{flag}={value}" for flag, value in own.items()), *flags]

    def _is_ready(self) -> bool:
        self.running.check_alive()
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self.admin_context)
        )
        try:
            with opener.open(f"{self.url}/readyz", timeout=5) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ssl.SSLError, OSError):
            return False


def kubeconfig_text(url: str, ca: CertificateAuthority, user: dict[str, Any]) -> str:
    import base64

    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": url, "certificate-authority-data": base64.b64encode(ca.certificate_pem).decode()},
            }
        ],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    return str(yaml.safe_dump(document))
