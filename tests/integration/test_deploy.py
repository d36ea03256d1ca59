"""What deploy/ says is true: metrics exist, manifests fit together, and the image starts what there is."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn.cli import serve
from kubeauthn.server import load_configuration
from kubeauthn.testing import Issuer
from tests.integration.serve_process import Serve, configuration, replace, until

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
BASE, EXAMPLE = DEPLOY / "kubernetes" / "base", DEPLOY / "kubernetes" / "example"


# -- metrics --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Every series of a server that has decided, refused and reloaded, well and badly: name to labels."""
    from prometheus_client.parser import text_string_to_metric_families

    folder = tmp_path_factory.mktemp("serve")
    file = folder / "authentication.yaml"
    with Issuer() as issuer:
        file.write_text(configuration(issuer))
        with Serve(file, tls=folder / "tls") as server:
            server.ready()
            server.review(issuer.token("jane", audience="kubernetes"))
            server.review("garbage")
            replace(file, "wrong")
            server.hang_up()
            issuer.fail_next(1000)
            server.review(issuer.sign({"iss": issuer.url, "aud": "kubernetes", "exp": 9e9}, kid=issuer.rotate()))
            wanted = ("automatic_reloads_total", 'status="failure"', 'status="unhealthy"')
            text = until(lambda: _page_with(server, wanted), "all of it was counted")
            families = list(text_string_to_metric_families(text))
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


def _page_with(server: Serve, wanted: tuple[str, ...]) -> str:
    text = server.metrics()
    return text if all(part in text for part in wanted) else ""


def expressions() -> list[tuple[str, str]]:
    rules = yaml.safe_load((DEPLOY / "alerts" / "serve.yaml").read_text())["groups"][0]["rules"]
    panels = json.loads((DEPLOY / "grafana" / "kubeauthn.json").read_text())["panels"]
    found = [(rule["alert"], rule["expr"]) for rule in rules]
    return found + [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]


def test_every_alert_says_what_it_means():
    rules = yaml.safe_load((DEPLOY / "alerts" / "serve.yaml").read_text())["groups"][0]["rules"]
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)


def test_an_issuer_that_never_answered_a_replica_is_told_too():
    """It has no series `healthy`, so nothing may be asked of one; and another replica's must not speak for it."""
    rules = yaml.safe_load((DEPLOY / "alerts" / "serve.yaml").read_text())["groups"][0]["rules"]
    [alert] = [rule["expr"] for rule in rules if rule["alert"] == "KubeauthnIssuerUnhealthy"]
    told, _, taken_away = alert.partition(" unless ")
    assert 'status="healthy"' not in told
    assert 'status="healthy"' in taken_away
    assert alert.count("by (") == alert.count("by (job, instance, jwt_issuer_hash)")


def test_every_metric_that_is_named_is_exposed(exposed: dict[str, set[str]]):
    for title, expression in expressions():
        named = re.findall(r"((?:kubeauthn|apiserver)_\w+)(?:\{([^}]*)\})?", expression)
        assert named, title
        for name, matchers in named:
            assert name in exposed, f"{title} names {name}"
            labels = set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matchers)) - {"job"}
            assert labels <= exposed[name], f"{title}: {name} has no {labels - exposed[name]}"
        grouped = {label.strip() for by in re.findall(r"by \(([^)]*)\)", expression) for label in by.split(",")}
        known = set().union(*(exposed[name] for name, _ in named)) | {"job", "instance"}
        assert grouped <= known, f"{title} groups by {grouped - known}"


def test_the_dashboard_has_a_place_for_each_panel():
    panels = json.loads((DEPLOY / "grafana" / "kubeauthn.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


# -- manifests ------------------------------------------------------------------------------------


def built() -> dict[str, Any]:
    made = subprocess.run(
        ["kubectl", "kustomize", str(EXAMPLE)], capture_output=True, text=True, timeout=30, check=True
    )
    return {document["kind"]: document for document in yaml.safe_load_all(made.stdout)}


def test_every_file_of_the_base_is_used():
    resources = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    assert sorted(resources) == sorted(path.name for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml")


@pytest.mark.needs("kubectl")
def test_the_parts_fit_together():
    made = built()
    assert set(made) == {
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "Namespace",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ServiceAccount",
    }
    namespace = made["Namespace"]["metadata"]["name"]
    assert all(part["metadata"]["namespace"] == namespace for kind, part in made.items() if kind != "Namespace")
    pod = made["Deployment"]["spec"]["template"]
    labels = pod["metadata"]["labels"].items()
    assert made["Service"]["spec"]["selector"].items() <= labels
    for kind in ("Deployment", "PodDisruptionBudget"):
        assert made[kind]["spec"]["selector"]["matchLabels"].items() <= labels
    assert made["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"].items() <= labels
    assert pod["spec"]["serviceAccountName"] == made["ServiceAccount"]["metadata"]["name"]
    target = made["HorizontalPodAutoscaler"]["spec"]
    assert target["scaleTargetRef"]["name"] == made["Deployment"]["metadata"]["name"]
    assert target["minReplicas"] >= 2
    assert "replicas" not in made["Deployment"]["spec"]
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert volumes["configuration"]["configMap"]["name"] == made["ConfigMap"]["metadata"]["name"]
    load_configuration(made["ConfigMap"]["data"]["authentication.yaml"])


@pytest.mark.needs("kubectl")
def test_the_pod_may_do_little_and_starts_a_server_that_exists():
    pod = built()["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    assert set(mounts) == {volume["name"] for volume in pod["volumes"]}
    assert not [mount for mount in mounts.values() if "subPath" in mount]

    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert container["args"][0] == "serve"
    arguments = parser.parse_args(container["args"][1:])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert arguments.listen.rpartition(":")[2] == str(ports["https"])
    assert arguments.file.startswith(mounts["configuration"]["mountPath"] + "/")
    assert arguments.tls_cert.startswith(mounts["certificate"]["mountPath"] + "/")
    assert pod["terminationGracePeriodSeconds"] > arguments.grace_period
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"  # an issuer that is down restarts nothing


# -- the image ------------------------------------------------------------------------------------


def containerfile() -> list[tuple[str, str]]:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def test_the_image_is_built_of_files_that_are_there_and_runs_as_nobody():
    steps = containerfile()
    stages = [at for at, (word, _) in enumerate(steps) if word == "FROM"]
    assert len(stages) == 2
    for word, rest in steps:
        if word == "COPY" and not rest.startswith("--from"):
            assert not [name for name in rest.split()[:-1] if not (ROOT / name).exists()]
    last = dict(steps[stages[-1] :])
    assert last["USER"] == "65532:65532"
    assert json.loads(last["ENTRYPOINT"])[0].endswith("/bin/kubeauthn")
    assert "RUN" not in last  # nothing is run as root in what is shipped


def test_the_image_installs_extras_that_exist():
    (install,) = [rest for word, rest in containerfile() if word == "RUN" and "kubeauthn[" in rest]
    named = install.partition("kubeauthn[")[2].partition("]")[0].split(",")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(named) <= set(extras)
    assert "serve" in named


def test_the_pod_runs_as_the_user_of_the_image():
    deployment = yaml.safe_load((BASE / "deployment.yaml").read_text())
    security = deployment["spec"]["template"]["spec"]["securityContext"]
    assert f"{security['runAsUser']}:{security['runAsGroup']}" == dict(containerfile())["USER"]
