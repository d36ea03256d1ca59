"""What the playground answers: a configuration and a token or claims in, faults and the verdict out.

Nothing is fetched and nothing is kept: one request, one answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kubeauthn._core.authentication.claims import read_claims
from kubeauthn._core.authentication.faults import parse_field
from kubeauthn._core.authentication.migration import ALL_ALGORITHMS
from kubeauthn._core.authentication.nodes import place
from kubeauthn._core.authentication.seen import ABSENT
from kubeauthn._core.authentication.token import read_token
from kubeauthn._core.authentication.token_hints import token_hint
from kubeauthn._core.jose.compact import decode_part, split_compact
from kubeauthn.cli.check import check_content
from kubeauthn.cli.claims_text import claims_fault
from kubeauthn.cli.config_file import checked_version, with_patterns
from kubeauthn.cli.explain_view import Explained, as_json
from kubeauthn.cli.issuer_keys import keys_by_issuer
from kubeauthn.cli.text import duration, escaped
from kubeauthn.cli.verified_claims import ClaimsSigner
from kubeauthn.errors import KubeauthnError, NotMine
from kubeauthn.server.authenticator import Authenticator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kubeauthn._core.authentication.model import AuthenticationConfiguration

NAME = "authn.yaml"
_TIMES = {"iat": ("issued {} ago", "issued {} from now"), "nbf": ("began {} ago", "begins in {}"),
          "exp": ("ended {} ago", "ends in {}")}  # fmt: skip
_LARGEST_TIME = 1e11
_LONGEST_ALGORITHM = 40


class _Given(NamedTuple):
    """What somebody gave: the claims as they were written, and how they are shown."""

    payload: bytes
    shown: dict[str, Any]
    token: str = ""
    algorithm: str = ""


class _Unreadable(Exception):
    """Neither claims nor a token."""


def judge(asked: dict[str, str], now: float) -> dict[str, Any]:
    """`asked` has `configuration`, `claims` or `token`, and perhaps `keys` and `kubernetes`.

    Raises UsageError for a release that is not known.
    """
    from kubeauthn._core.authentication.release import NEWEST

    version = checked_version(asked["kubernetes"]) if asked.get("kubernetes") else NEWEST
    answer: dict[str, Any] = {
        "kubernetes": version, "now": now, "findings": [], "given": None, "notes": [], "problem": None, "verdict": None,
    }  # fmt: skip
    with with_patterns():
        report, decoded = check_content(NAME, _bytes(asked.get("configuration", "")), version, [])
        answer["findings"] = [found.as_json() for found in report.all]
        try:
            given = _given(asked, now)
        except _Unreadable as error:
            answer["problem"] = str(error)
            return answer
        if given is None:
            return answer
        answer["given"] = given.shown
        if decoded is None or report.has_faults:
            return answer
        try:
            explained = _explained(given, asked.get("keys", "").strip(), decoded.configuration, now, version)
        except KubeauthnError as error:
            answer["problem"] = _told(str(error), error.hint)
            return answer
    answer["verdict"] = verdict = as_json(explained)
    for step in verdict["steps"]:
        if step["rule"]:
            step["line"], step["column"] = place(decoded.root, parse_field(step["rule"]))
        # Told from a claim that has this very text, which it could not be once it is JSON.
        step["absent"] = [name for name, value in step.get("saw", {}).items() if value is ABSENT]
    answer["notes"] = _notes(given, explained)
    return answer


def _bytes(text: str) -> bytes:
    """A half of a surrogate pair, which JSON can carry, is in no UTF-8: then it is as odd here."""
    return text.encode("utf-8", "surrogatepass")


# -- what was given -------------------------------------------------------------------------------


def _given(asked: dict[str, str], now: float) -> _Given | None:
    token = asked.get("token", "").strip()
    if token:
        try:
            claims = read_token(token).untrusted_claims
        except NotMine as error:
            told = f"this is neither a JSON object nor a token: {error}"
            raise _Unreadable(_told(told, token_hint(token))) from None
        _, header_part, payload_part, *_ = split_compact(token)
        try:
            header = _header(decode_part(header_part))
        except ValueError as error:
            raise _Unreadable(_told(f"the header of this token cannot be read: {error}", token_hint(token))) from None
        algorithm = str(header.get("alg", ""))[:_LONGEST_ALGORITHM]
        return _Given(decode_part(payload_part), _shown(header, claims, now), token, algorithm)
    payload = _bytes(asked.get("claims", "").strip())
    if not payload:
        return None
    try:
        claims = read_claims(payload)
    except (ValueError, RecursionError):
        raise _Unreadable(_told(*claims_fault(payload))) from None
    return _Given(payload, _shown(None, claims, now))


def _shown(header: dict[str, Any] | None, claims: dict[str, Any], now: float) -> dict[str, Any]:
    return {"header": header, "claims": dict(dict.items(claims)), "times": _times(claims, now)}


def _header(raw: bytes) -> dict[str, Any]:
    try:
        return dict(dict.items(read_claims(raw)))
    except (ValueError, RecursionError):
        return {}


def _told(text: str, hint: str | None) -> str:
    return f"{text}; {hint}" if hint else text


def _times(claims: dict[str, Any], now: float) -> list[dict[str, str]]:
    """In words, seen from now."""
    told = []
    for name, (past, future) in _TIMES.items():
        moment = dict.get(claims, name)
        if isinstance(moment, float) and abs(moment) < _LARGEST_TIME:
            words = (future if moment > now else past).format(duration(moment - now))
            told.append({"name": name, "words": words})
    return told


# -- what becomes of it ---------------------------------------------------------------------------


def _explained(given: _Given, keys: str, config: AuthenticationConfiguration, now: float, version: str) -> Explained:
    """With keys as the server would; without, the claims are taken as verified."""
    if given.token and keys:
        known = keys_by_issuer(_bytes(keys), "the keys", config)
        authenticator = Authenticator(config, keys=known, kubernetes=version)
        trace, fetched = authenticator.explain_sources(given.token, now, show_claims=True)
        return Explained(trace, given.token, now, version, fetched=fetched)
    signer = ClaimsSigner(config)
    signed, assumed = signer.token(given.payload, now, complete=not given.token)
    authenticator = Authenticator(config, keys=signer.keys, kubernetes=version)
    trace, fetched = authenticator.explain_sources(signed, now, show_claims=True)
    return Explained(trace, signed, now, version, from_claims=True, assumed=assumed, fetched=fetched)


def _notes(given: _Given, explained: Explained) -> list[str]:
    """What a reader of the verdict has to know about it."""
    notes = []
    if given.token and explained.from_claims:
        notes.append("the signature was not looked at: give the issuer's keys to have it verified")
        if given.algorithm not in ALL_ALGORITHMS:
            shown = escaped(given.algorithm) or "nothing"
            notes.append(f"its header says that it is signed with {shown}: kube-apiserver takes no such token")
    elif explained.from_claims:
        notes.append("the claims are taken as verified: there is no signature to look at")
    elif not explained.signed:
        notes.append("the claims are not verified: anybody may have written them")
    if explained.assumed:
        notes.append(f"not given, and taken to be as they must be: {', '.join(explained.assumed)}")
    return notes
