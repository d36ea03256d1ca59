"""Every recorded case that can be served: a kube-apiserver with the file, and one whose webhook has the same file.

Both must see the recorded user, or refuse for the recorded reason. Faulty configurations are given to a running
kube-apiserver, which keeps its old one and says in its log why.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.server import load_configuration
from tests.e2e.canned_issuers import CannedIssuers
from tests.e2e.cluster import Cluster, Etcd
from tests.e2e.conftest import asking
from tests.e2e.processes import poll
from tests.e2e.recorded_cases import RECORDED, plan
from tests.e2e.recorded_wire import Ready, prepare
from tests.e2e.serving import Serving

SERVED = [
    pytest.param(number, case["name"], id=case["name"])
    for number, file in enumerate(plan().files)
    for group in file.groups
    for case in group.cases
]
NOTHING = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n"
KNOWN = tomllib.loads((RECORDED / "known.toml").read_text(encoding="utf-8"))["authn"]
"""Cases whose text differs, or whose difference is not made."""
REFUSED_TEXT = "token not authenticated"
NO_KEYS_YET = "not initialized"


class SideBySide:
    """Two API servers and one file, which changes with every few dozen cases."""

    def __init__(self, directory: Path, etcd: Etcd, issuers: CannedIssuers) -> None:
        self._issuers = issuers
        self.file = directory / "recorded.yaml"
        self.write(NOTHING)
        self.serving = Serving(directory, self.file, "--ready-policy", "any", "--log-format", "json")
        self.direct = Cluster(directory, etcd, "recorded", [f"--authentication-config={self.file}"])
        self.cases: dict[str, Ready] = {}
        self._number: int | None = None

    def write(self, text: str) -> None:
        """At once, as a mounted ConfigMap changes: kube-apiserver must not see half of it."""
        whole = self.file.with_suffix(".new")
        whole.write_text(text, encoding="utf-8")
        whole.replace(self.file)

    def use(self, number: int) -> None:
        """Start both with this file. (A reload that fetches keys takes kube-apiserver ten seconds, a start four.)"""
        if number == self._number:
            return
        self._number = None
        text, self.cases = prepare(plan().files[number], self._issuers)
        self.direct.stop()
        self.serving.stop()
        self.write(text)
        self.direct.start()
        self.serving.start()
        self.direct.await_ready()
        self._number = number

    def refusal(self, since: int) -> str:
        """Why the last token was refused: the server's log knows."""
        lines = [line for line in self.serving.log[since:].splitlines() if REFUSED_TEXT in line]
        return str(json.loads(lines[-1]).get("reason", "")) if lines else ""


@pytest.fixture(scope="module")
def side_by_side(directory: Path, etcd: Etcd) -> Iterator[SideBySide]:
    with CannedIssuers() as issuers:
        scene = SideBySide(directory, etcd, issuers)
        try:
            scene.direct.await_ready()
            yield scene
        finally:
            scene.direct.stop()
            scene.serving.stop()


@pytest.fixture(scope="module")
def behind(directory: Path, etcd: Etcd, side_by_side: SideBySide) -> Iterator[Cluster]:
    with asking(
        directory, etcd, side_by_side.serving, "recorded-webhook", "--authentication-token-webhook-version=v1"
    ) as cluster:
        yield cluster


def test_nearly_all_recorded_cases_are_served(capsys: pytest.CaptureFixture[str]):
    with capsys.disabled():
        print(f"\n{plan().summary()}")
    assert len(SERVED) + len(plan().faulty) >= 780
    assert plan().recorded_left_out <= 80


@pytest.mark.parametrize(("number", "name"), SERVED)
def test_a_recorded_token_gets_the_recorded_answer_from_both(
    side_by_side: SideBySide, behind: Cluster, number: int, name: str
):
    side_by_side.use(number)
    case = side_by_side.cases[name]
    kubernetes: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    our_reason = ""

    def kubernetes_has_keys() -> bool:
        kubernetes.clear()
        kubernetes.update(review(side_by_side.direct, case.token))
        return NO_KEYS_YET not in kubernetes.get("error", "")

    def serve_has_keys() -> bool:
        nonlocal our_reason
        since = len(side_by_side.serving.log)
        ours.clear()
        ours.update(review(behind, case.token))
        our_reason = side_by_side.refusal(since)
        return NO_KEYS_YET not in our_reason or not case.has_keys

    poll(kubernetes_has_keys, 15, "kube-apiserver has asked the issuer")
    poll(serve_has_keys, 15, "kubeauthn serve has asked the issuer")

    assert matches(kubernetes, case.expected), kubernetes
    # (kube-apiserver cuts the space around a token off before it asks anybody)
    if case.ours is not None and name not in KNOWN and case.token == case.token.strip():
        assert case.ours["authenticated"] in (None, ours.get("authenticated", False))
        return
    assert ours.get("authenticated") == kubernetes.get("authenticated")
    assert ours.get("user") == kubernetes.get("user")
    if (reason := reason_of(kubernetes)) and name not in KNOWN and case.has_keys:
        assert our_reason == reason


