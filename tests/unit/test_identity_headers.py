"""A user as headers and back: nothing can be injected, nothing is confused, everything arrives."""

from __future__ import annotations

import pytest

from kubeauthn._core.identity_headers import (
    HeaderNames,
    decode_list,
    decode_value,
    encode_key,
    encode_value,
    identity_headers,
    user_from_headers,
)
from kubeauthn.errors import UsageError
from kubeauthn.server import UserInfo

NASTY = [
    "plain",
    "Domain Admins",
    " leading and trailing ",
    " ",
    "a,b",
    "a, system:masters",
    "line\r\nX-Remote-Group: system:masters",
    "line\nfeed",
    "nul\0byte",
    "100%",
    "%2C",
    "%",
    'quo"te',
    "back\\slash",
    "key=value",
    "größe",
    "管理者",
    "🦄",
    "\x7f\x85\u2028",
    "tab\tinside",
]


@pytest.mark.parametrize("text", NASTY)
def test_a_value_is_printable_ascii_and_comes_back(text: str):
    encoded = encode_value(text)
    assert encoded.isascii()
    assert encoded.isprintable()
    assert encoded == encoded.strip()
    assert "," not in encoded
    assert decode_value(encoded) == text


def test_no_two_values_have_one_text():
    assert len({encode_value(text) for text in NASTY}) == len(NASTY)


def test_common_names_are_left_as_they_are():
    for name in (
        "system:serviceaccount:kube-system:default",
        "jane@example.com",
        "https://idp.test#jane",
        "Domain Users",
    ):
        assert encode_value(name) == name


def test_all_names_are_there_for_a_user_who_has_none():
    assert identity_headers(UserInfo("jane")) == [
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", ""),
        ("X-Remote-Groups", ""),
        ("X-Remote-Extras", ""),
        ("X-Remote-Group", ""),
    ]


def test_a_full_user():
    user = UserInfo("jane", "7", ("dev", "a,b"), {"example.com/team_name": ("x y", "z=1")})
    assert identity_headers(user) == [
        ("X-Remote-User", "jane"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Groups", "dev,a%2Cb"),
        ("X-Remote-Extras", "example.com/team_name=x%20y,example.com/team_name=z%3D1"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "a%2Cb"),
        ("X-Remote-Extra-example.com%2Fteam%5Fname", "x y"),
        ("X-Remote-Extra-example.com%2Fteam%5Fname", "z=1"),
    ]


def everything() -> UserInfo:
    keys = {"example.com/a": tuple(NASTY), "b_c": ("1",), "ü": ("2",)}
    return UserInfo("line\r\nbreak, größe", " 7%", tuple(NASTY), keys)


@pytest.mark.parametrize("left_out", [(), ("x-remote-groups", "x-remote-extras"), ("x-remote-group",)])
def test_a_user_comes_back_whichever_form_arrives(left_out: tuple[str, ...]):
    headers = [pair for pair in identity_headers(everything()) if pair[0].lower() not in left_out]
    assert user_from_headers(headers) == everything()


def test_a_user_comes_back_where_a_proxy_joins_repeated_headers_and_lowers_names():
    joined: dict[str, str] = {}
    for name, value in identity_headers(everything()):
        name = name.lower()
        joined[name] = f"{joined[name]}, {value}" if name in joined else value
    del joined["x-remote-groups"], joined["x-remote-extras"]
    assert user_from_headers(joined.items()) == everything()


def test_nobody_is_named_by_no_header_or_an_empty_one():
    assert user_from_headers([]) is None
    assert user_from_headers([("X-Remote-User", ""), ("X-Remote-Group", "system:masters")]) is None


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Remote-User", "jane"), ("x-remote-user", "admin")],
        [("X-Remote-User", "jane,admin")],
        [("X-Remote-User", "jane"), ("X-Remote-Uid", "1"), ("X-Remote-Uid", "2")],
        [("X-Remote-User", "100%")],
        [("X-Remote-User", "%zz")],
        [("X-Remote-User", "% 1")],
        [("X-Remote-User", "%ED%A0%80")],
        [("X-Remote-User", "gr\xf6\xdfe")],
        [("X-Remote-User", "jane"), ("X-Remote-Extras", "novalue")],
        [("X-Remote-User", "jane"), ("X-Remote-Groups", "a,%FF")],
    ],
)
def test_what_nobody_encodes_so_is_refused(headers: list[tuple[str, str]]):
    with pytest.raises(ValueError, match="header"):
        user_from_headers(headers)


def test_a_lone_surrogate_does_not_pass_for_text():
    with pytest.raises(ValueError, match="no text"):
        decode_value(encode_value("\ud800"))


def test_a_list_of_nothing_is_empty():
    assert decode_list("") == []
    assert decode_list(" , ,") == []


def test_extra_keys_hold_nothing_that_a_header_name_must_not():
    assert encode_key("authentication.kubernetes.io/credential-id") == "authentication.kubernetes.io%2Fcredential-id"
    assert encode_key("a:b\r\nc_d") == "a%3Ab%0D%0Ac%5Fd"


@pytest.mark.parametrize("prefix", ["", "X_Remote_", "X Remote-", "X-Remote\n", "X-Rémote-", "x:"])
def test_names_that_are_none_are_refused(prefix: str):
    if prefix == "":
        assert HeaderNames.with_prefix("").user == "User"
        return
    with pytest.raises(UsageError, match="header"):
        HeaderNames.with_prefix(prefix)


def test_names_that_would_be_confused_are_refused():
    for names in (
        HeaderNames(user="X-Remote-Uid"),
        HeaderNames(user="Authorization"),
        HeaderNames(user="x-remote-extra-user"),
        HeaderNames(groups="X-REMOTE-GROUP"),
    ):
        with pytest.raises(UsageError):
            names.checked()
