"""Numbers of several workers, added up and written for Prometheus: read back with Prometheus' own parser."""

from __future__ import annotations

import json

from prometheus_client.parser import text_string_to_metric_families

from kubeauthn.server.metrics import Registry


def worker(count: int, seen: float, latencies: list[float]) -> Registry:
    registry = Registry()
    registry.counter("c_total", 'counted\nwith "care"', ("path",)).cell('a"\\\nb').value += count
    registry.gauge("g", "seen").cell().value = seen
    for value in latencies:
        registry.histogram("h", "took", buckets=(0.1, 1.0)).distribution().observe(value)
    return registry


def samples(registry: Registry) -> dict[tuple[str, str], float]:
    found = {}
    for family in text_string_to_metric_families(registry.text()):
        for sample in family.samples:
            found[sample.name, "".join(sample.labels.values())] = sample.value
    return found


def test_workers_are_added_up() -> None:
    total = Registry()
    for registry in (worker(2, 5.0, [0.05, 0.1]), worker(3, 7.5, [0.5, 99.0])):
        total.add(json.loads(json.dumps(registry.snapshot())))  # as it travels
    assert samples(total) == {
        ("c_total", 'a"\\\nb'): 5,
        ("g", ""): 7.5,
        ("h_bucket", "0.1"): 2,
        ("h_bucket", "1"): 3,
        ("h_bucket", "+Inf"): 4,
        ("h_sum", ""): 99.65,
        ("h_count", ""): 4,
    }


def test_of_a_worker_that_is_gone_only_counts_stay() -> None:
    total = Registry()
    total.add(worker(2, 5.0, [0.05]).snapshot(), gone=True)
    assert ("g", "") not in samples(total)
    assert samples(total)["c_total", 'a"\\\nb'] == 2
    assert samples(total)["h_count", ""] == 1
