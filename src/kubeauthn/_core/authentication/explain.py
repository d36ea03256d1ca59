"""The path of `authenticate`, walked to its end: every step is tried, also after one failed.

The steps are the same functions in the same order; what is added is a note of what each saw and said. The verdict is
that of `authenticate` itself.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication import mapping as mappings
from kubeauthn._core.authentication.authenticate import NOT_INITIALIZED, NOTHING_FETCHED, authenticate
from kubeauthn._core.authentication.claim_sources import NAMES, SOURCES, check_groups_source
from kubeauthn._core.authentication.claims import ClaimNeeded, with_sources
from kubeauthn._core.authentication.expressions import Expressions
from kubeauthn._core.authentication.go_time import go_time
from kubeauthn._core.authentication.rules import check_claim_rules, check_user_rules
from kubeauthn._core.authentication.seen import seen_values
from kubeauthn._core.authentication.token import read_token, untrusted_issuer
from kubeauthn._core.authentication.token_hints import token_hint
from kubeauthn._core.authentication.trace import Evaluated, Outcome, Step, Trace, Verdict
from kubeauthn._core.authentication.verify import (
    check_audience,
    check_signature,
    check_times,
    check_types,
    read_token_header,
)
from kubeauthn._core.authentication.written_times import written_times
from kubeauthn._core.durations import duration
from kubeauthn.cel import CelError, EvalError
from kubeauthn.cel.typed_json import to_typed_json
from kubeauthn.errors import KeysUnavailable, NotMine, TokenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kubeauthn._core.authentication.authenticate import KeysOf
    from kubeauthn._core.authentication.compiled import CompiledAuthenticator, CompiledConfiguration
    from kubeauthn._core.authentication.token import UntrustedToken
    from kubeauthn._core.authentication.verdict import UserInfo
    from kubeauthn._core.jose.keys import KeySet
    from kubeauthn.cel import Program

_SHOWN_DEPTH = 16
_SECRET_MEMBERS = ("access_token", "JWT")
_HIDDEN = "<hidden>"


def explain(
    configuration: CompiledConfiguration,
    token: str,
    now: float,
    keys_of: KeysOf,
    fetched: Mapping[str, Any] = NOTHING_FETCHED,
    *,
    show_claims: bool = False,
) -> Trace:
    """Never raises for a token, whatever it is."""
    notes = _Notes(show_claims)
    verdict, reason, user = _verdict(configuration, token, now, keys_of, fetched)
    try:
        untrusted = read_token(token)
    except NotMine as error:
        notes.add(1, "token", "failed", str(error), hint=token_hint(token))
        return Trace(verdict, reason, "", False, user, notes.steps())
    notes.add(
        1, "token", "passed", "a compact JWS of three parts", {"characters": len(token)}, hint=token_hint(token)
    )  # fmt: skip
    claims = untrusted.untrusted_claims
    shown = _shown(claims, 0) if show_claims else None
    named = untrusted_issuer(claims)
    authenticator = configuration.by_issuer.get(named)
    if authenticator is None:
        notes.add(
            2, "issuer", "failed", "no issuer of the configuration has this URL",
            {"iss": named, "configured": [entry.config.issuer.url for entry in configuration.authenticators]},
            hint=_issuer_hint(named, configuration),
        )  # fmt: skip
        return Trace(verdict, reason, "", False, user, notes.steps(), shown)
    place = f"jwt[{authenticator.index}]"
    notes.add(2, "issuer", "passed", f"is that of {place}", {"iss": named}, rule=f"{place}.issuer.url")
    verified, typed = _note_verification(notes, untrusted, authenticator, keys_of(authenticator.config.issuer.url), now)
    _note_expressions(notes, authenticator, claims, fetched, typed)
    return Trace(verdict, reason, authenticator.config.issuer.url, verified, user, notes.steps(), shown)


def _verdict(
    configuration: CompiledConfiguration, token: str, now: float, keys_of: KeysOf, fetched: Mapping[str, Any]
) -> tuple[Verdict, str, UserInfo | None]:
    try:
        return "authenticated", "", authenticate(configuration, token, now, keys_of, fetched).user
    except NotMine as error:
        return "not mine", str(error), None
    except TokenError as error:
        return "refused", str(error), None
    except ClaimNeeded as needed:
        return "refused", _not_at_hand(needed), None


def _not_at_hand(needed: ClaimNeeded) -> str:
    return f'oidc: could not expand distributed claims: claim "{needed.name}" has to be fetched, and is not at hand'


class _Notes:
    def __init__(self, show_claims: bool) -> None:
        self._steps: list[Step] = []
        self._show_claims = show_claims

    def steps(self) -> tuple[Step, ...]:
        return tuple(self._steps)

    def evaluate(self, program: Program | None, variables: Mapping[str, Any]) -> None:
        """Says of the last step what its expression came to, and from what."""
        if program is None:
            return
        cel = saw = None
        secrets = _secrets(variables["claims"])
        try:
            value, cost = program.evaluate(variables)
            typed = to_typed_json(value)
            if not _holds(typed, secrets):
                cel = Evaluated(str(program.output_type), typed, cost)
        except (CelError, ClaimNeeded):
            pass  # the step itself has said why
        if self._show_claims:
            seen = seen_values(program, variables)
            saw = _shown({path: _HIDDEN if found in secrets else found for path, found in seen.items()}, 0)
        self._steps[-1] = self._steps[-1]._replace(cel=cel, saw=saw)

    def add(
        self,
        number: int,
        name: str,
        outcome: Outcome,
        detail: str,
        inputs: Mapping[str, Any] | None = None,
        *,
        rule: str = "",
        expression: str = "",
        hint: str = "",
    ) -> None:
        self._steps.append(Step(number, name, outcome, detail, inputs or {}, rule, expression, hint))

    def attempt(
        self,
        number: int,
        name: str,
        step: Callable[[], Any],
        passed: Callable[[Any], str],
        inputs: Mapping[str, Any] | None = None,
        *,
        rule: str = "",
        expression: str = "",
    ) -> tuple[bool, Any]:
        """Do a step and note what it said. Returns whether it passed, and its result."""
        try:
            result = step()
        except (TokenError, EvalError) as error:
            rule = rule or getattr(error, "rule", "")
            hint = getattr(error, "hint", None) or _types_hint(str(error))
            self.add(number, name, "failed", str(error), inputs, rule=rule, expression=expression, hint=hint)
            return False, None
        except ClaimNeeded as needed:
            self.add(number, name, "failed", _not_at_hand(needed), inputs, rule=rule, expression=expression)
            return False, None
        self.add(number, name, "passed", passed(result), inputs, rule=rule, expression=expression)
        return True, result


def _note_verification(
    notes: _Notes, untrusted: UntrustedToken, authenticator: CompiledAuthenticator, keys: KeySet | None, now: float
) -> tuple[bool, bool]:
    """Steps 3 to 6. Returns whether all passed, and whether step 4 did."""
    claims, issuer, place = untrusted.untrusted_claims, authenticator.config.issuer, f"jwt[{authenticator.index}]"

    def signature() -> None:
        if keys is None:
            raise KeysUnavailable(NOT_INITIALIZED, hint="the issuer's keys are not at hand")
        check_signature(untrusted, keys)

    inputs = {**_header_inputs(untrusted), "keys": [] if keys is None else list(keys.kids)}
    if keys is not None and keys.skipped:
        inputs["skipped"] = list(keys.skipped)
    signed, _ = notes.attempt(3, "signature", signature, lambda _: "is of one of the issuer's keys", inputs)
    typed, _ = notes.attempt(4, "registered claims", lambda: check_types(claims), lambda _: "are of their types")
    if not typed:
        # audience and times cannot be read from claims of the wrong type
        notes.add(5, "audience", "skipped", "the registered claims are not of their types")
        notes.add(6, "times", "skipped", "the registered claims are not of their types")
        return False, False
    meant, _ = notes.attempt(
        5, "audience", lambda: check_audience(claims, issuer), lambda _: "is one of the configured audiences",
        {"aud": claims.get("aud"), "audiences": list(issuer.audiences)}, rule=f"{place}.issuer.audiences",
    )  # fmt: skip
    times = written_times(untrusted)
    shown: dict[str, str] = {name: go_time(times[name]) for name in ("iat", "nbf", "exp") if name in times}
    timely, _ = notes.attempt(
        6, "times", lambda: check_times(times, now), lambda ends: f"ends in {duration(ends - now)}",
        {**shown, "now": go_time(now)},
    )  # fmt: skip
    return signed and meant and timely, True


def _header_inputs(untrusted: UntrustedToken) -> dict[str, Any]:
    try:
        header = read_token_header(untrusted)
    except TokenError:
        return {}
    inputs: dict[str, Any] = {"alg": header.algorithm, "kid": header.kid}
    if header.ignored:
        inputs["ignored"] = list(header.ignored)
    return inputs


def _note_expressions(
    notes: _Notes,
    authenticator: CompiledAuthenticator,
    untrusted_claims: dict[str, Any],
    fetched: Mapping[str, Any],
    typed: bool,
) -> None:
    """Steps 7 to 10, on claims that may be unverified: nothing here decides."""
    place = f"jwt[{authenticator.index}]"
    claims = with_sources(untrusted_claims, fetched) if typed else untrusted_claims
    elsewhere = getattr(claims, "elsewhere", ())
    if typed and NAMES in claims:
        groups = authenticator.config.claim_mappings.groups.claim
        told = f"{len(elsewhere)} elsewhere, {sum(name in fetched for name in elsewhere)} fetched"
        notes.attempt(
            7, "claim sources", partial(check_groups_source, untrusted_claims, groups), lambda _: told,
            {"claims": sorted(elsewhere)},
        )  # fmt: skip
    run = Expressions({"claims": claims})
    for index, rule in enumerate(authenticator.claim_rules):
        notes.attempt(
            8, "claim rule", partial(check_claim_rules, authenticator, claims, run, index), _is_met,
            {"claim": rule.rule.claim, "required": rule.rule.required_value} if rule.program is None else None,
            rule=f"{place}.claimValidationRules[{index}]", expression=rule.rule.expression,
        )  # fmt: skip
        notes.evaluate(rule.program, run.variables)
    user = _note_mappings(notes, authenticator, claims, run)
    if user is None:
        for index, user_rule in enumerate(authenticator.user_rules):
            notes.add(
                10, "user rule", "skipped", "there is no user",
                rule=f"{place}.userValidationRules[{index}]", expression=user_rule.rule.expression,
            )  # fmt: skip
        return
    run.variables["user"] = user
    for index, user_rule in enumerate(authenticator.user_rules):
        notes.attempt(
            10, "user rule", partial(check_user_rules, authenticator, run, index), _is_met,
            rule=f"{place}.userValidationRules[{index}]", expression=user_rule.rule.expression,
        )  # fmt: skip
        notes.evaluate(user_rule.program, run.variables)


def _note_mappings(
    notes: _Notes, authenticator: CompiledAuthenticator, claims: dict[str, Any], run: Expressions
) -> dict[str, Any] | None:
    """Step 9. Returns the user if all of it could be mapped."""
    config, place = authenticator.config.claim_mappings, f"jwt[{authenticator.index}].claimMappings"
    steps: list[tuple[str, Callable[..., Any], str, Program | None]] = [
        ("username", mappings.map_username, config.username.claim, authenticator.username),
        ("uid", mappings.map_uid, config.uid.claim, authenticator.uid),
        ("groups", mappings.map_groups, config.groups.claim, authenticator.groups),
    ]
    found: list[Any] = []
    for name, step, claim, program in steps:
        passed, value = notes.attempt(
            9, name, partial(step, authenticator, claims, run), _as_json,
            {"claim": claim} if claim else None, rule=f"{place}.{name}", expression=program.text if program else "",
        )  # fmt: skip
        notes.evaluate(program, run.variables)
        found.append(value if passed else None)
    passed, extra = notes.attempt(9, "extra", lambda: mappings.map_extra(authenticator, claims, run), _as_json)
    if passed:
        for index, mapped in enumerate(authenticator.extra):
            told = "has a value" if mapped.key in extra else "has no value, so the key is absent"
            notes.add(
                9, f"extra {mapped.key}", "passed", told,
                rule=f"{place}.extra[{index}]", expression=mapped.program.text,
            )  # fmt: skip
            notes.evaluate(mapped.program, run.variables)
    if not passed or any(value is None for value in found):
        return None
    return {"username": found[0], "uid": found[1], "groups": found[2], "extra": extra}


def _is_met(_: object) -> str:
    return "is met"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _types_hint(text: str) -> str:
    """The checker knows no types of claims, so that they differ is seen only here."""
    if not text.endswith("no such overload"):
        return ""
    return "the types differ: a claim's number is a double (1.0, not 1), and what a list holds is asked with 'x' in …"


def _issuer_hint(named: str, configuration: CompiledConfiguration) -> str:
    """The mistakes that people make: a slash at the end, http, capital letters."""
    if not named:
        return "the token has no iss claim, or one that is no string"
    for url in configuration.by_issuer:
        if url.rstrip("/") == named.rstrip("/"):
            return f"{url} differs in a slash at the end: both must be the same, letter for letter"
        if url.lower() == named.lower():
            return f"{url} differs in capital letters: both must be the same, letter for letter"
        if url.removeprefix("https://") == named.removeprefix("http://"):
            return f"{url} is https, the token says http"
    return ""


def _secrets(claims: dict[str, Any]) -> list[str]:
    """The access tokens, and the tokens in the token, of claim sources. An expression may read them, too."""
    sources = dict.get(claims, SOURCES)
    listed = sources.values() if isinstance(sources, dict) else ()
    found = [source.get(name) for source in listed if isinstance(source, dict) for name in _SECRET_MEMBERS]
    return [text for text in found if text and isinstance(text, str)]


def _holds(typed: object, secrets: list[str]) -> bool:
    """Whether a value has one of them in it."""
    waiting = [typed] if secrets else []
    while waiting:
        current = waiting.pop()
        if isinstance(current, str):
            if any(secret in current for secret in secrets):
                return True
        elif isinstance(current, dict):
            waiting += current.values()
        elif isinstance(current, list):
            waiting += current
    return False


def _shown(value: Any, depth: int) -> Any:
    """Claims to be looked at: not deeper than anybody looks, and without the secrets of claim sources."""
    if depth > _SHOWN_DEPTH:
        return "…"
    if isinstance(value, dict):
        # dict.items: not the claims' own access, which stops at a claim that cannot be read
        return {
            name: _HIDDEN if name in _SECRET_MEMBERS else _shown(member, depth + 1)
            for name, member in dict.items(value)
        }
    if isinstance(value, list):
        return [_shown(member, depth + 1) for member in value]
    return value
