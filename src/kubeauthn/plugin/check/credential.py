"""The checks of an exec credential plugin: KEP-541, the plugin's side.

The runs are made in `check`, in numbered steps; the functions below it each judge one thing in them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kubeauthn._core import execwire, limits, rfc3339
from kubeauthn._core.credential import Credential
from kubeauthn._core.kubeconfig.model import Cluster
from kubeauthn.errors import PluginReplyError
from kubeauthn.plugin.check.ending import bad_end, gave_up, processes, speed
from kubeauthn.plugin.check.output import Output, quoted, take_apart
from kubeauthn.plugin.check.report import FAULT, NOTE, OK, Finding, Report
from kubeauthn.plugin.check.trial import Trial, run_trial

SHORT_SECONDS = 60.0
LONG_SECONDS = 24 * 3600.0
MADE_UP_CLUSTER = Cluster(server="https://cluster.invalid:6443")
NO_CREDENTIAL = "not judged: no run gave a credential"
SHORTEST_LEAK = 8
"""A shorter token may stand in a message by chance."""


@dataclass(frozen=True)
class Plan:
    """What to run, and how."""

    path: str
    argv: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    versions: Sequence[str] = (execwire.V1, execwire.V1BETA1)
    cluster: Cluster = MADE_UP_CLUSTER
    seconds: float = limits.PLUGIN_SECONDS
    with_person: bool = False
    """Give the plugin this terminal, and besides see what it does without one."""
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run, and what a client would make of it."""

    api_version: str
    with_cluster: bool
    trial: Trial
    output: Output
    credential: Credential | None
    refusal: str
    """Why there is no credential; empty if there is one."""
    at: float

    @property
    def name(self) -> str:
        version = self.api_version.rpartition("/")[2]
        return f"{version} with cluster" if self.with_cluster else version

    @property
    def gave_up(self) -> bool:
        """It said no by itself, in time: with an exit code."""
        return gave_up(self.trial)

    @property
    def kind(self) -> str:
        credential = self.credential
        if credential is None:
            return "no credential"
        parts = [name for name, part in (("token", credential.token), ("certificate", credential.identity)) if part]
        return " and ".join(parts)


def first_attempt(plan: Plan) -> Attempt:
    """Raises OSError or ValueError where it cannot be started."""
    return _attempt(plan, plan.versions[0], with_cluster=False)


def check(plan: Plan, first: Attempt) -> Report:
    command = plan.argv[0]
    # 1. It can be started: `first` is how it went.
    attempts = [first]
    # 2. Every version, without and with cluster information; v1alpha1 has none. One that hangs is not asked again.
    for version in plan.versions:
        for with_cluster in (False, True):
            if (version, with_cluster) == (plan.versions[0], False) or (version == execwire.V1ALPHA1 and with_cluster):
                continue
            if not attempts[-1].trial.timed_out:
                attempts.append(_attempt(plan, version, with_cluster=with_cluster))
    # 3. The first that worked, once more.
    good = next((attempt for attempt in attempts if attempt.credential is not None), None)
    again = None
    if good is not None and not attempts[-1].trial.timed_out:
        again = _attempt(plan, good.api_version, with_cluster=good.with_cluster)
    # 4. Without a terminal: the runs so far, unless a person took part in them.
    alone = attempts
    if plan.with_person:
        basis = good or attempts[0]
        alone = [_attempt(plan, basis.api_version, with_cluster=basis.with_cluster, alone=True)]

    runs = [*attempts, *([again] if again else []), *(alone if plan.with_person else ())]
    findings = [
        Finding("start", OK, plan.path),
        *_answers(attempts, made_up=plan.cluster.server == MADE_UP_CLUSTER.server),
        *_cluster_config(attempts, plan),
        _no_terminal(alone, works_with_person=plan.with_person and good is not None, with_person=plan.with_person),
        *([_second_run(good, again)] if good and again else []),
        _standard_output(runs),
        _standard_error(runs),
        *(_expiry(good) if good else ()),
        *(_certificate(attempts)),
        processes(
            [leftover for run in runs if run.credential is not None for leftover in run.trial.left_behind],
            holds_output=any(run.trial.kept_open for run in runs),
        ),
    ]
    fastest = min((run.trial.seconds for run in runs if run.credential is not None), default=None)
    if fastest is not None:
        findings.insert(1, speed(fastest))
    return Report("credential", command, True, tuple(findings), runs=len(runs), fastest_seconds=fastest)


def _attempt(plan: Plan, version: str, *, with_cluster: bool, alone: bool = False) -> Attempt:
    with_person = plan.with_person and not alone
    environment = dict(plan.environment)
    environment[execwire.VARIABLE] = execwire.encode_exec_info(
        version, interactive=with_person, cluster=plan.cluster if with_cluster else None
    )
    trial = run_trial(plan.path, plan.argv, environment, seconds=plan.seconds, with_person=with_person)
    output = take_apart(trial.output)
    now = plan.clock()
    credential, refusal = None, bad_end(trial, plan.seconds, output.secrets)
    if not refusal:
        try:
            # The document alone: what stands around it is a fault of its own, told once.
            credential = execwire.decode_reply(output.document, version, now)
        except PluginReplyError as error:
            refusal = str(error)
    return Attempt(version, with_cluster, trial, output, credential, refusal, now)


