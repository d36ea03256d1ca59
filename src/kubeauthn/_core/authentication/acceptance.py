"""The short way through rules and mappings, for the token that is accepted.

Most tokens are. For them nobody needs to know which rule would be named, where, and in what words, and leaving that out
halves what rules and mappings cost. Whatever is not plainly in order ends here with None, and the steps with their
reasons decide (`rules`, `mapping`): so this module can only ever say yes, and where it does they would say the same.
A test holds it to that with every recorded token.

For each authenticator one Python function is written that does what its configuration asks for and nothing else. Of the
configuration only the shape gets into the source; its texts and programs are handed over under names.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kubeauthn._core.authentication.expressions import EXPECTED, TOKEN_COST_LIMIT
from kubeauthn._core.authentication.mapping import CREDENTIAL_ID
from kubeauthn._core.authentication.verdict import NO_EXTRA, UserInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeauthn._core.authentication.compiled import CompiledAuthenticator
    from kubeauthn.cel import Program

    Accept = Callable[[dict[str, Any]], UserInfo | None]

_NAMES: dict[str, object] = {
    "CREDENTIAL_ID": CREDENTIAL_ID,
    "EXPECTED": EXPECTED,
    "LIMIT": TOKEN_COST_LIMIT,
    "NO_EXTRA": NO_EXTRA,
    "UserInfo": UserInfo,
    "new": tuple.__new__,  # half of what calling the class takes
    "read_only": MappingProxyType,
}


def acceptance(authenticator: CompiledAuthenticator) -> Accept:
    """What makes a user of verified claims, or says None."""
    writer = _Writer()
    python = _source(authenticator, writer)
    exec(compile(python, "<acceptance>", "exec"), writer.names)  # noqa: S102 - own names only, see above
    accept: Accept = writer.names["accept"]  # type: ignore[assignment]
    return accept


class _Writer:
    def __init__(self) -> None:
        self.names = dict(_NAMES)
        self.lines: list[str] = []
        self.runs = 0

    def hand_over(self, value: object) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def refuse(self, condition: str, indent: str = "") -> None:
        """Not plainly in order: the steps decide."""
        self.lines.append(f"{indent}if {condition}: return None")

    def write(self, line: str) -> None:
        self.lines.append(line)

    def run(self, target: str, program: Program) -> None:
        """What an expression comes to; its cost is kept in a variable of its own."""
        self.runs += 1
        self.lines.append(f"{target}, c{self.runs} = {self.hand_over(program.run)}(variables)")


def _source(authenticator: CompiledAuthenticator, w: _Writer) -> str:
    mappings = authenticator.config.claim_mappings
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

    if authenticator.user_rules:
        w.write("variables['user'] = {'username': name, 'uid': uid, 'groups': groups, 'extra': lists}")
    for user_rule in authenticator.user_rules:
        w.run("met", user_rule.program)
        w.refuse("met is not True")

    if w.runs:
        w.refuse(f"{' + '.join(f'c{number + 1}' for number in range(w.runs))} > LIMIT")
    w.write("return new(UserInfo, (name, uid, tuple(groups), read_only(extra) if extra else NO_EXTRA))")
    return "\n".join([
        "def accept(claims):",
        # anything but a plain dict has claims that are elsewhere or cannot be read
        "    if type(claims) is not dict: return None",
        "    variables = {'claims': claims}",
        "    try:",
        *(f"        {line}" for line in w.lines),
        "    except EXPECTED: return None",
    ])  # fmt: skip


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
    w.write("for group in groups:")
    w.refuse("type(group) is not str or not group", "    ")
    if authenticator.groups is None and mapping.prefix:
        prefix = w.hand_over(mapping.prefix)
        w.write(f"groups = [{prefix} + group for group in groups]")


def _write_extra(authenticator: CompiledAuthenticator, w: _Writer) -> None:
    """`extra`, and the same in lists for rules on the user."""
    w.write("extra, lists = {}, {}")
    w.write("token_id = claims.get('jti')")
    w.write("if token_id:")
    w.refuse("type(token_id) is not str", "    ")
    w.write("    value = f'JTI={token_id}'")
    w.write("    extra[CREDENTIAL_ID] = (value,); lists[CREDENTIAL_ID] = [value]")
    for mapping in authenticator.extra:
        w.run("value", mapping.program)
        w.refuse("type(value) is not str or not value")
        key = w.hand_over(mapping.key)
        w.write(f"extra[{key}] = (value,); lists[{key}] = [value]")
