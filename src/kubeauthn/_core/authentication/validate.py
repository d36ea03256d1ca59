"""Every rule a configuration must keep, in Kubernetes' order and with its texts. All faults at once."""

from __future__ import annotations

from kubeauthn._core.authentication.expression_checks import ExpressionChecks
from kubeauthn._core.authentication.findings import (
    Finding,
    as_json,
    duplicate,
    invalid,
    invalid_shown,
    required,
    too_many,
)
from kubeauthn._core.authentication.model import (
    MATCH_ANY,
    Anonymous,
    AuthenticationConfiguration,
    ClaimMappings,
    ClaimValidationRule,
    ExtraMapping,
    Issuer,
    JWTAuthenticator,
    PrefixedClaim,
    UserValidationRule,
)
from kubeauthn._core.authentication.pem_bundle import bundle_fault
from kubeauthn._core.authentication.release import NEWEST, Release
from kubeauthn.cel.library.name_rules import dns1123_subdomain
from kubeauthn.cel.library.url_value import URLError, parse_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from kubeauthn._core.yaml_document import Path
    from kubeauthn.cel import Program

AUTHENTICATORS = 64
EGRESS_SELECTORS = ("controlplane", "cluster")

_PATH_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-._~%!$&'()*+,;=:")
_PATH_PATTERN = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_RESERVED_DOMAINS = ("kubernetes.io", "k8s.io")
_BOTH = "claim and expression can't both be set"
_NEITHER = "claim or expression is required"
_NO_PREFIX = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
_EMAIL = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is used in "
    "claimMappings.username.expression"
)


def validate_configuration(
    config: AuthenticationConfiguration, disallowed_issuers: Collection[str] = (), kubernetes: str = NEWEST
) -> list[Finding]:
    """What is wrong; nothing, if the configuration is good."""
    release = Release.named(kubernetes)
    most = AUTHENTICATORS if release.several_allowed else 1
    if len(config.jwt) > most:
        return [too_many(("jwt",), len(config.jwt), most)]
    if not config.jwt and not release.several_allowed:
        return [required(("jwt",), "at least one jwt is required")]
    findings: list[Finding] = []
    issuers: set[str] = set()
    discovery_urls: set[str] = set()
    for index, entry in enumerate(config.jwt):
        path = ("jwt", index)
        findings += _authenticator(entry, path, frozenset(disallowed_issuers), ExpressionChecks(kubernetes), release)
        url, discovery_url = entry.issuer.url, entry.issuer.discovery_url
        if url in issuers:
            findings.append(duplicate((*path, "issuer", "url"), url))
        issuers.add(url)
        if discovery_url and discovery_url in discovery_urls:
            findings.append(duplicate((*path, "issuer", "discoveryURL"), discovery_url))
        discovery_urls.add(discovery_url)
    if config.anonymous is not None:
        findings += _anonymous(config.anonymous)
    return findings


def _anonymous(anonymous: Anonymous) -> Iterator[Finding]:
    if anonymous.conditions and not anonymous.enabled:
        shown = as_json([{"Path": path} for path in anonymous.conditions])
        detail = "enabled should be set to true when conditions are defined"
        yield invalid_shown(("anonymous", "conditions"), shown, detail)


def _authenticator(
    entry: JWTAuthenticator, path: Path, disallowed: frozenset[str], expressions: ExpressionChecks, release: Release
) -> Iterator[Finding]:
    yield from _issuer(entry.issuer, (*path, "issuer"), disallowed, release)
    yield from _claim_rules(entry.claim_validation_rules, (*path, "claimValidationRules"), expressions)
    yield from _mappings(entry.claim_mappings, (*path, "claimMappings"), expressions, release)
    yield from _user_rules(entry.user_validation_rules, (*path, "userValidationRules"), expressions, release)


# -- issuer ---------------------------------------------------------------------------------------


