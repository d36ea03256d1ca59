"""Which kind of plugin is it? Told by the caller, by what it was configured with, or by what it answers."""

from __future__ import annotations

from collections.abc import Sequence

from kubeauthn._core import signerwire
from kubeauthn.plugin.check import credential, proxy, signer

CREDENTIAL, SIGNER, PROXY = "credential", "signer", "proxy"
KINDS: Sequence[str] = (CREDENTIAL, SIGNER, PROXY)


def found_out(plan: credential.Plan, *, first: credential.Attempt) -> str:
    """From a first run as a credential plugin. One that gave no credential, though it ended by itself, is asked
    two more questions: a signer's (which takes no arguments), and a proxy plugin's."""
    if first.credential is not None or first.trial.timed_out:
        return CREDENTIAL
    if len(plan.argv) == 1:
        configuration = signer.configuration(plan.argv[0], {})
        asked = signer.Plan(plan.path, plan.argv[0], plan.environment, configuration, seconds=plan.seconds)
        # Most say what they miss. One that needs more configuration than we have could not say anything else.
        if signerwire.VARIABLE.encode() in first.trial.errors or signer.looks_like_one(asked):
            return SIGNER
    if proxy.looks_like_one(
        proxy.Plan(plan.path, plan.argv, plan.environment, cluster=plan.cluster, seconds=plan.seconds)
    ):
        return PROXY
    return CREDENTIAL
