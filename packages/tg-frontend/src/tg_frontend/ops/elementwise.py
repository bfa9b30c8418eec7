"""Functions of corresponding elements that are made of others: limits, mixtures, signs."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops
from tg_shape import Expr

from ..array.array import A, Array
from ..array.casts import negatable, wide
from ..array.computing import copied
from ..array.operands import NUMBERS, as_tensor, check_range, float_pair, is_beyond, together
from ..autograd.functions import Step, splat
from ..host.transfer import number_of
from .creation import full_like
from .elementary import exp, exp2, log1p

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _sign_bit(x: LazyBuffer) -> LazyBuffer:
    """-1 where a float is negative or -0.0, else 1."""
    zero, one = splat(x, 0), splat(x, 1)
    minus_zero = x.alu(Ops.CMPEQ, zero).alu(Ops.AND, x.alu(Ops.RECIP).alu(Ops.CMPLT, zero))
    return x.alu(Ops.CMPLT, zero).alu(Ops.OR, minus_zero).alu(Ops.WHERE, one.alu(Ops.NEG), one)


def clip(x: A, min_: Any = None, max_: Any = None) -> A:
    """The elements, not below ``min_`` and not above ``max_``; NaN where one of the three is NaN.

    Where ``min_`` is above ``max_``, all elements are ``max_``.

    Raises:
      ValueError: if neither bound is given.
      OverflowError: if an integer is the result that the dtype has not.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5, 9]).clip(2, 6)
      Tensor([2, 5, 6])
    """
    if min_ is None and max_ is None:
        raise ValueError("clip: at least one bound must be given")
    limits = None if is_beyond(x, min_, above=False) else min_, None if is_beyond(x, max_, above=True) else max_
    if is_beyond(x, min_, above=True) and type(number_of(limits[1])) is int:
        limits = dtypes.max(x.dtype), max_  # the other limit is below both
    if all(limit is None or type(number_of(limit)) is int for limit in limits):
        for limit, above in zip(limits, (True, False), strict=True):
            if is_beyond(x, limit, above):
                check_range(number_of(limit), x.dtype, "clip")
    if all(limit is None for limit in limits):  # all elements are within
        return copied(x)
    min_, max_ = limits
    kept = NUMBERS if dtypes.is_float(x.dtype) else (bool, int, Expr)  # numbers that do not change the dtype
    if not all(bound is None or isinstance(bound, kept) for bound in (min_, max_)):
        x, min_, max_ = together(x, min_, max_, what="clip")
    out: A = x if min_ is None else _limited(x, min_, x < min_)
    return out if max_ is None else _limited(out, max_, out > max_)


def _limited(x: A, bound: Any, beyond: A) -> A:
    """A bound where elements are beyond it, or where it is NaN."""
    if isinstance(bound, float) and math.isnan(bound):
        beyond = full_like(beyond, True)
    elif isinstance(bound, Array) and bound.dtype.kind == "float":
        beyond = beyond | bound.ne(bound)
    limited: A = beyond.where(bound, x)
    return limited


def clamp(x: A, min_: Any = None, max_: Any = None) -> A:
    """The same as :meth:`clip`.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5, 9]).clamp(max_=6)
      Tensor([1, 5, 6])
    """
    return clip(x, min_, max_)


def clamp_min(x: A, min_: Any) -> A:
    """The elements, not below ``min_``; NaN stays.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5, 9]).clamp_min(4)
      Tensor([4, 5, 9])
    """
    return clip(x, min_)


def clamp_max(x: A, max_: Any) -> A:
    """The elements, not above ``max_``; NaN stays.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5, 9]).clamp_max(6)
      Tensor([1, 5, 6])
    """
    return clip(x, None, max_)


def lerp(x: A, end: Any, weight: Any) -> A:
    """x + (end - x) * weight.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 10.0]).lerp(Tensor([4.0, 20.0]), 0.25)
      Tensor([ 1. , 12.5])
    """
    x, end, weight = together(x, end, weight, what="lerp")
    if x.dtype.kind == "float":
        return wide(x, _lerp, end, weight)
    return _lerp(negatable(x), negatable(as_tensor(x, end, "lerp")), weight)


def _lerp(x: A, end: Any, weight: Any) -> A:
    out: A = x + (end - x) * weight
    return out


def copysign(x: A, other: Any) -> A:
    """The magnitude of x with the sign of other, also where other is a zero; a NaN counts as positive.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0]).copysign(Tensor([-3.0, 0.0]))
      Tensor([-1.,  2.])
    """
    a, b = float_pair(x, other, "copysign")
    return a.abs() * b._apply(Step(_sign_bit))


def logaddexp2(t: A, x: Any) -> A:
    """log2(2 ** t + 2 ** x), without overflow.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1000.0]).logaddexp2(Tensor([0.0, 1000.0])).tolist()
      [1.0, 1001.0]
    """
    a, b = float_pair(t, x, "logaddexp2")
    return wide(a, _logaddexp2, b)


def _logaddexp2(a: A, b: A) -> A:
    great, less = _ordered(a, b)
    return great + log1p(exp2(less)) * (1 / math.log(2))


def logaddexp(t: A, x: Any) -> A:
    """log(e ** t + e ** x), without overflow.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1000.0]).logaddexp(Tensor([0.0, 1000.0])).round(4)
      Tensor([6.9309998e-01, 1.0006932e+03])
    """
    a, b = float_pair(t, x, "logaddexp")
    return wide(a, _logaddexp, b)


def _logaddexp(a: A, b: A) -> A:
    great, less = _ordered(a, b)
    return great + log1p(exp(less))


def _ordered(a: A, b: A) -> tuple[A, A]:
    """The greater one, and how much less the other is: chosen by comparison, so that equal ones have both slopes."""
    less = a < b
    great, small = less.where(b, a), less.where(a, b)
    same = a.eq(b) & a.abs().eq(math.inf)  # two infinities of one sign differ by NaN
    return great, same.where(0, small) - same.where(0, great)
