"""The protected header of a token: its algorithm and key id. Everything that would bring its own key is ignored."""

from __future__ import annotations

import json
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner; typeshed leaves it out
from typing import Any, NamedTuple

from kubeauthn._core.jose.go_json import kind, syntax_fault
from kubeauthn.cel.go_text import quote
from kubeauthn.cel.large_numbers import TooLarge, first_too_large

_SHOWN = 200
"""Characters of a member of the wrong type that a reason shows."""


class Header(NamedTuple):
    algorithm: str
    kid: str
    critical: bool
    """It names extensions that must be understood; none is. Or it says that the payload is not encoded."""
    ignored: tuple[str, ...]
    """Members that would bring a key or say where to find one: they are never used."""


class BadHeader(ValueError):
    """No header, in the words of the decoder that kube-apiserver uses."""


def read_header(raw: bytes) -> Header:
    """Raises BadHeader."""
    try:
        return _header(raw)
    except RecursionError:  # also while it is looked for what else is wrong
        raise BadHeader("exceeded max depth") from None


def _header(raw: bytes) -> Header:
    text = raw.decode("utf-8", "replace")
    members = _members(raw, text)
    algorithm = _text(members, "alg", text)
    kid = _text(members, "kid", text)
    _text(members, "nonce", text)
    _check_embedded(members, text)
    _check_numbers(members, text)
    ignored = tuple(name for name in ("jku", "jwk", "x5u", "x5c") if name in members)
    return Header(algorithm, kid, "crit" in members or members.get("b64") is False, ignored)


def _members(raw: bytes, text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        decoded = _DECODER.decode(text)
    except (json.JSONDecodeError, BadHeader) as error:
        # a text that is no JSON is nothing else besides
        raise BadHeader(syntax_fault(raw) or _duplicate_fault(text) or str(error)) from None
    if decoded is None:
        return {}
    if not isinstance(decoded, dict):
        raise BadHeader(f"json: cannot unmarshal {kind(decoded)} into Go value of type jose.rawHeader")
    return decoded


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs) or not all(map(str.isascii, members)):
        members = {}
        for written, value in pairs:
            name = _as_go_reads(written)
            if name in members:
                raise BadHeader(f"json: duplicate key '{name}' in object")
            members[name] = value
    return members


def _as_go_reads(name: str) -> str:
    """Half of a surrogate pair is no character: Go reads it as U+FFFD."""
    return name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _duplicate_fault(text: str) -> str:
    """What is said of a name that is given twice: where it is, decides."""
    members = json.loads(text, object_pairs_hook=_Pairs, parse_int=float)
    if not isinstance(members, _Pairs):
        return f"json: cannot unmarshal {kind(members)} into Go value of type jose.rawHeader"
    outermost = _first_twice([name for name, _ in members])
    if outermost is not None:
        return f"json: duplicate key '{outermost}' in object"
    for name, value in members:
        twice = _first_twice_within(value)
        if twice is None:
            continue
        written = _written(text, name, _PLAIN.scan_once)  # type: ignore[attr-defined]
        if name in _TITLES:
            return _of_string(_TITLES[name], kind(_outermost(value)), written)
        title, fault = _embedded_fault(name, _outermost(value))
        fault = fault or f"json: duplicate key '{twice}' in object"
        return f"failed to unmarshal {title}: {fault}: {written}"
    return ""


def _embedded_fault(name: str, value: object) -> tuple[str, str]:
    """What is said of a key or certificates that are of another type: nobody then looks for what is there twice."""
    if name not in ("jwk", "x5c"):
        return "value", ""
    from kubeauthn._core.jose.embedded_key import chain_fault, key_fault

    if name == "x5c":
        return "x5c header", chain_fault(value)
    return "JWK", "" if isinstance(value, dict) else key_fault(value)


def _outermost(value: object) -> object:
    """What decides about a type: whether it is an object or a list, and of what."""
    if isinstance(value, _Pairs):
        return {}
    return [{} if isinstance(inner, _Pairs) else inner for inner in value] if isinstance(value, list) else value


class _Pairs(list[tuple[str, Any]]):
    """The members of an object, those that are there twice included."""


def _first_twice(names: list[str]) -> str | None:
    seen: set[str] = set()
    for name in map(_as_go_reads, names):
        if name in seen:
            return name
        seen.add(name)
    return None


def _first_twice_within(value: object) -> str | None:
    waiting = [value]
    while waiting:
        current = waiting.pop()
        if isinstance(current, _Pairs):
            twice = _first_twice([name for name, _ in current])
            if twice is not None:
                return twice
            waiting += [inner for _, inner in current]
        elif isinstance(current, list):
            waiting += current
    return None


def _no_constant(text: str) -> None:
    raise BadHeader(f"invalid character '{text[0]}' looking for beginning of value")


def _number(text: str) -> float | TooLarge:
    """A float, because an integer of 100,000 digits would cost much as an int."""
    number = float(text)
    return TooLarge(text) if number in (float("inf"), float("-inf")) else number


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_no_constant, parse_int=_number, parse_float=_number
)
_PLAIN = json.JSONDecoder(parse_int=float)
_scan = _DECODER.scan_once  # type: ignore[attr-defined]


_TITLES = {"alg": "algorithm", "kid": "key ID", "nonce": "nonce"}


def _of_string(title: str, shown: str, written: str) -> str:
    return f"failed to unmarshal {title}: json: cannot unmarshal {shown} into Go value of type string: {written}"


def _text(members: dict[str, Any], name: str, text: str) -> str:
    value = members.get(name)
    if value is None:
        return ""
    if type(value) is not str:
        raise BadHeader(_of_string(_TITLES[name], kind(value), _written(text, name)))
    # half a surrogate pair is no character
    return value if value.isascii() else "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)


def _check_embedded(members: dict[str, Any], text: str) -> None:
    jwk, chain = members.get("jwk"), members.get("x5c")
    if jwk is None and chain is None:
        return
    from kubeauthn._core.jose.embedded_key import chain_fault, is_no_public_key, key_fault  # hardly any token has one

    if jwk is not None:
        if fault := key_fault(jwk):
            raise BadHeader(f"failed to unmarshal JWK: {fault}: {_written(text, 'jwk')}")
        if is_no_public_key(jwk):
            raise BadHeader("go-jose/go-jose: invalid embedded jwk, must be public key")
    if chain is not None and (fault := chain_fault(chain)):
        raise BadHeader(f"failed to unmarshal x5c header: {fault}: {_written(text, 'x5c')}")


def _check_numbers(members: dict[str, Any], text: str) -> None:
    for name, value in members.items():
        number = None if type(value) is str else first_too_large(value)
        if number is not None and name not in _READ_ALREADY:
            fault = f"json: cannot unmarshal number {number} into Go value of type float64: {_written(text, name)}"
            raise BadHeader(f"failed to unmarshal value: {fault}")


_READ_ALREADY = ("alg", "kid", "nonce", "jwk", "x5c")


def _written(text: str, name: str, scan: Callable[[str, int], tuple[Any, int]] = _scan) -> str:
    """A member as it is written in the header, as Go's %#v prints it. The header has been decoded already."""
    name = _as_go_reads(name)
    at = text.index("{") + 1
    while True:
        found, at = scanstring(text, text.index('"', at) + 1, True)
        start = _after_space(text, text.index(":", at) + 1)
        _, at = scan(text, start)
        if _as_go_reads(found) == name:
            written = text[start:at]
            return quote(written if len(written) <= _SHOWN else written[:_SHOWN] + "…")


def _after_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at
