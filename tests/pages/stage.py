"""Where the pages beside the tutorials are followed: the home of somebody who has a cluster and a token.

The home has `~/.kube/config` with the contexts `prod` (the current one) and `old`, whose user `jane` is known to the
cluster by a token; `~/bin/my-plugin`, a credential plugin; and `~/.config/my-plugin/token`. The folder has
`authn.yaml`, `t.jwt` and `k.json` (a token of `https://dex.example.com`, and its keys), `claims.json`, `tls.crt` and
`tls.key`, and files to send to a cluster.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from kubeauthn.testing import ApiServer, CertificateAuthority, Issuer

ISSUER = "https://dex.example.com"
AUTHN = f"""\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {{url: {ISSUER}, audiences: [kubernetes]}}
  claimMappings:
    username: {{claim: sub, prefix: "dex:"}}
    groups: {{claim: groups, prefix: "dex:"}}
"""
CLAIMS = {"iss": ISSUER, "aud": "kubernetes", "sub": "jane", "groups": ["dev"], "email": "jane@example.com"}
PLUGIN = f"""\
#!{sys.executable}
from pathlib import Path

from kubeauthn.plugin import credential


def get_token(request):
    return credential.Token((Path.home() / ".config/my-plugin/token").read_text().strip(), expires_in=300)


credential.run(get_token)
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: big}\ndata: {greeting: hello}\n"


class Stage:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.folder = folder / "work"
        self._ports: dict[str, int] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Stage:
        for name in (self.home / ".kube", self.home / "bin", self.home / ".config/my-plugin", self.folder):
            name.mkdir(parents=True)
        self._cluster()
        self._tokens()
        self._files()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _cluster(self) -> None:
        server = self._stack.enter_context(ApiServer(tokens={"t0ken": "jane"}))
        server.add_pod("web")
        path = self.home / ".kube" / "config"
        document = server.kubeconfig({"token": "t0ken"}, context_name="prod", cluster_name="prod", user_name="jane")
        document["contexts"].append({"name": "old", "context": {"cluster": "prod", "user": "jane"}})
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        (self.home / ".config/my-plugin/token").write_text("t0ken\n")

    def _tokens(self) -> None:
        issuer = self._stack.enter_context(Issuer())
        (self.folder / "authn.yaml").write_text(AUTHN)
        (self.folder / "claims.json").write_text(json.dumps(CLAIMS))
        (self.folder / "t.jwt").write_text(issuer.token("jane", audience="kubernetes", iss=ISSUER, groups=["dev"]))
        (self.folder / "k.json").write_text(json.dumps(issuer.jwks()))

    def _files(self) -> None:
        leaf = CertificateAuthority().issue_server(["127.0.0.1", "localhost"])
        (self.folder / "tls.crt").write_bytes(leaf.chain_pem)
        (self.folder / "tls.key").write_bytes(leaf.key_pem)
        (self.folder / "tls.key").chmod(0o600)
        (self.folder / "namespace.yaml").write_text(NAMESPACE)
        (self.folder / "big.yaml").write_text(CONFIG_MAP)
        plugin = self.home / "bin" / "my-plugin"
        plugin.write_text(PLUGIN)
        plugin.chmod(0o755)

    def environ(self, run: str) -> dict[str, str]:
        """`run` is a short path: sockets have no room for a long one."""
        path = os.pathsep.join((str(self.home / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]))
        nowhere = {name: "http://127.0.0.1:9" for name in ("HTTPS_PROXY", "HTTP_PROXY")}
        own = {"HOME": str(self.home), "PATH": path, "PYTHONUNBUFFERED": "1", "LANG": "C.UTF-8", "NO_COLOR": "1"}
        return {**os.environ, **own, **nowhere, "NO_PROXY": "127.0.0.1,localhost", "XDG_RUNTIME_DIR": run}

    def fitted(self, text: str) -> str:
        """Loopback alone, and a port that is free: others may use the machine."""
        text = text.replace("0.0.0.0:", "127.0.0.1:")
        return re.sub(r"(127\.0\.0\.1:|--port )(\d+)", lambda found: found[1] + str(self._free(found[2])), text)

    def _free(self, port: str) -> int:
        if port not in self._ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._ports[port] = probe.getsockname()[1]
        return self._ports[port]
