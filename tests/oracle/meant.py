"""Which differences are meant: what the deliberate ones are, and how one is recognised.

A difference in the answer to a token has to be proven (see `proofs`); none is recognised by its looks alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubeauthn._core.authentication import fetch_limits
from kubeauthn._core.jose.limits import TOKEN_CHARACTERS
from kubeauthn.cel import CompileError, limits
from kubeauthn.cel.grown_lists import TO_ITSELF, grows_lists
from kubeauthn.cel.kubernetes import claims_environment, user_environment
from kubeauthn.testing.recorded_authn import _compare as compare_answers
from kubeauthn.testing.recorded_cel import _compare as compare_values
from tests.oracle import proofs, source_proofs

__all__ = ["DELIBERATE", "SET_ASIDE", "has_growing_list", "meant", "of_older"]

DELIBERATE = {
    "lists": "lists made by `split`, `findAll`, url queries and formats serve as groups and extra values, and an "
    "object stands for the names of its fields; kube-apiserver refuses every token there (`.map(r, r)` after them "
    "cures it), and `check` warns of such lists",
    "empty name": "an empty user name is refused however it is mapped; mapped by claim, kube-apiserver lets it through",
    "exact claims": "`iss`, `aud`, `exp` and `nbf`, and the words that say where other claims are, are case-sensitive, "
    "and times are JSON numbers; Go's decoder matches any case and takes strings, and refuses a claim that is given "
    "twice if the first is of a wrong type, where we look at the last alone (so also in `_claim_names` and "
    "`_claim_sources`). A token is refused from `exp` on, not only after it",
    "canonical": "the token's text must be canonical (no white space, no changed padding bits), and no `crit` header "
    "is understood",
    "keys": "a JWK is used only for what its `use`, `key_ops` and `alg` allow; one that cannot be read is skipped and "
    "the others still serve, where kube-apiserver drops the whole set. RSA keys under 2048 bits are not used, and a "
    "set of more than 256 keys is none",
    "one document": "a file holds one document; kube-apiserver takes the first silently",
    "cost": "cost is tracked in linear time; cel-go's tracker is quadratic in the length of a comprehension",
    "order": "where several checks of a token fail, ours are reported in the order OIDC checks, claim rules, "
    "mappings, user rules; kube-apiserver maps before it checks the rules",
    "escaped names": "a name inside the claims that itself looks escaped (`a__dot__b`) is a name like others; in "
    "kube-apiserver the object that has it is not equal to itself and cannot be formatted",
    "limits": "beside the cost, some work has a limit of its own, and the evaluation ends with an error where "
    f"kube-apiserver goes on: {limits.TIME_LIMIT:.0f} seconds for one evaluation; text and pattern, "
    f"{limits.MAX_PATTERN_WORK:,} bytes of text divided by the characters of the pattern, its repetitions counted; "
    f"{limits.MAX_WRITTEN_MEMBERS:,} members of a value that `format` prints; {limits.MAX_TEXT:,} characters of a text "
    f"that a function makes; {limits.MAX_JOINED_ELEMENTS:,} elements of the lists that `+` makes, and "
    f"{limits.MAX_FLAT_ELEMENTS:,} of one that `flatten` makes; quantities whose power of ten is "
    f"beyond {limits.MAX_QUANTITY_POWER:,}, or that have more than {limits.MAX_QUANTITY_DIGITS:,} digits; "
    f"{limits.MAX_PRECISION:,} digits of a number that `format` prints. An "
    f"expression whose macros repeat more than {limits.MAX_REPEATED_NODES:,} nodes of it (`optMap` repeats its "
    "receiver) is refused",
    "claim sources": "distributed claims are resolved for every claim, on first use, and so are aggregated ones (a "
    "`JWT` in the source); kube-apiserver does it for the groups claim only, before anything else, and leaves "
    "aggregated ones out. Of `iss`, `sub`, `aud`, `exp`, `nbf`, `iat` and `jti` no source is asked. An endpoint is "
    "asked over https only, and not near this machine unless the issuer is there; redirects are followed within its "
    f"own host, and {fetch_limits.DOCUMENT_BYTES >> 20} MiB and {fetch_limits.SOURCE_SECONDS:.0f} seconds are the most",
    "size": f"a token of more than {TOKEN_CHARACTERS:,} characters is nobody's",
    "fetching": "an issuer's discovery document and its keys come over https, uncompressed, of at most "
    f"{fetch_limits.DOCUMENT_BYTES:,} bytes each and by redirects within one scheme, host and port; kube-apiserver "
    "follows redirects anywhere. An unknown key id has the issuer asked at most every "
    f"{fetch_limits.UNKNOWN_KEY_SECONDS:.0f} seconds, and it is asked again every {fetch_limits.REFRESH_SECONDS:.0f} "
    "seconds in any case, so that a withdrawn key ends; kube-apiserver asks for every unknown key id, and else never",
}
SET_ASIDE = {
    "syntax text": "of a text that does not parse, the first syntax error is the same, place and words; "
    "what ANTLR says after it, while it looks for a way to go on or until it gives that up, is not imitated in every "
    "case",
    "yaml text": "a file that is no YAML is refused in libyaml's words and not in go-yaml's, where these differ",
    "tags": "in brackets, a tag that a comma follows without a space (`[!!str, a]`) makes the file one that we refuse; "
    "go-yaml takes the comma for a part of the tag",
    "sum text": "errors that name the Go type of a list, a map or a quantity have another name for a sum of two, for "
    "an empty one to which `optMap` gave a name, and for what is inside the claims or the user; we do not. Up to "
    "Kubernetes 1.36 `flatten` says `optional_type` of an optional, where it is `optional_type(dyn)` now and here. "
    "Where `join` or `transformMapEntry` refuses a list or a map of the claims or the user, the error prints it as Go "
    "prints what it is wrapped in",
    "growing": "an empty list to which `optMap` gave a name grows in place when something is added to it, in cel-go "
    "and here; where that is the list itself, cel-go counts wrongly, panics or ends the process: we end with an error. "
    "Up to Kubernetes 1.36 it grows otherwise in an optional and beside another list, which is not imitated",
    "x5c text": "a token whose header has a certificate chain that cannot be read is refused, without saying what Go's "
    "reader of certificates says",
    "messages": "`google.protobuf.Empty` is not known, and of a message that cannot be made cel-go sometimes says more",
    "map order": "a loop over the claims has no order in Go, so which of several errors is told is chance there, and "
    "so is the order of a list that is made of them",
    "older words": "the faults of a file are told in the newest release's words, also where an older one is asked for; "
    "the fields are the same",
    "old flatten": "up to Kubernetes 1.36 a negative depth of `flatten` makes a cost that goes round the end of 64 "
    "bits, and may make the sum a small one again; here it is over the limit",
    "panic": "a constant map whose key is of bytes makes cel-go panic while it plans the program, and so does an entry "
    "that may be absent (`[?x]`, `{?'k': x}`) of a value that is not known to be an optional while it checks the "
    "literals, and kube-apiserver with it: we refuse the expression",
}
_TOO_DEEP = ": expression recursion limit exceeded"
_GAVE_UP = (": error recovery token lookahead limit exceeded", ": max recursion depth exceeded", _TOO_DEEP)
_GO_TYPES = {
    "*types.concatList": "*types.baseList",
    "*oidc.unescapeLister": "*types.baseList",
    "*oidc.unescapeMapper": "*types.baseMap",
    "*types.mutableList": "*types.baseList",
    "*types.mutableMap": "*types.baseMap",
    "*cel.Q": "cel.Q",
    "optional_type.flatten(": "optional_type(dyn).flatten(",
}
_PRINTS = ("join: invalid input: ", "insert failed: key ")
_OF_MESSAGES = (
    "field type conversion error for ",
    "unsupported field type for ",
    "unsupported conversion to ref.Val: (*dynamicpb.Message)",
)
_X5C = "malformed jwt: failed to unmarshal x5c header: "
_AT_A_COMMA = ("did not find expected ',' or '}'", "did not find expected ',' or ']'", "did not find expected tag URI")
_OWN_LIMITS = (
    "operation cancelled: text and pattern are too large for each other",
    "operation cancelled: too many list elements",
    f"a value with more than {limits.MAX_WRITTEN_MEMBERS} members is not written out",
    f"list of more than {limits.MAX_FLAT_ELEMENTS} elements",
    f"macros repeat too much of the expression: limit {limits.MAX_REPEATED_NODES} nodes",
    f"precision of more than {limits.MAX_PRECISION}",
    f"quantity of more than {limits.MAX_QUANTITY_DIGITS} digits",
    f"quantity with a power of ten beyond {limits.MAX_QUANTITY_POWER}",
    f"text of more than {limits.MAX_TEXT} characters",
)
_UNHASHABLE = "runtime error: hash of unhashable type "
_NO_PARAMETER = "runtime error: index out of range [0] with length 0"
Case = dict[str, Any]
Ask = Callable[[Case], Case]


def meant(case: Case, theirs: Case, ours: Case, what: str, ask: Ask, answer: Ask) -> str:
    """The name of the difference of DELIBERATE or SET_ASIDE that this is, or an empty text.

    `ask` is Kubernetes' answer to a case and `answer` ours: a proof needs more of them.
    """
    if ours.get("evalError") == TO_ITSELF:
        return "growing"
    if "panic" in theirs:
        return "panic" if _is_planning_panic(theirs, ours) or _is_optional_panic(theirs, ours) else ""
    if "expr" in case:
        if str(ours.get("evalError") or ours.get("compileError")).endswith(_OWN_LIMITS):
            return "limits"
        if "protobuf.Empty" in case["expr"] or _is_field_text(theirs, ours):
            return "messages"
        if what == "error text" and (
            _without_go_types(theirs) == _without_go_types(ours) or _is_printed_wrapped(theirs, ours)
        ):
            return "sum text"
        if what == "compile text" and _is_after_first(theirs, ours):
            return "syntax text"
        renamed = proofs.without_escaped_names(case)
        same = renamed is not None and not compare_values(ask(renamed), answer(renamed))
        return "escaped names" if same else ""
    if what == "decode":
        return _meant_decoding(case, theirs, ours, ask, answer)
    if what == "config faults":
        return "syntax text" if _differ_after_first(theirs, ours) else ""
    if what not in ("verdict", "text", "user"):
        return ""
    name = _proven_by_sources(case, theirs, ours, ask, answer)
    if name or what == "user":
        return name
    if _X5C in str(theirs.get("error")) and _X5C in str(ours.get("error")):
        return "x5c text"
    if proofs.is_empty_name(case, theirs, ours):
        return "empty name"
    earlier = proofs.before_expiry(case)
    if earlier is not None:
        then = answer(earlier)
        same = proofs.agree(theirs, then)
        return "exact claims" if same or meant(earlier, theirs, then, what, ask, answer) else ""
    if proofs.is_odd_claim(case, theirs, ours):
        return "exact claims"
    if proofs.has_critical_header(case, ours):
        return "canonical"
    plain = proofs.canonical(case)
    if plain is not None:
        then = answer(plain)
        same = proofs.agree(theirs, then)
        return "canonical" if same or meant(plain, theirs, then, what, ask, answer) else ""
    usable = proofs.with_readable_keys(case, ask) or case
    unbound = proofs.without_key_rules(usable)
    if usable is not case or unbound is not None:
        cured, then = ask(usable), answer(unbound or usable)
        is_about_keys = not proofs.agree(cured, theirs) or not proofs.agree(then, ours)
        same = proofs.agree(cured, then)
        if is_about_keys and (same or meant(unbound or usable, cured, then, what, ask, answer)):
            return "keys"
    if proofs.is_list_of_kind(case, theirs, ours, ask, answer):
        return "lists"
    return "order" if proofs.is_another_order(case, theirs, ours, ask, answer) else ""


def of_older(case: Case, theirs: Case, ours: Case, what: str) -> str:
    """The same of a difference to a minor that is not the newest."""
    if what == "config faults":
        faults = [answer.get("configErrors") or [] for answer in (theirs, ours)]
        fields = [{fault.partition(": ")[0] for fault in told} for told in faults]
        return "older words" if fields[0] == fields[1] else ""
    too_dear = str(ours.get("evalError")).endswith("actual cost limit exceeded")
    return "old flatten" if too_dear and "flatten(" in str(case.get("expr")) else ""


def _proven_by_sources(case: Case, theirs: Case, ours: Case, ask: Ask, answer: Ask) -> str:
    """Whether a difference about claims that are elsewhere is gone, or another one that is meant, in a cured case."""
    for cure in source_proofs.cures(case, ask):
        then_theirs, then_ours = ask(cure.case), answer(cure.case)
        same = proofs.agree(source_proofs.in_our_words(cure.case, then_ours), ours)
        if not (same if cure.changes_theirs else proofs.agree(then_theirs, theirs)):
            continue
        left = compare_answers(then_theirs, then_ours)
        name = meant(cure.case, then_theirs, then_ours, left[0][0], ask, answer) if left else cure.name
        if name:
            return name if proofs.agree(then_theirs, theirs) and proofs.agree(then_ours, ours) else cure.name
    return "claim sources" if source_proofs.is_of_unavailable_claim(case, ours, ask) else ""


def _is_field_text(theirs: Case, ours: Case) -> bool:
    """Both say of a field of a message that it is given something else."""
    texts = [str(answer.get("evalError")) for answer in (theirs, ours)]
    return all(text.startswith(_OF_MESSAGES) for text in texts)


def _without_go_types(answer: Case) -> str:
    text = str(answer.get("evalError"))
    for other, usual in _GO_TYPES.items():
        text = text.replace(other, usual)
    return text


def _is_printed_wrapped(theirs: Case, ours: Case) -> bool:
    texts = [str(answer.get("evalError")) for answer in (theirs, ours)]
    return any(texts[0].startswith(f"{said}&{{") and texts[1].startswith(said) for said in _PRINTS)


def _is_planning_panic(theirs: Case, ours: Case) -> bool:
    unsupported = any("program instantiation failed: unsupported key type: " in text for text in _refusals(ours))
    return theirs["panic"].startswith(_UNHASHABLE) and unsupported


def _is_optional_panic(theirs: Case, ours: Case) -> bool:
    """An optional entry of unknown type. Other faults may be told beside it."""
    refused = any(
        f"expected type 'optional_type({kind})' but found '{kind}'" in text
        for text in _refusals(ours)
        for kind in ("any", "dyn")
    )
    return theirs["panic"] == _NO_PARAMETER and refused


def _refusals(ours: Case) -> list[str]:
    return [str(ours.get("compileError") or ""), *(ours.get("configErrors") or [])]


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
    return lines[0][lines[0].rindex("ERROR: ") :] if lines else ""


def has_growing_list(case: Case) -> bool:
    """Whether an expression gives a list a name and adds lists."""
    if "expr" not in case:
        return False
    environment = user_environment() if case.get("env") == "user" else claims_environment()
    try:
        return grows_lists(environment.compile(case["expr"]).ast)
    except CompileError:
        return False


def _meant_decoding(case: Case, theirs: Case, ours: Case, ask: Ask, answer: Ask, *, is_cut: bool = False) -> str:
    their_text, our_text = str(theirs.get("strictDecodeError") or ""), str(ours.get("strictDecodeError") or "")
    if "yaml: " in their_text and "yaml: " in our_text:
        return "yaml text"
    if our_text.endswith(_AT_A_COMMA) and proofs.has_comma_in_tag(case):
        return "tags"
    for first in proofs.first_documents(case) if our_text and not is_cut else ():
        then = answer(first)
        if "crash" in then:
            continue  # that is a finding, and excuses nothing
        mismatches = compare_answers(theirs, then)
        what = mismatches[0][0] if mismatches else ""
        # to cut it once more is to cut the whole at another place, which comes later
        if what == "decode":
            is_meant = bool(_meant_decoding(first, theirs, then, ask, answer, is_cut=True))
        else:
            is_meant = not what or bool(meant(first, theirs, then, what, ask, answer))
        if is_meant:
            return "one document"
    return ""