def _issuer(issuer: Issuer, path: Path, disallowed: frozenset[str], release: Release) -> Iterator[Finding]:
    if issuer.url:
        yield from _url(issuer.url, (*path, "url"), disallowed)
    else:
        yield required((*path, "url"), release.why_required("URL is required"))
    if issuer.discovery_url:
        discovery = (*path, "discoveryURL")
        if issuer.url and issuer.url.rstrip("/") == issuer.discovery_url.rstrip("/"):
            yield invalid(discovery, issuer.discovery_url, "discoveryURL must be different from URL")
        yield from _url(issuer.discovery_url, discovery, frozenset())
    yield from _audiences(issuer, path, release)
    if issuer.certificate_authority:
        fault = bundle_fault(issuer.certificate_authority)
        if fault:
            yield invalid((*path, "certificateAuthority"), "<omitted>", fault)
    if issuer.egress_selector_type and issuer.egress_selector_type not in EGRESS_SELECTORS:
        yield invalid_shown(
            (*path, "egressSelectorType"),
            as_json(issuer.egress_selector_type),
            "egress selector must be either controlplane or cluster",
        )


def _url(url: str, path: Path, disallowed: frozenset[str]) -> Iterator[Finding]:
    if url in disallowed:
        shown = " ".join(sorted(disallowed))
        yield invalid(path, url, f"URL must not overlap with disallowed issuers: [{shown}]")
    try:
        parsed = parse_url(url)
    except URLError as error:
        yield invalid(path, url, str(error))
        return
    if parsed.scheme != b"https":
        yield invalid(path, url, "URL scheme must be https")
    if parsed.user is not None:
        yield invalid(path, url, "URL must not contain a username or password")
    if parsed.query:
        yield invalid(path, url, "URL must not contain a query")
    if parsed.fragment:
        yield invalid(path, url, "URL must not contain a fragment")


def _audiences(issuer: Issuer, path: Path, release: Release) -> Iterator[Finding]:
    audiences, policy = issuer.audiences, issuer.audience_match_policy
    if not audiences:
        field = f"jwt[{path[1]}].issuer.audiences"
        yield required((*path, "audiences"), f"at least one {field} is required")
        return
    if len(audiences) > 1 and not release.several_allowed:
        yield too_many((*path, "audiences"), len(audiences), 1)
        return
    seen: set[str] = set()
    for index, audience in enumerate(audiences):
        place = (*path, "audiences", index)
        if not audience:
            yield required(place, release.why_required("audience can't be empty"))
        if audience in seen:
            yield duplicate(place, audience)
        seen.add(audience)
    place = (*path, "audienceMatchPolicy")
    if len(audiences) > 1 and policy != MATCH_ANY:
        yield invalid_shown(place, as_json(policy), "audienceMatchPolicy must be MatchAny for multiple audiences")
    if len(audiences) == 1 and policy not in ("", MATCH_ANY):
        detail = "audienceMatchPolicy must be empty or MatchAny for single audience"
        yield invalid_shown(place, as_json(policy), detail)


# -- claim rules ----------------------------------------------------------------------------------


def _claim_rules(rules: Sequence[ClaimValidationRule], path: Path, expressions: ExpressionChecks) -> Iterator[Finding]:
    seen_claims: set[str] = set()
    seen_expressions: set[str] = set()
    for index, rule in enumerate(rules):
        place = (*path, index)
        if rule.claim and rule.expression:
            yield invalid(place, rule.claim, _BOTH)
        elif rule.claim:
            if rule.message:
                yield invalid((*place, "message"), rule.message, "may not be specified when claim is set")
            if rule.claim in seen_claims:
                yield duplicate((*place, "claim"), rule.claim)
            seen_claims.add(rule.claim)
        elif rule.expression:
            if rule.required_value:
                detail = "may not be specified when expression is set"
                yield invalid((*place, "requiredValue"), rule.required_value, detail)
            if rule.expression in seen_expressions:
                yield duplicate((*place, "expression"), rule.expression)
                continue
            seen_expressions.add(rule.expression)
            program = yield from expressions.claims(rule.expression, (*place, "expression"), must_be_bool=True)
            expressions.note_email_verified(program)
        else:
            yield required(place, _NEITHER)


