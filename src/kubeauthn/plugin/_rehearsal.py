"""`credential.try_out`: an author's function, run in the test's own process."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kubeauthn._core import execwire
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._core.record import field, record, replace
from kubeauthn.errors import PluginFailed
from kubeauthn.plugin._answer import answer_to, reply_document
from kubeauthn.plugin._request import Request, load
from kubeauthn.plugin.credential import end_of_program

if TYPE_CHECKING:
    from kubeauthn.plugin._answer import Function

_NOWHERE = "https://cluster.invalid"


@record(frozen=True, slots=True)
class Reply:
    """What a client got, decoded and checked as the client does it. `repr` shows no secret."""

    api_version: str
    token: str | None = field(repr=False)
    certificate: str | None = field(repr=False)
    key: str | None = field(repr=False)
    expires_at: float | None
    """Unix seconds, whole."""
    printed: str = field(repr=False)
    """What the function wrote to standard output; `run` sends it to standard error."""


def rehearse(
    function: Function, *, api_version: str, interactive: bool, cluster: Cluster | str | None, config: Any
) -> Reply:
    request = made_up_request(api_version, interactive=interactive, cluster=cluster, config=config)
    with _standard_output_in_a_file() as file:
        try:
            answer = answer_to(request, function)
        except SystemExit as end:
            code, message = end_of_program(end)
            raise PluginFailed(message, exit_code=code) from end
        document = reply_document(answer, request.api_version, time.time())
        printed = _content(file)
    credential = execwire.decode_reply(document.encode(), api_version, time.time())
    identity = credential.identity
    return Reply(
        api_version=api_version,
        token=credential.token.reveal() if credential.token else None,
        certificate=identity.certificate.decode() if identity else None,
        key=identity.key.reveal() if identity else None,
        expires_at=credential.expires_at,
        printed=printed,
    )


def made_up_request(api_version: str, *, interactive: bool, cluster: Cluster | str | None, config: Any) -> Request:
    """Through the wire format and back, so that the function sees what it would see for real."""
    if isinstance(cluster, str) or (cluster is None and config is not None):
        cluster = Cluster(server=cluster or _NOWHERE)
    if cluster is not None and config is not None:
        cluster = replace(cluster, config=json.dumps(config))
    return load(execwire.encode_exec_info(api_version, interactive=interactive, cluster=cluster))


@contextmanager
def _standard_output_in_a_file() -> Iterator[io.BufferedRandom]:
    """Both `sys.stdout`, which a test runner may have replaced, and the descriptor that programs inherit."""
    with tempfile.TemporaryFile() as file:
        if sys.stdout is not None:
            sys.stdout.flush()
        before, real = sys.stdout, os.dup(1)
        os.dup2(file.fileno(), 1)
        # Unbuffered below, so that it stays in step with what goes to the descriptor.
        raw = io.FileIO(1, "w", closefd=False)
        sys.stdout = io.TextIOWrapper(raw, "utf-8", write_through=True)
        try:
            yield file
        finally:
            sys.stdout = before
            os.dup2(real, 1)
            os.close(real)


def _content(file: io.BufferedRandom) -> str:
    sys.stdout.flush()
    file.seek(0)
    return file.read().decode("utf-8", "replace")
