"""Headers and payloads as JSON: Go's decoder is the measure."""

from __future__ import annotations

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from kubeauthn._core.authentication.claims import read_claims
from kubeauthn._core.jose.exact_json import decode_exactly
from kubeauthn._core.jose.header import BadHeader, read_header
from kubeauthn.cel.kubernetes import Claims
from kubeauthn.cel.large_numbers import TooLarge

TEXTS = [
    "{}", "[]", "null", "true", "false", "0", "-0", "1.5", "-1e3", "1E+2", '"a"', '"\\u00e4\\n\\"\\\\\\/"', "[1,2,3]",
    '{"a":[{"b":{"c":[]}}],"d":"e"}', ' { "a" : [ 1 , { } , [ ] ] } ', "[[[]]]", '{"a":1,"a":2}', '"\\ud83d\\udc51"',
]  # fmt: skip
BROKEN = [
    "", " ", "{", "[", "}", "]", "[1,]", "{,}", '{"a"}', '{"a":}', '{"a":1,}', "{a:1}", "[1 2]", "01", "1.", ".5", "+1",
    "-", "1e", "NaN", "Infinity", "nul", "tru", '"', '"\\x"', '"\n"', "1 2", "{}{}", "\ufeff{}", "[1}", '{"a":1]',
    "'a'",
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_the_exact_decoder_agrees_with_the_fast_one(text):
    assert decode_exactly(text) == json.loads(text, parse_int=float)


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_no_json_is_refused_by_both(text):
    with pytest.raises(ValueError, match=r"\w"):
        decode_exactly(text)
    with pytest.raises(ValueError, match=r"\w"):
        read_claims(text.encode())


def test_every_number_is_a_double():
    assert read_claims(b'{"a": 1, "b": [2], "c": 9007199254740993}') == {"a": 1.0, "b": [2.0], "c": 9007199254740992.0}
    assert type(read_claims(b'{"a": 1}')["a"]) is float


@pytest.mark.parametrize("number", ["1e400", "-1e999", "1" * 400, "9" * 309])
def test_a_number_too_large_spoils_only_its_claim(number):
    claims = read_claims(f'{{"a": "fine", "b": [{{"c": {number}}}]}}'.encode())
    assert isinstance(claims, Claims)
    assert claims["a"] == "fine"
    assert list(claims.faults) == ["b"]
    assert type(decode_exactly(number)) is TooLarge


def test_half_a_surrogate_pair_is_a_replacement_character():
    assert read_claims(rb'{"a": "\ud800x", "\udc00": "\ud83d\udc51"}') == {"a": "\ufffdx", "\ufffd": "\U0001f451"}


def test_each_byte_that_is_no_utf8_is_a_replacement_character():
    assert read_claims(b'{"a": "\xff\xe2\x82"}') == {"a": "\ufffd\ufffd\ufffd"}


def test_the_last_of_duplicate_claims_wins():
    assert read_claims(b'{"a": 1, "a": 2}') == {"a": 2.0}
    assert read_claims(b'{"a": 1, "a": "\\ud800"}') == {"a": "\ufffd"}


def test_depth_is_bounded_where_go_bounds_it():
    assert read_claims(b'{"a":' + b"[" * 9_999 + b"]" * 9_999 + b"}")["a"]
    for depth in (10_000, 100_000):
        with pytest.raises(ValueError, match="depth"):
            read_claims(b'{"a":' + b"[" * depth + b"]" * depth + b"}")


def test_depth_is_bounded_whatever_the_interpreter_would_bear():
    """While an expression with many brackets is compiled, for instance, it bears more."""

    def read(payload: bytes) -> str:
        try:
            return str(type(read_claims(payload)["a"]))
        except ValueError as error:
            return str(error)

    ordinary, stack = sys.getrecursionlimit(), threading.stack_size(64 << 20)
    sys.setrecursionlimit(100_000)
    try:
        with ThreadPoolExecutor(1) as roomy:
            deepest = roomy.submit(read, b'{"a":' + b"[" * 9_999 + b"]" * 9_999 + b"}").result()
            deeper = roomy.submit(read, b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}").result()
    finally:
        sys.setrecursionlimit(ordinary)
        threading.stack_size(stack)
    assert (deepest, deeper) == ("<class 'list'>", "exceeded max depth")


def seconds_for(payload: bytes) -> float:
    def once() -> float:
        started = time.process_time()
        read_claims(payload)
        return time.process_time() - started

    return min(once() for _ in range(7))


@pytest.mark.parametrize("odd", [b'"\\ud800"', b'"\xff"', b"1e999", b"[" * 1100 + b"]" * 1100])
def test_what_the_fast_decoder_cannot_take_does_not_cost_much_more(odd):
    """Anybody may send it, to any issuer of the configuration or none."""
    numbers = b",".join([b"0"] * 40_000)
    assert seconds_for(b'{"a":%s,"b":[%s]}' % (odd, numbers)) < 15 * seconds_for(b'{"a":0,"b":[%s]}' % numbers)


def test_a_payload_that_is_no_object():
    for payload in (b"5", b"[]", b"null", b'"a"', b'"\\ud800"'):
        with pytest.raises(ValueError, match=r"\w"):
            read_claims(payload)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        ('["RS256"]', "json: cannot unmarshal array into Go value of type jose.rawHeader"),
        ("alg=RS256", "invalid character 'a' looking for beginning of value"),
        ('{"alg":"RS256"}x', "invalid character 'x' after top-level value"),
        ('{"alg":"RS256",}', "invalid character '}' looking for beginning of object key string"),
        ('\ufeff{"alg":"RS256"}', "invalid character 'ï' looking for beginning of value"),
        ('{"alg":"RS256"', "unexpected end of JSON input"),
        ('{"alg" "RS256"}', "invalid character '\"' after object key"),
        ('{"alg":"RS256" "kid":1}', "invalid character '\"' after object key:value pair"),
        ('{"crit":["a" "b"]}', "invalid character '\"' after array element"),
        ('{"alg":"RS256","alg":"none"}', "json: duplicate key 'alg' in object"),
        ('{"z":1,"a":{"b":1,"b":2}}', "failed to unmarshal value: json: duplicate key 'b' in object: \"{"),
        ('{"a":{"b":1,"b":2},"a":1}', "json: duplicate key 'a' in object"),
        ('{"jwk":[{"a":1,"a":2}]}', "JWK: json: cannot unmarshal array into Go value of type jose.rawJSONWebKey"),
        ('{"jwk":{"kty":"EC","kty":"EC"}}', "failed to unmarshal JWK: json: duplicate key 'kty' in object"),
        ('{"alg":5}', 'failed to unmarshal algorithm: json: cannot unmarshal number into Go value of type string: "5"'),
        ('{"kid":[]}', 'failed to unmarshal key ID: json: cannot unmarshal array into Go value of type string: "[]"'),
        ('{"jwk":{"kty":"oct","k":"AQ"}}', "go-jose/go-jose: invalid embedded jwk, must be public key"),
        ('{"jwk":{"kty":"RSA","d":"AQ"}}', "go-jose/go-jose: invalid RSA private key, missing N value(s)"),
        ('{"jwk":{"kty":"RSA","n":"","e":""}}', "go-jose/go-jose: invalid embedded jwk, must be public key"),
        ('{"jwk":{"kty":"EC","crv":"P-256","d":"AQ"}}', "invalid EC private key, missing x/y/d values"),
        ('{"jwk":{"kty":"RSA","x5u":"https://a"}}', "json: cannot unmarshal string into Go value of type url.URL"),
        ('{"jwk":{"kty":"RSA","x5t":"AA"}}', "go-jose/go-jose: invalid JWK, x5t header is of incorrect size"),
        ('{"jwk":{"kty":"RSA","x5t":"!"}}', "go-jose/go-jose: invalid JWK, x5t header has invalid encoding"),
        ('{"jwk":{"kty":"RSA","x5c":"x"}}', "JWK: json: cannot unmarshal string into Go value of type []string"),
        ('{"jwk":{"kty":"RSA","n":"é"}}', "illegal base64 data at input byte 0"),
        ('{"x5c":"AAAA"}', "failed to unmarshal x5c header"),
        ("[" * 100_000, "exceeded max depth"),
        ('{"a":NaN}', "looking for beginning of value"),
        ('{"alg":1e999}', "failed to unmarshal algorithm: json: cannot unmarshal number"),
        ('{"kid":' + "[" * 900 + "]" * 900 + "}", "failed to unmarshal key ID: json: cannot unmarshal array"),
        ('{"x5c":[5]}', "failed to unmarshal x5c header"),
        ('{"jwk":5}', "failed to unmarshal JWK"),
    ],
)
def test_a_broken_header_is_named_as_go_names_it(raw, says):
    with pytest.raises(BadHeader) as refused:
        read_header(raw.encode())
    assert says in str(refused.value)


def test_what_a_header_says():
    header = read_header(b'{"alg":"RS256","kid":"k","jku":"https://evil.example","x5u":"u","crit":[]}')
    assert header == ("RS256", "k", True, ("jku", "x5u"))
    assert read_header(b"") == read_header(b"null") == ("", "", False, ())
