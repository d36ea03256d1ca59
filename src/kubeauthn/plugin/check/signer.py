"""The checks of an external signer: its executable is started for a certificate, and for every signature.

Nothing is asked for again after a refused signature: behind it may stand a PIN, and a token counts wrong ones.
"""

from __future__ import annotations

import json
import os
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from hashlib import new as new_hash

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from kubeauthn._core import limits, rfc3339, signerwire
from kubeauthn._core.not_a_certificate import NOT_A_CERTIFICATE
from kubeauthn._core.signerwire import HASH_BYTES, SigningAlgorithm
from kubeauthn._core.signing_identity import signing_identity
from kubeauthn.errors import KubeauthnError, PluginReplyError
from kubeauthn.plugin._signer_rehearsal import tls_algorithms, verify_with
from kubeauthn.plugin.check.ending import bad_end, gave_up, processes, speed
from kubeauthn.plugin.check.output import Output, quoted, take_apart
from kubeauthn.plugin.check.report import FAULT, NOTE, OK, Finding, Report, not_started
from kubeauthn.plugin.check.trial import Trial, run_trial

KINDS = (signerwire.CERTIFICATE_RESPONSE, signerwire.SIGN_RESPONSE, "ExternalPublicKey", "ExternalSigner")
OTHER_VERSION = "external-signer.authentication.k8s.io/v0"
OTHER_KIND = "DecryptRequest"
AT_ONCE = 2
SHORTEST_LEAK = 4
"""A shorter value of the configuration may stand in a message by chance."""
_TELLING = ("pin", "password", "passphrase", "secret")


@dataclass(frozen=True)
class Plan:
    """What to run, and what its kubeconfig entry says."""

    path: str
    command: str
    environment: Mapping[str, str] = field(repr=False)
    configuration: Mapping[str, str] = field(repr=False)
    seconds: float = limits.PLUGIN_SECONDS
    with_person: bool = False
    """Give the signer this terminal, and besides see what it does without one."""
    clock: Callable[[], float] = time.time

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(value for name, value in self.configuration.items() if value and _is_secret(name))


@dataclass(frozen=True, slots=True)
class Asked:
    """One run, and what a client would make of it."""

    trial: Trial
    output: Output
    reply: bytes = field(default=b"", repr=False)
    refusal: str = ""
    """Why a client takes nothing from it; empty if it does."""
    digest: bytes = field(default=b"", repr=False)


def configuration(command: str, given: Mapping[str, str]) -> dict[str, str]:
    """What a signer is told: the kubeconfig entry, its own path included."""
    return {signerwire.PATH_KEY: command, **given}


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _TELLING)


def check(plan: Plan) -> Report:
    asked: list[Asked] = []
    # 1. Can it be started at all, and has it a certificate that a client can use?
    try:
        asked.append(_ask(plan, signerwire.encode_certificate_request(plan.configuration)))
    except (OSError, ValueError) as error:
        return not_started("signer", plan.command, plan.path, error)
    findings = [Finding("start", OK, plan.path)]
    key, finding = _certificate(asked[0], plan.clock())
    findings.append(finding)
    # 2. Every way of signing that TLS may ask this key for, each signature verified; then several at once.
    if key is not None:
        findings += _signatures(plan, key, asked)
    # 3. What it must refuse. One that hangs is not asked again.
    if not asked[-1].trial.timed_out:
        findings += _refusals(plan, asked)
    # 4. Without a terminal: the runs so far, unless a person took part in them.
    if key is not None:
        findings.append(_no_terminal(plan, key, asked))
    good = [run for run in asked if not run.refusal]
    findings += [
        _standard_output(asked),
        _standard_error(plan, asked),
        processes(
            [leftover for run in good for leftover in run.trial.left_behind],
            holds_output=any(run.trial.kept_open for run in asked),
        ),
    ]
    fastest = min((run.trial.seconds for run in good), default=None)
    if fastest is not None:
        findings.insert(1, speed(fastest, "every full TLS handshake waits for it"))
    return Report("signer", plan.command, True, tuple(findings), runs=len(asked), fastest_seconds=fastest)


