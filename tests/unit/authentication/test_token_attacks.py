"""Tokens that want to be taken for what they are not: each is refused, with a reason, at once."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import time
import tracemalloc
from datetime import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from kubeauthn import errors
from kubeauthn._core.jose.limits import TOKEN_CHARACTERS
from kubeauthn.server.cache import CachedAuthenticator
from kubeauthn.server.decisions import AuthenticatorDecider
from kubeauthn.testing._signing import SigningKey

from .conftest import part


def refused(authenticator, token, kind=errors.TokenError):
    started = time.perf_counter()
    with pytest.raises(kind) as caught:
        authenticator.authenticate(token)
    assert time.perf_counter() - started < 5
    return str(caught.value)


@pytest.fixture
def authenticator(bench):
    return bench.authenticator()


def test_the_bench_itself(authenticator, bench):
    assert authenticator.authenticate(bench.token()).username == "jane"
    assert authenticator.authenticate(bench.token(key=bench.ec_key)).username == "jane"


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "", "HS256", "HS384", "HS512", "ES256K", "EdDSA", "RS1", "rs256", "RSA-OAEP", "dir"]
)
def test_algorithms_that_are_not_allowed(authenticator, bench, alg):
    signed = f"{part({'alg': alg, 'kid': 'k1'})}.{part(bench.claims())}"
    for signature in (b"", b"x" * 32, bench.key._signature(signed.encode())):
        assert "unsupported algorithm" in refused(authenticator, f"{signed}.{part(signature)}", errors.SignatureRefused)


@pytest.mark.parametrize("encoding", ["PEM", "DER", "jwk"])
def test_the_public_key_is_no_secret_to_sign_with(authenticator, bench, encoding):
    public = bench.key.private.public_key()
    secret = (
        json.dumps(bench.key.jwk()).encode()
        if encoding == "jwk"
        else public.public_bytes(
            getattr(serialization.Encoding, encoding), serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    signed = f"{part({'alg': 'HS256', 'kid': 'k1'})}.{part(bench.claims())}"
    signature = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
    refused(authenticator, f"{signed}.{part(signature)}", errors.SignatureRefused)


def test_no_signature(authenticator, bench):
    signed = bench.token().rpartition(".")[0]
    refused(authenticator, f"{signed}.", errors.SignatureRefused)


def test_a_changed_payload(authenticator, bench):
    header, _, signature = bench.token().split(".")
    refused(authenticator, f"{header}.{part(bench.claims(username='root'))}.{signature}", errors.SignatureRefused)
    # also for a header that has been seen before
    authenticator.authenticate(bench.token())
    refused(authenticator, f"{header}.{part(bench.claims(username='root'))}.{signature}", errors.SignatureRefused)


def test_the_signature_of_another_key_and_a_wrong_curve(authenticator, bench):
    refused(authenticator, bench.token(key=SigningKey.new("k1", "RS256")), errors.SignatureRefused)
    refused(authenticator, bench.token(key=SigningKey.new("e1", "ES384")), errors.SignatureRefused)
    refused(authenticator, bench.token(headers={"alg": "ES384"}, key=bench.ec_key), errors.SignatureRefused)
    refused(authenticator, bench.token(headers={"alg": "PS256"}), errors.SignatureRefused)


def test_a_weak_key_of_the_issuer_signs_nothing(bench):
    from kubeauthn.server import Authenticator

    weak = SigningKey("weak", "RS256", rsa.generate_private_key(public_exponent=65537, key_size=1024))  # noqa: S505
    keys = {bench.url: {"keys": [bench.key.jwk(), weak.jwk()]}}
    authenticator = Authenticator(bench.authenticator().configuration, keys=keys, clock=lambda: bench.now)
    refused(authenticator, bench.token(key=weak), errors.SignatureRefused)
    assert authenticator.authenticate(bench.token()).username == "jane", "the other key still serves"


@pytest.mark.parametrize(
    "kid", ["../../../../etc/passwd", "' OR '1'='1", "k1\0", "K1", "k" * 10_000, "${jndi:ldap://x}"]
)
def test_key_ids_that_are_more_than_a_name(authenticator, bench, kid):
    refused(authenticator, bench.token(headers={"kid": kid}), errors.SignatureRefused)


def certificate_of(key):
    """Its own, signed by itself, as an attacker would bring it along."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mine")])
    builder = x509.CertificateBuilder(name, name, key.private.public_key(), 1)
    builder = builder.not_valid_before(datetime(2020, 1, 1)).not_valid_after(datetime(2040, 1, 1))
    return builder.sign(key.private, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@pytest.mark.parametrize("member", ["jku", "x5u", "x5c", "jwk"])
def test_a_token_cannot_bring_its_own_key(authenticator, bench, member):
    mine = SigningKey.new("mine", "RS256")
    chain = [base64.b64encode(certificate_of(mine)).decode()]
    brought = {"jku": "https://evil.example/keys", "x5u": "https://evil.example/c", "x5c": chain, "jwk": mine.jwk()}
    headers = {member: brought[member]}
    refused(authenticator, bench.token(headers={**headers, "kid": "k1"}, key=mine), errors.SignatureRefused)
    refused(authenticator, bench.token(headers=headers, key=mine), errors.SignatureRefused)
    assert authenticator.authenticate(bench.token(headers=headers)).username == "jane", "it is ignored"


@pytest.mark.parametrize("critical", [[], ["exp"], ["b64"], "exp", None])
def test_no_critical_extension_is_understood(authenticator, bench, critical):
    refused(authenticator, bench.token(headers={"crit": critical, "b64": True}), errors.SignatureRefused)


def test_a_payload_that_says_it_is_not_encoded(authenticator, bench):
    """RFC 7797: it would be signed as it is, and read otherwise by whoever knows of it."""
    refused(authenticator, bench.token(headers={"b64": False}), errors.SignatureRefused)
    assert authenticator.authenticate(bench.token(headers={"b64": True})).username == "jane"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 400])
