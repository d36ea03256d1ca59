from __future__ import annotations

import math
import weakref

import pytest

from kubeauthn.client import metrics

prometheus_client = pytest.importorskip("prometheus_client")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> object:
    from kubeauthn.client import prometheus

    before = metrics.listener()
    monkeypatch.setattr(metrics, "_expiries", weakref.WeakKeyDictionary())  # other tests' certificates may still live
    registry = prometheus_client.CollectorRegistry()
    prometheus.install(registry)
    yield registry
    metrics.install(before)


class Owner:
    """Anything that holds a certificate."""


def test_time_to_the_earliest_expiry_of_all(registry: object) -> None:
    import time

    def ttl() -> float:
        return registry.get_sample_value("rest_client_exec_plugin_ttl_seconds")  # type: ignore[attr-defined]

    assert ttl() == math.inf
    one, two = Owner(), Owner()
    metrics.set_certificate_expiry(one, time.time() + 1000)
    metrics.set_certificate_expiry(two, time.time() + 500)
    assert ttl() == pytest.approx(500, abs=5)
    metrics.set_certificate_expiry(two, time.time() - 100)
    assert ttl() == pytest.approx(-100, abs=5)
    metrics.set_certificate_expiry(two, None)
    assert ttl() == pytest.approx(1000, abs=5)
    metrics.set_certificate_expiry(one, None)
    assert ttl() == math.inf


def test_names_labels_and_buckets_are_kubernetes_own(registry: object) -> None:
    listener = metrics.listener()
    listener.plugin_called(0, metrics.NO_ERROR)
    listener.plugin_called(3, metrics.PLUGIN_EXECUTION_ERROR)
    listener.policy_decided(metrics.DENIED)
    listener.certificate_rotated(700)
    value = registry.get_sample_value  # type: ignore[attr-defined]
    calls = "rest_client_exec_plugin_call_total"
    assert value(calls, {"code": "0", "call_status": "no_error"}) == 1
    assert value(calls, {"code": "3", "call_status": "plugin_execution_error"}) == 1
    assert value("rest_client_exec_plugin_policy_call_total", {"result": "denied"}) == 1
    age = "rest_client_exec_plugin_certificate_rotation_age"
    assert value(f"{age}_bucket", {"le": "600.0"}) == 0
    assert value(f"{age}_bucket", {"le": "1800.0"}) == 1
    bounds = [600, 1800, 3600, 14400, 86400, 604800, 2592000, 7776000, 15552000, 31104000, 124416000]
    from kubeauthn.client.prometheus import ROTATION_AGE_BUCKETS

    assert list(ROTATION_AGE_BUCKETS) == bounds
