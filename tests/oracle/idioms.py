"""Expressions that go deep into one thing: texts that a library parses, what a loop sees of odd claims, errors that are
forgotten. The grower draws from all types and so seldom has two texts of the same kind meet."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

__all__ = ["idiom", "odd_claims"]

Source = random.Random
_NAMES = ("a", "a.b", "c-d", "x/y", "in", "__", "a__b", "a__dot__b", "é", "", "1", "l", "m", "k k")
_ESCAPED = ("a", "a__dot__b", "c__dash__d", "x__slash__y", "__in__", "a__underscores__b", "__", "a__x__b", "l", "m")


def odd_claims(source: Source) -> str:
    """A JSON object with odd names, numbers and depths, and sometimes with white space or a name twice."""
    members = {source.choice(_NAMES): _json(source, 3) for _ in range(source.randint(1, 6))}
    members |= {"l": [_json(source, 2) for _ in range(source.randint(0, 3))], "m": _object(source, 2)}
    text = json.dumps(members, ensure_ascii=source.random() < 0.5, indent=source.choice((None, None, 1)))
    if source.random() < 0.1:
        text = text[:-1] + f', "m": {json.dumps(_json(source, 1))}}}'
    return text


def _object(source: Source, depth: int) -> dict[str, Any]:
    return {source.choice(_NAMES): _json(source, depth - 1) for _ in range(source.randint(0, 3))}


def _json(source: Source, depth: int) -> Any:
    draw = source.random()
    if depth > 0 and draw < 0.3:
        return [_json(source, depth - 1) for _ in range(source.randint(0, 3))]
    if depth > 0 and draw < 0.6:
        return _object(source, depth)
    return source.choice((None, True, False, 0, -0.0, 1, -1, 1.5, 1e+21, 1e-07, 2**53 + 1, 2**63, -2**63,
        1e+308, 0.1, "", "a", "a.b", "é👑", "\x00", "�", "1", "true", "10.0.0.1", "a__dot__b", "\u2028",
        "<&>"))  # fmt: skip


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _mutated(source: Source, text: str, alphabet: str) -> str:
    for _ in range(source.choices((0, 1, 2), (6, 3, 1))[0]):
        at = source.randint(0, len(text))
        text = text[:at] + source.choice((*alphabet, "")) + text[at + source.choice((0, 1)) :]
    return text


def _digits(source: Source) -> str:
    return str(source.choice((0, 1, 7, 10, 99, 255, 256, 1000, 1024, 65535, 2**31, 2**63 - 1, 2**63, 10**19, 10**40)))


def _quantity(source: Source) -> str:
    number = source.choice(("", "+", "-")) + _digits(source)
    number += source.choice(("", "", ".", ".5", ".0", ".125", ".0000000001", f".{_digits(source)}"))
    suffix = source.choice(("", "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ei", "e3",
        "E-3", "e+2"))  # fmt: skip
    return quoted(_mutated(source, number + suffix, "-+.eEKi0 k1"))


def _quantities(source: Source) -> str:
    one, two = f"quantity({_quantity(source)})", f"quantity({_quantity(source)})"
    return source.choice((one, f"isQuantity({_quantity(source)})", f"{one}.add({two})", f"{one}.sub({two})",
        f"{one}.add(1000)", f"{one}.compareTo({two})", f"{one}.isLessThan({two})", f"{one} == {two}",
        f"{one}.asApproximateFloat()", f"{one}.asInteger()", f"{one}.isInteger()", f"{one}.sign()",
        f"{one}.sub({two}).add({one})", f"[{one}] == [{two}]"))  # fmt: skip


def _semver(source: Source) -> str:
    text = ".".join(source.choice(("0", "1", "10", "01", _digits(source))) for _ in range(source.choice((3, 3,
        3, 2, 1, 4))))  # fmt: skip
    text = (source.choice(("", "", "v")) + text + source.choice(("", "-rc.1", "-01", "-a-b",
        "-")) + source.choice(("", "+b5", "+")))  # fmt: skip
    return quoted(_mutated(source, text, ".-+v01a "))


def _semvers(source: Source) -> str:
    lax = source.choice(("", "", ", true", ", false"))
    one, two = f"semver({_semver(source)}{lax})", f"semver({_semver(source)})"
    return source.choice((one, f"isSemver({_semver(source)}{lax})", f"{one}.compareTo({two})",
        f"{one}.isGreaterThan({two})", f"{one}.major()", f"{one}.minor()", f"{one}.patch()", f"{one} == {two}",
        f"{one}.isLessThan({two})"))  # fmt: skip


def _address(source: Source) -> str:
    text = source.choice(("10.0.0.1", "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "169.254.1.1",
        "::", "::1", "fe80::1", "ff02::1", "2001:db8::1", "2001:DB8:0:0:0:0:0:1", "::ffff:1.2.3.4",
        "fe80::1%eth0", "1:2:3:4:5:6:7:8", "192.168.1.10"))  # fmt: skip
    return _mutated(source, text, ":.0123af%/")


def _addresses(source: Source) -> str:
    one, two = f"ip({quoted(_address(source))})", f"ip({quoted(_address(source))})"
    bits = source.choice(("0", "8", "24", "32", "33", "64", "128", "129", "08", "-1", "", "1"))
    net = f"cidr({quoted(_address(source) + '/' + bits)})"
    wider = f"cidr({quoted(_address(source) + '/' + source.choice(('0', '8', '16', '64')))})"
    return source.choice((one, f"isIP({quoted(_address(source))})", f"{one}.family()", f"{one}.isLoopback()",
        f"{one}.isGlobalUnicast()", f"ip.isCanonical({quoted(_address(source))})", f"{one}.isUnspecified()",
        f"{one}.isLinkLocalMulticast()", net, f"{one} == {two}", f"string({one})", f"{net}.containsIP({one})",
        f"{net}.containsIP({quoted(_address(source))})", f"{wider}.containsCIDR({net})",
        f"{wider}.containsCIDR({quoted(_address(source) + '/' + bits)})", f"{net}.masked()",
        f"{net}.prefixLength()", f"{net}.ip()", f"string({net})",
        f"isCIDR({quoted(_address(source) + '/' + bits)})", f"{one}.isLinkLocalUnicast()", f"{net} == {wider}",
        f"{net}.ip().family()"))  # fmt: skip


def _urls(source: Source) -> str:
    text = source.choice(("https", "http", "", "a+b", "1x", "mailto")) + source.choice(("://", ":", "//", ""))
    text += source.choice(("", "u@", "u:p@", "u%20@")) + source.choice(
        ("x.example", "[::1]", "", "1.2.3.4", "ex ample", "é")
    )
    text += source.choice(("", ":80", ":", ":x", ":99999")) + source.choice(
        ("", "/", "/p/%2f q", "/a/../b", "//", "/%zz", "/é")
    )
    text += source.choice(("", "?", "?a=b&a=c", "?a;b", "?%41=%", "?a=b=c&&d")) + source.choice(("", "#", "#f", "#%zz"))
    url = f"url({quoted(_mutated(source, text, ':/?#[]@%& '))})"
    getter = source.choice(("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery"))
    return source.choice((url, f"{url}.{getter}()", f"{url}.{getter}()", f"is{'URL' + url[3:]}",
        f"string({url})", f"{url} == {url}"))  # fmt: skip


def _pattern(source: Source) -> str:
    atoms = ("a", "b", ".", "\\d", "\\w", "\\s", "\\b", "[a-z]", "[^a]", "[[:alpha:]]", "\\pL", "(a|b)",
        "(?:ab)", "(?i)A", "^", "$",)  # fmt: skip
    more = ("\\Aa", "a\\z", "(?P<n>a)", "\\x{1F451}", "\\Q.\\E", "(?s).", "[\\d]", "é", "\\.", "(", "[", "a{2}",
        "(?=a)", "\\1", "\\pm", "\\p{greek}", "\\P{Cased_Letter}", "[\\pCa]", "[^\\p{^ASCII}]", "\\p{Old_Italic}",
        "\\p{lu",)  # fmt: skip
    repeats = ("", "", "", "*", "+", "?", "*?", "{2}", "{1,3}", "{2,1}", "{1001}", "**")
    return "".join(source.choice((atoms, atoms,
        more) [source.randrange(3)]) + source.choice(repeats) for _ in range(source.randint(1, 4)))  # fmt: skip


def _text(source: Source) -> str:
    pieces = ("a", "ab", "abc", "A", "1", "12", " ", "", "é", "👑", "\n", ",", ".", "a,b,,c", "%", "\t", "ß",
        "\\", "'", '"', "\u0000", "α", "\u0378",)  # fmt: skip
    return quoted("".join(source.choice(pieces) for _ in range(source.randint(0, 4))))


def _patterns(source: Source) -> str:
    text, pattern = _text(source), quoted(_pattern(source))
    limit = source.choice(("-1", "0", "1", "2", "100"))
    return source.choice((f"{text}.matches({pattern})", f"{text}.find({pattern})", f"{text}.findAll({pattern})",
        f"{text}.findAll({pattern}, {limit})", f"{text}.matches({pattern} + '')",
        f"{text}.findAll({pattern} + '').size()", f"matches({text}, {pattern})"))  # fmt: skip


def _strings(source: Source) -> str:
    one, two, three = _text(source), _text(source), _text(source)
    number, other = (source.choice(("-1", "0", "1", "2", "3", "5", "100", "9223372036854775807")) for _ in "ab")
    return source.choice((f"{one}.charAt({number})", f"{one}.indexOf({two})", f"{one}.indexOf({two}, {number})",
        f"{one}.lastIndexOf({two})", f"{one}.lastIndexOf({two}, {number})", f"{one}.replace({two}, {three})",
        f"{one}.replace({two}, {three}, {number})", f"{one}.split({two})", f"{one}.split({two}, {number})",
        f"{one}.substring({number})", f"strings.quote({one})", f"{one}.substring({number}, {other})",
        f"{one}.trim()", f"{one}.lowerAscii()", f"{one}.upperAscii()", f"size({one})",
        f"[{one}, {two}, {three}].join({two})", f"{one} < {two}", f"{one}.reverse()", f"bytes({one})",
        f"string(bytes({one}))", f"{one}.contains({two})", f"{one}.startsWith({two})", f"[{one}, {two}].sort()",
        f"{one} + {two} == {three}", f"bool({one})", f"'{_escape(source)}'", f"b'{_escape(source)}'",
        f"'''{_escape(source)}'''", f'r"{_escape(source)}"', f"int({one})"))  # fmt: skip


def _escape(source: Source) -> str:
    pieces = ("\\x41", "\\x4", "\\101", "\\400", "\\u00e9", "\\ud83d\\udc51", "\\U0001F451", "\\U00110000",
        "\\a\\b\\f\\v", "\\?", "\\q",)  # fmt: skip
    return "".join(source.choice((*pieces, "a", "\\n", "\\\\", '\\"', "\\`", "é", "\\xff",
        "\\377")) for _ in range(source.randint(1, 3)))  # fmt: skip


def _number(source: Source) -> str:
    return source.choice(("0", "-0.0", "1", "-1", "1.5", "0.1", "1e21", "1e20", "123456789.125", "1e-7",
        "5e-324", "1.7976931348623157e308", "1e100", "9223372036854775807", "-9223372036854775808",
        "18446744073709551615u", "0u", "1u", "0x10", "9007199254740993", "2.5", "3.5", "(0.0/0.0)", "(1.0/0.0)",
        "(-1.0/0.0)", "9223372036854775807.0", "9223372036854775808.0", "18446744073709551616.0", "1e6"))  # fmt: skip


def _numbers(source: Source) -> str:
    one, two = _number(source), _number(source)
    operator = source.choice(("+", "-", "*", "/", "%", "<", "<=", "==", "!=", ">", ">="))
    of = source.choice(("int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration", "dyn"))
    text = quoted(_mutated(source, source.choice((one, "1.5", "0x1F", "1e3", "-12", "+1", "Inf", "nan",
        "1_000")), "-+.e0xu_"))  # fmt: skip
    return source.choice((f"{of}({one})", f"{of}({text})", f"dyn({one}) {operator} dyn({two})",
        f"{one} {operator} {two}", f"string(double({text}))", f"int(double({text}))",
        f"[dyn({one}), dyn({two})].distinct()", f"dyn({one}) in [dyn({two}), 1]", f"-({one})",
        f"{{dyn({one}): 1}}[dyn({two})]", f"[{one}].max()", f"[dyn({one}), dyn({two})].sort()",
        f"[1, 2, 3][dyn({one})]", f"sets.contains([dyn({one})], [dyn({two})])",
        f"[dyn({one})].indexOf(dyn({two}))", f"double({one}) {operator} double({two})"))  # fmt: skip


def _formats(source: Source) -> str:
    verbs = ("%s", "%d", "%f", "%e", "%b", "%x", "%X", "%o", "%%", "%.0f", "%.3f", "%.10e", "%.20f", "%.s",
        "%5d", "%", "%q", "%.-1f",)  # fmt: skip
    clauses = "".join(source.choice((*verbs, "a ", "é")) for _ in range(source.randint(1, 3)))
    values = ("1", "-1", "1u", "1.5", "0.0/0.0", "'a'", "b'abc'", "true", "null", "[1, 'a']",
        "{'a': 1, 'b': [2]}", "{1: 2, true: 3}",)  # fmt: skip
    more = ("duration('1h1.5s')", "timestamp(0)", "int", "optional.of(1)", "ip('::1')", "quantity('1Ki')",
        "claims", "claims.m", "claims.l",)  # fmt: skip
    drawn = (source.choice((*values, *more, _number(source), _text(source))) for _ in range(source.randint(0, 3)))
    given = ", ".join(f"dyn({one})" for one in drawn)
    text = quoted(clauses)
    return source.choice((f"{text}.format([{given}])", f"({text} + '').format([{given}])"))


def _time_text(source: Source) -> str:
    day = source.choice(("1970-01-01", "2024-02-29", "2023-02-29", "0001-01-01", "9999-12-31", "0000-01-01",
        "10000-01-01", "2023-1-1"))  # fmt: skip
    hour = source.choice(("00:00:00", "23:59:59", "23:59:60", "24:00:00", "3:4:5", "12:30:45.123456789",
        "12:30:45.1234567891", "12:30:45,5",))  # fmt: skip
    zone = source.choice(("Z", "z", "+01:30", "-08:00", "+24:00", "", "+0100", "-00:00"))
    return quoted(_mutated(source, f"{day}{source.choice('TTTt ')}{hour}{zone}", "-:.T0Z+"))


def _duration_text(source: Source) -> str:
    units = ("h", "m", "s", "ms", "us", "µs", "ns", "d", "")
    parts = (source.choice(("0", "1", "1.5", ".5", "90", "315576000000",
        "1e3")) + source.choice(units) for _ in range(source.randint(1, 3)))  # fmt: skip
    return quoted(_mutated(source, source.choice(("", "", "-", "+")) + "".join(parts), "-.hms0"))


def _times(source: Source) -> str:
    moment, other = f"timestamp({_time_text(source)})", f"timestamp({_time_text(source)})"
    span = f"duration({_duration_text(source)})"
    part = source.choice(("FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours",
        "Minutes", "Seconds", "Milliseconds",))  # fmt: skip
    zone = source.choice(("'UTC'", "'America/New_York'", "'+05:30'", "'-00:30'", "'Asia/Kolkata'",
        "'Nowhere/X'", "''", "'5:30'", "'Local'",))  # fmt: skip
    number = _number(source)
    return source.choice((moment, span, f"{moment}.get{part}()", f"{moment}.get{part}({zone})",
        f"{moment}.get{part}({zone})", f"{moment} - {other}", f"{moment} + {span}", f"{moment} - {span}",
        f"{span}.get{part}()", f"string({moment})", f"string({span})", f"int({moment})", f"int({span})",
        f"{span} + {span}", f"{span} - {span}", f"-{span}", f"{moment} < {other}", f"timestamp({number})",
        f"duration({number})", f"[{span}, {span}].sum()", f"optional.ofNonZeroValue({moment})",
        f"{span} == {span} + {span}"))  # fmt: skip


def _named(source: Source) -> str:
    name = source.choice(("dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName",
        "dns1123LabelPrefix", "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
        "dns1123SubdomainPrefix", "x"))  # fmt: skip
    text = source.choice(("a", "A", "a-b", "a.b", "-a", "a-", "1a", "a" * 64, "a" * 254, "", "a/b", "a/b/c",
        "x.y/Z_z", "2024-02-30", "2024-02-29", "2024-02-29T00:00:00Z", "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "YWJj", "YWJ", "https://x", "é", "a_b", "a..b", "a."))  # fmt: skip
    text = quoted(_mutated(source, text, "-._/A0 "))
    direct = f"format.{name}()" if name != "x" else "format.named('x').value()"
    return source.choice((f"{direct}.validate({text})",
        f"format.named({quoted(name)}).value().validate({text})", f"{direct}.validate({text}).hasValue()",
        f"format.named({quoted(name)})", f"{direct} == {direct}",
        f"format.named({quoted(name)}).optMap(f, f.validate({text}))"))  # fmt: skip


def _path(source: Source) -> str:
    text = source.choice(("claims", "claims", "dyn(claims)", "claims.m", "claims.l[0]", "dyn(claims.m)",
        "dyn(claims.l)[0]"))  # fmt: skip
    for _ in range(source.randint(1, 3)):
        name = source.choice(_ESCAPED)
        text += source.choice(
            (
                f".{name}",
                f".?{name}",
                f"[{quoted(source.choice(_NAMES))}]",
                f"[?{quoted(name)}]",
                f".{name}",
                "[0]",
                "[?1]",
            )
        )
    return text


def _origins(source: Source) -> str:
    path, other = _path(source), _path(source)
    ranged = source.choice((f"dyn({path})", "dyn(claims.l)", "dyn(claims.m)", "claims", f"[{path}]",
        f"{{'a.b': {path}}}", f"dyn({path} + {other})",))  # fmt: skip
    name = source.choice(_ESCAPED)
    body = source.choice((f"x.{name}", f"has(x.{name})", f"x.?{name}", "optional.ofNonZeroValue(x)", "x",
        f"x[{quoted(name)}]", f"{other} == x", "x[0]", f"optional.ofNonZeroValue(x.{name})",
        f"dyn(x).map(y, y.{name})", "type(x)", f"{{'a.b': x}}.{name}", "size(x)", f"x in {other}"))  # fmt: skip
    macro = source.choice(("map(x, {})", "filter(x, {})", "exists(x, {})", "all(x, {})", "exists_one(x, {})",
        "transformList(i, x, {})"))  # fmt: skip
    macro = source.choice((macro, "transformMap(i, x, {})", "map(x, has(x.a), {})", "all(i, x, {})",
        "transformMapEntry(i, x, {{i: {}}})"))  # fmt: skip
    list_call = source.choice(("reverse()", "distinct()", "flatten()", "sort()", "slice(0, 1)", "first()",
        "last()", "sortBy(x, x.a)"))  # fmt: skip
    return source.choice((path, f"has({path}.{name})", f"{ranged}.{macro.format(body)}",
        f"{ranged}.{macro.format(body)}", f"{path} == {other}", f"{ranged}.{list_call}",
        f"{ranged}.{list_call}[0].{name}", f"optional.ofNonZeroValue({path})", f"{path}.orValue({other})",
        f"optional.of({path}).{name}", f"optional.of({path}).optMap(x, {body})",
        f"{path}.optMap(x, {body}).orValue({other})", f"type({path})", f"string({path})",
        f"({path} + {other})[0].{name}", f"size({path})", f"{path} in {other}",
        f"{path}.includes({other})"))  # fmt: skip


def _forgotten(source: Source) -> str:
    """Errors beside `||`, `&&`, `?:` and in loops: who is right, and what did it cost?"""
    makers = (_origins, _numbers, _strings, _patterns, _times, _formats)
    one, two, three = (f"dyn({source.choice(makers)(source)})" for _ in "abc")
    condition = source.choice((f"{one} == {two}", f"{one} < {two}", one, f"{two} in {one}", f"!{one}",
        f"has({_path(source)}.a)"))  # fmt: skip
    return source.choice((f"{condition} || true", f"false && {condition}", f"{condition} && false",
        f"{condition} || {three} || true", f"true || {condition}", f"{condition} ? {two} : {three}",
        f"[{one}, {two}].exists(x, x == {three})", f"[{one}, 1].all(x, {condition})",
        f"[1, 2].exists(x, {condition} || x > 1)", f"[1, 2].exists_one(x, {condition})",
        f"[1, 2].map(x, {condition}, {three})", f"optional.of({one}).or(optional.of({two})).value()",
        f"optional.none().orValue({one})", f"[{condition}].filter(x, x)"))  # fmt: skip


def _growing(source: Source) -> str:
    """A name for a list, which cel-go lets grow if it was empty."""
    one, two, three = (
        source.choice(("[]", "[1]", "dyn([])", "dyn(claims.l)", "[1].filter(y, y > 1)", "['a', 1]")) for _ in "abc"
    )
    body = source.choice((f"[dyn(x + {one}), dyn(x + {two}), dyn(x)]", f"x + {one} == x + {two}",
        f"[1, 2].map(i, x + {one})", f"size(x + {one}) + size(x)", f"(x + {one}).map(y, dyn(x) + {two})",
        f"{{'a': x + {one}, 'b': dyn(x)}}", f"{two} + x + {one}", f"[x, x + {one}, {two} + x]",
        f"optional.of(x).optMap(z, z + {one})", f"x + {one}", f"[x + {one}, {{}}[x]]",
        f"x.exists(y, size(x + {one}) > 1)",
        f"has(claims.a) ? x + {one} : x + {two}", f"[dyn(x + {one})].flatten() + dyn(x)"))  # fmt: skip
    name = source.choice(("optMap", "optMap", "optFlatMap"))
    whole = f"optional.of({three}).{name}(x, {body if name == 'optMap' else f'optional.of({body})'})"
    return source.choice((whole, whole, f"{whole}.value()", f"{whole}.optMap(z, [dyn(z), dyn(z)])"))


_KINDS: tuple[Callable[[Source], str], ...] = (_quantities, _semvers, _addresses, _urls, _patterns, _strings,
    _numbers, _formats, _times, _named, _origins, _origins, _forgotten, _growing,)  # fmt: skip


def idiom(source: Source) -> str:
    return source.choice(_KINDS)(source)
