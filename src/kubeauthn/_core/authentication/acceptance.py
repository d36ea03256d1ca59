"""The short way from a signature that is good to the user, for the token that is accepted.

Most tokens are. For them nobody needs to know which check would be named, where, and in what words, and leaving that
out halves what the checks cost. Whatever is not plainly in order ends here with None, and the steps with their reasons
decide (`verify`, `rules`, `mapping`): so this module can only ever say yes, and where it does they would say the same.
A test holds it to that with every recorded token.

For each authenticator one Python function is written that does what its configuration asks for and nothing else, the
statements of its expressions among them. Of the configuration's texts nothing gets into the source but the `repr`s of
constants in expressions: the others are handed over under names.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.claim_sources import NAMES, SOURCES
from kubeauthn._core.authentication.expressions import EXPECTED, TOKEN_COST_LIMIT
from kubeauthn._core.authentication.go_time import LARGEST_SECONDS
from kubeauthn._core.authentication.mapping import CREDENTIAL_ID
from kubeauthn._core.authentication.verdict import NO_EXTRA, Authenticated, UserInfo
from kubeauthn._core.authentication.verify import NOT_BEFORE_LEEWAY_SECONDS
from kubeauthn.cel.kubernetes import claims_environment, user_environment
from kubeauthn.cel.writer import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.authentication.compiled import CompiledAuthenticator
    from kubeauthn.cel import Environment, Program

    Accept = Callable[[dict[str, Any], float], Authenticated | None]

_NAMES: dict[str, object] = {
    "Authenticated": Authenticated,
    "CREDENTIAL_ID": CREDENTIAL_ID,
    "EXPECTED": EXPECTED,
    "LIMIT": TOKEN_COST_LIMIT,
    "NO_EXTRA": NO_EXTRA,
    "UserInfo": UserInfo,
    "new": tuple.__new__,  # half of what calling the class takes
    "read_only": MappingProxyType,
}


_FIELDS = {"user": {"username": "name", "uid": "uid", "groups": "groups"}}
"""What expressions read of the user without there being one yet."""


def acceptance(authenticator: CompiledAuthenticator, kubernetes: str) -> Accept:
    """What makes a verdict of claims whose signature is good and of the time, or says None."""
    writer = _Writer({"claims": claims_environment(kubernetes), "user": user_environment(kubernetes)})
    python = _source(authenticator, writer)
    exec(compile(python, "<acceptance>", "exec"), writer.names)  # noqa: S102 - own names only, see above
    accept: Accept = writer.names["accept"]  # type: ignore[assignment]
    return accept


class _Writer:
    def __init__(self, environments: dict[str, Environment]) -> None:
        self.names = dict(_NAMES)
        self.lines: list[str] = []
        self.costs: list[str] = []
        self.used: set[str] = set()
        """Variables of which more is looked at than `_FIELDS`."""
        self._environments = environments
        self._programs = 0

    def hand_over(self, value: object) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def write(self, line: str) -> None:
        self.lines.append(line)

    def refuse(self, condition: str, indent: str = "") -> None:
        """Not plainly in order: the steps decide."""
        self.lines.append(f"{indent}if {condition}: return None")

    def run(self, target: str, program: Program, variable: str = "claims") -> None:
        """What an expression comes to: its statements, or a call where they are too many. Its cost is counted."""
        self._programs += 1
        prefix = f"p{self._programs}_"
        inlined = self._environments[variable].inline(program, prefix, _FIELDS)
        if inlined is None:
            self.used.add(variable)
            self.write(f"{target}, {prefix}cost = {self.hand_over(program.run)}({{{variable!r}: {variable}}})")
            self.costs.append(f"{prefix}cost")
        else:
            self.names.update(inlined.names)
            self.used.update(inlined.variables)
            self.lines += [f"{python} = {variable}" for python in inlined.variables.values()]
            self.lines += [line.removeprefix("    ") for line in inlined.lines]
            self.write(f"{target} = {inlined.value}")
            self.costs.append(inlined.cost)


def _source(authenticator: CompiledAuthenticator, w: _Writer) -> str:
    mappings = authenticator.config.claim_mappings
    _write_registered(authenticator, w)
    for rule in authenticator.claim_rules:
        if rule.program is None:
            w.refuse(f"claims[{w.hand_over(rule.rule.claim)}] != {w.hand_over(rule.rule.required_value)}")
        else:
            w.run("met", rule.program)
            w.refuse("met is not True")

    if authenticator.username is not None:
        w.run("name", authenticator.username)
    else:
        w.write(f"name = claims[{w.hand_over(mappings.username.claim)}]")
        if mappings.username.claim == "email":
            w.refuse("claims.get('email_verified', True) is not True")
    w.refuse("type(name) is not str or not name")
    if authenticator.username is None and mappings.username.prefix:
        w.write(f"name = {w.hand_over(mappings.username.prefix)} + name")

    if authenticator.uid is not None:
        w.run("uid", authenticator.uid)
    else:
        w.write(f"uid = claims[{w.hand_over(mappings.uid.claim)}]" if mappings.uid.claim else "uid = ''")
    w.refuse("type(uid) is not str")
    _write_groups(authenticator, w)
    _write_extra(authenticator, w)
    _write_user_rules(authenticator, w)

    if "c" in w.costs:
        # One count for all: whoever comes to the limit of a single expression with them together is left to the steps.
        w.lines.insert(0, COUNTERS)
    fixed = sum(int(cost) for cost in w.costs if cost.isdigit())
    counted = dict.fromkeys(cost for cost in w.costs if not cost.isdigit())
    w.refuse(f"{' + '.join([*counted, str(fixed)])} > LIMIT")
    w.write("user = new(UserInfo, (name, uid, tuple(groups), read_only(extra) if extra else NO_EXTRA))")
    w.write(f"return new(Authenticated, (user, {w.hand_over(authenticator.config.issuer.url)}, int(ends)))")
    return "\n".join([
        "def accept(claims, now):",
        # anything but a plain dict has claims that cannot be read
        "    if type(claims) is not dict: return None",
        "    try:",
        *(f"        {line}" for line in w.lines),
        "    except EXPECTED: return None",
    ])  # fmt: skip


def _write_registered(authenticator: CompiledAuthenticator, w: _Writer) -> None:
    """Types, audience and times. Claims of other sources, and the last second of a token, are left to the steps."""
    w.refuse(f"{NAMES!r} in claims or {SOURCES!r} in claims")
    for name, kind in (("sub", "str"), ("iat", "float"), ("nonce", "str"), ("at_hash", "str")):
        w.refuse(f"{name!r} in claims and type(claims[{name!r}]) is not {kind}")

    audiences = w.hand_over(authenticator.config.issuer.audiences)
    w.write("meant = claims['aud']")
    w.write("if type(meant) is not str:")
    w.refuse("type(meant) is not list", "    ")
    w.write("    ''.join(meant)  # fails where one is no text")
    w.write(f"    meant = next((audience for audience in meant if audience in {audiences}), None)")
    w.refuse(f"meant not in {audiences}")

    w.write("ends = claims['exp']")
    w.refuse(f"type(ends) is not float or not now + 1.0 < ends < {LARGEST_SECONDS / 2}")
    w.write("if 'nbf' in claims:")
    w.write("    begin = claims['nbf']")
    w.refuse(f"type(begin) is not float or now + {NOT_BEFORE_LEEWAY_SECONDS} < begin", "    ")


def _write_groups(authenticator: CompiledAuthenticator, w: _Writer) -> None:
    mapping = authenticator.config.claim_mappings.groups
    if authenticator.groups is not None:
        w.run("groups", authenticator.groups)
    elif mapping.claim:
        w.write(f"groups = claims.get({w.hand_over(mapping.claim)})")
        w.write("if groups is None: groups = []")
    else:
        w.write("groups = []")
        return
    w.write("if type(groups) is str: groups = [groups]")
    w.refuse("type(groups) is not list")
    w.refuse("'' in groups")
    w.write("''.join(groups)  # fails where one is no text")
    if authenticator.groups is None and mapping.prefix:
        prefix = w.hand_over(mapping.prefix)
        w.write(f"groups = [{prefix} + group for group in groups]")


def _write_extra(authenticator: CompiledAuthenticator, w: _Writer) -> None:
    w.write("extra = {}")
    w.write("token_id = claims.get('jti')")
    w.write("if token_id:")
    w.refuse("type(token_id) is not str", "    ")
    w.write("    extra[CREDENTIAL_ID] = (f'JTI={token_id}',)")
    for mapping in authenticator.extra:
        w.run("value", mapping.program)
        w.refuse("type(value) is not str or not value")
        w.write(f"extra[{w.hand_over(mapping.key)}] = (value,)")


def _write_user_rules(authenticator: CompiledAuthenticator, w: _Writer) -> None:
    start = len(w.lines)
    for rule in authenticator.user_rules:
        w.run("met", rule.program, "user")
        w.refuse("met is not True")
    if "user" in w.used:
        lists = "{key: list(values) for key, values in extra.items()}"
        w.lines.insert(start, f"user = {{'username': name, 'uid': uid, 'groups': groups, 'extra': {lists}}}")
