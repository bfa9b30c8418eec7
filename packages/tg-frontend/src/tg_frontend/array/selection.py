"""One of two elements."""

from __future__ import annotations

from tg_lazy import Ops
from tg_shape import Expr

from ..autograd.functions import Maximum, Neg, Where
from .base import B
from .gradients import detach
from .movement import stretch
from .operands import alu, as_tensor, common_dtype, constant, pair
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS = (bool, int, float, Expr)


def _has_axes(x: Any) -> bool:
    return not isinstance(x, _NUMBERS) and bool(getattr(x, "shape", ()))


def where(t: B, x: Any, y: Any) -> B:
    """x where this tensor, of bools, is true, else y.

    Raises:
      TypeError: if this is no tensor of bools.
      ValueError: if the shapes do not broadcast, or the devices differ.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([True, False]).where(Tensor([1, 2]), 0)
      Tensor([1, 0])
    """
    if t.dtype.kind != "bool":
        raise TypeError(
            f"where: the condition is a tensor of bools, got {t.dtype.name}: condition.where(x, y); "
            "compare first, as t != 0"
        )
    if isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS):
        dtype = common_dtype(x, y)
        a, b = constant(t, x, dtype, "where"), constant(t, y, dtype, "where")
    elif _has_axes(y) > _has_axes(x) or isinstance(x, _NUMBERS):  # what has axes says which numbers fit
        a, b = pair(as_tensor(t, y, "where"), x, "where", True)
    else:
        a, b = pair(as_tensor(t, x, "where"), y, "where")
    if a.device != t.device:
        raise ValueError(f"where: operands on {t.device} and {a.device}; use .to()")
    shape = broadcast_shape("where", t.shape, a.shape)
    condition = t if t._wants_grad is False else detach(t)
    return stretch(condition, shape)._apply(Where(), stretch(a, shape), stretch(b, shape))


def masked_fill(x: B, mask: Any, value: Any) -> B:
    """``value`` where the mask is true. Bools stay bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).masked_fill(Tensor([False, True, False]), -1)
      Tensor([ 1, -1,  3])
    """
    if x.dtype.kind == "bool" and isinstance(value, (int, float)):
        value = bool(value)
    return where(as_tensor(x, mask, "masked_fill"), value, x)


def maximum(t: B, x: Any) -> B:
    """The greater of t and x; NaN if either is. Ties split the gradient.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5]).maximum(3)
      Tensor([3, 5])
    """
    a, b = pair(t, x, "maximum")
    return a._apply(Maximum(), b)


def minimum(t: B, x: Any) -> B:
    """The smaller of t and x; NaN if either is. Ties split the gradient.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5]).minimum(3)
      Tensor([1, 3])
    """
    a, b = pair(t, x, "minimum")
    if a.dtype.kind == "float":
        return a._apply(Neg())._apply(Maximum(), b._apply(Neg()))._apply(Neg())
    # ~x reverses the order of integers and of bools, and none is lost
    return alu(alu(alu(a, Ops.NOT), Ops.MAX, alu(b, Ops.NOT)), Ops.NOT)
