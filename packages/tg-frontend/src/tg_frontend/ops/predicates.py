"""Kinds of numbers, and closeness."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_lazy import Ops

from ..array.array import A, Array
from ..array.operands import alu, constant, float_pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def isnan(x: A) -> A:
    """Where a float is not a number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("nan")]).isnan()
      Tensor([False,  True])
    """
    return alu(x, Ops.CMPNE, x)


def isinf(x: A, detect_positive: bool = True, detect_negative: bool = True) -> A:
    """Where a float is infinite, of the signs asked for.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("-inf")]).isinf()
      Tensor([False,  True])
    """
    if x.dtype.kind != "float":
        return constant(x, False, dtypes.bool, "isinf")
    positive = x.eq(math.inf) if detect_positive else constant(x, False, dtypes.bool, "isinf")
    return positive | x.eq(-math.inf) if detect_negative else positive


def isposinf(x: A) -> A:
    """Where a float is infinite and positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([float("inf"), float("-inf")]).isposinf()
      Tensor([ True, False])
    """
    return isinf(x, detect_negative=False)


def isneginf(x: A) -> A:
    """Where a float is infinite and negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([float("inf"), float("-inf")]).isneginf()
      Tensor([False,  True])
    """
    return isinf(x, detect_positive=False)


def isfinite(x: A) -> A:
    """Where a number is neither infinite nor NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, float("inf"), float("nan")]).isfinite()
      Tensor([ True, False, False])
    """
    return ~(isinf(x) | isnan(x))


def isclose(x: A, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> A:
    """Where abs(x - other) <= atol + rtol * abs(other), or both are the same infinity.

    Raises:
      ValueError: if a tolerance is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).isclose(Tensor([1.0 + 1e-7, 2.1]))
      Tensor([ True, False])
    """
    if not (rtol >= 0 and atol >= 0):
        raise ValueError(f"isclose: tolerances are 0 or more, got rtol {rtol} and atol {atol}")
    a, b = float_pair(x.detach(), other, "isclose")
    b = b.detach()
    near: A = (a - b).abs() <= b.abs() * rtol + atol
    same = (isfinite(a) & isfinite(b) & near) | a.eq(b)
    return same | (isnan(a) & isnan(b)) if equal_nan else same


def allclose(x: A, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether every element is close to the other, as :meth:`isclose` says. Computes it now.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).allclose(Tensor([1.0 + 1e-7, 2.0]))
      True
    """
    return bool(isclose(x, other, rtol, atol, equal_nan).all().item())


def equal(x: A, other: A, equal_nan: bool = False) -> bool:
    """Whether two tensors have the same shape and the same elements; a NaN equals nothing.

    Args:
      equal_nan: whether one equals another after all.

    Raises:
      TypeError: if the other one is no tensor.
      ValueError: if they are on different devices.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).equal(Tensor([1, 2])), Tensor([1, 2]).equal(Tensor([1]))
      (True, False)
    """
    if not isinstance(other, Array):
        raise TypeError(f"equal: the other one is a tensor, got a {type(other).__name__}")
    if x.shape != other.shape:
        return False
    same = x.eq(other)
    return bool((same | (x.ne(x) & other.ne(other)) if equal_nan else same).all().item())
