"""Tokens as no library writes them: odd numbers, names and texts in their JSON, more or less in their headers, base64
that is not quite."""

from __future__ import annotations

import base64
import json
import random
from typing import Any

from kubeauthn.testing._signing import SigningKey, base64url

__all__ = ["odd_json", "odd_token", "signed"]

_NUMBERS_TEXT = (
    "0 -0 0.0 -0.0 1 1.0 1e0 1E+2 1e-2 10e-1 0.1 123456789012345678901234567890 9007199254740993 "
    "9223372036854775807 9223372036854775808 18446744073709551615 -9223372036854775808 1e21 1e20 1e308 1e309 "
    "-1e309 5e-324 1e-400 1e-7 1e-6 1.7976931348623157e308 1800003600 1.8000036e9 18000036e2 1800000000.5 "
    "1799999999.999 1e10 -1 01 +1 .5 1. 0x1 1e NaN Infinity "
)
_NUMBERS = _NUMBERS_TEXT.split()
_TEXTS = (
    '"\\u0041"',
    '"\\u00e9"',
    '"\\ud83d\\udc51"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud800\\u0041"',
    '"\\/"',
    '"\\b\\f\\n\\r\\t"',
    '"\\u0000"',
    '"\\x41"',
    '"\x01"',
    '"\t"',
    '"\x7f"',
    '"\u2028"',
    '"\ufeff"',
    '"\ufffd"',
    '"\\uD83D"',
    '"\\u12"',
    "'a'",
    '"a',
    '""',
    '" "',
    '"a\\',
    "true",
    "false",
    "null",
    "True",
    "nul",
    "[]",
    "{}",
    "[1,]",
    "[,]",
    '{"a":1,}',
    '{"a":1,"a":2}',
    "[[[[]]]]",
    '{"a":{"b":{"c":null}}}',
    '[null,true,1,"x"]',
    '["a","a"]',
    '[["a"]]',
    "[{}]",
    "/**/1",
    "1 2",
    "",
)
_SPACES = ("", "", "", " ", "\n", "\t", "\r\n", "\x0b", "\xa0")


def odd_json(source: random.Random, members: dict[str, Any]) -> str:
    """An object with these members, one or two of them odd."""
    pairs = [
        (json.dumps(name), json.dumps(value, ensure_ascii=source.random() < 0.5)) for name, value in members.items()
    ]
    for _ in range(source.choice((0, 1, 1, 2))):
        pairs = _odder(source, pairs)
    space = source.choice(_SPACES)
    text = "{" + ("," + space).join(f"{name}{space}:{value}" for name, value in pairs) + "}"
    if source.random() < 0.04:
        text = source.choice(
            (
                text + " ",
                text + "\n",
                " " + text,
                text + "}",
                text + "x",
                text[:-1],
                f"[{text}]",
                "\ufeff" + text,
                json.dumps(text),
                "",
                "null",
                text + text,
                text + "\x00",
            )
        )
    return text


