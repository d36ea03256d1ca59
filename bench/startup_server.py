"""From exec to the first verdict: `kubeauthn serve` fetches the keys; the Go webhook beside it reads them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import peer
from bench.measure import Row, interleaved, ratio_row
from bench.processes import await_answers, free_port, running
from bench.tokens import AUDIENCE, EXAMPLE, claims, for_kubernetes
from bench.webhook import ACCEPTED, GO_WEBHOOK, for_issuer, request
from kubeauthn.testing import CertificateAuthority, Issuer


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    program = peer.program()
    if program is None:
        return
    tls = CertificateAuthority()
    pair, context = tls.issue_server(), tls.client_context()
    certificate, key = folder / "tls.crt", folder / "tls.key"
    certificate.write_bytes(pair.chain_pem)
    key.write_bytes(pair.key_pem)
    ours, theirs, keys = folder / "ours.yaml", folder / "go.yaml", folder / "keys.json"
    with Issuer() as issuer:
        ours.write_text(for_issuer(EXAMPLE, issuer))
        theirs.write_text(for_kubernetes(for_issuer(EXAMPLE, issuer)))
        keys.write_text(json.dumps(issuer.jwks()))
        said = {**claims(), "aud": AUDIENCE}
        said.pop("iss", None)
        asked = request(issuer.token(said.pop("sub"), audience=said.pop("aud"), **said)).encode()

        def answered(*command: str) -> Callable[[], float]:
            def reading() -> float:
                port = free_port()
                begun = time.perf_counter()
                # An installed program has its byte code beside it; the first, unmeasured round writes ours.
                environment = {"PYTHONDONTWRITEBYTECODE": ""}
                with running([*command, f"--listen=127.0.0.1:{port}"], environment=environment):
                    await_answers(port, context, asked, ACCEPTED, 1, pause=0.002)
                    return time.perf_counter() - begun

            return reading

        pem = [f"--tls-cert={certificate}", f"--tls-key={key}"]
        readings = interleaved(
            answered(sys.executable, "-m", "kubeauthn", "serve", str(ours), "--workers", "1", *pem),
            answered(str(program), "webhook", f"--config={theirs}", f"--keys={keys}", *pem),
            1 if quick else 11,
            elsewhere=True,
        )
    name = "start-up: kubeauthn serve, from exec to the first verdict"
    yield ratio_row(name, readings, peer_name=GO_WEBHOOK, goal=None, unit="ms", scale=1e3)
