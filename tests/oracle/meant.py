"""Which differences are meant: what the deliberate ones are, and how one is recognised.

A difference in the answer to a token has to be proven (see `proofs`); none is recognised by its looks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle import proofs

__all__ = ["DELIBERATE", "SET_ASIDE", "meant"]

DELIBERATE = {
    "lists": "lists made by `split`, `findAll`, url queries and formats serve as groups and extra values, and an "
    "object stands for the names of its fields; kube-apiserver refuses every token there (`.map(r, r)` after them "
    "cures it), and `check` warns of such lists",
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
    "mappings, user rules; kube-apiserver maps before it checks the rules",
    "claim sources": "distributed claims are resolved for every claim, on first use; kube-apiserver does it for the "
    "groups claim only",
}
SET_ASIDE = {
    "syntax text": "of a text that does not parse, the first syntax error is the same, place and words; "
    "what ANTLR says after it, while it looks for a way to go on or until it gives that up, is not imitated in every "
    "case",
    "yaml text": "a file that is no YAML is refused in libyaml's words and not in go-yaml's, where these differ",
    "sum text": "errors that name the Go type of a list or a quantity have another name for a sum of two; we do not",
    "map order": "a loop over the claims has no order in Go, so which of several errors is told is chance there",
    "panic": "a constant map whose key is of bytes makes cel-go panic while it plans the program, and kube-apiserver "
    "with it: we refuse the expression",
}
_TOO_DEEP = ": expression recursion limit exceeded"
_GAVE_UP = (": error recovery token lookahead limit exceeded", ": max recursion depth exceeded", _TOO_DEEP)
_STRAY = "stray bits in the last character"
_UNHASHABLE = "runtime error: hash of unhashable type "
Case = dict[str, Any]
Ask = Callable[[Case], Case]


def meant(case: Case, theirs: Case, ours: Case, what: str, ask: Ask, answer: Ask) -> str:
    """The name of the difference of DELIBERATE or SET_ASIDE that this is, or an empty text.

    `ask` is Kubernetes' answer to a case and `answer` ours: a proof needs more of them.
    """
    if "panic" in theirs:
        return "panic" if _is_planning_panic(theirs, ours) else ""
    if "expr" in case:
        if what == "error text" and _without_sums(theirs) == ours.get("evalError"):
            return "sum text"
        return "syntax text" if what == "compile text" and _is_after_first(theirs, ours) else ""
    if what == "decode":
        return _meant_decoding(case, theirs, ours)
    if what == "config faults":
        return "syntax text" if _differ_after_first(theirs, ours) else ""
    if what not in ("verdict", "text"):
        return ""
    if proofs.is_empty_name(case, theirs, ours):
        return "empty name"
    earlier = proofs.before_expiry(case)
    if earlier is not None:
        then = answer(earlier)
        same = proofs.agree(theirs, then)
        return "exact claims" if same or meant(earlier, theirs, then, what, ask, answer) else ""
    if proofs.is_odd_claim(case, theirs, ours):
        return "exact claims"
    plain = proofs.without_stray_bits(case) if _STRAY in str(ours.get("error")) else None
    if plain is not None:
        then = answer(plain)
        same = proofs.agree(theirs, then)
        return "canonical" if same or meant(plain, theirs, then, what, ask, answer) else ""
    if proofs.is_list_of_kind(case, theirs, ours, ask, answer):
        return "lists"
    return "order" if proofs.is_another_order(case, theirs, ours, ask, answer) else ""


def _without_sums(theirs: Case) -> str:
    return str(theirs.get("evalError")).replace("*types.concatList", "*types.baseList").replace("*cel.Q", "cel.Q")


def _is_planning_panic(theirs: Case, ours: Case) -> bool:
    refused = [str(ours.get("compileError") or ""), *(ours.get("configErrors") or [])]
    unsupported = any("program instantiation failed: unsupported key type: " in text for text in refused)
    return theirs["panic"].startswith(_UNHASHABLE) and unsupported


def _is_after_first(theirs: Case, ours: Case) -> bool:
    if any(limit in str(theirs.get("compileError")) for limit in _GAVE_UP):
        return "ERROR: " in str(ours.get("compileError"))
    texts = [str(answer.get("compileError")) for answer in (theirs, ours)]
    first = [_first_syntax_error(text) for text in texts]
    return bool(first[0]) and first[0] == first[1]


def _differ_after_first(theirs: Case, ours: Case) -> bool:
    """The same faults, and those whose texts differ are of expressions that do not parse."""
    faults = [answer.get("configErrors") or [] for answer in (theirs, ours)]
    return len(faults[0]) == len(faults[1]) and all(
        one == two or _is_after_first({"compileError": one}, {"compileError": two})
        for one, two in zip(*faults, strict=True)
    )


def _first_syntax_error(text: str) -> str:
    """Place and words of the first of the lines that report a syntax error."""
    lines = [line for line in text.splitlines() if "Syntax error: " in line]
    return lines[0].removeprefix("compilation failed: ") if lines else ""


def _meant_decoding(case: Case, theirs: Case, ours: Case) -> str:
    their_text, our_text = str(theirs.get("strictDecodeError") or ""), str(ours.get("strictDecodeError") or "")
    if "document" in our_text and not their_text and any(line.startswith("---") for line in _lines(case)):
        return "one document"
    return "yaml text" if "yaml: " in their_text and "yaml: " in our_text else ""


def _lines(case: Case) -> list[str]:
    return str(case.get("config")).splitlines()
