"""`kubeauthn check`: hints for each mistake, and outputs that hold whatever a file says."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubeauthn._core.authentication.expression_hints import MOST_NAMED
from kubeauthn._core.authentication.hints import RULES
from kubeauthn.cli.main import COMMANDS, main
from kubeauthn.cli.world import World

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "recorded" / "authn.jsonl"
GOOD: dict[str, Any] = {
    "apiVersion": "apiserver.config.k8s.io/v1",
    "kind": "AuthenticationConfiguration",
    "jwt": [
        {
            "issuer": {"url": "https://issuer.example", "audiences": ["kubernetes"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": "oidc:"}},
        }
    ],
}


def check(content: str | bytes, *options: str) -> tuple[int, str]:
    raw = content.encode() if isinstance(content, str) else content
    out = io.StringIO()
    stdin = io.TextIOWrapper(io.BytesIO(raw))
    code = main(["check", "-", *options], World(stdin=stdin, stdout=out, stderr=io.StringIO(), environ={}))
    return code, out.getvalue()


def findings(content: str | bytes, *options: str) -> list[dict[str, Any]]:
    _, out = check(content, "--output", "json", *options)
    (file,) = json.loads(out)["files"]
    found: list[dict[str, Any]] = file["findings"]
    return found


def document(**parts: Any) -> str:
    """The good configuration with other parts of its one entry, in JSON."""
    entry = GOOD["jwt"][0]
    issuer = {**entry["issuer"], **parts.pop("issuer", {})}
    mappings = {**entry["claimMappings"], **parts.pop("mappings", {})}
    return json.dumps({**GOOD, "jwt": [{**entry, "issuer": issuer, "claimMappings": mappings, **parts}]})


ANY = {"audienceMatchPolicy": "MatchAny"}
IN_LINES = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [kubernetes]}
  claimMappings: {username: {claim: sub, prefix: ""}, groups: {claim: groups, prefix: "oidc:"}}
"""


def rules(text: str, *options: str) -> set[str]:
    return {found["rule"] for found in findings(text, *options)}


def rule(expression: str) -> str:
    return document(claimValidationRules=[{"expression": expression}])