def test_a_header_with_a_number_too_large(authenticator, bench, number):
    signed = f'{part(f"""{{"alg": "RS256", "kid": "k1", "x": {{"y": [{number}]}}}}""".encode())}.{part(bench.claims())}'
    token = f"{signed}.{part(bench.key._signature(signed.encode()))}"
    assert "cannot unmarshal number" in refused(authenticator, token, errors.MalformedToken)


@pytest.mark.parametrize(
    "members",
    [
        f'"x": {"[" * 20_000}{"]" * 20_000}',
        f'"x": {"[" * 30_000}',
        f'"y": {{"a": 1, "a": 2}}, "x": {"[" * 20_000}{"]" * 20_000}',
        f'"x": {"[" * 20_000}{"]" * 20_000}, "x": 1',
    ],
    ids=["deep", "deep and not closed", "a name twice, and deep behind it", "deep, and its name twice"],
)
def test_a_header_that_is_nested_deeply(authenticator, bench, members):
    """How deep it may be hangs on the interpreter; there is an answer in any case."""
    header = f'{{"alg": "RS256", "kid": "k1", {members}}}'
    token = f"{part(header)}.{part(bench.claims())}.{part(b'x')}"
    refused(authenticator, token)
    assert authenticator.explain(token).verdict == "refused"


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ('"4102444800"', errors.MalformedToken),
        ("true", errors.MalformedToken),
        ("[4102444800]", errors.MalformedToken),
        ("1e999", errors.MalformedToken),
        ("null", errors.MalformedToken),
        ("-1", errors.TokenExpired),
        ("-1e300", errors.TokenExpired),
        ("1e300", errors.TokenExpired),
        ("9223372036854775808", errors.TokenExpired),
        ("1e-300", errors.TokenExpired),
        ("-0", errors.TokenExpired),
    ],
)
def test_ends_that_are_no_times(authenticator, bench, written, kind):
    """What kube-apiserver says too: times past the end of time wrap around to long ago."""
    payload = f'{json.dumps(bench.claims(exp=...))[:-1]}, "exp": {written}}}'
    refused(authenticator, bench.raw_token(payload), kind)


def test_an_end_between_two_seconds(authenticator, bench):
    payload = json.dumps(bench.claims(exp=...))[:-1]
    assert authenticator.authenticate(bench.raw_token(f'{payload}, "exp": {bench.now + 1}.9}}')).username == "jane"
    refused(authenticator, bench.raw_token(f'{payload}, "exp": {bench.now}.9}}'), errors.TokenExpired)


