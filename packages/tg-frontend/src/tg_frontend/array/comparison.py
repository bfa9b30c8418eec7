"""Comparisons. Those of integers with integers and with numbers look at values, whatever the dtypes: they are exact."""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes, least_upper_dtype
from tg_lazy import Ops
from tg_shape import Expr

from ..host import transfer
from .base import B, Base
from .casts import cast
from .movement import stretch
from .operands import alu, as_tensor, constant, pair
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WHOLE = ("bool", "uint", "int")
"""Kinds of dtypes whose elements are integers."""


def compare(t: B, op: Ops, x: Any, what: str, reverse: bool = False) -> B:
    """A comparison that is an op, of operands that are broadcast and promoted."""
    x = _beside(t, x, what)
    if _are_exact(t, x):
        if isinstance(x, Expr):
            x = constant(t, x, dtypes.int64, what)
        if isinstance(x, Base):
            return _of_two_dtypes(t, op, x, what, reverse)
        x = _whole(t.dtype, op, x, reverse)
        if isinstance(x, bool):
            return constant(t, x, dtypes.bool, what)
    a, b = pair(t, x, what, reverse)
    return alu(a, op, b)


def _beside(t: B, x: Any, what: str) -> Any:
    """What integers are compared with: a number, a tensor, or an array as a tensor."""
    if t._lazy.dtype.kind not in _WHOLE or not transfer.is_array(x):
        return x
    number = transfer.number_of(x)
    return number if isinstance(number, (int, float)) else as_tensor(t, x, what)


def _are_exact(t: B, x: Any) -> bool:
    """Whether integers are compared with a number, or with integers of another dtype."""
    dtype = t._lazy.dtype
    if dtype.kind not in _WHOLE:
        return False
    if isinstance(x, Base):
        return x._lazy.dtype is not dtype and x._lazy.dtype.kind in _WHOLE
    if isinstance(x, Expr):
        return not dtypes.min(dtype) <= x.vmin <= x.vmax <= dtypes.max(dtype)
    return type(x) is int or (isinstance(x, float) and not math.isnan(x))


def _whole(dtype: DType, op: Ops, x: float, reverse: bool) -> float:
    """An integer of a dtype that stands for a number in a comparison; a bool where the result is known."""
    known = isinstance(x, float) and math.isinf(x)
    whole = x if known else math.floor(x) if reverse else math.ceil(x)
    if dtypes.min(dtype) <= whole <= dtypes.max(dtype) and (op is Ops.CMPLT or whole == x):
        return int(whole)
    if op is not Ops.CMPLT:
        return op is Ops.CMPNE
    return x < 0 if reverse else x > 0


def _of_two_dtypes(t: B, op: Ops, x: Any, what: str, reverse: bool) -> B:
    """A comparison of two dtypes of integers: in one that has both, if there is one."""
    if t.device != x.device:
        raise ValueError(f"{what}: operands on {t.device} and {x.device}; use .to()")
    shape = broadcast_shape(what, *((x.shape, t.shape) if reverse else (t.shape, x.shape)))
    a, b = stretch(x if reverse else t, shape), stretch(t if reverse else x, shape)
    dtype = least_upper_dtype(a.dtype, b.dtype)
    if dtype.kind != "float":
        return alu(cast(a, dtype), op, cast(b, dtype))
    if op is Ops.CMPLT:
        return _less(a, b)
    differs = alu(_less(a, b), Ops.OR, _less(b, a))
    return differs if op is Ops.CMPNE else alu(differs, Ops.NOT)


def _less(a: B, b: B) -> B:
    """Where a < b, of signed integers and uint64, of which none is negative."""
    if a.dtype.kind == "int":
        below = alu(a, Ops.CMPLT, constant(a, 0, a.dtype, "lt"))
        return alu(below, Ops.OR, alu(cast(a, b.dtype), Ops.CMPLT, b))
    above = alu(alu(b, Ops.CMPLT, constant(b, 0, b.dtype, "lt")), Ops.NOT)
    return alu(above, Ops.AND, alu(a, Ops.CMPLT, cast(b, a.dtype)))


def eq(t: B, x: Any) -> B:
    """Where t == x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).eq(2)
      Tensor([False,  True])
    """
    return compare(t, Ops.CMPEQ, x, "eq")


def ne(t: B, x: Any) -> B:
    """Where t != x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).ne(2)
      Tensor([ True, False])
    """
    return compare(t, Ops.CMPNE, x, "ne")


def lt(t: B, x: Any) -> B:
    """Where t < x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).lt(2)
      Tensor([ True, False, False])
    """
    return compare(t, Ops.CMPLT, x, "lt")


def gt(t: B, x: Any) -> B:
    """Where t > x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).gt(2)
      Tensor([False, False,  True])
    """
    return compare(t, Ops.CMPLT, x, "gt", reverse=True)


def le(t: B, x: Any) -> B:
    """Where t <= x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).le(2)
      Tensor([ True,  True, False])
    """
    return at_least(t, x, "le", reverse=True)


def ge(t: B, x: Any) -> B:
    """Where t >= x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).ge(2)
      Tensor([False,  True,  True])
    """
    return at_least(t, x, "ge", reverse=False)


def at_least(t: B, x: Any, what: str, reverse: bool) -> B:
    """Where the first operand is the second or more; ``reverse`` exchanges them."""
    x = _beside(t, x, what)
    if _are_exact(t, x):
        less: B = compare(t, Ops.CMPLT, x, what, reverse)
        return alu(less, Ops.NOT)
    a, b = pair(t, x, what, reverse)
    if a.dtype.kind == "float":  # a NaN is not at least anything
        return alu(alu(b, Ops.CMPLT, a), Ops.OR, alu(a, Ops.CMPEQ, b))
    return alu(alu(a, Ops.CMPLT, b), Ops.NOT)
