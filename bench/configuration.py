"""A configuration file, read and checked, its expressions compiled: beside kube-apiserver's own code, and how it grows.

No two issuers share an expression. kube-apiserver takes 64 issuers at most and so do we; a file with more is checked
to its end all the same, and its cost is seen here.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import peer
from bench.measure import Row, cpu_per_call, growth_rows, interleaved, ratio_row
from bench.tokens import for_kubernetes, issuers
from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.server import load_configuration

SIZES = (1, 10, 100, 1000)


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else 11
    with peer.started() as kubernetes:
        for count in (1, 64) if kubernetes else ():
            name, text = f"{count} issuers", issuers(count)
            kubernetes.order("prepare check", name=name, config=for_kubernetes(text))
            readings = interleaved(
                cpu_per_call(lambda text=text: load_configuration(text), 1), kubernetes.cpu_per_call(name, 1), rounds
            )
            title = f"configuration: {count} issuer{'s' if count > 1 else ''}, read and checked"
            peer_name = "kube-apiserver's code"
            yield ratio_row(title, readings, peer_name=peer_name, goal=None, unit="ms", scale=1e3)
    seconds = {}
    for count in SIZES:
        text = issuers(count)
        seconds[count] = min(cpu_per_call(lambda text=text: checked(text), 1)() for _ in range(3 if quick else 5))
    # Thirteen and not ten: more of it lies outside the processor's caches.
    yield from growth_rows("configuration: issuers, read and checked", seconds, 12)


def checked(text: str) -> None:
    try:
        load_configuration(text)
    except AuthenticationConfigError as error:
        if len(error.errors) > 1:  # that there are too many issuers is all
            raise
