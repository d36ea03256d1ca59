"""Reading a configuration file: as strict as Kubernetes, with its texts, and with line and column."""

from __future__ import annotations

import pytest

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn.errors import AuthenticationConfigError
from kubeauthn.testing import CertificateAuthority

HEAD = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"
GOOD = (
    HEAD
    + """\
jwt:
- issuer:
    url: https://issuer.example
    audiences: [api]
  claimMappings:
    username:
      claim: sub
      prefix: ""
"""
)


def refused(text: str | bytes) -> AuthenticationConfigError:
    with pytest.raises(AuthenticationConfigError) as caught:
        load_configuration(text)
    return caught.value


def faults(text: str | bytes) -> list[tuple[str, str, int, int, str]]:
    return [(fault.text, fault.field, fault.line, fault.column, fault.kind) for fault in refused(text).errors]


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
def test_three_versions_are_one_configuration(version):
    config = load_configuration(GOOD.replace("io/v1", f"io/{version}"))
    assert config.api_version == f"apiserver.config.k8s.io/{version}"
    [entry] = config.jwt
    assert entry.issuer.url == "https://issuer.example"
    assert entry.issuer.audiences == ("api",)
    assert entry.claim_mappings.username.claim == "sub"
    assert entry.claim_mappings.username.prefix == ""


def test_what_is_absent_is_empty_and_null_is_absent():
    config = load_configuration(GOOD + "    groups: null\n  claimValidationRules: ~\n  userValidationRules: []\n")
    [entry] = config.jwt
    assert entry.claim_mappings.groups.claim == ""
    assert entry.claim_mappings.groups.prefix is None
    assert entry.claim_validation_rules == ()
    assert entry.user_validation_rules == ()
    assert config.anonymous is None
    assert load_configuration(HEAD + "jwt: null\n").jwt == ()


def test_anonymous_tells_an_empty_list_from_none():
    without = load_configuration(HEAD + "anonymous: {enabled: true}\n")
    empty = load_configuration(HEAD + "anonymous: {enabled: true, conditions: []}\n")
    some = load_configuration(HEAD + "anonymous: {enabled: true, conditions: [{path: /livez}]}\n")
    assert [config.anonymous.conditions for config in (without, empty, some)] == [None, (), ("/livez",)]


def test_json_is_the_same_configuration_as_yaml():
    as_json = (
        '{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [{"issuer":'
        ' {"url": "https://issuer.example", "audiences": ["api"]}, "claimMappings": {"username":'
        ' {"claim": "sub", "prefix": ""}}}]}'
    )
    assert load_configuration(as_json).jwt == load_configuration(GOOD).jwt
    assert load_configuration(as_json.encode()).source != load_configuration(GOOD).source


def test_the_source_is_the_hash_that_metrics_show():
    source = load_configuration(GOOD).source
    assert source == load_configuration(GOOD.encode()).source
    assert source.startswith("sha256:")
    assert len(source) == len("sha256:") + 64


def test_a_certificate_authority_is_not_printed():
    pem = CertificateAuthority("ca").certificate_pem.decode()
    block = "    certificateAuthority: |\n" + "".join(f"      {line}\n" for line in pem.splitlines())
    config = load_configuration(GOOD.replace("  claimMappings", block + "  claimMappings"))
    assert config.jwt[0].issuer.certificate_authority == pem
    assert "BEGIN" not in repr(config)


# -- strictness -----------------------------------------------------------------------------------


def test_unknown_fields_are_all_named_with_their_places():
    error = refused(GOOD + "  foo: 1\n- bar: 2\n")
    assert str(error) == 'strict decoding error: unknown field "jwt[0].foo", unknown field "jwt[1].bar"'
    assert [(fault.field, fault.line, fault.column, fault.kind) for fault in error.errors] == [
        ("jwt[0].foo", 11, 3, "strict"),
        ("jwt[1].bar", 12, 3, "strict"),
    ]


