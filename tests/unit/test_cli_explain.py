"""`kubeauthn explain`: any token at all, and never more of it than was asked for."""

from __future__ import annotations

import io
import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from kubeauthn.cli.claims_text import json_fault
from kubeauthn.cli.main import main
from kubeauthn.cli.world import World

ROOT = Path(__file__).parents[1] / "recorded"
NOW = 1_900_000_000
CONFIG = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: https://issuer.example, audiences: [kubernetes, other], audienceMatchPolicy: MatchAny}
  claimValidationRules:
  - {expression: 'claims.?level.orValue(0) > 1', message: the level is too low}
  claimMappings:
    username: {claim: sub, prefix: "oidc:"}
    extra: [{key: example.com/a, valueExpression: 'claims.?a.orValue("")'}]
"""


def explain(folder: Path, payload: bytes, *options: str, config: str = CONFIG) -> tuple[int, str, str]:
    (folder / "authn.yaml").write_text(config)
    (folder / "claims.json").write_bytes(payload)
    out, err = io.StringIO(), io.StringIO()
    words = [
        "explain",
        str(folder / "authn.yaml"),
        "--claims",
        str(folder / "claims.json"),
        "--now",
        str(NOW),
        *options,
    ]
    code = main(words, World(stdin=io.StringIO(), stdout=out, stderr=err, environ={}))
    return code, out.getvalue(), err.getvalue()


def as_json(folder: Path, payload: bytes, *options: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(explain(folder, payload, "--output", "json", *options)[1])
    return document


def test_claims_are_taken_as_verified_and_it_says_so(tmp_path: Path):
    document = as_json(tmp_path, b'{"sub": "jane", "level": 2, "a": "b"}')
    assert document["version"] == 1
    assert document["verdict"] == "authenticated"
    assert document["verified"] == "taken"
    assert document["assumed"] == ["iss", "aud", "exp"]
    assert document["user"]["extra"] == {"example.com/a": ["b"]}
    signature = next(step for step in document["steps"] if step["name"] == "signature")
    assert signature["outcome"] == "skipped"
    value = next(step["cel"] for step in document["steps"] if step["name"] == "extra example.com/a")
    assert value["value"] == {"string": "b"}


def test_the_documented_json_is_what_is_printed(tmp_path: Path):
    page = (ROOT.parents[1] / "docs" / "commands.md").read_text()
    section = page.partition("\n## explain\n")[2].partition("\n## ")[0]
    shown = json.loads(section.partition("```json\n")[2].partition("```")[0])
    printed = as_json(tmp_path, b'{"sub": "jane", "level": 2}')
    assert list(printed) == list(shown)
    assert set(printed["steps"][0]) == set(shown["steps"][0])


def test_what_is_given_is_judged(tmp_path: Path):
    for claims, code, reason in (
        (b'{"sub": "jane", "level": 2, "exp": 1900000000}', 1, "token is expired"),
        (b'{"sub": "jane", "level": 2, "aud": "else"}', 1, "expected audience"),
        (b'{"sub": "jane", "level": 2, "iss": "https://else.example"}', 3, "no issuer"),
        (b'{"sub": "jane", "level": 1}', 1, "the level is too low"),
        (b'{"sub": "", "level": 2}', 1, "empty username"),
    ):
        got, out, err = explain(tmp_path, claims)
        assert (got, err) == (code, "")
        assert reason in out


def test_steps_after_the_first_refusal_are_shown(tmp_path: Path):
    steps = as_json(tmp_path, b'{"level": 0, "exp": 1}')["steps"]
    assert [step["name"] for step in steps if step["outcome"] == "refused"] == ["times", "claim rule", "username"]


def test_the_text_of_the_claims_stays_as_it_is(tmp_path: Path):
    """The last of two names counts, and a number that no double holds spoils only its own claim."""
    payload = b' {"sub": "a", "sub": "jane", "level": 2, "big": 1e999}'
    assert as_json(tmp_path, payload)["user"]["username"] == "oidc:jane"


def test_claims_are_shown_on_request_only(tmp_path: Path):
    payload = b'{"sub": "jane", "level": 2, "secret_claim": "s3cret"}'
    assert "s3cret" not in explain(tmp_path, payload)[1]
    assert "s3cret" not in explain(tmp_path, payload, "--output", "json")[1]
    assert '  secret_claim  "s3cret"' in explain(tmp_path, payload, "--show-claims")[1]
    assert as_json(tmp_path, payload, "--show-claims")["claims"]["secret_claim"] == "s3cret"


def test_what_is_absent_is_told_from_a_text(tmp_path: Path):
    text = explain(tmp_path, b'{"sub": "jane", "a": "<absent>"}', "--show-claims")[1]
    assert "claims.level: absent\n" in text
    assert 'claims.a: "<absent>"\n' in text


def test_several_issuers_leave_none_to_assume(tmp_path: Path):
    two = CONFIG + CONFIG.partition("jwt:\n")[2].replace("issuer.example", "second.example")
    assert explain(tmp_path, b'{"sub": "jane", "level": 2}', config=two)[0] == 3
    assert explain(tmp_path, b'{"iss": "https://second.example", "sub": "jane", "level": 2}', config=two)[0] == 0


@pytest.mark.parametrize(
    ("payload", "said", "hint"),
    [
        (b" \n", "the claims are empty", "a JSON object such as"),
        (b"[]", "the claims have to be a JSON object", "such as {"),
        (b"1", "the claims have to be a JSON object", "such as {"),
        (b'"x"', "the claims have to be a JSON object", "such as {"),
        (b'{"a": 1,\n "b" 2}', "the claims are no JSON: expecting ':' delimiter, line 2 column 6", ""),
        (b"sub: jane", "the claims are no JSON: expecting value, line 1 column 1", "an object such as {"),
        (b"eyJhbGciOiJub25lIn0.e30.", "the claims are no JSON", "it looks like a token"),
        (b"\xff\xfe{\x00}\x00", "the claims are not UTF-8 text", "UTF-16 perhaps"),
        (b'\xef\xbb\xbf{"sub": "jane"}', "the claims are no JSON: a byte order mark", "UTF-8 without it"),
        (b'{"a": NaN}', "the claims are no JSON object that can be read", "NaN or Infinity"),
        (b"[" * 100_000, "the claims are nested too deeply", ""),
    ],
    ids=range(11),
)
def test_claims_that_are_none(tmp_path: Path, payload: bytes, said: str, hint: str):
    code, out, err = explain(tmp_path, payload)
    assert (code, out) == (4, "")
    assert f"claims.json: {said}" in err
    assert hint in err.partition("\nhint: ")[2]
    assert ("hint:" in err) is bool(hint)


def test_a_byte_order_mark_is_said_of_any_json():
    said = "a byte order mark stands before it: save the file as UTF-8 without it"
    assert json_fault('\ufeff{"sub": "jane"}') == said


def test_empty_claims_are_claims(tmp_path: Path):
    assert explain(tmp_path, b" {} ")[0] == 1


def part(document: object) -> str:
    return urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


TOKENS = [
    "",
    "opaque",
    "a.b.c",
    "a.b.c.d",
    f"{part({'alg': 'none'})}.{part({'iss': 'https://issuer.example'})}.",
    f"{part({'alg': 'HS256'})}.{part({'iss': 'https://issuer.example', 'sub': 's3cret'})}.c2VjcmV0",
    f"{part({'alg': 'ES256', 'kid': chr(27)})}.{part({'iss': 'https://issuer.example', 'exp': 'x'})}.c2VjcmV0",
    f"{part([])}.{part({'iss': 'https://issuer.example', 'aud': {}, 'exp': 1e300})}.c2VjcmV0",
    "x" * 200_000,
]


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("token", TOKENS)
def test_any_token_at_all(tmp_path: Path, token: str, form: str):
    (tmp_path / "authn.yaml").write_text(CONFIG)
    (tmp_path / "token").write_text(token + "\n")
    out, err = io.StringIO(), io.StringIO()
    words = ["explain", str(tmp_path / "authn.yaml"), "--token-file", str(tmp_path / "token")]
    words += ["--jwks", str(ROOT / "jwks.json"), "--output", form]
    code = main(words, World(stdin=io.StringIO(), stdout=out, stderr=err, environ={}))
    assert code in (1, 3)
    assert err.getvalue() == ""
    assert "\x1b" not in out.getvalue()
    assert "c2VjcmV0" not in out.getvalue()
    assert len(token) < 10 or token not in out.getvalue()


def test_keys_for_each_issuer(tmp_path: Path):
    (tmp_path / "authn.yaml").write_text(CONFIG)
    (tmp_path / "token").write_text(TOKENS[5])
    for document, code in (
        ({"https://issuer.example": {"keys": []}}, 1),
        ({"https://else.example": {"keys": []}}, 4),
        ({"https://issuer.example": {"keys": 1}}, 4),
        ([], 4),
    ):
        (tmp_path / "keys").write_text(json.dumps(document))
        words = ["explain", str(tmp_path / "authn.yaml"), "--token-file", str(tmp_path / "token")]
        words += ["--jwks", str(tmp_path / "keys")]
        world = World(stdin=io.StringIO(), stdout=io.StringIO(), stderr=io.StringIO(), environ={})
        assert main(words, world) == code


def recorded(name: str) -> dict[str, Any]:
    lines = (ROOT / "authn.jsonl").read_text().splitlines()
    return next(case for case in map(json.loads, lines) if case["name"] == name)


@pytest.mark.parametrize("name", ["groups-expr/split", "cvr/expr-err-then-false"])
def test_recorded_tokens(tmp_path: Path, name: str):
    """The verdict is that of the case, through the whole command."""
    case = recorded(name)
    (tmp_path / "authn.yaml").write_text(case["config"])
    (tmp_path / "token").write_text(case["token"])
    out = io.StringIO()
    words = ["explain", str(tmp_path / "authn.yaml"), "--token-file", str(tmp_path / "token")]
    words += ["--jwks", str(ROOT / "jwks.json"), "--output", "json"]
    if "now" in case:
        words += ["--now", str(case["now"])]
    code = main(words, World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={}))
    expected = case.get("ours") or case["expect"]
    assert code == (0 if expected["authenticated"] else 1)
    if expected["authenticated"]:
        assert json.loads(out.getvalue())["user"]["username"] == expected["user"]["username"]


NOT_AS_RECORDED = {
    "tamper/trailnl",  # a token file may end with a new line
    "decode/multi-doc",
    "decode/multi-doc-second-bad",
}


def test_the_command_agrees_with_every_recorded_verdict(tmp_path: Path):
    seen = 0
    for line in (ROOT / "authn.jsonl").read_text().splitlines():
        case = json.loads(line)
        expected = case.get("ours") or case["expect"]
        if not case.get("token") or case.get("http") or case.get("jwks", "default") != "default":
            continue
        if case["expect"].get("configErrors") or case["expect"].get("strictDecodeError") or "jwksByIssuer" in case:
            continue
        if expected.get("authenticated") is None or "volatile" in line or case["name"] in NOT_AS_RECORDED:
            continue
        (tmp_path / "authn.yaml").write_bytes(case["config"].encode("utf-8", "surrogatepass"))
        (tmp_path / "token").write_bytes(case["token"].encode("utf-8", "surrogatepass"))
        words = ["explain", str(tmp_path / "authn.yaml"), "--token-file", str(tmp_path / "token")]
        words += ["--jwks", str(ROOT / "jwks.json"), *(("--now", str(case["now"])) if case.get("now") else ())]
        out = io.StringIO()
        code = main(words, World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={}))
        assert (code == 0) is expected["authenticated"], case["name"]
        assert code in (0, 1, 3), case["name"]
        seen += 1
    assert seen > 400


@pytest.mark.parametrize("before", ["Bearer ", "bearer  ", "Authorization: Bearer ", "authorization:bearer "])
def test_a_token_may_stand_as_it_does_in_a_header(tmp_path: Path, before: str):
    case = recorded("groups-expr/split")
    (tmp_path / "authn.yaml").write_text(case["config"])
    words = ["explain", str(tmp_path / "authn.yaml"), "--jwks", str(ROOT / "jwks.json"), "--output", "json"]
    words += ["--token-file", str(tmp_path / "token"), *(("--now", str(case["now"])) if "now" in case else ())]
    steps = []
    for text in (case["token"], f"{before}{case['token']}\r\n"):
        (tmp_path / "token").write_text(text)
        out = io.StringIO()
        main(words, World(stdin=io.StringIO(), stdout=out, stderr=io.StringIO(), environ={}))
        steps.append([(step["name"], step["outcome"]) for step in json.loads(out.getvalue())["steps"]])
    assert steps[0] == steps[1]


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("-----BEGIN PUBLIC KEY-----", "it is PEM: "),
        ("<!DOCTYPE html>", "it is a page or XML: "),
        ("eyJhbGciOiJub25lIn0.e30.", "it looks like a token: "),
        ("", "a key set is what the issuer serves at the jwks_uri"),
        ("7", "a key set is what the issuer serves at the jwks_uri"),
        ("{}", "a key set is what the issuer serves at the jwks_uri"),
        ("[]", "a list of keys is put into an object: "),
        ('{"kty": "RSA"}', "it is one key: "),
        ('{"jwks_uri": "https://a"}', "it is the issuer's discovery document: "),
        ('{"https://a": {}}', "it has key sets of other issuers: here they are https://issuer.example"),
    ],
    ids=range(10),
)
def test_what_is_given_for_keys_is_told(tmp_path: Path, content: str, hint: str):
    (tmp_path / "authn.yaml").write_text(CONFIG)
    (tmp_path / "token").write_text(TOKENS[5])
    (tmp_path / "keys").write_text(content)
    words = ["explain", str(tmp_path / "authn.yaml"), "--token-file", str(tmp_path / "token")]
    err = io.StringIO()
    world = World(stdin=io.StringIO(), stdout=io.StringIO(), stderr=err, environ={})
    assert main([*words, "--jwks", str(tmp_path / "keys")], world) == 4
    assert f"\nhint: {hint}" in err.getvalue()
