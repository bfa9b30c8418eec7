"""Sums, differences, products."""

from __future__ import annotations

from ..autograd.functions import Abs, Add, Mul, Neg, Reciprocal, Sub
from .base import B
from .casts import floating
from .computing import copied
from .operands import check_kind, pair
from .selection import maximum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add(t: B, x: Any, reverse: bool = False) -> B:
    """t + x; of bools, or."""
    a, b = pair(t, x, "add", reverse)
    return a._apply(Add(), b)


def sub(t: B, x: Any, reverse: bool = False) -> B:
    """t - x."""
    a, b = pair(t, x, "sub", reverse)
    check_kind(a, "sub", "int", "uint", "float")
    return a._apply(Sub(), b)


def mul(t: B, x: Any, reverse: bool = False) -> B:
    """t * x; of bools, and."""
    a, b = pair(t, x, "mul", reverse)
    return a._apply(Mul(), b)


def neg(x: B) -> B:
    """-x. Unsigned integers wrap; of bools use ``~``."""
    check_kind(x, "neg", "int", "uint", "float")
    return x._apply(Neg())


def reciprocal(x: B) -> B:
    """1 / x, as floats."""
    return floating(x)._apply(Reciprocal())


def abs(x: B) -> B:
    """The absolute value; the gradient at 0 is 0."""
    if x.dtype.kind == "float":
        return x._apply(Abs())
    return copied(x) if x.dtype.kind in ("uint", "bool") else maximum(x, neg(x))