def test_a_good_file_has_nothing_to_say():
    assert findings(json.dumps(GOOD)) == []
    assert check(json.dumps(GOOD)) == (0, "<stdin>: valid, 1 issuer\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "default-discovery-url",
            document(issuer={"discoveryURL": "https://issuer.example/.well-known/openid-configuration"}),
        ),
        ("discovery-url-without-document", document(issuer={"discoveryURL": "https://elsewhere.example/realm"})),
        ("wrong-issuer", document(issuer={"url": "https://i.example/.well-known/openid-configuration"})),
        ("wrong-issuer", document(issuer={"url": "https://login.microsoftonline.com/common/v2.0"})),
        ("wrong-issuer", document(issuer={"url": "https://login.microsoftonline.com/organizations/v2.0"})),
        ("placeholder", document(issuer={"url": "https://login.microsoftonline.com/${TENANT_ID}/v2.0"})),
        ("placeholder", document(issuer={"url": "https://login.microsoftonline.com/{{ .Values.tenant }}/v2.0"})),
        ("placeholder", document(issuer={"audiences": ["<client-id>"]})),
        ("placeholder", document(claimValidationRules=[{"claim": "hd", "requiredValue": "$(DOMAIN)"}])),
        ("space-around", document(issuer={"audiences": ["kubernetes "]})),
        ("space-around", document(claimValidationRules=[{"claim": "hd", "requiredValue": "example.com\n"}])),
        ("odd-character", document(issuer={"audiences": ["kuber\u200bnetes"]})),
        ("odd-character", document(issuer={"audiences": ["my\u00a0app"]})),
        ("odd-character", document(claimValidationRules=[{"claim": "hd", "requiredValue": "exam\u00adple.com"}])),
        ("odd-character", document(issuer={"url": "https://issuer.ex\u0430mple"})),
        ("quotes-around", document(issuer={"audiences": ['"kubernetes"']})),
        ("quotes-around", document(claimValidationRules=[{"claim": "hd", "requiredValue": "“example.com”"}])),
        ("quotes-around", document(claimValidationRules=[{"claim": "'hd'", "requiredValue": "x"}])),
        ("quotes-around", document(mappings={"groups": {"claim": "groups", "prefix": "“oidc:”"}})),
        ("quotes-around", document(mappings={"username": {"claim": "`sub`", "prefix": "oidc:"}})),
        ("literal-star", document(claimValidationRules=[{"claim": "repository", "requiredValue": "my-org/*"}])),
        ("literal-star", document(issuer={"audiences": ["*"]})),
        ("dotted-claim", document(claimValidationRules=[{"claim": "a.b", "requiredValue": "x"}])),
        ("dotted-claim", document(mappings={"groups": {"claim": "realm_access.roles", "prefix": "kc:"}})),
        ("dotted-claim", document(mappings={"uid": {"claim": "act.sub"}})),
        ("dash-prefix", document(mappings={"username": {"claim": "sub", "prefix": "-"}})),
        ("dash-prefix", document(mappings={"groups": {"claim": "groups", "prefix": "-"}})),
        ("unguarded-claim", rule("claims.hd == 'x'")),
        ("unguarded-claim", rule("claims['hd'] == 'x'")),
        ("unguarded-claim", rule("has(claims.a) && claims.a.b == 'x'")),
        ("unguarded-claim", rule("has(claims.a.b)")),
        ("unguarded-claim", document(mappings={"uid": {"expression": "claims.id"}})),
        ("never-true", rule("false")),
        ("never-true", rule("has(claims.a) && 1 > 2 && false")),
        ("never-true", rule("1 > 2")),
        ("never-true", rule("!(has(claims.a) || true)")),
        ("never-true", rule("claims.iss == 'a' && claims.iss == 'b'")),
        ("never-true", rule("true ? false : has(claims.a)")),
        ("never-true", document(claimValidationRules=[{"claim": "email_verified", "requiredValue": "true"}])),
        ("never-true", document(claimValidationRules=[{"claim": "exp", "requiredValue": "1"}])),
        ("never-true", document(claimValidationRules=[{"claim": "iss", "requiredValue": "https://else.example"}])),
        ("never-true", document(userValidationRules=[{"expression": "user.username == 'a' && user.username == 'b'"}])),
        ("empty-required-value", document(claimValidationRules=[{"claim": "hd"}])),
        ("empty-required-value", document(claimValidationRules=[{"claim": "a.b", "requiredValue": ""}])),
        ("always-true", rule("has(claims.sub) || true")),
        ("unrecognised-list", document(mappings={"groups": {"expression": "claims.sub.split(',')"}})),
        ("unrecognised-list", document(mappings={"groups": {"expression": "claims.sub.findAll('a')"}})),
        (
            "unrecognised-list",
            document(mappings={"groups": {"expression": "has(claims.sub) ? claims.sub.split(',') : []"}}),
        ),
        (
            "unrecognised-list",
            document(
                mappings={"extra": [{"key": "a.example/b", "valueExpression": "url(claims.iss).getQuery()['a']"}]}
            ),
        ),
        ("useless-type", document(mappings={"groups": {"expression": "claims.?groups"}})),
        ("useless-type", document(mappings={"uid": {"expression": "1"}})),
        ("useless-type", document(mappings={"groups": {"expression": "[1]"}})),
        ("integer-arithmetic", rule("claims.exp + 1 > 2")),
        ("empty-username", document(mappings={"username": {"claim": "name", "prefix": "oidc:"}})),
        ("system-names", document(mappings={"username": {"claim": "sub", "prefix": ""}})),
        ("system-names", document(mappings={"groups": {"claim": "groups", "prefix": "system:"}})),
        ("egress-selector", document(issuer={"egressSelectorType": "cluster"})),
        ("anonymous", json.dumps({**GOOD, "anonymous": {"enabled": True}})),
    ],
)
def test_a_hint_for_each_mistake(name: str, text: str):
    assert name in rules(text)
    assert check(text)[0] == 0, "a hint does not change the exit code"