ANONYMOUS_CHANGED = "anonymous: Forbidden: changed from initial configuration file"
FAULTS = ("failed to load authentication config", "failed to validate authentication config")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in plan().faulty])
def test_a_recorded_fault_is_found_by_a_running_server_and_by_ours(side_by_side: SideBySide, case: dict[str, Any]):
    log = side_by_side.direct.running.log
    since = log.stat().st_size
    side_by_side.write(case["config"])
    seen: list[str] = []

    def looked_at() -> bool:
        with log.open("rb") as file:
            file.seek(since)
            seen[:] = fault_texts(file.read().decode(errors="replace"))
        return bool(seen)

    poll(looked_at, 20, "kube-apiserver looks at the file", interval=0.01)
    expect = case["expect"]
    theirs = seen[-1].partition(' in scheme "')[0]
    decode = (expect.get("strictDecodeError") or "").partition(' in scheme "')[0]
    recorded = decode or aggregate(expect["configErrors"])
    # a server that runs cannot change whom it takes for anonymous, and says so too
    changed = [] if decode or "anonymous" not in case["config"] else [ANONYMOUS_CHANGED]
    assert theirs == (aggregate([*expect["configErrors"], *changed]) if changed else recorded)
    try:
        load_configuration(case["config"])
    except AuthenticationConfigError as error:
        ours = str(error) if decode else aggregate([fault.text for fault in error.errors])
    else:
        ours = ""
    assert ours == recorded or "ours" in case


def fault_texts(log: str) -> list[str]:
    """The errors in these lines; one with line breaks is printed indented, between brackets."""
    texts = []
    lines = iter(log.splitlines())
    for line in lines:
        message, found, value = line.partition(" err=")
        if not found or not any(f'"{fault}"' in message for fault in FAULTS):
            continue
        if value.startswith("<"):
            rows = []
            while not (row := next(lines)).startswith(" >"):
                rows.append(row.removeprefix("\t"))
            texts.append("\n".join(rows))
        else:
            texts.append(json.loads(value))
    return texts


def aggregate(faults: list[str]) -> str:
    """As Kubernetes prints several errors: each once, in brackets where there are two or more."""
    once = list(dict.fromkeys(faults))
    return once[0] if len(once) == 1 else f"[{', '.join(once)}]"


def reason_of(status: dict[str, Any]) -> str:
    """The reason of a refusal, without what the service account authenticators say of every token of others."""
    text = str(status.get("error", ""))
    if text.startswith("[invalid bearer token, "):
        text = text.removeprefix("[invalid bearer token, ").removesuffix("]")
    return "" if text == "invalid bearer token" else text


def review(cluster: Cluster, token: str) -> dict[str, Any]:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answer = cluster.post("/apis/authentication.k8s.io/v1/tokenreviews", body)
    status: dict[str, Any] = answer["status"]
    return status


def matches(status: dict[str, Any], expected: list[dict[str, Any]]) -> bool:
    return any(as_recorded(status) == one_of(one) for one in expected)


def as_recorded(status: dict[str, Any]) -> tuple[object, ...]:
    if not status.get("authenticated"):
        return "refused", reason_of(status)
    user = status["user"]
    groups = list(user.get("groups", []))
    groups.remove("system:authenticated")  # which every API server adds
    return "user", user.get("username", ""), user.get("uid", ""), groups, user.get("extra") or {}


def one_of(expected: dict[str, Any]) -> tuple[object, ...]:
    if not expected["authenticated"]:
        return "refused", expected.get("error") or ""
    user = expected["user"]
    extra = {key: list(values) for key, values in (user.get("extra") or {}).items()}
    return "user", user["username"], user.get("uid") or "", list(user.get("groups") or []), extra
