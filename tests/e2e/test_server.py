"""`kubeauthn serve` as the webhook of a real kube-apiserver, beside one that reads the same file itself."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn.testing import Issuer
from tests.e2e.cluster import Cluster, Etcd
from tests.e2e.conftest import asking
from tests.e2e.processes import poll
from tests.e2e.serving import Serving, entry, webhook_kubeconfig
from tests.e2e.slow_relay import SlowRelay

Issuers = tuple[Issuer, Issuer]


def who(cluster: Cluster, token: str) -> dict[str, Any] | str:
    """The user that a cluster sees in a token, or what kubectl says when it is refused."""
    done = cluster.kubectl(
        "auth", "whoami", "-o", "json", kubeconfig=cluster.token_kubeconfig("try", token), check=False
    )
    if done.returncode:
        return done.stderr.strip()
    user: dict[str, Any] = json.loads(done.stdout)["status"]["userInfo"]
    return user


def seen(user: dict[str, Any] | str) -> Any:
    """Without the order of a Go map, and without what each API server adds of its own."""
    if isinstance(user, str):
        return user
    return {**user, "groups": sorted(user.get("groups", [])), "extra": dict(sorted(user.get("extra", {}).items()))}


TOKENS: dict[str, tuple[int, dict[str, Any]]] = {
    "claims": (0, {"sub": "jane", "groups": ["dev", "ops"]}),
    "one group": (0, {"sub": "jane", "groups": "dev"}),
    "no groups": (0, {"sub": "jane"}),
    "credential id": (0, {"sub": "jane", "jti": "abc"}),
    "not ASCII": (0, {"sub": "jäne 👑", "groups": ["größe"]}),
    "group of another type": (0, {"sub": "jane", "groups": [1]}),
    "no sub": (0, {"sub": None}),
    "expired": (0, {"sub": "jane", "exp": 1_600_000_000}),
    "not yet": (0, {"sub": "jane", "nbf": 4_000_000_000}),
    "other audience": (0, {"sub": "jane", "aud": "elsewhere"}),
    "several audiences": (0, {"sub": "jane", "aud": ["elsewhere", "kubernetes"]}),
    "other issuer": (0, {"sub": "jane", "iss": "https://elsewhere.example"}),
    "expressions": (1, {"sub": "joe", "tenant": "prod", "kind": "user", "roles": ["a", "b"], "oid": "42"}),
    "wrong tenant": (1, {"sub": "joe", "tenant": "test", "kind": "user", "oid": "42"}),
    "no tenant": (1, {"sub": "joe", "kind": "user", "oid": "42"}),
    "wrong kind": (1, {"sub": "joe", "tenant": "prod", "kind": "robot", "oid": "42"}),
    "no uid": (1, {"sub": "joe", "tenant": "prod", "kind": "user"}),
    "uid of another type": (1, {"sub": "joe", "tenant": "prod", "kind": "user", "oid": 42}),
    "reserved name": (1, {"sub": "system:admin", "tenant": "prod", "kind": "user", "oid": "42"}),
    "roles of another type": (1, {"sub": "joe", "tenant": "prod", "kind": "user", "oid": "42", "roles": "a"}),
    "name of another type": (1, {"sub": 7, "tenant": "prod", "kind": "user", "oid": "42"}),
}


def token_of(issuers: Issuers, case: str) -> str:
    which, claims = TOKENS[case]
    issuer = issuers[which]
    now = int(time.time())
    payload = {"iss": issuer.url, "aud": issuer.client_id, "exp": now + 600, **claims}
    return issuer.sign({name: value for name, value in payload.items() if value is not None})


@pytest.mark.parametrize("case", TOKENS)
def test_the_same_file_gives_the_same_user_behind_the_webhook(
    direct: Cluster, webhook: Cluster, issuers: Issuers, case: str
):
    token = token_of(issuers, case)
    assert seen(who(webhook, token)) == seen(who(direct, token))


@pytest.mark.parametrize("token", ["opaque", "a.b.c", "e30.e30.", "....", "x" * 9000])
def test_what_is_no_token_is_refused_by_both(direct: Cluster, webhook: Cluster, token: str):
    for cluster in (direct, webhook):
        answer = who(cluster, token)
        assert isinstance(answer, str)
        assert "Unauthorized" in answer or "logged in" in answer


def test_two_issuers_are_two_people(webhook: Cluster, issuers: Issuers):
    first, second = who(webhook, token_of(issuers, "claims")), who(webhook, token_of(issuers, "expressions"))
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["username"] == "first:jane"
    assert second["username"] == "second:joe"
    assert second["uid"] == "42"
    assert second["extra"]["example.com/tenant"] == ["prod"]
    assert set(second["groups"]) == {"role:a", "role:b", "system:authenticated"}


def test_v1beta1_is_answered_in_its_own_version(webhook_v1beta1: Cluster, issuers: Issuers):
    user = who(webhook_v1beta1, token_of(issuers, "claims"))
    assert isinstance(user, dict)
    assert user["username"] == "first:jane"


def test_a_token_review_posted_to_the_cluster_is_answered(webhook: Cluster, issuers: Issuers):
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": token_of(issuers, "claims")},
    }
    done = webhook.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(review))
    status = json.loads(done.stdout)["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == "first:jane"


def test_a_token_is_not_valid_for_an_audience_that_nobody_granted(webhook: Cluster, issuers: Issuers):
    spec = {"token": token_of(issuers, "claims"), "audiences": ["vault"]}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
    done = webhook.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(review))
    assert json.loads(done.stdout)["status"].get("authenticated", False) is False


def test_a_key_that_the_issuer_adds_is_found(webhook: Cluster, issuers: Issuers):
    issuer = issuers[0]
    assert isinstance(who(webhook, token_of(issuers, "claims")), dict)
    kid = issuer.rotate()
    token = issuer.sign(
        {"iss": issuer.url, "aud": issuer.client_id, "exp": int(time.time()) + 600, "sub": "rotated"}, kid=kid
    )
    # an unknown key is fetched at most every 30 s
    poll(lambda: isinstance(who(webhook, token), dict), 45, "the new key is known", interval=2)


# -- a server of its own, that the test may change, stop and start --------------------------------


def test_the_webhook_is_restarted_and_its_file_changed_while_kubectl_runs(
    tmp_path: Path, etcd: Etcd, issuers: Issuers, config_file: Path
):
    own = tmp_path / "own.yaml"
    own.write_text(config_file.read_text())
    token = token_of(issuers, "claims")
    with Serving(tmp_path, own, "--show-reasons") as serving:
        with asking(tmp_path, etcd, serving, "restarted", "--authentication-token-webhook-version=v1") as cluster:
            assert isinstance(who(cluster, token), dict)

            serving.stop()
            # kube-apiserver keeps an answer for ten seconds, whatever the webhook's own cache is set to
            poll(lambda: isinstance(who(cluster, token), str), 30, "the answer is forgotten", interval=1)
            serving.start()
            poll(lambda: isinstance(who(cluster, token), dict), 30, "the webhook is asked again")

            document = yaml.safe_load(own.read_text())
            document["jwt"][0]["claimMappings"]["username"]["prefix"] = "changed:"
            own.write_text(yaml.safe_dump(document))
            poll(lambda: seen(who(cluster, token))["username"] == "changed:jane", 90, "the new file counts", interval=1)

            document["jwt"][0]["claimMappings"]["username"]["prefix"] = None
            own.write_text(yaml.safe_dump(document))
            poll(lambda: _failed_reloads(serving) > 0, 90, "the faulty file is looked at", interval=0.5)
            assert seen(who(cluster, token))["username"] == "changed:jane"


def _failed_reloads(serving: Serving) -> float:
    lines = serving.metrics().splitlines()
    name = "apiserver_authentication_config_controller_automatic_reloads_total{"
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name) and 'status="failure"' in line)


def test_a_slow_webhook_makes_nobody_wait_for_ever_and_lets_nobody_in(
    tmp_path: Path, etcd: Etcd, issuers: Issuers, config_file: Path
):
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}

    def decision(number: int, seconds: str = "40s") -> tuple[bool, float]:
        """For a token that nobody has seen, with the time it took."""
        token = issuers[0].token("slow", jti=str(number))
        begun = time.monotonic()
        done = cluster.kubectl(
            "create", "-o", "json", "-f", "-", f"--request-timeout={seconds}",
            stdin=json.dumps({**review, "spec": {"token": token}}), check=False,
        )  # fmt: skip
        answer = json.loads(done.stdout)["status"] if done.returncode == 0 else {}
        return answer.get("authenticated", False), time.monotonic() - begun

    with Serving(tmp_path, config_file) as serving, SlowRelay(serving.port) as relay:
        through = webhook_kubeconfig(tmp_path / "relay.webhook", serving, relay.url)
        flags = [f"--authentication-token-webhook-config-file={through}", "--authentication-token-webhook-version=v1"]
        with Cluster(tmp_path, etcd, "slow", flags) as cluster:
            assert decision(1)[0] is True
            relay.delay = 3.0
            accepted, seconds = decision(2)
            assert accepted is True
            assert seconds >= 3.0
            relay.delay = 3600.0
            assert decision(3, "8s")[0] is False
            relay.delay = 0.0
            poll(lambda: decision(4)[0], 30, "the webhook is asked again")


def test_a_refusal_is_explained_in_the_log_of_the_api_server(
    tmp_path: Path, etcd: Etcd, issuers: Issuers, config_file: Path
):
    with Serving(tmp_path, config_file, "--show-reasons") as serving:
        with asking(tmp_path, etcd, serving, "reasons", "--authentication-token-webhook-version=v1") as cluster:
            assert isinstance(who(cluster, token_of(issuers, "expired")), str)
            poll(lambda: "expired" in cluster.log, 10, "the reason is in the log")


def test_the_entry_helper_makes_what_check_accepts(issuers: Issuers):
    from kubeauthn.server import load_configuration

    mapping = {"username": {"claim": "sub", "prefix": ""}}
    document = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [entry(issuers[0], claimMappings=mapping)],
    }
    assert load_configuration(yaml.safe_dump(document)).jwt[0].issuer.url == issuers[0].url
