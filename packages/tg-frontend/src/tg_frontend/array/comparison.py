"""Comparisons."""

from __future__ import annotations

from tg_dtype import least_upper_dtype
from tg_lazy import Ops

from ..host import transfer
from .base import B, Base
from .casts import cast
from .movement import stretch
from .operands import alu, as_tensor, constant, pair
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def compare(t: B, op: Ops, x: Any, what: str, reverse: bool = False) -> B:
    """A comparison that is an op, of operands that are broadcast and promoted."""
    x = _beside(t, x, what)
    if _without_common_integers(t, x):
        exact: B = _exact(t, op, x, what, reverse)
        return exact
    a, b = pair(t, x, what, reverse)
    return alu(a, op, b)


def _beside(t: B, x: Any, what: str) -> Any:
    """What integers are compared with: a number, a tensor, or an array as a tensor."""
    return as_tensor(t, x, what) if t._lazy.dtype.kind in ("int", "uint") and transfer.is_array(x) else x


def _without_common_integers(t: B, x: Any) -> bool:
    """Whether two integer tensors meet in floats, which do not have them all: one is uint64, the other is signed."""
    if not isinstance(x, Base) or x._lazy.dtype is t._lazy.dtype:
        return False
    return {t.dtype.kind, x.dtype.kind} == {"int", "uint"} and least_upper_dtype(t.dtype, x.dtype).kind == "float"


def _exact(t: B, op: Ops, x: B, what: str, reverse: bool) -> B:
    """A comparison of signed integers and uint64: a negative number is less than all of these."""
    if t.device != x.device:
        raise ValueError(f"{what}: operands on {t.device} and {x.device}; use .to()")
    shape = broadcast_shape(what, t.shape, x.shape)
    a, b = stretch(t, shape), stretch(x, shape)
    if op is Ops.CMPLT:
        return _less(b, a) if reverse else _less(a, b)
    differs = alu(_less(a, b), Ops.OR, _less(b, a))
    return differs if op is Ops.CMPNE else alu(differs, Ops.NOT)


def _less(a: B, b: B) -> B:
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
    if _without_common_integers(t, x):
        less: B = _exact(t, Ops.CMPLT, x, what, reverse)
        return alu(less, Ops.NOT)
    a, b = pair(t, x, what, reverse)
    if a.dtype.kind == "float":  # a NaN is not at least anything
        return alu(alu(b, Ops.CMPLT, a), Ops.OR, alu(a, Ops.CMPEQ, b))
    return alu(alu(a, Ops.CMPLT, b), Ops.NOT)
