"""A tensor filled, or added up into a smaller shape."""

from __future__ import annotations

from ..array import arithmetic, writing
from ..array.array import A
from ..array.shapes import args_to_tuple
from .creation import full_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tg_dtype import ConstType


def fill(x: A, value: ConstType) -> A:
    """A tensor of this shape, dtype and device with one value.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).fill(7)
      Tensor([7, 7])
    """
    return full_like(x, value)


def fill_(x: A, value: Any) -> A:
    """Fills this tensor with a value. Returns it.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).fill_(7)
      Tensor([7, 7])
    """
    return writing.assign(x, value)


def zero_(x: A) -> A:
    """Fills this tensor with zeros. Returns it.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).zero_()
      Tensor([0, 0])
    """
    return writing.assign(x, 0)


def rsub(x: A, other: Any, alpha: float = 1) -> A:
    """other - alpha * x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).rsub(10, alpha=2)
      Tensor([8, 6])
    """
    return arithmetic.sub(x if alpha == 1 else x * alpha, other, True)


def sum_to_size(x: A, *size: Any) -> A:
    """The sum over the axes that :meth:`expand` would repeat a tensor of that size along.

    Raises:
      ValueError: if a tensor of that size does not expand to this shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2)
      Tensor([[4, 6]])
    """
    wanted = args_to_tuple(size, "sum_to_size")
    more = x.ndim - len(wanted)
    pairs = list(zip(x.shape[max(more, 0) :], wanted, strict=False))
    if more < 0 or any(new not in (1, old) for old, new in pairs):
        raise ValueError(f"sum_to_size: {tuple(wanted)} does not expand to shape {x.shape}")
    axes = (*range(more), *(more + axis for axis, (old, new) in enumerate(pairs) if new == 1 != old))
    return x.sum(axes, keepdim=True, dtype=x.dtype).reshape(wanted) if axes else x
