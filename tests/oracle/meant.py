"""Which differences are not reported one by one: those that are meant, and classes that are set aside undecided.

Both are recognised by what the two sides say, which is coarse: a fault that looks like one of these hides behind it.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["DELIBERATE", "SET_ASIDE", "meant"]

DELIBERATE = {
    "lists": "lists made by `split`, `findAll`, url queries and formats serve as groups and extra values; "
    "kube-apiserver refuses every token there (`.map(r, r)` after them cures it), and `check` warns",
    "empty name": "an empty user name is refused however it is mapped; mapped by claim, kube-apiserver lets it through",
    "exact claims": "`iss`, `aud`, `exp` and `nbf` are case-sensitive and times are JSON numbers; Go's decoder "
    "matches any case and takes strings. A token is refused from `exp` on, not only after it",
    "canonical": "the token's text must be canonical (no white space, no changed padding bits), and no `crit` header "
    "is understood",
    "keys": "a JWK is used only for what its `use`, `key_ops` and `alg` allow; one that cannot be read is skipped and "
    "the others still serve, where kube-apiserver drops the whole set",
    "one document": "a file holds one document; kube-apiserver takes the first silently",
    "cost": "cost is tracked in linear time; cel-go's tracker is quadratic in the length of a comprehension",
    "order": "where several checks of a token fail, ours are reported in the order OIDC checks, claim rules, "
    "mappings, user rules; kube-apiserver maps before it checks the rules, and evaluates all rules before it "
    "looks at one",
    "claim sources": "distributed claims are resolved for every claim, on first use; kube-apiserver does it for the "
    "groups claim only",
}
SET_ASIDE = {
    "syntax text": "a text that does not parse is refused at the same stage and mostly with the same words; what ANTLR "
    "says while it recovers from a first syntax error is not imitated in every case",
    "yaml text": "a file that is no YAML is refused in libyaml's words and not in go-yaml's, where these differ",
    "internal error": "where cel-go fails with an `internal error` of Go (a type assertion on an error value), we give "
    "the error that it stumbled over",
    "panic": "where the reference panics, we refuse",
}
_CHECK_CHARACTERS = 60
Case = dict[str, Any]


def meant(case: Case, theirs: Case, ours: Case, what: str) -> str:
    """The name of the difference of DELIBERATE or SET_ASIDE that this looks like, or an empty text."""
    if "expr" in case:
        return _meant_expression(theirs, ours)
    if "panic" in theirs and not ours.get("authenticated"):
        return "panic"
    their_error, our_error = str(theirs.get("error") or ""), str(ours.get("error") or "")
    if what == "verdict" and ours.get("authenticated"):
        if "expression must return a string or a list of strings" in their_error or "not a string list" in their_error:
            return "lists"
        if "failed to convert value to string list" in their_error or "unsupported type" in their_error:
            return "lists"
    if "username" in our_error and "empty" in our_error and theirs.get("authenticated"):
        return "empty name"
    if what == "decode" and "document" in str(ours.get("strictDecodeError") or ""):
        return "one document"
    if what == "decode" and _is_yaml_syntax(theirs) and _is_yaml_syntax(ours):
        return "yaml text"
    if _claim_in_other_case(case) or ("token is expired" in our_error and _expires_now(case)):
        return "exact claims"
    if "stray bits in the last character" in our_error:
        return "canonical"
    if what == "text" and their_error and our_error and not _is_one_check(their_error, our_error):
        return "order"
    return ""


def _meant_expression(theirs: Case, ours: Case) -> str:
    refused = "compileError" in ours or "evalError" in ours
    if "panic" in theirs and refused:
        return "panic"
    texts = str(theirs.get("compileError") or ""), str(ours.get("compileError") or "")
    if all("Syntax error" in text for text in texts):
        return "syntax text"
    if str(theirs.get("evalError") or "").startswith("internal error: ") and "evalError" in ours:
        return "internal error"
    return ""


def _is_yaml_syntax(answer: Case) -> bool:
    return "yaml: " in str(answer.get("strictDecodeError") or "")


def _expires_now(case: Case) -> bool:
    """At its very `exp` a token is expired for us, and not yet for kube-apiserver."""
    expiry = json.loads(case.get("claims") or "{}").get("exp")
    return isinstance(expiry, (int, float)) and "now" in case and int(expiry) == case["now"]


def _is_one_check(one: str, other: str) -> bool:
    """Whether two errors come of the same check: they begin alike, up to what the check looked at."""
    return one[:_CHECK_CHARACTERS] == other[:_CHECK_CHARACTERS]


def _claim_in_other_case(case: Case) -> bool:
    try:
        claims = json.loads(case.get("claims") or "{}")
    except ValueError:
        return False
    if not isinstance(claims, dict):
        return False
    known = ("iss", "aud", "exp", "nbf")
    return any(
        (name.lower() in known and name not in known) or (name in ("exp", "nbf") and isinstance(value, str))
        for name, value in claims.items()
    )
