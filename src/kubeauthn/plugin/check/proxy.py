"""The checks of a proxy plugin (KEP-2718): what it prints, who may use it, and that it goes with its client."""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ssl import SSLSocket

from kubeauthn._core import execproxy, execwire, limits
from kubeauthn._core.execproxy import ProxyIdentity
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn._io.lockfile import ClientLock
from kubeauthn._io.process import end_group, ended_on_failure, read_output
from kubeauthn._io.proxy_process import ProxyDocument
from kubeauthn.errors import CredentialError, PluginReplyError, PluginTimeout
from kubeauthn.plugin.check import proxy_probe as probe
from kubeauthn.plugin.check.credential import MADE_UP_CLUSTER
from kubeauthn.plugin.check.ending import processes, speed, with_its_words
from kubeauthn.plugin.check.leftovers import Leftover, leftovers
from kubeauthn.plugin.check.output import quoted
from kubeauthn.plugin.check.report import FAULT, NOTE, OK, Finding, Report, not_started
from kubeauthn.plugin.check.trial import MARK, STDERR_BYTES

GONE_SECONDS = 5.0
"""Within so much of its client's end a proxy is gone."""


@dataclass(frozen=True)
class Plan:
    """What to run, and how."""

    path: str
    argv: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    versions: Sequence[str] = execproxy.VERSIONS
    cluster: Cluster = MADE_UP_CLUSTER
    seconds: float = limits.PLUGIN_SECONDS
    clock: Callable[[], float] = time.time


@dataclass
class Run:
    """One run: what came of it, and what is known of it afterwards."""

    version: str
    seconds: float = 0.0
    identity: ProxyIdentity | None = None
    refusal: str = ""
    """Why a client cannot go through it; empty if it can."""
    timed_out: bool = False
    exit_code: int | None = None
    """None: it stays."""
    errors: bytes = field(default=b"", repr=False)
    left: tuple[Leftover, ...] = ()


def check(plan: Plan) -> Report:
    command = plan.argv[0]
    findings: list[Finding] = []
    runs: list[Run] = []
    # 1. Every version, with a lock held and the cluster told, as a client has it. The first that listens is tried out.
    try:
        for version in plan.versions:
            if not (runs and runs[-1].timed_out):
                with _client(plan, version) as (run, release):
                    runs.append(run)
                    tried = findings or run.identity is None
                    findings += [] if tried else _tried_out(run.identity, release)  # type: ignore[arg-type]
    except (OSError, ValueError) as error:
        return not_started("proxy", command, plan.path, error)
    good = [run for run in runs if run.identity is not None]
    answers = [_answered(run, bool(good)) for run in runs]
    # 2. Without a lock: a client that knows no proxies, such as kubectl.
    if not runs[-1].timed_out:
        with _client(plan, plan.versions[0], with_lock=False) as (run, _):
            findings.append(_without_a_lock(run))
        runs.append(run)
    findings = [
        Finding("start", OK, plan.path),
        *answers,
        *findings,
        _no_terminal(runs, bool(good)),
        _standard_error(runs),
        processes([leftover for run in runs for leftover in run.left]),
    ]
    fastest = min((run.seconds for run in good), default=None)
    if fastest is not None:
        findings.insert(1, speed(fastest, "a client waits for it before its first request"))
    return Report("proxy", command, True, tuple(findings), runs=len(runs), fastest_seconds=fastest)


def looks_like_one(plan: Plan) -> bool:
    """One run with a lock: whether it answers with a proxy."""
    try:
        with _client(plan, plan.versions[0]) as (run, _):
            return run.identity is not None
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def _client(plan: Plan, version: str, *, with_lock: bool = True) -> Iterator[tuple[Run, Callable[[], None]]]:
    """A run whose client lives as long as the block, or until the function is called. Nothing is left after it."""
    mark = secrets.token_hex(16)
    lock = ClientLock() if with_lock else None
    release = lock.release if lock else _nothing
    with contextlib.ExitStack() as stack:
        stack.callback(release)
        info = (
            execproxy.encode_exec_info(version, interactive=False, cluster=plan.cluster, lock_file_path=lock.path)
            if lock
            else execwire.encode_exec_info(version, interactive=False, cluster=plan.cluster)
        )
        said = stack.enter_context(tempfile.TemporaryFile())
        process = subprocess.Popen(
            list(plan.argv),
            executable=plan.path,
            env={**plan.environment, execwire.VARIABLE: info, MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=said,
            start_new_session=True,
        )
        stack.callback(end_group, process.pid)
        run = _read(plan, version, process, lock)
        yield run, release
        release()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GONE_SECONDS)
        run.left = leftovers(process.pid, f"{MARK}={mark}")
        said.seek(0)
        run.errors = said.read(STDERR_BYTES)
        if run.exit_code:
            run.refusal = with_its_words(run.exit_code, run.errors, ())
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(limits.PLUGIN_EXIT_GRACE_SECONDS)


