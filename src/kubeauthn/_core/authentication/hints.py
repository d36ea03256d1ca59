"""What `check` says beside the faults: how to mend one, and what is allowed but seldom meant.

A warning is about something that will not do what its author thinks, or does otherwise in kube-apiserver; a note is
worth knowing. Neither makes a file wrong.
"""

from __future__ import annotations

from kubeauthn._core.authentication import expression_hints as expressions
from kubeauthn._core.authentication.compiled import compile_claims_expression, compile_user_expression
from kubeauthn._core.authentication.fault_hints import fault_hint
from kubeauthn._core.authentication.faults import format_field
from kubeauthn._core.authentication.list_origins import OBJECT, origin_of_value
from kubeauthn._core.authentication.provider_document import WELL_KNOWN, discovery_address
from kubeauthn._core.authentication.release import NEWEST
from kubeauthn._core.authentication.shared_names import shared_names
from kubeauthn._core.authentication.value_hints import (
    beyond_ascii,
    has_quotes_around,
    has_space_around,
    leads_into_an_object,
    placeholder,
    unseen_character,
    wrong_issuer,
)
from kubeauthn._core.record import record, replace
from kubeauthn.cel import CelError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from kubeauthn._core.authentication.model import AuthenticationConfiguration, ClaimMappings, JWTAuthenticator
    from kubeauthn._core.yaml_document import Path
    from kubeauthn.cel import Program

__all__ = ["RULES", "WARNING", "NOTE", "Hint", "fault_hint", "hints"]

WARNING, NOTE = "warning", "note"

RULES = {
    "default-discovery-url": "discoveryURL is the address that is asked anyway",
    "discovery-url-without-document": "discoveryURL is the address of the document, and nothing is added to it",
    "wrong-issuer": "no token has this issuer: it is the address of a document, or stands for many tenants",
    "placeholder": "a text that somebody was to fill in is still there",
    "space-around": "a text begins or ends with a space, which no token will have",
    "odd-character": "a character that nobody sees, or that may only look like a letter of the issuer's address",
    "quotes-around": "quotation marks that are no marks of YAML's are a part of the text",
    "literal-star": "a * is a star: values are compared as they are",
    "dotted-claim": "a claim's name is taken whole: a dot in it leads into no object",
    "dash-prefix": "a prefix of - is a dash here; it means no prefix only in the flags",
    "unguarded-claim": "a claim is used without has() or .?",
    "never-true": "a rule can never be met, so that every token is refused",
    "empty-required-value": "a claim without requiredValue has to be empty, not merely there",
    "always-true": "a rule that is always met says nothing",
    "unrecognised-list": "kube-apiserver refuses lists made by split, findAll, url queries and formats, and objects",
    "useless-type": "a mapping is of a type that is never right, so that every token is refused",
    "integer-arithmetic": "every number of a token is a double, and a double and an int cannot be added",
    "empty-username": "an empty user name is refused here, and taken by kube-apiserver",
    "system-names": "nothing keeps a token from naming a system: user or group",
    "shared-names": "nothing keeps the users or groups of two issuers apart",
    "egress-selector": "egressSelectorType has no effect outside kube-apiserver",
    "anonymous": "anonymous has no effect on a TokenReview webhook",
    "skipped-key": "kube-apiserver treats a key of the issuer otherwise: it uses a weak one, or drops them all for it",
}
"""What each kind of hint is about."""

_NOT_TEXTS = {
    "exp": "a number", "iat": "a number", "nbf": "a number", "auth_time": "a number", "updated_at": "a number",
    "email_verified": "a boolean", "phone_number_verified": "a boolean",
}  # fmt: skip
_SYSTEM = "system:"


@record(frozen=True, slots=True)
class Hint:
    path: Path
    rule: str
    level: str
    text: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{format_field(self.path)}: {self.text}"