def test_names_are_case_sensitive():
    assert 'unknown field "jwt[0].Issuer"' in str(refused(GOOD.replace("issuer:\n", "Issuer:\n")))


def test_a_field_given_twice_is_named_in_yaml_and_in_json():
    error = refused(GOOD.replace('      prefix: ""\n', '      prefix: ""\n      prefix: x\n'))
    assert str(error) == ('strict decoding error: yaml: unmarshal errors:\n  line 11: key "prefix" already set in map')
    assert (error.errors[0].line, error.errors[0].column) == (11, 7)
    twice = (
        '{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",\n "jwt": [], "jwt": []}'
    )
    assert faults(twice) == [('duplicate field "jwt"', "jwt", 2, 13, "strict")]


def test_every_wrong_type_is_found_and_kubernetes_own_text_is_the_message():
    text = GOOD.replace("https://issuer.example", "[a]").replace("claim: sub", "claim: 1")
    error = refused(text)
    first = "json: cannot unmarshal array into Go struct field Issuer.jwt.issuer.url of type string"
    second = (
        "json: cannot unmarshal number into Go struct field PrefixedClaimOrExpression.jwt.claimMappings.username.claim "
        "of type string"
    )
    # fields are read in the order of their names
    assert [(fault.text, fault.field, fault.line, fault.column) for fault in error.errors] == [
        (second, "jwt[0].claimMappings.username.claim", 9, 14),
        (first, "jwt[0].issuer.url", 5, 10),
    ]
    assert str(error) == second


def test_the_word_n_is_a_truth_value_in_yaml():
    text = GOOD + "  claimValidationRules: [{claim: n}]\n"
    assert "cannot unmarshal bool" in str(refused(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty config data"),
        ("{}", "Object 'Kind' is missing in '{}'"),
        ("kind: X\n", "Object 'apiVersion' is missing in 'kind: X\n'"),
        ("apiVersion: a/b/c\nkind: X\n", "unexpected GroupVersion string: a/b/c"),
        (
            "apiVersion: apiserver.config.k8s.io/v2\nkind: AuthenticationConfiguration\n",
            'no kind "AuthenticationConfiguration" is registered for version "apiserver.config.k8s.io/v2"',
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n",
            "expected AuthenticationConfiguration, got *apiserver.AuthorizationConfiguration",
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\njwt: []\n",
            'strict decoding error: unknown field "jwt"',
        ),
        (
            "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: []\n",
            "expected AuthenticationConfiguration, got *apiserver.EgressSelectorConfiguration",
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n",
            'no kind "EgressSelectorConfiguration" is registered for version "apiserver.config.k8s.io/v1beta1"',
        ),
        (
            "apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: AdmissionConfiguration\nplugins: []\n",
            'no kind "AdmissionConfiguration" is registered for version "apiserver.config.k8s.io/v1alpha1"',
        ),
        (
            "apiVersion: 1\nkind: X\n",
            "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field "
            ".apiVersion of type string",
        ),
    ],
)
def test_a_file_of_another_kind_is_told_so(text, message):
    assert str(refused(text)) == message


def test_a_second_document_is_an_error_and_an_empty_one_is_none():
    assert load_configuration(GOOD + "---\n").jwt
    assert faults(GOOD + "---\nkind: X\n") == [
        ("a file holds one document, and here a second one begins", "", 11, 1, "syntax")
    ]
    # what is wrong with the first is said first
    assert "unknown field" in str(refused(GOOD + "foo: 1\n---\nkind: X\n"))