def _read(plan: Plan, version: str, process: subprocess.Popen[bytes], lock: ClientLock | None) -> Run:
    run = Run(version)
    document = ProxyDocument()
    started = time.monotonic()
    try:
        with ended_on_failure(process):
            printed = read_output(process, plan.argv[0], plan.seconds, document.is_complete)
    except (PluginTimeout, PluginReplyError) as error:
        run.refusal, run.timed_out = str(error), isinstance(error, PluginTimeout)
        return run
    run.seconds = time.monotonic() - started
    run.exit_code = process.poll()
    if run.exit_code:
        return run
    try:
        credential = execproxy.decode_reply(printed, version, plan.clock(), lock)
    except PluginReplyError as error:
        run.refusal = str(error)
        return run
    if isinstance(credential.identity, ProxyIdentity):
        run.identity = credential.identity
    else:
        run.refusal = "an ordinary credential, and no proxy"
    return run


def _tried_out(identity: ProxyIdentity, release: Callable[[], None]) -> list[Finding]:
    """What its client, others on this machine, and the end of its client find."""
    route = identity.route
    findings = [
        Finding("address", NOTE if route.port else OK, route.url + (": a socket is closer" if route.port else ""))
    ]
    try:
        connection = probe.client_connection(identity)
    except CredentialError as error:
        return [*findings, Finding("listens", FAULT, str(error))]
    except OSError as error:
        reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
        return [*findings, Finding("listens", FAULT, f"its client gets no TLS connection: {reason}")]
    with connection:
        findings.append(Finding("listens", OK, f"{connection.version()}, with the certificate that its CA signed"))
        try:
            return [*findings, *_tried_by_others(identity), *_left_alone(connection, identity, release)]
        except (CredentialError, OSError) as error:
            return [*findings, Finding("stays", FAULT, f"gone in the middle of the check: {error}")]


def _tried_by_others(identity: ProxyIdentity) -> list[Finding]:
    route = identity.route
    findings = []
    if open_to := probe.others_may_look(route):
        findings.append(Finding("socket", NOTE, f"{open_to}: 0700 keeps other users away"))
    elif route.socket_path:
        findings.append(Finding("socket", OK, "no other user reaches it"))
    for name, who in (("no certificate", None), ("another certificate", probe.stranger(route))):
        refused = probe.refuses(route, who)
        findings.append(
            Finding(name, OK, "refused") if refused else Finding(name, FAULT, "served: any program here may use it")
        )
    with probe.client_connection(identity) as connection:
        status = probe.answer(connection)
    findings.append(
        Finding("request", OK, f"answered: {quoted(status, ())}")
        if status.startswith("HTTP/1.")
        else Finding("request", NOTE, "no answer; with --server URL it has a server to ask")
    )
    return findings


def _left_alone(connection: SSLSocket, identity: ProxyIdentity, release: Callable[[], None]) -> list[Finding]:
    """Its client goes."""
    release()
    name = "end of its client"
    if not probe.nobody_listens_within(identity.route, GONE_SECONDS):
        return [Finding(name, FAULT, f"still there {GONE_SECONDS:g} s after the lock was let go")]
    findings = [Finding(name, OK, "nobody listens any more")]
    if not probe.is_closed_within(connection, GONE_SECONDS):
        findings.append(Finding("open connections", FAULT, "go on after the end of the client"))
    return findings


def _answered(run: Run, some_work: bool) -> Finding:
    name = run.version.rpartition("/")[2]
    if run.identity is not None:
        ends = "and stays" if run.exit_code is None else "and has left it running"
        return Finding(name, OK, f"a proxy, {ends}")
    if run.exit_code and run.exit_code > 0 and some_work:
        return Finding(name, NOTE, f"{run.refusal}: the kubeconfig entry must name another version")
    return Finding(name, FAULT, run.refusal)


def _without_a_lock(run: Run) -> Finding:
    name = "no lock"
    if run.identity is not None:
        return Finding(
            name, FAULT, "a proxy, for a client that knows none: it would show its certificate to the server"
        )
    if run.exit_code and run.exit_code > 0:
        return Finding(name, OK, "refused, with an exit code")
    if run.timed_out or run.exit_code:
        return Finding(name, FAULT, run.refusal)
    return Finding(name, NOTE, f"{run.refusal}: clients that know no proxies get that")


def _no_terminal(runs: list[Run], works: bool) -> Finding:
    name = "no terminal"
    if works:
        return Finding(name, OK, "starts without a person")
    if any(run.timed_out for run in runs):
        return Finding(name, FAULT, "hangs when no person is there: it must give up with an exit code")
    return Finding(name, NOTE, "not judged: no run gave a proxy")


def _standard_error(runs: list[Run]) -> Finding:
    name = "standard error"
    for run in runs:
        said = run.errors.decode("utf-8", "replace")
        if "PRIVATE KEY" in said:
            return Finding(name, FAULT, "a key is printed there, and so comes into logs")
        if said.strip() and run.identity is not None:
            return Finding(name, NOTE, f"text: {quoted(said, ())}")
    if all(run.identity is None for run in runs):
        return Finding(name, NOTE, "not judged: no run gave a proxy")
    return Finding(name, OK, "silent when all is well")


def _nothing() -> None:
    """There is no lock to let go of."""
