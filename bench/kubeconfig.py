"""Loading a kubeconfig of 5,000 contexts, beside what PyYAML's C parser alone takes for the same file.

Three readings of "the C parser alone": its loader (the whole job, with dictionaries at the
end), its composer (nodes), and its bare events, looked at by nobody and thrown away. The
goal is on the first two, which end with something a program can use. On top of the events
stand our own dictionaries, the checks of every type, and 15,000 entries: the last row
shows what they cost, and has no goal.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from bench.measure import Row, cpu_per_call, growth_rows, in_turns, ratio_row
from kubeauthn.client import kubeconfig

ENTRIES = 5000
GOAL = 1.3
GROWTH_GOAL = 12
SIZES = (1, 10, 100, 1000)


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    path = folder / "config"
    entries = ENTRIES // 10 if quick else ENTRIES
    path.write_text(synthetic_kubeconfig(entries))

    def events() -> None:
        for _ in yaml.parse(path.read_text(), Loader=yaml.CSafeLoader):
            pass

    peers = {
        "yaml.load, CSafeLoader": (lambda: yaml.load(path.read_text(), Loader=yaml.CSafeLoader), GOAL),
        "yaml.compose, CSafeLoader": (lambda: yaml.compose(path.read_text(), Loader=yaml.CSafeLoader), GOAL),
        "yaml.parse, CSafeLoader, events thrown away": (events, None),
    }
    readers = {name: cpu_per_call(call, 1) for name, (call, _) in peers.items()}
    readings = in_turns({"ours": cpu_per_call(lambda: kubeconfig.load(path), 1), **readers}, 3 if quick else 7)
    title = f"kubeconfig: load {entries:,} contexts, clusters and users"
    for name, (_, goal) in peers.items():
        pair = (readings["ours"], readings[name])
        yield ratio_row(title, pair, peer_name=name, goal=goal, unit="ms", scale=1e3)
    yield from _growing(folder, 3 if quick else 11)


def _growing(folder: Path, rounds: int) -> Iterator[Row]:
    readers = {}
    for entries in SIZES:
        path = folder / f"config-{entries}"
        path.write_text(synthetic_kubeconfig(entries))
        readers[str(entries)] = cpu_per_call(lambda path=path: kubeconfig.load(path), max(1, 200 // entries))
    readings = in_turns(readers, rounds)
    yield from growth_rows("kubeconfig: contexts", {entries: readings[str(entries)] for entries in SIZES}, GROWTH_GOAL)


def synthetic_kubeconfig(entries: int, command: str = "aws") -> str:
    """As kubectl and the cloud tools write it: one cluster, one user with a plugin and one context each."""
    certificate = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="
    lines = ["apiVersion: v1", "kind: Config", "current-context: context-0", "preferences: {}", "clusters:"]
    for index in range(entries):
        lines += [
            "- cluster:",
            f"    certificate-authority-data: {certificate}",
            f"    server: https://api-{index}.example.com:6443",
            f"  name: cluster-{index}",
        ]
    lines.append("contexts:")
    for index in range(entries):
        lines += [
            "- context:",
            f"    cluster: cluster-{index}",
            f"    namespace: team-{index}",
            f"    user: user-{index}",
            f"  name: context-{index}",
        ]
    lines.append("users:")
    for index in range(entries):
        lines += [
            f"- name: user-{index}",
            "  user:",
            "    exec:",
            "      apiVersion: client.authentication.k8s.io/v1",
            "      args:",
            *(f"      - {argument}" for argument in ("eks", "get-token", "--cluster-name", f"cluster-{index}")),
            *(f"      - {argument}" for argument in ("--output", "json")),
            f"      command: {command}",
            "      env:",
            "      - name: AWS_PROFILE",
            f"        value: profile-{index}",
            "      interactiveMode: IfAvailable",
            "      provideClusterInfo: false",
        ]
    return "\n".join(lines) + "\n"
