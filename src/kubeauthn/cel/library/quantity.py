"""Kubernetes' functions of quantities: quantity, isQuantity, add, sub, compareTo and their like."""

from __future__ import annotations

from ..errors import EvalError, LimitError
from ..overloads import Overload
from . import costs
from .quantity_value import EXPONENT, Quantity, parse_quantity

__all__ = ["OVERLOADS", "TYPES", "Quantity"]

TYPES = ("kubernetes.Quantity",)


def _is_quantity(text: str) -> bool:
    try:
        parse_quantity(text)
    except LimitError:
        return True  # it is one, if too large for us to calculate with
    except EvalError:
        return False
    return True


def _sign(quantity: Quantity) -> int:
    return (quantity.number > 0) - (quantity.number < 0)


def _compare(left: Quantity, right: Quantity) -> int:
    return left.compare(right)


def _is_greater(left: Quantity, right: Quantity) -> bool:
    return left.compare(right) > 0


def _is_less(left: Quantity, right: Quantity) -> bool:
    return left.compare(right) < 0


def _as_float(quantity: Quantity) -> float:
    return quantity.as_float()


def _as_integer(quantity: Quantity) -> int:
    number = quantity.as_integer()
    if number is None:
        raise EvalError("cannot convert value to integer")
    return number


def _is_integer(quantity: Quantity) -> bool:
    return quantity.as_integer() is not None


def _add(left: Quantity, right: Quantity) -> Quantity:
    return left.plus(right)


def _add_int(left: Quantity, right: int) -> Quantity:
    return left.plus(Quantity(right, 0, EXPONENT))


def _subtract(left: Quantity, right: Quantity) -> Quantity:
    return left.plus(right, -1)


def _subtract_int(left: Quantity, right: int) -> Quantity:
    return left.plus(Quantity(right, 0, EXPONENT), -1)


_Q = "kubernetes.Quantity"

OVERLOADS = (
    Overload("string_to_quantity", "quantity", ("string",), _Q, parse_quantity, cost=costs.first_scan),
    Overload("is_quantity_string", "isQuantity", ("string",), "bool", _is_quantity, cost=costs.first_scan),
    Overload("quantity_sign", "sign", (_Q,), "int", _sign),
    Overload("quantity_is_greater_than", "isGreaterThan", (_Q, _Q), "bool", _is_greater, member=True),
    Overload("quantity_is_less_than", "isLessThan", (_Q, _Q), "bool", _is_less, member=True),
    Overload("quantity_compare_to", "compareTo", (_Q, _Q), "int", _compare, member=True),
    Overload("quantity_get_float", "asApproximateFloat", (_Q,), "double", _as_float, member=True),
    Overload("quantity_get_int", "asInteger", (_Q,), "int", _as_integer, member=True),
    Overload("quantity_is_integer", "isInteger", (_Q,), "bool", _is_integer, member=True),
    Overload("quantity_add", "add", (_Q, _Q), _Q, _add, member=True),
    Overload("quantity_add_int", "add", (_Q, "int"), _Q, _add_int, member=True),
    Overload("quantity_sub", "sub", (_Q, _Q), _Q, _subtract, member=True),
    Overload("quantity_sub_int", "sub", (_Q, "int"), _Q, _subtract_int, member=True),
)
