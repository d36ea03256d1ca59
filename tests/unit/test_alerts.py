"""Every metric that an alert rule names is one that the program has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from kubeauthn.client import metrics

prometheus_client = pytest.importorskip("prometheus_client")
RULES = sorted((Path(__file__).parents[2] / "deploy" / "alerts").glob("exec-*.yaml"))


@pytest.fixture
def exposed() -> object:
    from kubeauthn.client.prometheus import PrometheusExecMetrics

    registry = prometheus_client.CollectorRegistry()
    told = PrometheusExecMetrics(registry)
    told.plugin_called(0, metrics.NO_ERROR)
    told.policy_decided(metrics.DENIED)
    told.certificate_rotated(700)
    return {sample.name: set(sample.labels) for family in registry.collect() for sample in family.samples}


def test_there_are_rules() -> None:
    assert RULES


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.name)
def test_metrics_and_labels_exist(path: Path, exposed: dict[str, set[str]]) -> None:
    rules = [rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]]
    assert rules
    for rule in rules:
        assert rule["annotations"]["summary"]
        named = re.findall(r"(rest_client_\w+)(?:\{([^}]*)\})?", rule["expr"])
        assert named, rule["alert"]
        for name, labels in named:
            assert name in exposed, f"{rule['alert']} names {name}"
            assert set(re.findall(r"(\w+)(?:!?=)", labels)) <= exposed[name]
            if label := re.search(r'le="([^"]+)"', labels):
                from kubeauthn.client.prometheus import ROTATION_AGE_BUCKETS

                assert float(label.group(1)) in ROTATION_AGE_BUCKETS
