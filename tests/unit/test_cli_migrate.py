"""`kubeauthn migrate`: what the flags do, the file does."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kubeauthn.cli.main import main
from kubeauthn.cli.world import World
from kubeauthn.server import AuthenticationConfiguration, load_configuration
from kubeauthn.testing import CertificateAuthority

BASE = ("--oidc-issuer-url=https://issuer.example", "--oidc-client-id=kubernetes")


def migrate(*flags: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(["migrate", *BASE, *flags], World(stdin=io.StringIO(), stdout=out, stderr=err, environ={}))
    return code, out.getvalue(), err.getvalue()


def configuration(*flags: str) -> AuthenticationConfiguration:
    code, out, err = migrate(*flags)
    assert (code, err) == (0, "")
    return load_configuration(out)


@pytest.mark.parametrize(
    ("flags", "prefix"),
    [
        ((), "https://issuer.example#"),
        (("--oidc-username-claim=email",), ""),
        (("--oidc-username-claim=name",), "https://issuer.example#"),
        (("--oidc-username-prefix=-",), ""),
        (("--oidc-username-prefix=oidc:",), "oidc:"),
        (("--oidc-username-claim=email", "--oidc-username-prefix=x"), "x"),
        (("--oidc-username-prefix=",), "https://issuer.example#"),
    ],
)
def test_what_stands_before_a_name(flags: tuple[str, ...], prefix: str):
    assert configuration(*flags).jwt[0].claim_mappings.username.prefix == prefix


def test_groups_are_mapped_where_a_claim_is_named():
    groups = configuration("--oidc-groups-claim=g", "--oidc-groups-prefix=-").jwt[0].claim_mappings.groups
    assert (groups.claim, groups.prefix) == ("g", "-")
    assert configuration().jwt[0].claim_mappings.groups.claim == ""


def test_required_claims_become_rules_and_the_last_of_a_name_counts():
    rules = (
        configuration("--oidc-required-claim=a=1", "--oidc-required-claim=b=", "--oidc-required-claim=a=2=3")
        .jwt[0]
        .claim_validation_rules
    )
    assert [(rule.claim, rule.required_value) for rule in rules] == [("a", "2=3"), ("b", "")]


ODD = [
    "yes",
    "1.0",
    "#",
    "a: b",
    "'",
    '"',
    "\\",
    "\n",
    "\x7f",
    "\x85",
    "\u2028",
    "\U0001f600",
    "- x",
    "{}",
    "*a",
    "e\u0301",
]


@pytest.mark.parametrize("text", ODD)
def test_any_text_comes_through(text: str):
    entry = configuration(
        f"--oidc-username-claim={text}", f"--oidc-username-prefix={text}", f"--oidc-groups-prefix={text}"
    ).jwt[0]
    assert entry.claim_mappings.username.claim == text
    assert entry.claim_mappings.username.prefix == text


def test_only_the_certificates_of_a_file_come_along(tmp_path: Path):
    ca = CertificateAuthority("a CA")
    leaf = ca.issue_client("jane")
    (tmp_path / "ca.pem").write_bytes(leaf.key_pem + ca.certificate_pem + b"a comment\n" + leaf.certificate_pem)
    code, out, _ = migrate(f"--oidc-ca-file={tmp_path / 'ca.pem'}")
    assert code == 0
    assert "PRIVATE" not in out
    assert out.count("BEGIN CERTIFICATE") == 2
    loaded = load_configuration(out).jwt[0].issuer.certificate_authority
    assert loaded.startswith(ca.certificate_pem.decode())


def test_what_has_no_equivalent_is_said():
    assert "no others (--oidc-signing-algs)" in migrate("--oidc-signing-algs=ES256")[1]
    assert "signed with ES256 and" in migrate("--oidc-signing-algs=ES256")[1]
    assert "signed with RS256 and" in migrate("--oidc-signing-algs=")[1]


def test_algorithms_of_a_flag_that_is_given_twice_add_up():
    said = migrate("--oidc-signing-algs=ES256,RS256", "--oidc-signing-algs=PS512,ES256")[1]
    assert "signed with ES256, RS256, PS512 and no others" in said


def test_an_algorithm_that_kube_apiserver_does_not_start_with():
    code, out, err = migrate("--oidc-signing-algs=RS256,HS256")
    assert (code, out) == (2, "")
    assert err.startswith("error: --oidc-signing-algs takes RS256, ")
    assert err.rstrip().endswith("not HS256")


@pytest.mark.parametrize(("release", "version"), [("1.29", "v1alpha1"), ("1.33", "v1beta1"), ("1.34", "v1")])
def test_the_newest_version_that_a_release_reads(release: str, version: str):
    code, out, _ = migrate(f"--kubernetes={release}")
    assert code == 0
    assert f"apiVersion: apiserver.config.k8s.io/{version}\n" in out
