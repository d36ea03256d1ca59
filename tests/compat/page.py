"""The page, from the cells. Nothing in it depends on when or where it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tests.compat.columns import GROUPS, Column, Library
from tests.compat.rows import ROWS

WITH_KUBEAUTHN = "with kubeauthn"

INTRODUCTION = """\
# Python clients and exec plugins

A kubeconfig can name a program, the *plugin*, that fetches the credential. `kubectl` has rules for running it: what
the plugin is told, how long its answer is kept, what happens when it fails. This page says which of those rules
each Python client keeps, on its own and with [kubeauthn's adapter](../adapters.md) for it. [Exec
credentials](../exec-credentials.md) has the rules themselves.

The tables are not written by hand. `make compat` runs every client, each in a process of its own, against the API
server and the plugins of `kubeauthn.testing`, and writes down what the server and the plugin saw. CI runs all of it
again, and fails if this page says anything else, or if a client with kubeauthn does anything but the right thing.
"""

OVERVIEW_NOTE = """\
How many of the {rows} rows below each client gets right:
"""

LEGEND = """\
✓ the right thing, as the second column says it · ✗ something else, and what · – does not apply: the client does not
get that far. Every client is used as its own documentation says. Where one refuses `apiVersion` v1, its other rows
were measured with v1beta1.
"""

TITLES = (
    "## kubernetes and kubernetes.aio",
    "## kubernetes_asyncio and lightkube",
    "## kr8s and pykube-ng",
    "## HTTP libraries and kopf",
)
NOTE_BELOW = {
    "## kr8s and pykube-ng": """\
There is no adapter for pykube-ng.
""",
    "## HTTP libraries and kopf": """\
The HTTP libraries know no kubeconfig, so there is nothing to compare with. kopf on its own logs in with whichever
of the clients above is installed, and without any of them runs no plugin at all: what it does depends on what else
is there.
""",
}

NOTES = """\
## What some rows mean

- **The plugin fails**: *goes on anonymously* means that the error is logged and the request is sent without a
  credential. Where anonymous users may do anything at all, the program goes on as somebody else.
- **The plugin hangs**: it would answer after 2.5 seconds. kubeauthn was given a limit of one second
  (`plugin_timeout=1`; 60 seconds unless told otherwise) and ended it. The clients have no such option, and wait.
- **Metrics**: the four of Kubernetes' own client library, with `kubeauthn.client.prometheus.install()`.
- **The cluster in KUBERNETES_EXEC_INFO**: *complete* means that the CA is inline, also when the kubeconfig names a
  file as it does here, and that the cluster's `client.authentication.k8s.io/exec` extension is there as `config`.
- **Several KUBECONFIG files**: each of two files has a current context. `kubectl` takes the first one's.
- **New token at expiry**: kubernetes.aio and kubernetes_asyncio also have a function, `refresh_token`, that a
  program can run beside its own work; it looks once a minute whether a new token is due. They were measured without it.
- **20 calls at once**: one run of the plugin should serve them all. *Calls fail*: some of them end with an error.
- **Plugin run again after a 401**: the server stops taking the token while the program runs. *Same call*: the
  caller sees nothing of it. *Next call*: the caller gets the 401, as from Kubernetes' own client library, and the
  call after that works. *Runs before each call*: the client never meets a stale token, and pays a run of the plugin
  for every request.
- **Plugin run again after a 403**: a 403 says that this user may not do this. A new credential changes nothing.
- **Private key written to disk**: the temporary folder is watched while the client works, after it is gone, and
  after the process has ended. *Temporary file* and no more: there as long as the client. *Until exit*: deleted when
  the process ends in good order, so not when it is killed.
- **Redirect**: the kubeconfig's server sends the client on to another port of the same machine. A token that
  arrives there has been given away; a certificate tells that server who the client is.

## Versions
"""


def render(measured: Mapping[str, Mapping[str, str]]) -> str:
    parts = [INTRODUCTION, OVERVIEW_NOTE.format(rows=len(ROWS)), overview(measured), LEGEND]
    for title, group in zip(TITLES, GROUPS, strict=True):
        parts += [f"{title}\n", *([NOTE_BELOW[title]] if title in NOTE_BELOW else ()), table(group, measured)]
    return "\n".join((*parts, NOTES, versions()))


def overview(measured: Mapping[str, Mapping[str, str]]) -> str:
    lines = [("", "alone", WITH_KUBEAUTHN), ("---",) * 3]
    for library in (library for group in GROUPS for library in group):
        counts = {column.ours: str(count_right(measured[column.name])) for column in library.columns}
        lines.append((f"{library.title} {library.version}", counts.get(False, ""), counts.get(True, "")))
    return as_lines(lines)


def count_right(cells: Mapping[str, str]) -> int:
    return sum(row.mark(cells[row.key]).startswith("✓") for row in ROWS)


def table(group: Iterable[Library], measured: Mapping[str, Mapping[str, str]]) -> str:
    columns = [column for library in group for column in library.columns]
    lines = [("", "right", *(heading(column) for column in columns)), ("---",) * (len(columns) + 2)]
    for row in ROWS:
        lines.append((row.title, row.right, *(row.mark(measured[column.name][row.key]) for column in columns)))
    return as_lines(lines)


def heading(column: Column) -> str:
    library = column.library
    if not column.ours:
        return f"{library.title} {library.version}"
    return WITH_KUBEAUTHN if library.alone else f"{library.title} {library.version} {WITH_KUBEAUTHN}"


def versions() -> str:
    named = sorted({(library.distribution, library.version) for group in GROUPS for library in group})
    return as_lines([("distribution", "version"), ("---", "---"), *named])


def as_lines(rows: Iterable[Iterable[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


# -- and back, for whoever checks a page without measuring ----------------------------------------


def tables(page: str) -> Iterator[list[list[str]]]:
    """The tables of a page, each a list of rows of cells, the line under the head left out."""
    rows: list[list[str]] = []
    for line in (*page.splitlines(), ""):
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line.strip("|").split("|")])
        elif rows:
            yield [rows[0], *rows[2:]]
            rows = []
