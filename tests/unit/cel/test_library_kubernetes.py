"""Kubernetes' own types: quantities, addresses, networks, versions, URLs and named formats."""

from __future__ import annotations

import pytest

from kubeauthn.cel.errors import EvalError
from kubeauthn.cel.library import cidr, ip, named_formats, quantity, semver, urls
from kubeauthn.cel.values import NONE, equals

ROWS = {
    row.id: row
    for module in (cidr, ip, named_formats, quantity, semver, urls)
    for row in module.OVERLOADS
}  # fmt: skip


def call(id: str, *arguments: object) -> object:
    return ROWS[id].implementation(*arguments)


def to_quantity(text: str) -> object:
    return call("string_to_quantity", text)


def message_of(id: str, *arguments: object) -> str:
    with pytest.raises(EvalError) as caught:
        call(id, *arguments)
    return caught.value.message


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Mi", "0"),
        ("1E3", "1E3"),
        ("+1", "+1"),
        ("5.", "5."),
        ("0.5", "500m"),
        ("1000", "1k"),
        ("1500m", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("0.1n", "1n"),
        ("-1.5Ki", "-1536"),
        ("1e-10", "1e-9"),
        ("100Ei", "9223372036854775807"),
        ("9999999999999999999", "9999999999999999999"),
    ],
)
def test_quantities(text, printed) -> None:
    assert str(to_quantity(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,3G", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("1mm", "unable to parse quantity's suffix"),
    ],
)
def test_no_quantities(text, message) -> None:
    assert message_of("string_to_quantity", text) == message
    assert call("is_quantity_string", text) is False


def test_an_absurd_exponent_is_refused_at_once() -> None:
    assert call("is_quantity_string", "1e999999999") is True  # as in Kubernetes; only its value is out of reach
    assert call("is_quantity_string", "1" * 10_000) is True
    assert "power of ten beyond 2000" in message_of("string_to_quantity", "1e999999999")
    assert "more than 2000 digits" in message_of("string_to_quantity", "1" * 10_000)
    assert str(to_quantity("1e2000")) == "100e1998"


def test_quantity_arithmetic() -> None:
    assert str(call("quantity_add", to_quantity("50k"), to_quantity("20k"))) == "70k"
    assert str(call("quantity_add_int", to_quantity("1.5Gi"), 3)) == "1610612739"
    assert equals(call("quantity_sub_int", to_quantity("50k"), 20000), to_quantity("30k"))
    assert call("quantity_compare_to", to_quantity("50M"), to_quantity("50Mi")) == -1
    assert equals(to_quantity("200M"), to_quantity("0.2G"))
    assert call("quantity_get_float", to_quantity("1.5")) == 1.5
    assert call("quantity_is_integer", to_quantity("50000000G")) is True
    assert call("quantity_is_integer", to_quantity("1000m")) is False
    assert message_of("quantity_get_int", to_quantity("9" * 37 + "G")) == "cannot convert value to integer"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("2001:DB8::ABCD", "2001:db8::abcd"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
        ("1:0:2:3:4:5:6:7", "1:0:2:3:4:5:6:7"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ("::", "::"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
    ],
)
def test_addresses(text, printed) -> None:
    address = call("string_to_ip", text)
    assert call("ip_to_string", address) == printed
    assert call("ip_is_canonical", text) is (text == printed)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (":::1", 'ParseAddr(":::1"): each colon-separated field must have at least one digit (at ":1")'),
        ("bad", 'ParseAddr("bad"): unable to parse IP'),
        ("1.2.3", 'ParseAddr("1.2.3"): IPv4 address too short'),
        ("01.2.3.4", 'ParseAddr("01.2.3.4"): IPv4 field has octet with leading zero'),
        ("1..2.3", 'ParseAddr("1..2.3"): IPv4 field must have at least one digit (at ".2.3")'),
        ("1.2.3.x", 'ParseAddr("1.2.3.x"): unexpected character (at "x")'),
        ("1::2::3", 'ParseAddr("1::2::3"): multiple :: in address (at ":3")'),
        ("12345::", 'ParseAddr("12345::"): each group must have 4 or less digits (at "12345::")'),
    ],
)
def test_no_addresses(text, fault) -> None:
    message = message_of("string_to_ip", text)
    assert message == f'IP Address "{text}" parse error during conversion from string: {fault}'
    assert call("is_ip", text) is False