def hints(config: AuthenticationConfiguration, kubernetes: str = NEWEST) -> list[Hint]:
    """All of them, in the order of the fields. Expressions that do not compile are passed over."""
    found: list[Hint] = []
    shared = list(shared_names(config.jwt, lambda text: _compiled(text, kubernetes)))
    for index, entry in enumerate(config.jwt):
        found += _Entry(entry, ("jwt", index), kubernetes).hints()
        found += (_shared(*one) for one in shared if one[0] == index)
    if config.anonymous is not None:
        text = "says who may come without a token: a TokenReview webhook is never asked, so it has no effect there"
        found.append(Hint(("anonymous",), "anonymous", NOTE, text))
    return found


def _shared(index: int, field: str, other: int) -> Hint:
    what = "user" if field == "username" else "group"
    text = f"a token may name a {what} of jwt[{other}] too: no prefix keeps the two issuers apart"
    cure = "give each issuer a prefix of its own that no other begins with"
    return Hint(("jwt", index, "claimMappings", field), "shared-names", NOTE, text, cure)


def _compiled(text: str, kubernetes: str) -> Program | None:
    try:
        return compile_claims_expression(text, kubernetes) if text else None
    except CelError:
        return None


class _Entry:
    def __init__(self, entry: JWTAuthenticator, path: Path, kubernetes: str) -> None:
        self._entry = entry
        self._path = path
        self._kubernetes = kubernetes
        self._required: set[tuple[str, ...]] = {(rule.claim,) for rule in entry.claim_validation_rules if rule.claim}
        for rule in entry.claim_validation_rules:
            program = self._claims(rule.expression)
            if program is not None:
                self._required.update(expressions.required_claims(program))

    def hints(self) -> Iterator[Hint]:
        yield from self._issuer()
        yield from self._claim_rules()
        yield from self._mappings(self._entry.claim_mappings, (*self._path, "claimMappings"))
        yield from self._user_rules()
        yield from self._system_names()

    # issuer

    def _issuer(self) -> Iterator[Hint]:
        issuer, path = self._entry.issuer, (*self._path, "issuer")
        if issuer.discovery_url and issuer.url:
            place = (*path, "discoveryURL")
            if issuer.discovery_url == discovery_address(replace(issuer, discovery_url="")):
                text = "is the address that is asked anyway: leave it out"
                yield Hint(place, "default-discovery-url", WARNING, text)
            elif not issuer.discovery_url.endswith(WELL_KNOWN):
                text = f"is asked as it is, and {WELL_KNOWN} is not added to it: is this the address of the document?"
                yield Hint(place, "discovery-url-without-document", NOTE, text)
        if issuer.egress_selector_type:
            text = "says where kube-apiserver connects from: it has no effect elsewhere"
            yield Hint((*path, "egressSelectorType"), "egress-selector", NOTE, text)
        text, cure = wrong_issuer(issuer)
        if text:
            yield Hint((*path, "url"), "wrong-issuer", WARNING, text, cure)
        yield from self._text(issuer.url, (*path, "url"))
        if (letter := beyond_ascii(issuer.url)) and not unseen_character(issuer.url):
            said = f"has a letter in it that is none of ASCII ({letter}): one that looks like another is another"
            yield Hint((*path, "url"), "odd-character", NOTE, said)
        for index, audience in enumerate(issuer.audiences):
            yield from self._text(audience, (*path, "audiences", index), "list each audience")

    def _text(self, text: str, path: Path, instead_of_star: str = "") -> Iterator[Hint]:
        """What is compared with a token, letter for letter."""
        if left := placeholder(text):
            yield Hint(path, "placeholder", WARNING, f"still has {left} in it: was it to be filled in?")
        elif "*" in text and instead_of_star:
            said = "has a star in it, which stands for itself: values are compared as they are"
            yield Hint(path, "literal-star", WARNING, said, instead_of_star)
        if has_space_around(text):
            yield Hint(path, "space-around", WARNING, "begins or ends with a space, and is compared as it is")
        if unseen := unseen_character(text):
            said = f"has a character in it that nobody sees ({unseen}), and is compared as it is"
            yield Hint(path, "odd-character", WARNING, said, "type it anew: it was copied from a page, perhaps")
        yield from self._quotes(text, path)

    def _quotes(self, text: str, path: Path) -> Iterator[Hint]:
        if has_quotes_around(text):
            said = "has quotation marks around it, and they are a part of it"
            yield Hint(path, "quotes-around", WARNING, said, 'YAML has its own, straight and once: "…"')

    def _claim(self, claim: str, path: Path) -> Iterator[Hint]:
        yield from self._quotes(claim, (*path, "claim"))
        if leads_into_an_object(claim):
            said = f"is the claim that is called {claim}: the dot leads into no object"
            yield Hint(
                (*path, "claim"), "dotted-claim", NOTE, said, f"for what is in an object: expression: claims.{claim}"
            )

    # rules

    def _claim_rules(self) -> Iterator[Hint]:
        for index, rule in enumerate(self._entry.claim_validation_rules):
            path = (*self._path, "claimValidationRules", index)
            yield from self._claim(rule.claim, path)
            begin = rule.required_value.partition("*")[0]
            instead = f"expression: {expressions.shown_path((rule.claim,))}.startsWith({begin!r})"
            yield from self._text(rule.required_value, (*path, "requiredValue"), instead)
            if rule.expression:
                program = self._claims(rule.expression)
                if program is not None:
                    yield from self._truth(program, "claims", (*path, "expression"))
                    yield from self._unguarded(program, (*path, "expression"), rule=True)
                    yield from self._arithmetic(program, (*path, "expression"))
            elif rule.claim in _NOT_TEXTS:
                kind = _NOT_TEXTS[rule.claim]
                text = f"can never be met: {rule.claim} is {kind}, and requiredValue is compared with a string"
                wanted = rule.required_value if kind != "a boolean" else rule.required_value or "true"
                yield Hint(
                    (*path, "claim"), "never-true", WARNING, text, f"expression: claims.{rule.claim} == {wanted}"
                )
            elif rule.claim == "iss" and rule.required_value not in ("", self._entry.issuer.url):
                text = "can never be met: iss is the issuer's url"
                yield Hint((*path, "requiredValue"), "never-true", WARNING, text)
            elif rule.claim and not rule.required_value:
                text = f'a token is refused unless its {rule.claim} is "": that it is there is not enough'
                asked = expressions.asking_for((rule.claim,)).partition(", or ")[0]
                yield Hint((*path, "claim"), "empty-required-value", WARNING, text, f"expression: {asked}")

    def _user_rules(self) -> Iterator[Hint]:
        for index, rule in enumerate(self._entry.user_validation_rules):
            program = self._user(rule.expression)
            if program is not None:
                path = (*self._path, "userValidationRules", index, "expression")
                yield from self._truth(program, "user", path)

    def _truth(self, program: Program, variable: str, path: Path) -> Iterator[Hint]:
        truth = expressions.constant_truth(program, variable)
        if truth is False:
            yield Hint(path, "never-true", WARNING, "can never be true, so every token is refused")
        elif truth is True:
            yield Hint(path, "always-true", WARNING, "is always true, so it refuses nobody")

    # mappings

    def _mappings(self, mappings: ClaimMappings, path: Path) -> Iterator[Hint]:
        username = (*path, "username")
        for name, mapping in (("username", mappings.username), ("groups", mappings.groups), ("uid", mappings.uid)):
            yield from self._claim(mapping.claim, (*path, name))
        yield from self._prefix(mappings.username.prefix, username)
        yield from self._expression(mappings.username.expression, username, level=NOTE)
        if mappings.username.claim and not mappings.username.expression and mappings.username.claim != "sub":
            text = f'a token whose {mappings.username.claim} is "" or null is refused; kube-apiserver takes it'
            yield Hint((*username, "claim"), "empty-username", NOTE, text)
        yield from self._prefix(mappings.groups.prefix, (*path, "groups"))
        yield from self._expression(mappings.groups.expression, (*path, "groups"), is_list=True)
        yield from self._expression(mappings.uid.expression, (*path, "uid"))
        for index, extra in enumerate(mappings.extra):
            place = (*path, "extra", index)
            yield from self._expression(extra.value_expression, place, name="valueExpression", is_list=True)

    def _prefix(self, prefix: str | None, path: Path) -> Iterator[Hint]:
        yield from self._quotes(prefix or "", (*path, "prefix"))
        if prefix == "-":
            text = 'is a dash, and every name begins with it: no prefix is "" in a file, - only in the flags'
            yield Hint((*path, "prefix"), "dash-prefix", WARNING, text)

    def _expression(
        self, text: str, path: Path, *, name: str = "expression", level: str = WARNING, is_list: bool = False
    ) -> Iterator[Hint]:
        program = self._claims(text)
        if program is None:
            return
        place = (*path, name)
        maker = origin_of_value(program.ast) if is_list else ""
        if maker:
            unlike = "take an object for the names of its fields"
            what = unlike if maker == OBJECT else f"recognise the list that {maker} makes"
            said = f"kube-apiserver refuses every token here: it does not {what}"
            yield Hint(place, "unrecognised-list", WARNING, said, "put .map(r, r) after it, which changes nothing else")
        wrong = expressions.type_of_no_use(program, is_list=is_list)
        if wrong:
            wanted = "a string or a list of strings" if is_list else "a string"
            said = f"is of type {wrong}, so every token is refused: it must be {wanted}"
            cure = f".orValue({'[]' if is_list else repr('')}) after it" if wrong.startswith("optional") else ""
            yield Hint(place, "useless-type", WARNING, said, cure)
        yield from self._unguarded(program, place, level=level)
        yield from self._arithmetic(program, place)

    # expressions

    def _unguarded(self, program: Program, path: Path, *, level: str = WARNING, rule: bool = False) -> Iterator[Hint]:
        for claim in expressions.unguarded_claims(program, self._required):
            shown = expressions.shown_path(claim)
            outcome = "refused with an error instead of the rule's message" if rule else "refused"
            cure = expressions.asking_for(claim)
            text = f"a token without {shown} is {outcome}"
            yield Hint(path, "unguarded-claim", level, text, f"if it may be missing, ask for it: {cure}")

    def _arithmetic(self, program: Program, path: Path) -> Iterator[Hint]:
        claim = expressions.integer_arithmetic(program)
        if claim:
            shown = expressions.shown_path(claim)
            text = f"{shown} is a double if it is a number, and it cannot be calculated with a whole number"
            yield Hint(path, "integer-arithmetic", WARNING, text, f"write 1.0 instead of 1, or int({shown})")

    def _system_names(self) -> Iterator[Hint]:
        """A user or group called `system:…` is one of Kubernetes' own."""
        rules = [self._user(rule.expression) for rule in self._entry.user_validation_rules]
        claim_rules = [self._claims(rule.expression) for rule in self._entry.claim_validation_rules]
        if any(program is not None and expressions.mentions(program, _SYSTEM) for program in (*rules, *claim_rules)):
            return
        mappings, path = self._entry.claim_mappings, (*self._path, "claimMappings")
        for name, mapping, what in (("username", mappings.username, "user"), ("groups", mappings.groups, "group")):
            program = self._claims(mapping.expression)
            starts = expressions.begins_with(program) if program is not None else mapping.prefix
            mapped = mapping.claim if program is None else mapping.expression
            if not mapped or (starts and not _SYSTEM.startswith(starts) and not starts.startswith(_SYSTEM)):
                continue
            if program is not None and name == "groups" and starts == "" and expressions.mentions(program, ":"):
                continue  # names are put together in there: who writes that has thought of it
            text = f"a token may name a {what} of Kubernetes' own ({_SYSTEM}…): no prefix and no rule forbids it"
            hint = {
                "user": """userValidationRules: [{expression: "!user.username.startsWith('system:')"}]""",
                "group": """userValidationRules: [{expression: "user.groups.all(g, !g.startsWith('system:'))"}]""",
            }[what]
            yield Hint((*path, name), "system-names", NOTE, text, hint)

    def _claims(self, text: str) -> Program | None:
        return _compiled(text, self._kubernetes)

    def _user(self, text: str) -> Program | None:
        try:
            return compile_user_expression(text, self._kubernetes) if text else None
        except CelError:
            return None