def _answers(attempts: list[Attempt], *, made_up: bool) -> list[Finding]:
    """One line per version and mode. A plugin may refuse a version or a mode (with an exit code), but not every one.

    `made_up`: the cluster is not there, so a plugin that asks it, or knows the right one, refuses it rightly.
    """
    works = {(attempt.api_version, attempt.with_cluster) for attempt in attempts if attempt.credential is not None}
    findings = []
    for attempt in attempts:
        result, reason = FAULT, attempt.refusal
        if attempt.credential is not None:
            result, reason = OK, _described(attempt)
        elif attempt.gave_up and not attempt.with_cluster and (attempt.api_version, True) in works:
            result, reason = NOTE, f"{reason}: the kubeconfig entry needs provideClusterInfo: true"
        elif attempt.gave_up and attempt.with_cluster and made_up and (attempt.api_version, False) in works:
            result, reason = NOTE, f"{reason}: the cluster it was told of is made up, --server names one that is there"
        elif attempt.gave_up and works and not any(version == attempt.api_version for version, _ in works):
            result, reason = NOTE, f"{reason}: the kubeconfig entry must name another version"
        findings.append(Finding(attempt.name, result, reason))
    return findings


def _described(attempt: Attempt) -> str:
    assert attempt.credential is not None  # noqa: S101  the caller looked
    expires_at = attempt.credential.expires_at
    return attempt.kind if expires_at is None else f"{attempt.kind} until {rfc3339.format(expires_at)}"


def _no_terminal(alone: list[Attempt], *, works_with_person: bool, with_person: bool) -> Finding:
    """`alone`: the runs without a person. What fails with one too, or was never tried with one, may have any cause."""
    name = "no terminal"
    if any(run.credential is not None for run in alone):
        return Finding(name, OK, "answers without a person")
    if any(run.trial.timed_out for run in alone):
        return Finding(name, FAULT, "hangs when no person is there: it must give up with an exit code")
    if works_with_person and all(run.gave_up for run in alone):
        return Finding(name, NOTE, "gives up without a person: the kubeconfig entry needs interactiveMode: Always")
    if works_with_person:
        return Finding(name, FAULT, alone[-1].refusal)
    return Finding(name, NOTE, NO_CREDENTIAL if with_person else f"{NO_CREDENTIAL}; --interactive lets a person help")


def _cluster_config(attempts: list[Attempt], plan: Plan) -> list[Finding]:
    """A plugin that needs one, and cannot know that none was given on purpose."""
    refused = any(attempt.with_cluster and attempt.gave_up for attempt in attempts)
    if plan.cluster.config or not refused or any(attempt.credential is not None for attempt in attempts):
        return []
    return [Finding("cluster config", NOTE, "none was told to the plugin: if it needs one, --cluster-config gives it")]


def _second_run(first: Attempt, second: Attempt) -> Finding:
    name = "second run"
    if second.credential is None:
        return Finding(name, FAULT, f"the first one gave a {first.kind}, the second {second.refusal}")
    assert first.credential is not None  # noqa: S101  the caller looked
    if first.kind != second.kind:
        return Finding(name, FAULT, f"the first one gave a {first.kind}, the second a {second.kind}")
    if (first.credential.expires_at is None) != (second.credential.expires_at is None):
        return Finding(name, NOTE, "only one of two runs says when the credential expires")
    return Finding(name, OK, f"a {second.kind} again")


def _standard_output(runs: list[Attempt]) -> Finding:
    name = "standard output"
    for run in runs:
        output = run.output
        for text, place in ((output.before, "before"), (output.after, "after")):
            if text:
                return Finding(name, FAULT, f"{quoted(text, output.secrets)} {place} the document: a client refuses it")
    if not any(run.credential for run in runs):
        return Finding(name, NOTE, "not judged: there was no credential in it")
    if oddity := next((run.output.oddity for run in runs if run.output.oddity), ""):
        return Finding(name, NOTE, f"one document, but {oddity}: kubectl takes that, not every client does")
    return Finding(name, OK, "one document and nothing else")


def _standard_error(runs: list[Attempt]) -> Finding:
    """Without a person nobody reads it, and a controller's log fills with it."""
    name = "standard error"
    for run in runs:
        said = run.trial.errors.decode("utf-8", "replace")
        if any(secret in said for secret in run.output.secrets if len(secret) >= SHORTEST_LEAK):
            return Finding(name, FAULT, "the token or key is printed there, and so comes into logs")
    for run in runs:
        said = run.trial.errors.decode("utf-8", "replace")
        if said.strip() and run.credential is not None:
            asks = said.rstrip(" ") and not said.endswith("\n")
            what = "what looks like a prompt" if asks else "text"
            return Finding(name, NOTE, f"{what}, though no person is there: {quoted(said, run.output.secrets)}")
    if not any(run.credential for run in runs):
        return Finding(name, NOTE, NO_CREDENTIAL)
    return Finding(name, OK, "silent when all is well")


def _expiry(good: Attempt) -> list[Finding]:
    name = "expiry"
    assert good.credential is not None  # noqa: S101  the caller looked
    expires_at = good.credential.expires_at
    if expires_at is None:
        return [Finding(name, NOTE, "none given: a client keeps the credential for as long as it runs, or until a 401")]
    life = expires_at - good.at
    if life > LONG_SECONDS:
        return [Finding(name, NOTE, f"in {life / 3600:.0f} hours: a credential that leaks is of use for that long")]
    if life < SHORT_SECONDS:
        return [Finding(name, NOTE, f"in {life:.0f} s: the plugin will run for nearly every request")]
    return [Finding(name, OK, f"in {life / 60:.0f} minutes")]


def _certificate(attempts: list[Attempt]) -> list[Finding]:
    for attempt in attempts:
        credential = attempt.credential
        if credential is not None and credential.identity is not None:
            ends = rfc3339.format(credential.identity.not_after)
            if credential.expires_at is not None and credential.identity.not_after < credential.expires_at:
                return [Finding("certificate", NOTE, f"fits its key, but ends at {ends}, before the stated expiry")]
            return [Finding("certificate", OK, f"fits its key, valid until {ends}")]
    return []