def test_addresses_that_kubernetes_refuses() -> None:
    assert message_of("string_to_ip", "::ffff:1.2.3.4") == 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'
    assert message_of("string_to_ip", "::1%eth0") == 'IP address "::1%eth0" with zone value is not allowed'


@pytest.mark.parametrize(
    ("text", "traits"),
    [
        ("0.0.0.0", {"ip_is_unspecified"}),
        ("127.9.9.9", {"ip_is_loopback"}),
        ("224.0.0.1", {"ip_is_link_local_multicast"}),
        ("224.0.1.1", set()),
        ("169.254.1.1", {"ip_is_link_local_unicast"}),
        ("192.168.0.1", {"ip_is_global_unicast"}),
        ("255.255.255.255", set()),
        ("::", {"ip_is_unspecified"}),
        ("::1", {"ip_is_loopback"}),
        ("ff02::1", {"ip_is_link_local_multicast"}),
        ("fe80::1", {"ip_is_link_local_unicast"}),
        ("2001:db8::1", {"ip_is_global_unicast"}),
    ],
)
def test_kinds_of_addresses(text, traits) -> None:
    address = call("string_to_ip", text)
    kinds = ("unspecified", "loopback", "link_local_multicast", "link_local_unicast", "global_unicast")
    assert {f"ip_is_{kind}" for kind in kinds if call(f"ip_is_{kind}", address)} == traits
    assert call("ip_family", address) == (6 if ":" in text else 4)


def test_networks() -> None:
    network = call("string_to_cidr", "192.168.0.1/24")
    assert str(network) == "192.168.0.1/24"
    assert str(call("cidr_masked", network)) == "192.168.0.0/24"
    assert str(call("cidr_ip", network)) == "192.168.0.1"
    assert call("cidr_prefix_length", network) == 24
    assert call("cidr_contains_ip_string", network, "192.168.0.255") is True
    assert call("cidr_contains_ip_string", network, "192.168.1.0") is False
    assert call("cidr_contains_ip_string", network, "::1") is False
    assert call("cidr_contains_cidr_string", network, "192.168.0.128/25") is True
    assert call("cidr_contains_cidr_string", network, "192.168.0.0/23") is False
    assert message_of("cidr_contains_ip_string", network, "bad") == "no such overload"


@pytest.mark.parametrize(
    ("text", "fault"),
    [("192.168.0.0/33", "prefix length out of range"), ("", "no '/'"), ("1.2.3.4/01", 'bad bits after slash: "01"')],
)
def test_no_networks(text, fault) -> None:
    prefix = "network address parse error during conversion from string: " * 2
    assert message_of("string_to_cidr", text) == f'{prefix}netip.ParsePrefix("{text}"): {fault}'
    assert call("is_cidr", text) is False


def test_versions() -> None:
    def version(text: str) -> object:
        return call("string_to_semver", text)

    assert str(version("1.2.3-rc.1+b5")) == "1.2.3-rc.1+b5"
    assert str(call("string_bool_to_semver", "v01.02", True)) == "1.2.0"
    assert call("semver_compare_to", version("1.0.0-alpha.2"), version("1.0.0-alpha.10")) == -1
    assert call("semver_compare_to", version("1.0.0-alpha"), version("1.0.0-1")) == 1
    assert call("semver_is_less_than", version("1.0.0-alpha"), version("1.0.0")) is True
    assert equals(version("1.0.0+a"), version("1.0.0+b"))
    assert call("semver_major", version("18446744073709551615.0.0")) == -1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Version string empty"),
        ("1.2", "No Major.Minor.Patch elements found"),
        ("1.2.3+", "Build meta data is empty"),
        ("01.2.3", 'Major number must not contain leading zeroes "01"'),
        ("1.2.x", 'Invalid character(s) found in patch number "x"'),
        ("1.2.3-a_b", 'Invalid character(s) found in prerelease "a_b"'),
        ("99999999999999999999.0.0", 'strconv.ParseUint: parsing "99999999999999999999": value out of range'),
    ],
)
def test_no_versions(text, message) -> None:
    assert message_of("string_to_semver", text) == message
    assert call("is_semver_string", text) is False