def test_other_serializations(authenticator, bench):
    header, payload, signature = bench.token().split(".")
    one = {"protected": header, "signature": signature}
    for form in ({"payload": payload, **one}, {"payload": payload, "signatures": [one, one]}):
        refused(authenticator, json.dumps(form), errors.NotMine)
    # whatever begins as the other form is of the other form, three parts or not
    for brace in ("{", " {"):
        assert refused(authenticator, brace + bench.token(), errors.NotMine) == "token is not compact JWT"
    # a JWE has five parts, and four is nothing
    for dots in (".x", ".x.y", "."):
        refused(authenticator, bench.token() + dots, errors.NotMine)


def test_a_token_in_a_token(authenticator, bench):
    refused(authenticator, bench.raw_token(bench.token().encode()), errors.NotMine)
    refused(authenticator, bench.raw_token(json.dumps(bench.token()).encode()), errors.NotMine)
    # whose header says so does not get it opened either
    signed = f"{part({'alg': 'RS256', 'kid': 'k1', 'cty': 'JWT'})}.{part(bench.token().encode())}"
    refused(authenticator, f"{signed}.{part(bench.key._signature(signed.encode()))}", errors.NotMine)


def test_text_around_a_token(authenticator, bench):
    token = bench.token()
    for text in (
        f" {token}",
        f"{token}\n",
        f"\ufeff{token}",
        f"{token}=",
        f"{token}\0",
        token.replace(".", ". "),
        f'"{token}"',
    ):
        refused(authenticator, text, errors.KubeauthnError)


def test_of_two_parts_that_are_wrong_the_first_is_named(authenticator, bench):
    reason = refused(authenticator, f'"{bench.token()}"', errors.MalformedToken)
    assert reason.endswith("malformed jwt: illegal base64 data at input byte 0")