# -- mappings -------------------------------------------------------------------------------------


def _mappings(
    mappings: ClaimMappings, path: Path, expressions: ExpressionChecks, release: Release
) -> Iterator[Finding]:
    faultless = True
    program: Program | None = None
    for finding_or_program in _prefixed(mappings.username, (*path, "username"), expressions, needed=True):
        if isinstance(finding_or_program, Finding):
            faultless = False
            yield finding_or_program
        else:
            program = finding_or_program
    if faultless:
        expressions.note_email(program)
        expressions.note_email_verified(program)
    for found in _prefixed(mappings.groups, (*path, "groups"), expressions, needed=False):
        if isinstance(found, Finding):
            yield found
    if mappings.uid.claim and mappings.uid.expression:
        yield invalid((*path, "uid"), "", _BOTH)
    elif mappings.uid.expression:
        yield from expressions.claims(mappings.uid.expression, (*path, "uid", "expression"))
    yield from _extra(mappings.extra, (*path, "extra"), expressions, release)
    if expressions.uses_email and not expressions.uses_email_verified and release.has_email_rule:
        yield invalid((*path, "username", "expression"), mappings.username.expression, _EMAIL)


def _prefixed(
    mapping: PrefixedClaim, path: Path, expressions: ExpressionChecks, *, needed: bool
) -> Iterator[Finding | Program]:
    """Its faults, and the program of its expression if that compiles."""
    if mapping.claim and mapping.expression:
        yield invalid(path, "", _BOTH)
    elif mapping.expression:
        if mapping.prefix is not None:
            yield invalid((*path, "prefix"), mapping.prefix, "may not be specified when expression is set")
        program = yield from expressions.claims(mapping.expression, (*path, "expression"))
        if program is not None:
            yield program
    elif mapping.claim:
        if mapping.prefix is None:
            yield required((*path, "prefix"), _NO_PREFIX)
    elif needed:
        yield required(path, _NEITHER)


def _extra(
    entries: Sequence[ExtraMapping], path: Path, expressions: ExpressionChecks, release: Release
) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        place = (*path, index, "key")
        yield from _domain_prefixed_path(entry.key, place)
        if entry.key != entry.key.lower():
            yield invalid(place, entry.key, "must be lowercase")
        domain, slash, _ = entry.key.partition("/")
        is_reserved = any(domain == reserved or domain.endswith(f".{reserved}") for reserved in _RESERVED_DOMAINS)
        if slash and is_reserved and release.reserves_keys:
            detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
            yield invalid(place, entry.key, detail)
        if entry.key in seen:
            yield duplicate(place, entry.key)
            continue
        seen.add(entry.key)
        value = (*path, index, "valueExpression")
        if not entry.value_expression:
            yield required(value, release.why_required("valueExpression is required"))
            continue
        program = yield from expressions.claims(entry.value_expression, value)
        expressions.note_email_verified(program)


def _domain_prefixed_path(key: str, path: Path) -> Iterator[Finding]:
    if not key:
        yield required(path)
        return
    domain, _, rest = key.partition("/")
    if not domain or not rest:
        yield invalid(path, key, 'must be a domain-prefixed path (such as "acme.io/foo")')
        return
    for fault in dns1123_subdomain(domain):
        yield invalid(path, domain, fault)
    if not _PATH_CHARACTERS.issuperset(rest):
        yield invalid(path, rest, f"Invalid path (regex used for validation is '{_PATH_PATTERN}')")


# -- user rules -----------------------------------------------------------------------------------


def _user_rules(
    rules: Sequence[UserValidationRule], path: Path, expressions: ExpressionChecks, release: Release
) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        place = (*path, index, "expression")
        if not rule.expression:
            yield required(place, release.why_required("expression is required"))
        elif rule.expression in seen:
            yield duplicate(place, rule.expression)
        else:
            seen.add(rule.expression)
            yield from expressions.user(rule.expression, place)