def looks_like_one(plan: Plan) -> bool:
    """One run: whether it answers a request for a certificate in a signer's way."""
    try:
        run = _ask(plan, signerwire.encode_certificate_request(plan.configuration), alone=True)
    except (OSError, ValueError):
        return False
    return not run.refusal


def _ask(plan: Plan, request: str | None, *, alone: bool = False, digest: bytes = b"") -> Asked:
    environment = {name: value for name, value in plan.environment.items() if name != signerwire.VARIABLE}
    if request is not None:
        environment[signerwire.VARIABLE] = request
    with_person = plan.with_person and not alone
    trial = run_trial(plan.path, [plan.command], environment, seconds=plan.seconds, with_person=with_person)
    output = take_apart(trial.output, KINDS)
    refusal = bad_end(trial, plan.seconds, plan.secrets)
    if refusal:
        return Asked(trial, output, refusal=refusal, digest=digest)
    decode = signerwire.decode_sign_reply if digest else _first_certificate
    try:
        return Asked(trial, output, decode(output.document), digest=digest)
    except PluginReplyError as error:
        return Asked(trial, output, refusal=str(error), digest=digest)


def _first_certificate(document: bytes) -> bytes:
    return b"".join(signerwire.decode_certificate_reply(document))


def _sign(plan: Plan, algorithm: SigningAlgorithm, *, alone: bool = False) -> Asked:
    message = os.urandom(64)
    digest = new_hash(algorithm.hash, message).digest() if algorithm.hash else message
    return _ask(plan, signerwire.encode_sign_request(plan.configuration, digest, algorithm), alone=alone, digest=digest)


def _certificate(run: Asked, now: float) -> tuple[object | None, Finding]:
    """The public key, if signatures can be judged by it; and what a client thinks of the certificate."""
    name = "certificate"
    if run.refusal:
        return None, Finding(name, FAULT, run.refusal)
    chain = signerwire.certificate_chain(run.reply)
    try:
        key = x509.load_der_x509_certificate(chain[0]).public_key()
        algorithms = tls_algorithms(key)
    except (*NOT_A_CERTIFICATE, UnsupportedAlgorithm):
        return None, Finding(name, FAULT, "what the signer gave as a certificate is none")
    except PluginReplyError as error:
        return None, Finding(name, FAULT, str(error))
    try:
        identity = signing_identity(chain, lambda digest, algorithm: b"", now)
    except KubeauthnError as error:
        return key, Finding(name, FAULT, str(error))
    length = f", with {len(chain) - 1} more of its chain" if len(chain) > 1 else ""
    kind = algorithms[0].key_kind
    return key, Finding(name, OK, f"for a key of kind {kind}, until {rfc3339.format(identity.not_after)}{length}")


def _signatures(plan: Plan, key: object, asked: list[Asked]) -> list[Finding]:
    findings = []
    wanted = tls_algorithms(key)
    others = tuple(SigningAlgorithm("ec", hash=name) for name in HASH_BYTES if name != wanted[0].hash)
    if isinstance(key, ec.EllipticCurvePublicKey):
        wanted += others  # in TLS 1.2 the hash does not follow from the curve
    for algorithm in wanted:
        run = _sign(plan, algorithm)
        asked.append(run)
        name = f"sign {algorithm}"
        fault = run.refusal or _verified(key, run, algorithm)
        if not fault:
            findings.append(Finding(name, OK, "a signature that the certificate verifies"))
        elif algorithm is wanted[0]:
            findings.append(Finding(name, FAULT, fault))
            return [*findings, Finding("more signatures", NOTE, "not asked for: a PIN may be at stake")]
        elif run.refusal and gave_up(run.trial):
            findings.append(Finding(name, NOTE, f"{fault}: servers of TLS 1.2 that want this are out of reach"))
        else:
            findings.append(Finding(name, FAULT, fault))
    if not plan.with_person:  # who is asked by one at a time
        findings.append(_several(plan, key, wanted[0], asked))
    return findings


