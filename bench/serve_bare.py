"""The peers of bench/serve.py: a Granian application that reads the body and answers a fixed one, and one that calls
`authenticate` in between and does nothing else.

python -m bench.serve_bare CERTIFICATE KEY PORT WORKERS [FOLDER]

FOLDER holds the configuration and the keys, authn.json and jwks.json by issuer, that make it the second.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

BODY = b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true}}'
HEADERS = [("content-type", "application/json")]
FOLDER = "KUBEAUTHN_BENCH_FOLDER"
"""The environment variable that tells the worker processes."""


class Bare:
    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        await protocol()
        protocol.response_bytes(200, HEADERS, BODY)


class OnlyAuthenticates:
    """What a webhook in Python cannot do without. A token that is refused fails, and so does the measurement."""

    def __init__(self, folder: Path) -> None:
        from kubeauthn.server import Authenticator, load_configuration

        config = load_configuration((folder / "authn.json").read_text())
        self._authenticate = Authenticator(config, keys=json.loads((folder / "jwks.json").read_text())).authenticate

    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        self._authenticate(json.loads(await protocol())["spec"]["token"])
        protocol.response_bytes(200, HEADERS, BODY)


application = OnlyAuthenticates(Path(os.environ[FOLDER])) if FOLDER in os.environ else Bare()


def main() -> None:
    from granian import Granian
    from granian.constants import Interfaces, SSLProtocols

    certificate, key, port, workers, *folder = sys.argv[1:]
    if folder:
        os.environ[FOLDER] = folder[0]
    Granian(
        "bench.serve_bare:application",
        address="127.0.0.1",
        port=int(port),
        interface=Interfaces.RSGI,
        workers=int(workers),
        websockets=False,
        log_enabled=False,
        ssl_cert=Path(certificate),
        ssl_key=Path(key),
        ssl_protocol_min=SSLProtocols.tls12,
    ).serve()


if __name__ == "__main__":
    main()