def test_urls() -> None:
    url = call("string_to_url", "HTTPS://u:p@Example.COM:80/a%2Fb c?k=v+w&a=%zz&b#f")
    assert call("url_get_scheme", url) == "https"
    assert call("url_get_host", url) == "Example.COM:80"
    assert call("url_get_hostname", url) == "Example.COM"
    assert call("url_get_port", url) == "80"
    assert call("url_get_escaped_path", url) == "/a/b%20c"
    assert call("url_get_query", url) == {"k": ["v w"], "b": [""]}
    assert call("url_get_escaped_path", call("string_to_url", "/a%2Fb")) == "/a%2Fb"
    assert call("url_get_hostname", call("string_to_url", "http://[::1]:8080/")) == "::1"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("https://exa mple.com", 'invalid character " " in host name'),
        ("https://example.com:port/", 'invalid port ":port" after host'),
        ("https://example.com/%zz", 'invalid URL escape "%zz"'),
        ("example.com", "invalid URI for request"),
        ("", "empty url"),
        ("http://a\x01", "net/url: invalid control character in URL"),
    ],
)
def test_no_urls(text, fault) -> None:
    assert message_of("string_to_url", text).startswith("URL parse error during conversion from string: parse ")
    assert message_of("string_to_url", text).endswith(fault)
    assert call("is_url_string", text) is False


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("dns1123Label", ["a", "my-name", "1a"], ["", "A", "-a", "a.b", "a\n", "x" * 64]),
        ("dns1123LabelPrefix", ["a-", "X-"], ["A"]),
        ("dns1123Subdomain", ["a.b"], ["a..b", "a" * 254]),
        ("dns1035Label", ["a1"], ["1a", "a-"]),
        ("qualifiedName", ["example.com/Name", "Name"], ["a/b/c", "/x", "a/", "-x"]),
        ("labelValue", ["", "a_b.c"], ["-", "a/b"]),
        ("uri", ["http://example.com", "//x"], ["example.com"]),
        ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["bad"]),
        ("byte", ["YWJj", "YQ=="], ["", "!!", "YQ="]),
        ("date", ["2021-01-01", "0000-02-29"], ["2021-13-01", "2021-1-1", "2021-02-30"]),
        ("datetime", ["2021-01-01T00:00:00Z", "2021-01-01t00:00:00.5+01:00"], ["2021-01-01T25:00:00Z", "2021-01-01"]),
    ],
)
def test_named_formats(name, good, bad) -> None:
    named = call(f"format.{name}")
    assert [call("format-validate", named, text) for text in good] == [NONE] * len(good)
    assert all(call("format-validate", named, text).value for text in bad)
    assert equals(call("format-named", name).value, named)


def test_an_unknown_format_is_none() -> None:
    assert call("format-named", "nope") is NONE


def test_what_a_format_has_to_say() -> None:
    faults = call("format-validate", call("format.dns1123Label"), "a.B" + "x" * 70).value
    assert faults == [
        "must be no more than 63 characters",
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ]
    assert ROWS["format-validate"].cost((call("format.uri"), "http://example.com"), NONE) == 552


@pytest.mark.parametrize(
    ("id", "arguments", "cost"),
    [
        ("cidr_contains_ip_string", ("192.168.0.0/16", "192.168.10.10"), 3),
        ("cidr_contains_cidr_string", ("192.168.0.0/16", "192.168.10.0/24"), 5),
        ("string_to_semver", ("1.2.3-alpha.beta",), 2),
    ],
)
def test_costs(id, arguments, cost) -> None:
    if id.startswith("cidr"):
        arguments = (call("string_to_cidr", arguments[0]), *arguments[1:])
    assert ROWS[id].cost(arguments, None) == cost
