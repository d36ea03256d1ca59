"""CEL: the expressions of a typical configuration, beside cel-go in Kubernetes and the three packages for Python.

A reading is what one token costs: its claims as JSON text are decoded and converted, then every expression is
evaluated. The user, which a mapping makes, is at hand as a dictionary; a row of its own has it parsed from JSON too, on
both sides, which is time that no engine can save. A peer is given those of the six that it can compile; so are we.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import peer
from bench.measure import (
    Row,
    cpu_per_call,
    difference_row,
    growth_rows,
    in_turns,
    interleaved,
    limit_row,
    ratio_row,
    seconds_per_call,
)
from bench.startup import started

CEL_GO = "cel-go in Kubernetes"
CLAIMS = (
    'claims.username + ":external-user"',
    'claims.roles.split(",")',
    "claims.exp - claims.nbf <= 86400",
    "claims.?email_verified.orValue(true)",
)
USER = ('!user.username.startsWith("system:")', 'user.groups.all(g, !g.startsWith("system:"))')
PAYLOAD = json.dumps(
    {
        "iss": "https://example.com",
        "sub": "119abc",
        "aud": "my-app",
        "exp": 1700086400.0,
        "nbf": 1700000000.0,
        "username": "jane",
        "roles": "admin,dev,ops",
        "email_verified": True,
        "groups": ["g1", "g2"],
    }
)
RESULT = {"username": "jane:external-user", "uid": "119abc", "groups": ["admin", "dev", "ops"]}

# An evaluator takes the data and returns something; None where the package cannot compile the expression.
Compile = Callable[[str, str], Callable[[dict[str, Any]], object] | None]


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    calls, rounds = (200, 5) if quick else (2000, 21)
    for name, compile_expression in peers().items():
        usable = [(text, "claims") for text in CLAIMS if compile_expression(text, "claims")]
        usable += [(text, "user") for text in USER if compile_expression(text, "user")]
        few = calls // 20 if name == "cel-python" else calls
        yield ratio_row(
            f"cel: {len(usable)} of the six expressions",
            interleaved(
                cpu_per_call(ours(usable), calls), cpu_per_call(theirs(compile_expression, usable), few), rounds
            ),
            peer_name=name,
            goal=0.25,
        )
        if name == "cel-expr-python":
            both = (
                cpu_per_call(_and_parse(ours(usable)), calls),
                cpu_per_call(_and_parse(theirs(compile_expression, usable)), calls),
            )
            readings = interleaved(*both, rounds)
            yield ratio_row("cel: the same, the user parsed from JSON too", readings, peer_name=name, goal=0.25)
    yield from _beside_cel_go(calls, rounds)
    yield from _compiling(calls // 20, rounds)
    yield from _importing(15 if quick else 41)
    yield from _growing(quick)


def _and_parse(token: Callable[[], None]) -> Callable[[], None]:
    text = json.dumps(RESULT)

    def with_user() -> None:
        json.loads(text)
        token()

    return with_user


def ours(expressions: list[tuple[str, str]]) -> Callable[[], None]:
    from kubeauthn.cel import kubernetes

    claims_environment, user_environment = kubernetes.claims_environment(), kubernetes.user_environment()
    of_claims = [claims_environment.compile(text) for text, variable in expressions if variable == "claims"]
    of_user = [user_environment.compile(text) for text, variable in expressions if variable == "user"]

    def token() -> None:
        variables = {"claims": kubernetes.decode_claims(PAYLOAD)}
        for program in of_claims:
            program.evaluate(variables)
        variables = {"user": RESULT}
        for program in of_user:
            program.evaluate(variables)

    return token


def theirs(compile_expression: Compile, expressions: list[tuple[str, str]]) -> Callable[[], None]:
    programs = [(compile_expression(text, variable), variable) for text, variable in expressions]

    def token() -> None:
        claims, user = json.loads(PAYLOAD), RESULT
        for program, variable in programs:
            assert program is not None
            program(claims if variable == "claims" else user)

    return token


def peers() -> dict[str, Compile]:
    found: dict[str, Compile] = {}
    for name, make in (
        ("cel-expr-python", _cel_expr_python),
        ("common-expression-language", _common_expression_language),
        ("cel-python", _cel_python),
    ):
        try:
            found[name] = make()
        except ImportError:
            print(f"      {name} is not installed for this Python: left out")
    return found


def _cel_expr_python() -> Compile:
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_optional, ext_strings

    kind = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
    environment = cel.NewEnv(
        variables={"claims": kind, "user": kind}, extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings()]
    )

    def compile_expression(text: str, variable: str) -> Callable[[dict[str, Any]], object] | None:
        try:
            program = environment.compile(text)
            run = lambda data: program.eval(data={variable: data}).plain_value()  # noqa: E731
            run(json.loads(PAYLOAD) if variable == "claims" else RESULT)
        except Exception:
            return None
        return run

    return compile_expression


def _common_expression_language() -> Compile:
    import cel

    def compile_expression(text: str, variable: str) -> Callable[[dict[str, Any]], object] | None:
        try:
            program = cel.compile(text)
            run = lambda data: program.execute({variable: data})  # noqa: E731
            run(json.loads(PAYLOAD) if variable == "claims" else RESULT)
        except Exception:
            return None
        return run

    return compile_expression


def _cel_python() -> Compile:
    import celpy

    environment = celpy.Environment()

    def compile_expression(text: str, variable: str) -> Callable[[dict[str, Any]], object] | None:
        try:
            program = environment.program(environment.compile(text))
            run = lambda data: program.evaluate({variable: celpy.json_to_cel(data)})  # noqa: E731
            run(json.loads(PAYLOAD) if variable == "claims" else RESULT)
        except Exception:
            return None
        return run

    return compile_expression


def _beside_cel_go(calls: int, rounds: int) -> Iterator[Row]:
    """Each expression by itself, with claims and user as they are at hand; then what one token costs, from JSON on."""
    with peer.started() as kubernetes:
        if kubernetes is None:
            return
        for text in (*CLAIMS, *USER):
            chosen = {"claims": [text] if text in CLAIMS else [], "user": [text] if text in USER else []}
            kubernetes.order("prepare evaluate", name=text, payload=PAYLOAD, info=RESULT, decoded=True, **chosen)
            readings = interleaved(
                cpu_per_call(one_expression(text), calls * 5), kubernetes.cpu_per_call(text, calls), rounds
            )
            yield ratio_row(f"cel: {text}", readings, peer_name=CEL_GO, goal=1, unit="ns", scale=1e9)
        for count in (1, 10, 100, 1000):
            name, info = f"{count} groups", {"username": "jane", "groups": [f"group-{index}" for index in range(count)]}
            chosen = {"claims": [], "user": [USER[1]]}
            kubernetes.order("prepare evaluate", name=name, payload=PAYLOAD, info=info, decoded=True, **chosen)
            few = max(10, calls // count)
            readings = interleaved(
                cpu_per_call(one_expression(USER[1], info), few), kubernetes.cpu_per_call(name, few), rounds
            )
            title = f"cel: {USER[1]}, {count:,} group{'s' if count > 1 else ''}"
            yield ratio_row(title, readings, peer_name=CEL_GO, goal=1)
        every = {"claims": list(CLAIMS), "user": list(USER)}
        kubernetes.order("prepare evaluate", name="all", payload=PAYLOAD, info=RESULT, **every)
        expressions = [(text, "claims") for text in CLAIMS] + [(text, "user") for text in USER]
        readings = interleaved(cpu_per_call(ours(expressions), calls), kubernetes.cpu_per_call("all", calls), rounds)
        yield ratio_row("cel: the six expressions, claims from JSON", readings, peer_name=CEL_GO, goal=1)


def one_expression(text: str, user: dict[str, Any] = RESULT) -> Callable[[], object]:
    from kubeauthn.cel import kubernetes

    if text in CLAIMS:
        program = kubernetes.claims_environment().compile(text)
        variables: dict[str, Any] = {"claims": kubernetes.decode_claims(PAYLOAD)}
    else:
        program, variables = kubernetes.user_environment().compile(text), {"user": user}
    return lambda: program.evaluate(variables)


def _compiling(calls: int, rounds: int) -> Iterator[Row]:
    from kubeauthn.cel import kubernetes

    of_claims, of_user = kubernetes.claims_environment(), kubernetes.user_environment()
    for text in (*CLAIMS, *USER):
        environment = of_claims if text in CLAIMS else of_user
        environment.compile(text)
        readings = [
            seconds_per_call(lambda text=text, of=environment: of.compile(text), calls)() for _ in range(rounds)
        ]
        yield limit_row(f"cel: compile {text}", [reading * 1e3 for reading in readings], most=2.0, unit="ms")


def _importing(rounds: int) -> Iterator[Row]:
    """The import alone, which is lazy, and the first expression, which needs nearly all of the package."""
    first = "from kubeauthn import cel; cel.kubernetes.claims_environment().compile('claims.sub')"
    bare = started([sys.executable, "-c", "pass"])
    beside: dict[str, Any] = {"peer_name": "python -c pass", "unit": "ms", "scale": 1e3}
    readings = interleaved(started([sys.executable, "-c", "import kubeauthn.cel"]), bare, rounds, elsewhere=True)
    yield difference_row("cel: import kubeauthn.cel", readings, goal=25, **beside)
    readings = interleaved(started([sys.executable, "-c", first]), bare, rounds, elsewhere=True)
    yield ratio_row("cel: import, environment, one expression", readings, goal=None, **beside)


def _growing(quick: bool) -> Iterator[Row]:
    """Ten times the groups may take at most about ten times the processor time, at every size."""
    from kubeauthn.cel import kubernetes

    environment = kubernetes.user_environment()
    sizes = (1, 10, 100, 1_000, 10_000)
    for text in (
        "user.groups.all(g, g != 'x')",
        "user.groups.map(g, g + 'x').size() > 0",
        "user.groups.filter(g, g != 'x').size() > 0",
        "user.groups.exists(g, g == 'x')",
    ):
        program = environment.compile(text)
        readers = {}
        for count in sizes:
            variables = {"user": {"username": "jane", "groups": [f"group-{index}" for index in range(count)]}}
            call = lambda p=program, v=variables: p.evaluate(v)  # noqa: E731
            readers[str(count)] = cpu_per_call(call, 20_000 // count)
        readings = in_turns(readers, 7 if quick else 21)
        yield from growth_rows(f"cel: {text}, groups", {count: readings[str(count)] for count in sizes}, 13)
