"""What people import, and what it costs to import it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubeauthn import cel


def test_every_public_name_is_there() -> None:
    for name in cel.__all__:
        assert getattr(cel, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        cel.nope  # noqa: B018


def test_importing_brings_nothing_of_the_rest_and_no_engine() -> None:
    script = (
        "import sys; import kubeauthn.cel; "
        "print(*(m for m in sys.modules if m.startswith('kubeauthn') or m in ('re2', 'json', 'dataclasses')))"
    )
    found = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(found.split()) == {"kubeauthn", "kubeauthn.cel", "kubeauthn.cel.errors"}


def test_the_engine_imports_nothing_else_of_kubeauthn() -> None:
    script = (
        "import sys; from kubeauthn.cel import kubernetes; kubernetes.claims_environment().compile('claims.a'); "
        "print([m for m in sys.modules if m.startswith('kubeauthn.') and not m.startswith('kubeauthn.cel')], "
        "'re2' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "[] False"


def test_unknown_libraries() -> None:
    with pytest.raises(cel.CelError, match="unknown library 'nope'"):
        cel.Environment(libraries=["nope"])


@pytest.mark.parametrize("text", ["list(", "map(int)x", "", "list(int", "map(,)"])
def test_texts_that_are_no_types(text: str) -> None:
    with pytest.raises(cel.CelError, match="not a type"):
        cel.Environment(variables={"x": text})


def test_two_overloads_of_one_name_must_agree() -> None:
    rows = [cel.Overload("f_int", "f", ("int",), "int", abs), cel.Overload("f_int", "f", ("string",), "int", len)]
    with pytest.raises(cel.CelError, match="several definitions"):
        cel.Environment(functions=rows)


def test_errors_are_one_family() -> None:
    assert issubclass(cel.CompileError, cel.CelError)
    assert issubclass(cel.LimitError, cel.EvalError)
    assert issubclass(cel.EvalError, cel.CelError)


def test_a_fault_says_where_the_first_one_is() -> None:
    with pytest.raises(cel.CompileError) as told:
        cel.Environment(variables={"x": "int"}).compile("x +\n 'a' + nobody")
    assert (told.value.line, told.value.column) == (1, 3)
    assert len(told.value.issues) == 2


def test_programs_show_themselves() -> None:
    program = cel.Environment().compile("[1]")
    assert repr(program) == "Program('[1]', output_type='list(int)')"
    assert program.text == "[1]"
    assert program.python_source.startswith("def run(V):")


def test_optional_libraries() -> None:
    env = cel.Environment(libraries=["encoders", "math", "bindings", "strings"])
    assert env.compile("base64.encode(b'hi')")() == "aGk="
    assert env.compile("math.greatest(1, 3, 2)")() == 3
    assert env.compile("cel.bind(x, 'ab', x.reverse())")() == "ba"
