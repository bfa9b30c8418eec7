"""One of two elements."""

from __future__ import annotations

from tg_lazy import Ops

from ..autograd.functions import Maximum, Neg, Where
from .base import B
from .computing import copied
from .gradients import detach
from .movement import stretch
from .operands import NUMBERS, alu, as_tensor, common_dtype, constant, is_beyond, pair
from .shapes import broadcast_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any



def _has_axes(x: Any) -> bool:
    return not isinstance(x, NUMBERS) and bool(getattr(x, "shape", ()))


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
    if isinstance(x, NUMBERS) and isinstance(y, NUMBERS):
        dtype = common_dtype(x, y)
        a, b = constant(t, x, dtype, "where"), constant(t, y, dtype, "where")  # type: ignore[arg-type]
    elif _has_axes(y) > _has_axes(x) or isinstance(x, NUMBERS):  # what has axes says which numbers fit
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

    Raises:
      OverflowError: for an integer above all that the dtype has.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5]).maximum(3)
      Tensor([3, 5])
    """
    if is_beyond(t, x, above=False):
        return copied(t)
    a, b = pair(t, x, "maximum")
    return a._apply(Maximum(), b)


def minimum(t: B, x: Any) -> B:
    """The smaller of t and x; NaN if either is. Ties split the gradient.

    Raises:
      OverflowError: for an integer below all that the dtype has.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 5]).minimum(3)
      Tensor([1, 3])
    """
    if is_beyond(t, x, above=True):
        return copied(t)
    a, b = pair(t, x, "minimum")
    if a.dtype.kind == "float":
        return a._apply(Neg())._apply(Maximum(), b._apply(Neg()))._apply(Neg())
    # ~x reverses the order of integers and of bools, and none is lost
    return alu(alu(alu(a, Ops.NOT), Ops.MAX, alu(b, Ops.NOT)), Ops.NOT)
