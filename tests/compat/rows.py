"""The rows of the page, and the right answer to each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.compat.columns import COLUMNS
from tests.compat.probes_keep import DOES_NOT_APPLY

NOTHING_SENT = "an error, nothing is sent"


@dataclass(frozen=True)
class Row:
    key: str
    title: str
    right: str
    also_right: tuple[str, ...] = ()
    """Other answers that nobody should be blamed for. kubeauthn still gives the first."""

    def mark(self, cell: str) -> str:
        """The cell as the page shows it."""
        if cell == self.right:
            return "✓"
        if cell in self.also_right:
            return f"✓ {cell}"
        return cell if cell == DOES_NOT_APPLY else f"✗ {cell}"


ROWS = (
    Row("fails", "The plugin fails", NOTHING_SENT),
    Row("missing", "The plugin is not installed", NOTHING_SENT),
    Row("install hint", "… and its `installHint`", "shown"),
    Row("time limit", "The plugin hangs", "ended"),
    Row("interactive", "`interactiveMode: Always`, no terminal", "refused"),
    Row("policy", "Policy `DenyAll` in the kuberc", "refused"),
    Row("metrics", "Prometheus metrics of the runs", "all four"),
    Row("v1", "`apiVersion` v1", "yes"),
    Row("v1beta1", "`apiVersion` v1beta1", "yes"),
    Row("null fields", "`env: null`, `args: null`", "as if absent"),
    Row("relative command", "Relative `command` found beside its kubeconfig", "yes"),
    Row("exec info", "`KUBERNETES_EXEC_INFO`", "set"),
    Row("cluster info", "… its `cluster`, if `provideClusterInfo`", "complete"),
    Row("several files", "Several `KUBECONFIG` files: whose current context", "the first's"),
    Row("expiry", "New token at expiry", "yes"),
    Row("parallel at expiry", "… with 20 calls at once", "one run"),
    Row("four minutes", "Five calls with a token for four minutes", "one run"),
    Row("401", "Plugin run again after a 401", "yes, same call", ("yes, next call", "runs before each call")),
    Row("parallel 401", "… with 20 calls at once", "one run"),
    Row("403", "Plugin run again after a 403", "no run"),
    Row("certificate", "Certificate instead of a token", "used"),
    Row("both", "Certificate and token together", "both"),
    Row("rotation", "New certificate without a restart", "at expiry"),
    Row("plugin's key", "Plugin's private key written to disk", "no"),
    Row("kubeconfig's key", "Kubeconfig's private key written to disk", "no"),
    Row("redirect", "Credential shown to another server on redirect", "no"),
)


def wrong_cells(measured: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Every cell where a client with kubeauthn does not do the right thing, and every row that is not there."""
    for name, cells in measured.items():
        for row in ROWS:
            cell = cells.get(row.key)
            if cell is None:
                yield f"{name}: {row.title}: not measured"
            elif COLUMNS[name].ours and cell != row.right:
                yield f"{name}: {row.title}: expected {row.right!r}, got {cell!r}"
