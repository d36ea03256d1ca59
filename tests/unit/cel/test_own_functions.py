"""Variables, types and Python functions of one's own: what docs/cel.md promises of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from kubeauthn import cel


def environment(*rows: cel.Overload, **options: object) -> cel.Environment:
    return cel.Environment(variables={"x": "dyn", "n": "int"}, functions=rows, **options)  # type: ignore[arg-type]


def test_a_variable_has_its_type_when_it_is_compiled_and_when_it_runs() -> None:
    program = cel.Environment(variables={"name": "string", "a.b": "list(int)"}).compile("name.size() + a.b[0]")
    assert program.evaluate({"name": "abc", "a.b": [4]}).value == 7
    with pytest.raises(cel.EvalError, match="variable 'name' is declared string and was given int"):
        program.evaluate({"name": 1, "a.b": [4]})
    with pytest.raises(cel.EvalError, match=r"no such attribute\(s\): name"):
        program.evaluate({"a.b": [4]})
    with pytest.raises(cel.CompileError, match="found no matching overload for '_[+]_'"):
        cel.Environment(variables={"name": "string"}).compile("name + 1")


def test_types_are_made_of_one_another() -> None:
    env = cel.Environment(
        variables={"team": "acme.Team", "teams": "map(string, acme.Team)"},
        types={
            "acme.Team": {"lead": "acme.User", "members": "list(acme.User)"},
            "acme.User": {"name": "string", "age": "int"},
        },
    )
    ada, bob = {"name": "ada", "age": 36}, {"name": "bob", "age": 40}
    program = env.compile("team.members.filter(u, u.age > team.lead.age).map(u, u.name)")
    assert str(program.output_type) == "list(string)"
    assert program(team={"lead": ada, "members": [ada, bob]}) == ["bob"]
    assert env.compile("teams['a'].lead.name")(teams={"a": {"lead": bob, "members": []}}) == "bob"
    with pytest.raises(cel.CompileError, match="undefined field 'nmae'"):
        env.compile("team.lead.nmae")


def test_a_type_parameter_ties_arguments_and_result() -> None:
    def pick(elements: list[object], at: int) -> object:
        return elements[at % len(elements)]

    env = environment(cel.Overload("pick_list", "pick", ("list(<A>)", "int"), "<A>", pick, member=True))
    assert str(env.compile("['a', 'b'].pick(3)").output_type) == "string"
    assert env.compile("['a', 'b'].pick(n)")(n=3) == "b"
    with pytest.raises(cel.CompileError, match="found no matching overload for 'pick'"):
        env.compile("'ab'.pick(3)")


def test_the_overload_is_found_by_the_types_at_run_time() -> None:
    env = environment(
        cel.Overload("kind_int", "kind", ("int",), "string", lambda value: "int"),
        cel.Overload("kind_uint", "kind", ("uint",), "string", lambda value: "uint"),
        cel.Overload("kind_texts", "kind", ("list(string)",), "string", lambda value: "texts"),
    )
    program = env.compile("kind(x)")
    assert [program(x=value) for value in (1, cel.UInt(1), ["a"])] == ["int", "uint", "texts"]
    for other in (True, 1.0, "a", None, [1]):
        with pytest.raises(cel.EvalError, match="no such overload"):
            program(x=other)


def test_an_error_of_a_function_is_one_of_the_expression() -> None:
    def refuse(value: object) -> object:
        raise cel.EvalError("not today")

    env = environment(cel.Overload("refuse_dyn", "refuse", ("dyn",), "bool", refuse))
    with pytest.raises(cel.EvalError, match="not today"):
        env.compile("refuse(x)")(x=1)
    assert env.compile("refuse(x) || true")(x=1) is True


class OwnError(Exception):
    pass


@pytest.mark.parametrize(
    "error", [TypeError, ValueError, KeyError, ZeroDivisionError, RecursionError, OSError, RuntimeError, OwnError]
)
def test_python_errors_of_a_function_do_not_leave_the_engine(error: type[Exception]) -> None:
    def fail(value: object) -> object:
        raise error("inside")

    env = environment(cel.Overload("fail_dyn", "fail", ("dyn",), "bool", fail))
    with pytest.raises(cel.EvalError, match=f"function 'fail' failed: {error.__name__}") as caught:
        env.compile("fail(x)")(x=1)
    assert isinstance(caught.value.__cause__, error)
    assert env.compile("fail(x) || true")(x=1) is True


def test_who_ends_the_program_ends_it() -> None:
    def stop(value: object) -> object:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        environment(cel.Overload("stop_dyn", "stop", ("dyn",), "bool", stop)).compile("stop(x)")(x=1)


@pytest.mark.parametrize(
    ("declared", "returned"),
    [("string", 1), ("string", None), ("bool", 1), ("int", True), ("int", 1.5), ("int", 1 << 63), ("double", 1),
     ("uint", 3), ("uint", cel.UInt(-1)), ("bytes", "x"), ("list(int)", ["a"]), ("list(int)", iter([1])),
     ("map(string, int)", {"a": "b"}), ("timestamp", 1.0), ("optional_type(int)", 1)],
)  # fmt: skip
def test_a_function_is_held_to_its_result(declared: str, returned: object) -> None:
    """The compiler believes what is declared: a rule would come out as the number 1, or a text of no length."""
    env = environment(cel.Overload("make", "make", (), declared, lambda: returned))
    for text in ("make()", "make() == make()", "[make()].map(v, v)"):
        with pytest.raises(cel.EvalError, match="function 'make' is declared to return"):
            env.compile(text)()


@pytest.mark.parametrize(
    ("declared", "returned"),
    [("string", "a"), ("list(int)", [1]), ("map(string, int)", {}), ("dyn", [1, "a"]), ("list(<A>)", ["a"]),
     ("timestamp", cel.Timestamp(1)), ("uint", cel.UInt(3)), ("null", None), ("google.protobuf.StringValue", None),
     ("google.protobuf.StringValue", "a")],
)  # fmt: skip
def test_a_result_of_its_type_passes(declared: str, returned: object) -> None:
    env = environment(cel.Overload("make", "make", (), declared, lambda: returned))
    assert env.compile("make()")() == returned


USER = {"acme.User": {"name": "string", "age": "int", "tags": "list(string)"}}


class User:
    def __init__(self, name: str, age: int) -> None:
        self.name = name
        self.age = age


def users(*rows: cel.Overload) -> cel.Environment:
    return cel.Environment(
        variables={"u": "acme.User", "us": "list(acme.User)", "d": "dyn"}, types=USER, functions=rows
    )


GIVEN = [{"name": "jane", "age": 3}, User("jane", 3)]


@pytest.mark.parametrize("jane", GIVEN, ids=["dictionary", "object"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("u.name", "jane"),
        ("{'a': u}['a'].name", "jane"),
        ("[u][0].age + 1", 4),
        ("us.filter(x, x.age > 2)[0].name", "jane"),
        ("(true ? u : us[0]).name", "jane"),
        ("u.tags", []),
        ("has(u.name)", True),
        ("has(u.tags)", False),
    ],
)
def test_an_object_has_its_fields_wherever_it_is(jane: object, text: str, expected: object) -> None:
    assert users().compile(text)(u=jane, us=[jane]) == expected


@pytest.mark.parametrize("jane", GIVEN, ids=["dictionary", "object"])
def test_functions_take_and_return_objects(jane: object) -> None:
    def older(user: dict[str, object] | User) -> object:
        return {"name": "old", "age": 90}

    env = users(
        cel.Overload("user_older", "older", ("acme.User",), "acme.User", older, member=True),
        cel.Overload("count_users", "count", ("list(acme.User)",), "int", len),
    )
    assert env.compile("u.older().age + u.older().older().age")(u=jane) == 180
    assert env.compile("count([u]) + count(us)")(u=jane, us=[jane]) == 2
    for other in (1, "a", [], None):
        with pytest.raises(cel.EvalError, match="no such overload"):
            env.compile("d.older()")(d=other)


def test_an_object_that_an_expression_makes() -> None:
    env = users(
        cel.Overload("by_item", "byItem", ("acme.User",), "int", lambda user: user["age"]),
        cel.Overload("by_name", "byName", ("acme.User",), "string", lambda user: user.name),
    )
    assert env.compile("acme.User{name: 'x'}.age")() == 0
    assert env.compile("acme.User{name: 'x'} == acme.User{name: 'x', age: 0}")() is True
    assert env.compile("acme.User{name: 'x'} == acme.User{name: 'y'}")() is False
    assert env.compile("byItem(acme.User{name: 'x'})")() == 0
    assert env.compile("byName(acme.User{name: 'x'})")() == "x"
    assert repr(env.compile("acme.User{name: 'x'}")()) == "acme.User(name='x')"


@pytest.mark.parametrize("value", ["text", 1, None, [], b""])
def test_what_is_no_object_has_no_fields(value: object) -> None:
    for text in ("u.name", "has(u.name)"):
        with pytest.raises(cel.EvalError, match="no such overload"):
            users().compile(text)(u=value)


def test_a_field_that_fails_is_an_error_of_the_expression() -> None:
    class Failing:
        @property
        def name(self) -> str:
            raise RuntimeError("no database")

    with pytest.raises(cel.EvalError, match="field 'name' failed: RuntimeError: no database"):
        users().compile("u.name")(u=Failing())


class Money(cel.Opaque):
    __slots__ = ("cents",)
    cel_type = "acme.Money"

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def cel_equals(self, other: cel.Opaque) -> bool:
        return isinstance(other, Money) and self.cents == other.cents


def test_a_type_that_only_functions_look_into() -> None:
    env = cel.Environment(
        variables={"m": "acme.Money"},
        functions=[
            cel.Overload("money_int", "money", ("int",), "acme.Money", Money),
            cel.Overload("money_cents", "cents", ("acme.Money",), "int", lambda money: money.cents, member=True),
            cel.Overload(
                "add_money", "_+_", ("acme.Money", "acme.Money"), "acme.Money", lambda a, b: Money(a.cents + b.cents)
            ),
        ],
    )
    assert env.compile("(m + money(3)).cents()")(m=Money(5)) == 8
    assert env.compile("m + money(3) == money(8) && m in [money(5)]")(m=Money(5)) is True


def test_a_function_of_a_timestamp_is_found_for_dyn_too() -> None:
    env = environment(cel.Overload("ns_timestamp", "ns", ("timestamp",), "int", lambda time: time.ns))
    assert env.compile("ns(x)")(x=cel.Timestamp(5)) == 5


@pytest.mark.parametrize(
    ("declared", "value", "given"),
    [("timestamp", 1.0, "double"), ("duration", "1s", "string"), ("uint", 1, "int"), ("int", True, "bool")],
)
def test_a_variable_of_another_type_is_named(declared: str, value: object, given: str) -> None:
    with pytest.raises(cel.EvalError, match=f"variable 'v' is declared {declared} and was given {given}"):
        cel.Environment(variables={"v": declared}).compile("v")(v=value)


@pytest.mark.parametrize(
    ("declared", "value"), [("int", 1 << 63), ("int", -(1 << 63) - 1), ("uint", cel.UInt(1 << 64))]
)
def test_a_number_of_more_than_64_bits(declared: str, value: int) -> None:
    with pytest.raises(cel.EvalError, match=f"variable 'v' is declared {declared}, which has 64 bits"):
        cel.Environment(variables={"v": declared}).compile("v")(v=value)


@pytest.mark.parametrize(
    "options",
    [
        {"variables": {"x": "strng"}},
        {"variables": {"x": "list(strng)"}},
        {"types": {"acme.A": {"x": "map(string, strng)"}}},
        {"functions": [cel.Overload("f", "f", ("strng",), "int", len)]},
        {"functions": [cel.Overload("f", "f", (), "strng", str)]},
    ],
)
def test_a_slip_in_a_type_is_said_at_once(options: dict[str, object]) -> None:
    with pytest.raises(cel.CelError, match="unknown type 'strng'"):
        cel.Environment(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["in", "a b", "", "1a", "a..b", "for"])
def test_names_that_no_expression_can_write(name: str) -> None:
    with pytest.raises(cel.CelError, match="can be no name of a variable"):
        cel.Environment(variables={name: "int"})
    with pytest.raises(cel.CelError, match="can be no name of a function"):
        cel.Environment(functions=[cel.Overload("f", name, (), "int", int)])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (cel.Overload("size_string", "size", ("string",), "int", len), "has several definitions"),
        (cel.Overload("mine", "size", ("string",), "int", len), "takes what 'size_string' takes"),
        (cel.Overload("mine", "size", ("dyn",), "int", len), "takes what 'size_"),
        (cel.Overload("mine", "mine", ("string",), "int"), "has no Python function"),
    ],
)
def test_a_function_does_not_replace_one_that_is_there(row: cel.Overload, message: str) -> None:
    with pytest.raises(cel.CelError, match=message):
        cel.Environment(functions=[row])


def test_one_text_is_no_list_of_texts() -> None:
    with pytest.raises(TypeError, match="is a tuple of types"):
        cel.Overload("f", "f", "string", "int", len)  # type: ignore[arg-type]
    with pytest.raises(cel.CelError, match="a list of names"):
        cel.Environment(libraries="strings")


@pytest.mark.parametrize("text", [None, 1, b"1"])
def test_an_expression_is_a_text(text: object) -> None:
    with pytest.raises(TypeError, match="an expression is a str"):
        cel.Environment().compile(text)  # type: ignore[arg-type]


def _priced(arguments: tuple[object, ...], result: object) -> int:
    return int(str(arguments[0])) * 100


def test_a_call_costs_what_it_says() -> None:
    row = cel.Overload("work_int", "work", ("int",), "int", lambda amount: amount, cost=_priced)
    assert environment(row).compile("work(n)").evaluate({"n": 3}).cost == 301
    with pytest.raises(cel.LimitError, match="actual cost limit exceeded"):
        environment(row, cost_limit=1_000).compile("work(n) + 1")(n=11)


def test_a_call_that_costs_too_much_is_not_made() -> None:
    made = []
    row = cel.Overload("work_int", "work", ("int",), "int", made.append, cost=_priced)
    with pytest.raises(cel.LimitError):
        environment(row).compile("work(n)")(n=1_000_000)
    assert made == []


def test_a_timed_function_is_told_when_to_end() -> None:
    given: list[float] = []

    def slow(amount: int, deadline: float) -> int:
        given.append(deadline)
        if deadline < time.monotonic() + 60:
            raise cel.LimitError("operation interrupted")
        return amount

    row = cel.Overload("slow_int", "slow", ("int",), "int", slow, timed=True)
    assert environment(row, time_limit=120.0).compile("slow(n)")(n=3) == 3
    assert given[0] > time.monotonic() + 60
    with pytest.raises(cel.LimitError, match="operation interrupted"):
        environment(row, time_limit=1.0).compile("slow(n) == 1 || true")(n=3)


@pytest.mark.parametrize("make", [cel.kubernetes.claims_environment, cel.kubernetes.user_environment])
def test_an_environment_of_kubernetes_does_not_see_functions_of_others(
    make: Callable[[], cel.Environment],
) -> None:
    environment(cel.Overload("mine_int", "mine", ("int",), "int", abs))
    with pytest.raises(cel.CompileError, match="undeclared reference to 'mine'"):
        make().compile("mine(1)")