@pytest.mark.parametrize(
    "text",
    [
        rule("has(claims.hd) && claims.hd == 'x'"),
        rule("claims.?hd.orValue('') == 'x'"),
        rule("'hd' in claims && claims['hd'] == 'x'"),
        rule("claims.exp - claims.exp <= 86400"),
        rule("claims.exp + 1.0 > 2.0"),
        rule("claims.iss == 'a' || claims.iss == 'b'"),
        document(claimValidationRules=[{"claim": "hd", "requiredValue": "y"}, {"expression": "claims.hd != 'x'"}]),
        document(
            claimValidationRules=[{"expression": "has(claims.hd)"}], mappings={"uid": {"expression": "claims.hd"}}
        ),
        document(mappings={"groups": {"expression": "claims.sub.split(',').map(r, 'oidc:' + r)"}}),
        document(mappings={"username": {"expression": "'oidc:' + claims.sub"}}),
        document(
            mappings={"username": {"claim": "sub", "prefix": ""}},
            userValidationRules=[{"expression": "!user.username.startsWith('system:')"}],
        ),
        document(issuer={"discoveryURL": "https://elsewhere.example/.well-known/openid-configuration"}),
        document(issuer={"url": "https://login.microsoftonline.com/72f988bf-86f1-41af-91ab-2d7cd011db47/v2.0"}),
        document(issuer={"audiences": ["api://kubernetes", "https://k8s/?a={b}", "a > b < c"], **ANY}),
        document(claimValidationRules=[{"claim": "hd", "requiredValue": "two words"}]),
        document(
            claimValidationRules=[{"claim": "hd", "requiredValue": "Müller & Söhne"}], issuer={"audiences": ["Ä"]}
        ),
        document(
            claimValidationRules=[{"claim": "hd", "requiredValue": "'"}, {"claim": "d'", "requiredValue": "it's"}]
        ),
        document(mappings={"groups": {"claim": "https://example.com/groups", "prefix": "a0:"}}),
        document(mappings={"groups": {"claim": "cognito:groups", "prefix": "a0:"}}),
    ],
)
def test_no_hint_where_there_is_no_mistake(text: str):
    assert findings(text) == []


NAMED = {
    "none": {"claim": "sub", "prefix": ""},
    "a": {"claim": "sub", "prefix": "a:"},
    "a longer": {"claim": "name", "prefix": "a:b:"},
    "b": {"claim": "sub", "prefix": "b:"},
    "a by expression": {"expression": "'a:' + claims.sub"},
    "as it is": {"expression": "claims.sub"},
    "its end differs": {"expression": "claims.sub + ':b'"},
}


@pytest.mark.parametrize("field", ["username", "groups"])
@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("a", "b", False),
        ("a", "a", True),
        ("a", "none", True),
        ("none", "a", True),
        ("a", "a longer", True),
        ("a longer", "a", True),
        ("b", "a longer", False),
        ("a by expression", "a", True),
        ("a by expression", "b", False),
        ("as it is", "b", True),
        ("its end differs", "none", False),
    ],
)
def test_names_that_two_issuers_share(field: str, one: str, other: str, shared: bool):
    entries = [
        {
            "issuer": {"url": f"https://{number}.example", "audiences": ["k"]},
            "claimMappings": {"username": {"claim": "sub", "prefix": f"{number}:"}, field: NAMED[mapping]},
        }
        for number, mapping in enumerate((one, other))
    ]
    found = [found for found in findings(json.dumps({**GOOD, "jwt": entries})) if found["rule"] == "shared-names"]
    assert [(entry["field"], "jwt[0]" in entry["text"]) for entry in found] == (
        [(f"jwt[1].claimMappings.{field}", True)] if shared else []
    )