def _odder(source: random.Random, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    place = source.randrange(len(pairs)) if pairs else 0
    name, value = pairs[place] if pairs else ('"a"', "1")
    action = source.random()
    odd = source.choice(_NUMBERS) if source.random() < 0.5 else source.choice(_TEXTS)
    if action < 0.5:
        changed = [(name, odd)]
    elif action < 0.65:
        changed = [(name, value), (name, odd)] if source.random() < 0.5 else [(name, odd), (name, value)]
    elif action < 0.75:
        plain = name.strip('"')
        changed = [
            (
                source.choice(
                    (
                        json.dumps(plain.upper()),
                        json.dumps(plain.capitalize()),
                        json.dumps(plain + " "),
                        '"' + "".join(f"\\u{ord(c):04x}" for c in plain) + '"',
                        json.dumps(plain.replace("s", "\u017f")),
                    )
                ),
                value,
            )
        ]
        if source.random() < 0.5:
            changed.append((name, value))
    elif action < 0.85:
        changed = []
    else:
        changed = [
            (name, value),
            (
                source.choice(
                    (
                        '"a.b"',
                        '""',
                        '"é"',
                        '"__proto__"',
                        '"\\ud800"',
                        "a",
                        "1",
                        '"groups"',
                        '"email"',
                        '"jti"',
                        '"sub"',
                        '"aud"',
                    )
                ),
                odd,
            ),
        ]
    return pairs[:place] + changed + pairs[place + 1 :]


def odd_token(source: random.Random, key: SigningKey, claims: str, header: dict[str, Any]) -> str:
    """A token over these claims that may be odd in its header or in its text; signed all the same."""
    header = dict(header)
    if source.random() < 0.3:
        header |= source.choice(
            (
                {"alg": "none"},
                {"alg": "HS256"},
                {"alg": key.alg.lower()},
                {"alg": source.choice(("RS256", "RS512", "ES256", "ES384", "PS256", "EdDSA"))},
                {"alg": None},
                {"alg": ""},
                {"alg": 1},
                {"kid": None},
                {"kid": 1},
                {"kid": ["k1"]},
                {"kid": "k1 "},
                {"crit": ["exp"], "exp": 1},
                {"crit": []},
                {"crit": None},
                {"b64": False},
                {"b64": False, "crit": ["b64"]},
                {"typ": "at+jwt"},
                {"typ": 1},
                {"typ": None},
                {"cty": "JWT"},
                {"zip": "DEF"},
                {"jwk": key.jwk()},
                {"x5c": ["a"]},
                {"jku": "https://x"},
                {"nonce": "a"},
                {"nonce": 1},
                {"foo": {"a": [1]}},
                {"ALG": "none"},
                {"Kid": "other"},
                {"enc": "A128GCM"},
                {"x5t": "a"},
                {"url": "a"},
                {"epk": {}},
                {"p2c": 1},
                {"": ""},
            )
        )
    head = odd_json(source, header) if source.random() < 0.2 else json.dumps(header)
    parts = [_encoded(head), _encoded(claims)]
    signature = key._signature(".".join(parts).encode())
    if source.random() < 0.03:
        signature = source.choice((b"", signature[:-1], signature + b"\x00", bytes(len(signature)), signature[::-1]))
    token = ".".join([*parts, base64.urlsafe_b64encode(signature).decode().rstrip("=")])
    return _misspelt(source, token) if source.random() < 0.12 else token


def signed(key: SigningKey, claims: str, header: dict[str, Any]) -> str:
    """The token over exactly these claims."""
    message = f"{_encoded(json.dumps(header))}.{_encoded(claims)}"
    return f"{message}.{base64url(key._signature(message.encode()))}"


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def _misspelt(source: random.Random, token: str) -> str:
    place = source.randrange(len(token) + 1)
    parts = token.split(".")
    some = source.randrange(len(parts))
    padded = [*parts[:some], parts[some] + "=" * (-len(parts[some]) % 4), *parts[some + 1 :]]
    return source.choice(
        (
            token[:place],
            token[:place] + source.choice((" ", "\n", "=", ".", "+", "/", "é", "A", "\x00", "-", "~")) + token[place:],
            token[:place] + token[place + 1 :],
            f" {token}",
            f"{token} ",
            f"{token}\n",
            f"{token}.",
            f".{token}",
            f"Bearer {token}",
            ".".join(padded),
            token.replace("-", "+").replace("_", "/"),
            ".".join(parts[:2]),
            ".".join(parts[:2]) + ".",
            f".{parts[1]}.{parts[2]}",
            f"{parts[0]}..{parts[2]}",
            ".".join([*parts, parts[2]]),
            "",
            "a",
            "a.b.c",
            "..",
            "...",
            json.dumps({"payload": parts[1], "protected": parts[0], "signature": parts[2]}),
            token.replace(".", "..", 1),
            token.swapcase(),
        )
    )
