"""`--help` of a signer. Nobody starts one by hand, but whoever finds it among the programs asks it what it is."""

from __future__ import annotations

import sys

STARTED_BY = """\
A client starts it, with the configuration in its environment: a user of the kubeconfig has
`auth-provider: {name: externalSigner, config: {pathExec: PROGRAM, …}}`.
`kubeauthn signer doctor` shows the keys that are here and the entry for one, and with --write NAME writes it."""


def answer_help(program: str, about: str | None) -> None:
    """If nothing but help is asked for, give it and end. `about` is the docstring of the signer's module."""
    if sys.argv[1:] not in (["--help"], ["-h"]):
        return
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, 100)
    texts = [f"usage: {program} [-h]", *(about or "").split("\n\n"), STARTED_BY.replace("PROGRAM", program)]
    told = (textwrap.fill(" ".join(text.split()), width, break_on_hyphens=False) for text in texts if text)
    sys.stdout.write("\n\n".join(told) + "\n")
    raise SystemExit(0)