def _several(plan: Plan, key: object, algorithm: SigningAlgorithm, asked: list[Asked]) -> Finding:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = list(pool.map(lambda _: _sign(plan, algorithm), range(AT_ONCE)))
    asked += runs
    faults = [fault for run in runs if (fault := run.refusal or _verified(key, run, algorithm))]
    if faults:
        return Finding("several at once", FAULT, faults[0])
    return Finding("several at once", OK, "each handshake gets its own signature")


def _verified(key: object, run: Asked, algorithm: SigningAlgorithm) -> str:
    try:
        verify_with(key, run.reply, run.digest, algorithm)
    except PluginReplyError as error:
        raw = algorithm.key_kind == "ec" and not _is_der(run.reply)
        return f"{error}, which is r and s one after the other, not DER" if raw else str(error)
    return ""


def _is_der(signature: bytes) -> bool:
    """Its first byte does not tell: one raw signature in 256 begins as DER does."""
    try:
        decode_dss_signature(signature)
    except ValueError:
        return False
    return True


def _refusals(plan: Plan, asked: list[Asked]) -> list[Finding]:
    # No PIN goes along: a signer that tries it before it reads the request would use it up.
    harmless = {name: value for name, value in plan.configuration.items() if not _is_secret(name)}
    version, kind = (
        json.loads(signerwire.encode_certificate_request(harmless)) | change
        for change in ({"apiVersion": OTHER_VERSION}, {"kind": OTHER_KIND})
    )
    findings = []
    for name, request in (
        ("another version", json.dumps(version)),
        ("another kind", json.dumps(kind)),
        ("no request", None),
    ):
        run = _ask(plan, request, alone=True)
        asked.append(run)
        if gave_up(run.trial):
            findings.append(Finding(name, OK, "refused, with an exit code"))
        elif run.trial.exit_code == 0:
            findings.append(Finding(name, FAULT, "answered as if it were a request to it"))
        else:
            findings.append(Finding(name, FAULT, run.refusal))
        if run.trial.timed_out:
            break
    return findings


def _no_terminal(plan: Plan, key: object, asked: list[Asked]) -> Finding:
    name = "no terminal"
    signing = [run for run in asked if run.digest]
    if not plan.with_person:
        if any(not run.refusal for run in signing):
            return Finding(name, OK, "signs without a person")
        if any(run.trial.timed_out for run in signing):
            return Finding(name, FAULT, "hangs when no person is there: it must give up with an exit code")
        return Finding(name, NOTE, "no signature without a person; --interactive tries it with one")
    if all(run.refusal for run in signing):
        return Finding(name, NOTE, "not tried: it does not sign with a person either")
    run = _sign(plan, tls_algorithms(key)[0], alone=True)
    asked.append(run)
    if not run.refusal:
        return Finding(name, OK, "signs without a person")
    if gave_up(run.trial):
        return Finding(name, NOTE, f"gives up without a person: {run.refusal}")
    return Finding(name, FAULT, run.refusal)


def _standard_output(asked: list[Asked]) -> Finding:
    name = "standard output"
    for run in asked:
        for text, place in ((run.output.before, "before"), (run.output.after, "after")):
            if text:
                return Finding(name, FAULT, f"{quoted(text, ())} {place} the document: a client refuses it")
    if all(run.refusal for run in asked):
        return Finding(name, NOTE, "not judged: there was no answer in it")
    return Finding(name, OK, "one document and nothing else")


def _standard_error(plan: Plan, asked: list[Asked]) -> Finding:
    name = "standard error"
    for run in asked:
        said = run.trial.errors.decode("utf-8", "replace")
        if any(secret in said for secret in plan.secrets if len(secret) >= SHORTEST_LEAK):
            return Finding(name, FAULT, "the PIN is printed there, and so comes into logs")
        if run.digest and any(shown in said for shown in (b64encode(run.digest).decode(), run.digest.hex())):
            return Finding(name, FAULT, "the digest is printed there, and so comes into logs")
    for run in asked:
        said = run.trial.errors.decode("utf-8", "replace")
        if said.strip() and not run.refusal:
            return Finding(name, NOTE, f"text, though no person is there: {quoted(said, plan.secrets)}")
    if all(run.refusal for run in asked):
        return Finding(name, NOTE, "not judged: no run gave an answer")
    return Finding(name, OK, "silent when all is well")
