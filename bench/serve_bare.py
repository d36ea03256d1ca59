"""The peer of bench/serve.py: a Granian application that reads the body and answers a fixed one.

python -m bench.serve_bare CERTIFICATE KEY PORT WORKERS
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

BODY = b'{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true}}'
HEADERS = [("content-type", "application/json")]


class Bare:
    async def __rsgi__(self, scope: Any, protocol: Any) -> None:
        await protocol()
        protocol.response_bytes(200, HEADERS, BODY)


application = Bare()


def main() -> None:
    from granian import Granian
    from granian.constants import Interfaces, SSLProtocols

    certificate, key, port, workers = sys.argv[1:]
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