def test_what_is_proposed_for_a_star_and_for_a_document_can_be_pasted():
    star = document(claimValidationRules=[{"claim": "repository", "requiredValue": "my-org/*"}])
    (found,) = [found for found in findings(star) if found["rule"] == "literal-star"]
    assert found["hint"] == "expression: claims.repository.startsWith('my-org/')"
    assert not [found for found in findings(rule(found["hint"].partition(": ")[2])) if found["level"] == "error"]
    (found,) = findings(document(issuer={"url": "https://i.example/dex/.well-known/openid-configuration/"}))
    assert found["hint"].startswith("url: https://i.example/dex, ")


def test_strict_minds_warnings_and_not_notes():
    assert check(rule("false"), "--strict")[0] == 1
    assert check(document(issuer={"egressSelectorType": "cluster"}), "--strict")[0] == 0


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (document(issuer={"certificateAuthority": "/etc/ca.crt"}), "looks like the path"),
        (document(issuer={"certificateAuthority": "ca.pem"}), "looks like the path"),
        (document(issuer={"certificateAuthority": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t"}), "base64 of a PEM"),
        (document(issuer={"certificateAuthority": "-----BEGIN CERTIFICATE----- MII"}), "line breaks"),
        (document(issuer={"discoveryURL": "https://issuer.example/"}), "the address of the document"),
        (document(issuer={"audiences": ["a", "b"]}), "MatchAny"),
        (document(mappings={"groups": {"expression": "claims.groups.map(g, g)"}}), "dyn("),
        (document(mappings={"username": {"claim": "sub"}}), 'prefix: ""'),
        (document(mappings={"username": {"expression": "claims.email"}}), "email_verified"),
        (rule("claims.hd"), "compare it"),
        (rule("user.username == 'x'"), "only user rules"),
        (document(issuer={"discoveryUrl": "https://x.example"}), "did you mean discoveryURL?"),
        (document(issuer={"claim": "x"}), "not here"),
        (IN_LINES + "  claimMapings: {}\n", "did you mean claimMappings?"),
        (document(mappings={"extra": [{"key": "a.example/b", "valueExpresion": "claims.sub"}]}), "valueExpression?"),
        (document(mappings={"extra": [{"key": "client", "valueExpression": "claims.sub"}]}), "example.com/name"),
        (document(issuer={"audiences": "kubernetes"}), "audiences: [kubernetes]"),
        (document(issuer={"audienceMatchPolicy": "Any"}), "audienceMatchPolicy: MatchAny"),
        (document(issuer={"audiences": [1]}), "in quotes: to YAML it is a number"),
        (document(mappings={"username": {"claim": True, "prefix": ""}}), "in quotes: to YAML, yes"),
        (rule("claims.hd = 'x'"), "claims.x == 'y'"),
        (rule("claims.hd='x'"), "claims.x == 'y'"),
        (rule("claims.hd.startswith('x')"), "startsWith"),
        ("kind: AuthenticationConfiguration\njwt:\n\t- issuer: {}\n", "a tab?"),
        ('jwt:\n- userValidationRules:\n  - expression: !user.username.startsWith("x")\n', '"!user'),
        (IN_LINES + "  userValidationRules:\n  - expression: !user.username\n", '"!user'),
        ("authn.yaml\n", "the name of a file"),
        (json.dumps(GOOD) + "\n", None),
        ("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n---\na: 1\n", "first document"),
        ("kind: AuthenticationConfiguration\napiVersion: v2\n", "v1 since 1.34"),
        ("kind: AuthenticationConfig\napiVersion: apiserver.config.k8s.io/v1\n", "kind: AuthenticationConfiguration"),
        ("", "the file is empty"),
        (document().encode("utf-16"), "save it as UTF-8"),
        ("# käse\n".encode("latin-1"), "save it as UTF-8"),
        (json.dumps({**GOOD, "jwt": [{"claimMappings": GOOD["jwt"][0]["claimMappings"]}]}), "issuer: {url: https://"),
        (
            json.dumps({**GOOD, "jwt": [{**GOOD["jwt"][0], "issuer": {"url": "https://a.example"}}]}),
            "audiences: [NAME]",
        ),
        (document(mappings={"username": {}}), "username: {claim: sub"),
        (IN_LINES + "\u00a0 userValidationRules: []\n", "beside userValidationRules is a character"),
        (IN_LINES.replace("{url", "{\u200burl"), "beside url is a character"),
        (IN_LINES.replace("{url", "{“url”"), "beside url is a character"),
        # where a field belongs, and what it is called in other places
        (document(audienceMatchPolicy="MatchAny"), "not here: jwt[].issuer.audienceMatchPolicy"),
        (document(issuer={"issuerURL": "https://x.example"}), "did you mean url?"),
        (document(issuer={"clientID": "x"}), "did you mean audiences?"),
        (document(issuer={"caBundle": "x"}), "did you mean certificateAuthority?"),
        (document(mappings={"usernameClaim": "x"}), "did you mean username?"),
        (document(mappings={"extra": [{"key": "a.example/b", "value": "claims.sub"}]}), "mean valueExpression?"),
        (document(claimValidationRules=[{"claim": "hd", "value": "x"}]), "did you mean requiredValue?"),
        (IN_LINES.replace("- issuer", "  issuer"), "each entry begins with a dash"),
        (document(mappings={"extra": {"a.example/b": "claims.sub"}}), "each entry begins with a dash"),
        (document(mappings={"groups": ["groups"]}), "it is an object: {claim: NAME"),
        (document(mappings={"username": "sub"}), "it is an object: {claim: NAME"),
        (document(claimValidationRules=[{"claim": "hd", "requiredValue": ["a", "b"]}]), "claims.x in ['a', 'b']"),
        (IN_LINES + "  claimValidationRules:\n  - expression: 'claims.hd == 'x''\n", "quotes inside of such quotes"),
        # words of other languages
        (rule("claims.hd == 'x' and has(claims.sub)"), "and is &&"),
        (rule("claims.hd == 'x' or has(claims.sub)"), "or is ||"),
        (rule("has(claims.hd) & has(claims.sub)"), "and is &&"),
        (rule("${claims.hd} == 'x'"), "no template"),
        (rule("claims.hd == \u201cx\u201d"), "text processor"),
        (rule("claims?.hd == 'x'"), "claims.?x"),
        (rule("if claims.hd then true"), "CONDITION ? A : B"),
        (rule("has(claims['hd'])"), "'a-b' in claims"),
        (rule("claims.sub.matches('(?=a)b')"), "no lookahead"),
        (rule("claims.cognito:username == 'x'"), "in brackets"),
        (rule("claims.custom-name == 'x'"), "in brackets"),
        (rule("len(claims.hd) == 3"), "size(x)"),
        (rule("claims.hd.toLowerCase() == 'x'"), "lowerAscii"),
        (rule("claims.groups.any(g, g == 'x')"), "exists(e, …)"),
        (rule("claims.exp > now()"), "no clock"),
        (rule("claim.hd == 'x'"), "a claim is claims.NAME"),
        (rule("claims.hd == x"), "a text stands in quotes"),
        (document(userValidationRules=[{"expression": "username != 'x'"}]), "a user rule knows user"),
        (document(userValidationRules=[{"expression": "claims.sub != 'x'"}]), "user rules have user"),
        (document(userValidationRules=[{"expression": "user.name != 'x'"}]), "user has username, uid"),
        (document(userValidationRules=[{"expression": "user.groups == 'x'"}]), "it is a list of strings"),
        (IN_LINES.replace("https://issuer.example", "{{ .Values.issuer }}"), "braces of a template"),
        ("{{- if .Values.jwt }}\n" + IN_LINES + "{{- end }}\n", "braces of a template"),
    ],
)
def test_a_fault_comes_with_what_was_probably_meant(text: str | bytes, hint: str | None):
    faults = [found for found in findings(text) if found["level"] == "error"]
    if hint is None:
        assert faults == []
    else:
        assert any(hint in (fault["hint"] or "") for fault in faults), faults


def test_no_field_is_guessed_from_letters_of_another_script():
    (fault, *_) = findings(IN_LINES.replace("{url", "{käse"))
    assert (fault["text"], fault["hint"]) == ('unknown field "jwt[0].issuer.käse"', None)


def test_nothing_is_proposed_for_a_function_that_nobody_knows():
    (fault,) = [found for found in findings(rule("claims.hd.frobnicate() == 'x'")) if found["level"] == "error"]
    assert fault["hint"] is None


def test_a_field_that_may_stand_in_many_places_is_said_to_be_elsewhere_and_no_more():
    (fault,) = findings(document(issuer={"expression": "x"}))
    assert fault["hint"] == "there is such a field, but not here"


def test_a_name_that_belongs_elsewhere_is_not_guessed():
    faults = [found for found in findings(json.dumps({**GOOD, "oops": 1})) if found["level"] == "error"]
    assert [(fault["text"], fault["hint"]) for fault in faults] == [('unknown field "oops"', None)]  # and not groups


@pytest.mark.parametrize(
    ("version", "text", "fault"),
    [
        ("1.29", document().replace("/v1", "/v1beta1"), "is registered for version"),
        ("1.30", json.dumps({**GOOD, "anonymous": {}}).replace("/v1", "/v1beta1"), 'unknown field "anonymous"'),
        (
            "1.33",
            document(issuer={"egressSelectorType": "cluster"}).replace("/v1", "/v1beta1"),
            'unknown field "jwt[0].issuer.egressSelectorType"',
        ),
        ("1.32", rule("isSemver('1.2.3')").replace("/v1", "/v1beta1"), "undeclared reference to 'isSemver'"),
    ],
)
def test_fields_and_functions_of_an_older_release(version: str, text: str, fault: str):
    assert any(fault in found["text"] for found in findings(text, "--kubernetes", version))
    assert not [found for found in findings(text) if found["level"] == "error"]


def test_what_is_no_configuration_is_not_printed():
    code, out = check('{"password": "s3cret"}')
    assert code == 1
    assert "s3cret" not in out
    assert "Object 'Kind' is missing in the file" in out


EVIL = '"\\u001b[31m\\n::error::x": 1\nkind: AuthenticationConfiguration\napiVersion: apiserver.config.k8s.io/v1\n'


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_no_output_lets_a_file_speak_for_itself(form: str):
    code, out = check(EVIL, "--output", form)
    assert code == 1
    assert "\x1b" not in out
    assert not [line for line in out.splitlines() if line.startswith("::error::")]


@pytest.mark.parametrize("text", ["", "\0", "a: [", "[" * 100_000, b"\xff\xfe", "{}", "- 1", "x: &a [*a]"])
def test_nonsense_is_a_fault_and_nothing_worse(text: str | bytes):
    code, out = check(text)
    assert code == 1
    assert out.endswith(": 1 fault\n")


def test_the_hooks_for_pre_commit_run_commands_that_exist():
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["entry"].split() for hook in hooks] == [["kubeauthn", "check"], ["kubeauthn", "test"]]
    assert {"check", "test"} <= set(COMMANDS)


