"""A configuration file, read and checked, its expressions compiled: beside kube-apiserver's own code, and how it grows.

No two issuers share an expression, and what is remembered of expressions is forgotten before each reading, but for the
rows that are about reading a file again. kube-apiserver takes 64 issuers at most and so do we: of a file with more
nothing but their number is looked at. For the rows on growth that limit is lifted, and every issuer is checked.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import peer
from bench.measure import Row, cpu_per_call, growth_rows, in_turns, ratio_row
from bench.tokens import for_kubernetes, issuers
from kubeauthn._core.authentication import compiled, validate
from kubeauthn.server import load_configuration

SIZES = (1, 10, 100, 1000)
KUBERNETES = "kube-apiserver's code"


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    rounds = 3 if quick else 11
    with peer.started() as kubernetes:
        for count in (1, 64) if kubernetes else ():
            name, text = f"{count} issuers", issuers(count)
            kubernetes.order("prepare check", name=name, config=for_kubernetes(text))
            readers = {"first": first(text), "again": again(text), KUBERNETES: kubernetes.cpu_per_call(name, 1)}
            readings = in_turns(readers, rounds)
            title = f"configuration: {count} issuer{'s' if count > 1 else ''}, read and checked"
            for which, what in (("first", title), ("again", f"{title} again, as after a reload")):
                pair = (readings[which], readings[KUBERNETES])
                yield ratio_row(what, pair, peer_name=KUBERNETES, goal=None, unit="ms", scale=1e3)
    growing = {}
    with any_number_of_issuers():
        for count in SIZES:
            reading = first(issuers(count))
            growing[count] = [reading() for _ in range(3 if quick else 5)]
    # Twelve and not ten: more of it lies outside the processor's caches.
    yield from growth_rows("configuration: issuers, read and checked", growing, 12)


def first(text: str) -> Callable[[], float]:
    """A reading of a file that this process has not seen."""
    check = again(text)

    def reading() -> float:
        compiled.forget_programs()
        gc.collect()  # what an earlier reading left behind is no part of this one
        return check()

    return reading


def again(text: str) -> Callable[[], float]:
    """A reading of a file whose expressions have been compiled before, if there are not too many of them."""
    return cpu_per_call(lambda: load_configuration(text), 1)


@contextmanager
def any_number_of_issuers() -> Iterator[None]:
    most = validate.AUTHENTICATORS
    validate.AUTHENTICATORS = max(SIZES)
    try:
        yield
    finally:
        validate.AUTHENTICATORS = most
