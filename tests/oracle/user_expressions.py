"""Expressions on the user, messages of protobuf, macros of two variables: what the grower of claims seldom meets."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.idioms import quoted

__all__ = ["message_text", "odd_user", "user_text"]

Source = random.Random
_GROUPS = ("dev", "system:masters", "system:authenticated", "", "a__dot__b", "é", "x/y")
_KEYS = ("example.com/a", "a.b", "a__dot__b", "authentication.kubernetes.io/credential-id", "", "é", "in")
_ROOTS = (
    "user",
    "user.username",
    "user.uid",
    "user.groups",
    "user.extra",
    "dyn(user)",
    "dyn(user).groups",
    "dyn(user.extra)",
    "user.missing",
    "user.extra.a__dot__b",
    "user.extra['example.com/a']",
    "user.extra[?'a.b']",
    "user.?extra",
    "user.?uid.orValue('none')",
    "user['username']",
    "dyn(user)['uid']",
    "user.groups[0]",
    "user.groups[?9]",
    "user.extra['a.b'][0]",
    "dyn(user).?missing",
)
_LISTS = ("user.groups", "dyn(user.groups)", "user.extra", "user.extra['a.b']", "dyn(user)", "[user]", "[user.extra]")
_BODIES = (
    "x == ''",
    "x.startsWith('system:')",
    "size(x) > 1",
    "x in user.groups",
    "x == user.username",
    "has(x.uid)",
    "x",
    "x.a__dot__b",
    "x[0]",
    "x.matches('^[a-z]+$')",
    "user.extra[x].size() > 0",
    "type(x) == string",
    "x + '!'",
)
_MACROS = (
    "all(x, {})",
    "exists(x, {})",
    "exists_one(x, {})",
    "existsOne(x, {})",
    "map(x, {})",
    "filter(x, {})",
    "map(x, x != '', {})",
    "all(i, x, {})",
    "exists(i, x, {})",
    "existsOne(i, x, {})",
    "transformList(i, x, {})",
    "transformList(i, x, i != 0, {})",
    "transformMap(i, x, {})",
    "transformMap(i, x, x != '', {})",
    "transformMapEntry(i, x, {{x: {}}})",
    "transformMapEntry(i, x, i == 0, {{'k': {}}})",
    "sortBy(x, {})",
)
_TAILS = ("", "", ".size()", " == []", "[0]", ".join(',')", ".sort()", ".distinct()", " == user.groups", ".orValue('')")
_SCALARS = ("Bool", "Bytes", "Double", "Float", "Int64", "Int32", "UInt64", "UInt32", "String")
_GIVEN = (
    "1",
    "-1",
    "1u",
    "1.5",
    "'a'",
    "b'a'",
    "true",
    "null",
    "[1]",
    "{'a': 1}",
    "2147483648",
    "4294967296u",
    "1e300",
    "dyn(1)",
    "dyn('a')",
    "claims.n",
    "duration('1s')",
    "google.protobuf.Int64Value{value: 3}",
    "google.protobuf.Value{}",
)


def odd_user(source: Source) -> dict[str, Any]:
    """A user with odd groups and extra keys, or with none."""
    return {
        "username": source.choice(("jane", "", "system:admin", "é👑", "a,b")),
        "uid": source.choice(("42", "", "a__dot__b")),
        "groups": source.choices(_GROUPS, k=source.randint(0, 3)),
        "extra": {
            source.choice(_KEYS): source.choices(_GROUPS, k=source.randint(0, 2)) for _ in range(source.randint(0, 3))
        },
    }


def user_text(source: Source) -> str:
    """An expression of a user validation rule."""
    root, other = source.choice(_ROOTS), source.choice(_ROOTS)
    loop = f"{source.choice(_LISTS)}.{source.choice(_MACROS).format(source.choice(_BODIES))}{source.choice(_TAILS)}"
    return source.choice(
        (
            root,
            f"{root} == {other}",
            f"size({root})",
            f"type({root})",
            f"has({root}.uid)",
            f"{root} in {other}",
            f"string({root})",
            f"{root} + {other}",
            f"optional.ofNonZeroValue({root})",
            f"optional.of({root}).optMap(x, {source.choice(_BODIES)})",
            f"{root} != '' && {loop}",
            f"!({loop})",
            loop,
            loop,
            loop,
            f"{loop} || {root} == 'x'",
            f"[{root}, {other}]",
            f"{{'a': {root}}}.a",
            f"'%s'.format([{root}])",
            f"('%s' + '').format([{root}])",
            f"dyn({root}).includes({other})",
            f"{root}.orValue({other})",
            f"sets.contains({root}, {other})",
            f"{root} ? {other} : {loop}",
            f"url({root}).getHost()",
            f"claims.sub == {root}",
        ),
    )


def message_text(source: Source) -> str:
    """Something that makes a message of protobuf, which few know that expressions can."""
    given, other = source.choice(_GIVEN), source.choice(_GIVEN)
    scalar = f"google.protobuf.{source.choice(_SCALARS)}Value"
    made = source.choice(
        (
            f"{scalar}{{value: {given}}}",
            f"{scalar}{{}}",
            f"{scalar}{{value: {given}, value: {other}}}",
            f"{scalar}{{?value: optional.of({given})}}",
            f"{scalar}{{?value: optional.none()}}",
            f"google.protobuf.Duration{{seconds: {given}}}",
            f"google.protobuf.Duration{{seconds: 1, nanos: {given}}}",
            f"google.protobuf.Timestamp{{seconds: {given}}}",
            f"google.protobuf.Struct{{fields: {{'a': {given}}}}}",
            "google.protobuf.Struct{}",
            f"google.protobuf.ListValue{{values: [{given}]}}",
            f"google.protobuf.Value{{string_value: {given}}}",
            f"google.protobuf.Value{{number_value: {given}}}",
            f"google.protobuf.Value{{bool_value: {given}}}",
            f"google.protobuf.Value{{null_value: {given}}}",
            f"google.protobuf.Value{{list_value: {given}}}",
            f"google.protobuf.Any{{type_url: 'x', value: {given}}}",
            f"google.protobuf.Empty{{x: {given}}}",
            "google.protobuf.Empty{}",
            f"google.protobuf.{source.choice(('Foo', 'FieldMask', 'NullValue', 'Api'))}{{}}",
            f"kubernetes.UserInfo{{username: {given}}}",
            f"kubernetes.claims{{a: {given}}}",
            f"{scalar}{{foo: {given}}}",
            f".{scalar}{{value: {given}}}",
        ),
    )
    return source.choice(
        (
            made,
            made,
            f"{made} == {given}",
            f"type({made})",
            f"[{given}, {made}]",
            f"{{'a': {made}, 'b': {given}}}",
            f"{made} + {other}",
            f"{made}.value",
            f"has({made}.value)",
            f"size({made})",
            f"dyn({made}) == dyn({other})",
            f"true ? {made} : {given}",
            f"[{made}].exists(x, x == {given})",
            f"string({made})",
            f"optional.ofNonZeroValue({made})",
            f"{made} == null",
            f"'%s'.format([{made}])",
            f"{{{made}: 1}}",
            f"{made} in [{given}]",
            f"cel.bind(x, {made}, x)",
            f"[{made}].map(x, x == {given} ? {quoted('a')} : {quoted('b')})",
        ),
    )
