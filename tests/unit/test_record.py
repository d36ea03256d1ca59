from __future__ import annotations

import copy
import subprocess
import sys

import pytest

from kubeauthn._core.record import field, record, replace


@record(frozen=True, slots=True)
class Point:
    """Somewhere."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)
    secret: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.x or self.y)


def test_made_by_position_and_by_name() -> None:
    assert Point(1, 2) == Point(x=1, y=2) == Point(1, y=2)
    assert (Point(1).y, Point(1).tags) == (0, [])
    assert Point(1).tags is not Point(1).tags


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "needs x"),
        ((1, 2, [], "", 5), {}, "takes 4 arguments"),
        ((1,), {"z": 1}, "no z"),
        ((1,), {"x": 1}, "twice"),
    ],
)
def test_made_wrongly(args: tuple[object, ...], kwargs: dict[str, object], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Point(*args, **kwargs)  # type: ignore[arg-type]


def test_frozen() -> None:
    point = Point(1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    with pytest.raises(AttributeError):
        point.other = 1  # type: ignore[attr-defined]


def test_compared_and_hashed_by_value_and_kind() -> None:
    @record(frozen=True, slots=True)
    class Other:
        x: int
        y: int = 0

    @record(frozen=True, slots=True)
    class Another:
        x: int
        y: int = 0

    assert Other(1) == Other(1)
    assert Other(1) != Other(2)
    assert Other(1) != Another(1)
    assert len({Other(1), Other(1), Other(2), Another(1)}) == 3


def test_methods_and_docstring_stay() -> None:
    assert not Point(0)
    assert Point(1)
    assert Point.__doc__ == "Somewhere."


def test_shown_without_what_is_hidden() -> None:
    assert repr(Point(1, secret="hunter2")) == "Point(x=1, y=0, tags=[])"


def test_replaced_copied_and_matched() -> None:
    point = Point(1, 2)
    assert replace(point, y=3) == Point(1, 3)
    assert copy.deepcopy(point) == point
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_defining_one_does_not_load_dataclasses() -> None:
    program = (
        "import sys, kubeauthn._core.kubeconfig.model; print('dataclasses' in sys.modules, 'inspect' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "False"]