@pytest.mark.parametrize("text", [IN_LINES, IN_LINES.replace('"oidc:"', '""').replace('""}, g', '"oidc:"}, g')])
def test_the_hint_about_system_names_can_be_pasted(text: str):
    (found,) = [found for found in findings(text) if found["rule"] == "system-names"]
    assert check(f"{text}  {found['hint']}\n") == (0, "<stdin>: valid, 1 issuer\n")


def test_every_rule_of_a_hint_is_documented():
    page = (ROOT / "docs" / "check.md").read_text()
    assert not [name for name in RULES if f"`{name}`" not in page]


def test_the_documented_json_is_what_is_printed():
    section = (ROOT / "docs" / "commands.md").read_text().partition("\n## check\n")[2].partition("\n## ")[0]
    shown = json.loads(section.partition("```json\n")[2].partition("```")[0])
    printed = json.loads(check(rule("false"), "--output", "json")[1])
    assert list(printed) == list(shown)
    assert list(printed["files"][0]) == list(shown["files"][0])
    assert list(printed["files"][0]["findings"][0]) == list(shown["files"][0]["findings"][0])


@pytest.mark.parametrize(
    "expression",
    [
        " || ".join(f"claims.a{number} == 'x'" for number in range(2000)),
        " && ".join(f"has(claims.a{number})" for number in range(2000)),
        "+".join(["claims.a"] * 200) + " == 'x'",
        "has(claims.a) ? true : " * 100 + "false",
        "!" * 101 + "true",
    ],
)
def test_long_expressions_are_judged_in_time(expression: str):
    assert len(findings(rule(expression))) <= MOST_NAMED


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)])
def test_colour_is_for_terminals_that_want_it(tmp_path: Path, variables: dict[str, str], coloured: bool):
    (tmp_path / "authn.json").write_text(rule("false"))
    (tmp_path / "claims.json").write_text("{}")
    suite = {"configuration": "authn.json", "cases": [{"name": "x", "claims": {}, "expect": {"refused": True}}]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    for words in (
        ["check", str(tmp_path / "authn.json")],
        ["explain", str(tmp_path / "authn.json"), "--claims", str(tmp_path / "claims.json")],
        ["test", str(tmp_path / "suite.json")],
    ):
        out = Tty()
        environ = {"TERM": "xterm", **variables}
        assert main(words, World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ=environ)) in (0, 1)
        assert ("\x1b[" in out.getvalue()) is coloured