def test_one_token_has_one_text(authenticator, bench):
    """The bits that a last character does not need may not be changed: revoked tokens would have many spellings."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    signed, _, signature = bench.token().rpartition(".")
    assert len(signature) % 4 == 2
    accepted = []
    for last in alphabet:
        try:
            authenticator.authenticate(f"{signed}.{signature[:-1]}{last}")
            accepted.append(last)
        except errors.TokenError:
            continue
    assert accepted == [signature[-1]]
    standard = base64.b64encode(base64.urlsafe_b64decode(signature + "==")).decode()
    refused(authenticator, f"{signed}.{standard}")


def test_a_payload_with_a_byte_order_mark(authenticator, bench):
    refused(authenticator, bench.raw_token(b"\xef\xbb\xbf" + json.dumps(bench.claims()).encode()), errors.NotMine)


def test_duplicate_claims_the_last_one_counts_everywhere(authenticator, bench):
    good = json.dumps(bench.claims())
    assert authenticator.authenticate(bench.raw_token(good[:-1] + ', "username": "joe"}')).username == "joe"
    refused(authenticator, bench.raw_token(good[:-1] + ', "exp": 1}'), errors.TokenExpired)
    refused(authenticator, bench.raw_token(good[:-1] + ', "iss": "https://other.example"}'), errors.NotMine)
    other = json.dumps(bench.claims(iss="https://other.example"))
    assert authenticator.authenticate(bench.raw_token(other[:-1] + f', "iss": "{bench.url}"}}')).username == "jane"


def test_claim_names_have_one_case(authenticator, bench):
    refused(authenticator, bench.token(exp=..., EXP=bench.now + 5), errors.TokenExpired)
    refused(authenticator, bench.token(iss=..., ISS=bench.url), errors.NotMine)
    refused(authenticator, bench.token(aud=..., Aud="app"), errors.AudienceRefused)


@pytest.mark.parametrize("size", [TOKEN_CHARACTERS, 1_000_000, 100_000_000])
def test_huge_tokens(authenticator, bench, size):
    text = "a" * size
    refused(authenticator, f"{bench.token()}{text}", errors.KubeauthnError)
    refused(authenticator, text, errors.NotMine)


@pytest.mark.parametrize("size", [1_000_000, 100_000_000])
@pytest.mark.parametrize(
    "ask",
    [
        lambda authenticator, token: authenticator.authenticate(token),
        lambda authenticator, token: asyncio.run(authenticator.authenticate_async(token)),
        lambda authenticator, token: CachedAuthenticator(authenticator).authenticate(token),
        lambda authenticator, token: asyncio.run(CachedAuthenticator(authenticator).authenticate_async(token)),
        lambda authenticator, token: AuthenticatorDecider(CachedAuthenticator(authenticator)).decide_now(token),
        lambda authenticator, token: authenticator.explain(token),
    ],
    ids=["plain", "async", "cached", "cached async", "served", "explained"],
)
def test_a_huge_token_is_refused_without_a_copy_of_it(authenticator, bench, ask, size):
    with contextlib.suppress(errors.NotMine):  # loads what it needs
        ask(authenticator, "x")
    token = f"{bench.token()}{'a' * size}"
    tracemalloc.start()
    try:
        with contextlib.suppress(errors.NotMine):
            answer = ask(authenticator, token)
            assert "authenticated" not in (getattr(answer, "outcome", ""), getattr(answer, "verdict", ""))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500_000


def test_a_payload_that_is_nested_deeply(authenticator, bench):
    good = json.dumps(bench.claims())[:-1]
    deep = bench.raw_token(f'{good}, "x": {"[" * 30_000}{"]" * 30_000}}}')
    assert "JSON object" in refused(authenticator, deep, errors.NotMine)
    # 100,000 levels are more characters than a token has
    refused(authenticator, bench.raw_token(f'{good}, "x": {"[" * 100_000}{"]" * 100_000}}}'), errors.NotMine)
    assert authenticator.authenticate(bench.raw_token(f'{good}, "x": {"[" * 5_000}{"]" * 5_000}}}')).username == "jane"


def test_an_expression_over_a_claim_that_is_nested_deeply(bench):
    authenticator = bench.authenticator(rules=[{"expression": "claims.x == claims.y", "message": "m"}])
    nested = "[" * 5_000 + "]" * 5_000
    token = bench.raw_token(f'{json.dumps(bench.claims())[:-1]}, "x": {nested}, "y": {nested}}}')
    assert "nested too deeply" in refused(authenticator, token, errors.ClaimRefused)


def test_a_claim_with_a_number_too_large_is_no_text(bench):
    good = json.dumps(bench.claims(username=...))[:-1]
    token = bench.raw_token(f'{good}, "username": 1e999}}')
    assert "cannot unmarshal number" in refused(bench.authenticator(), token, errors.MappingFailed)
    by_expression = bench.authenticator(username={"expression": "claims.username"})
    assert "1e999" in refused(by_expression, token, errors.MappingFailed)
    for name in ("exp", "iss", "aud", "_claim_names"):
        spoiled = json.dumps(bench.claims(**{name: ...}))[:-1] + f', "{name}": 1e999}}'
        refused(bench.authenticator(), bench.raw_token(spoiled), errors.KubeauthnError)


def test_a_set_of_many_keys_and_no_kid_is_bounded(bench):
    from kubeauthn.server import Authenticator

    keys = {"keys": [{**bench.key.jwk(), "kid": f"k{number}"} for number in range(256)]}
    authenticator = Authenticator(bench.authenticator().configuration, keys={bench.url: keys}, clock=lambda: bench.now)
    signed = f"{part({'alg': 'RS256'})}.{part(bench.claims())}"
    refused(authenticator, f"{signed}.{part(b'x' * 256)}", errors.SignatureRefused)


def test_strangers_do_not_fill_the_memory_of_headers(authenticator, bench):
    for number in range(200):
        refused(
            authenticator, f"{part({'alg': 'RS256', 'kid': 'k1', 'n': number})}.{part(bench.claims())}.{part(b'x')}"
        )
    keys = authenticator.key_sources[bench.url].keys_at_hand()
    assert len(keys.known_headers) == 0


def test_no_reason_holds_the_signature(authenticator, bench):
    token = bench.token(username=5)
    signature = token.rpartition(".")[2]
    for text in (token, token[:-4] + "AAAA"):
        try:
            authenticator.authenticate(text)
        except errors.TokenError as error:
            assert signature[:40] not in repr(error) + str(error) + error.public_message