# -- not readable at all --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("a:\n\tb: c\n", "yaml: line 2: found character that cannot start any token", 2, 1),
        ("a: *nobody\n", "yaml: unknown anchor 'nobody' referenced", 1, 4),
        ("a: &a [*a]\n", "yaml: anchor 'a' value contains itself", 1, 8),
        ("~: x\n", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "x"', 1, 1),
        ("? [a]\n: b\n", 'yaml: invalid map key: []interface {}{"a"}', 1, 3),
        ("a: !!int x\n", "yaml: cannot decode !!str `x` as a !!int", 1, 4),
        ("<<: 1\n", "yaml: map merge requires map or sequence of maps as the value", 1, 5),
        ("a: .inf\n", "json: unsupported value: +Inf", 1, 4),
    ],
)
def test_yaml_that_cannot_be_read(text, message, line, column):
    [fault] = refused(text).errors
    assert fault.text == message
    assert (fault.line, fault.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("{", "unexpected end of JSON input", 1, 2),
        ('{"a" 1}', "invalid character '1' after object key", 1, 6),
        ('{\n"a": 1 2}', "invalid character '2' after object key:value pair", 2, 8),
        ('{"a": [1 2]}', "invalid character '2' after array element", 1, 10),
        ("{a: 1}", "invalid character 'a' looking for beginning of object key string", 1, 2),
        ('{"a": x}', "invalid character 'x' looking for beginning of value", 1, 7),
        ('{"a": tru}', "invalid character '}' in literal true (expecting 'e')", 1, 10),
        ('{"a": -}', "invalid character '}' in numeric literal", 1, 8),
        ('{"a": 1.}', "invalid character '}' after decimal point in numeric literal", 1, 9),
        ('{"a": 1e}', "invalid character '}' in exponent of numeric literal", 1, 9),
        ('{"a": "\\q"}', "invalid character 'q' in string escape code", 1, 9),
        ('{"a": "\\u12x"}', "invalid character 'x' in \\u hexadecimal character escape", 1, 12),
        ('{"a": "\n"}', "invalid character '\\n' in string literal", 1, 8),
        ('{"a": 1} é', "invalid character 'Ã' after top-level value", 1, 10),
        ('{"a": 1} \'', "invalid character '\\'' after top-level value", 1, 10),
    ],
)
def test_json_that_cannot_be_read(text, message, line, column):
    assert faults(text) == [(f"couldn't get version/kind; json parse error: {message}", "", line, column, "syntax")]


def test_half_a_surrogate_pair_is_a_replacement_character():
    text = (
        '{"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "jwt": [{"issuer":'
        ' {"url": "https://issuer.example", "audiences": ["\\ud800x"]}, "claimMappings": {"username":'
        ' {"claim": "sub", "prefix": ""}}}]}'
    )
    assert load_configuration(text).jwt[0].issuer.audiences == ("\ufffdx",)


def test_merge_keys_and_anchors_are_followed():
    text = GOOD.replace("    username:\n", "    username: &name\n") + "    groups:\n      <<: *name\n"
    mappings = load_configuration(text).jwt[0].claim_mappings
    assert mappings.groups == mappings.username


# -- bounds ---------------------------------------------------------------------------------------


def test_a_file_that_is_too_long_too_deep_or_not_text_is_refused():
    assert "longer than 16 MiB" in str(refused("#" * (17 << 20)))
    assert "nested more than 64 levels deep" in str(refused("[" * 100_000))
    assert "nested more than 64 levels deep" in str(refused('{"a":' * 100_000))
    assert faults(b"a: b\nc: \xff\n") == [("not UTF-8 text", "", 2, 4, "syntax")]
    assert "control characters are not allowed" in str(refused("a: \x00\n"))


def test_a_long_file_of_no_kind_is_not_repeated_whole():
    assert len(str(refused("a: b\n" + "# comment\n" * 100_000))) < 5000


def test_aliases_cannot_multiply_without_end():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 20)]
    assert "excessive aliasing" in str(refused("\n".join(lines)))


def test_a_hundred_unknown_fields_are_enough():
    text = GOOD + "".join(f"f{n}: 1\n" for n in range(5000))
    assert len(refused(text).errors) == 100


def test_the_name_of_a_file_is_not_a_configuration():
    assert "give what is in the file" in (refused("/etc/kubernetes/authn.yaml").hint or "")
    assert refused("jwt: [").hint is None