def test_sarif_names_every_rule_it_uses():
    text = document(issuer={"certificateAuthority": "x"}, claimValidationRules=[{"expression": "false"}])
    run = json.loads(check(text, "--output", "sarif")[1])["runs"][0]
    described = {entry["id"] for entry in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} == described == {"validation", "never-true"}
    assert {result["level"] for result in run["results"]} == {"error", "warning"}


def test_faults_of_recorded_configurations_are_those_of_kube_apiserver():
    """And whatever a file of them says, a hint that every token is refused is true."""
    seen = 0
    for line in RECORDED.read_text().splitlines():
        case = json.loads(line)
        wanted = case["expect"].get("configErrors") or []
        if case.get("ours") or case.get("disallowedIssuers") or "volatile" in json.dumps(case):
            continue
        found = findings(case["config"].encode("utf-8", "surrogatepass"))
        if wanted:
            faults = sorted(entry["text"] for entry in found if entry["level"] == "error")
            assert faults == sorted(wanted), case["name"]
            seen += 1
        if case["expect"].get("authenticated"):
            assert not {entry["rule"] for entry in found} & {"never-true", "useless-type", "unrecognised-list"}
    assert seen > 50


def test_a_pattern_says_what_to_install_where_its_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "re2", None)
    (tmp_path / "authn.json").write_text(rule("claims.sub.matches('never compiled before')"))
    (tmp_path / "claims.json").write_text("{}")
    suite = {"configuration": "authn.json", "cases": [{"name": "x", "claims": {}, "expect": {"refused": True}}]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    for words in (
        ["check", str(tmp_path / "authn.json")],
        ["explain", str(tmp_path / "authn.json"), "--claims", str(tmp_path / "claims.json")],
        ["test", str(tmp_path / "suite.json")],
    ):
        err = io.StringIO()
        assert main(words, World(stdin=io.StringIO(), stdout=io.StringIO(), stderr=err, environ={})) == 4
        assert err.getvalue() == "error: google-re2 is not installed: pip install 'kubeauthn[cel]'\n"
