"""A tensor filled, or added up into a smaller shape."""

from __future__ import annotations

from weakref import ref

from tg_dtype import dtypes

from ..array import arithmetic, becoming, writing
from ..array.array import A, Array
from ..array.axes import iota
from ..array.computing import copied
from ..array.movement import stretch
from ..array.operands import pair
from ..array.shapes import args_to_tuple, broadcast_shape
from ..memory.home import Lineage
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
    """Fills this tensor with a value. Returns it. A value that is a tensor is cast, and a gradient flows to it.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).fill_(7)
      Tensor([7, 7])
    """
    return copy_(x, value) if isinstance(value, Array) and writing.brings(value) else writing.assign(x, value)


def zero_(x: A) -> A:
    """Fills this tensor with zeros. Returns it.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).zero_()
      Tensor([0, 0])
    """
    return writing.assign(x, 0)


def copy_(x: A, src: Any, non_blocking: bool = False) -> A:
    """Writes other elements to this tensor's memory, broadcast and cast, from any device. Returns this tensor.

    Unlike :meth:`assign`, it lets a gradient flow to ``src``.

    Args:
      src: a tensor, or data for one.
      non_blocking: says nothing: what is computed here is never waited for.

    Raises:
      ValueError: if the shapes do not broadcast.
      TypeError: if complex numbers are to be written to real ones.
      RuntimeError: if this tensor is a leaf that requires a gradient.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).copy_(Tensor([3.0, 4.0]))
      Tensor([3, 4])
    """
    if src is None:
        raise TypeError(f"copy_: None is no value for a tensor of shape {x.shape}")
    value = src if isinstance(src, Array) else writing.fitting(x, src, "copy_")
    if value.dtype.kind == "complex":
        raise TypeError(f"copy_: complex numbers into a tensor of {x.dtype.name}; cast them")
    new: A = value.to(x.device).cast(x.dtype)  # type: ignore[assignment]
    if broadcast_shape("copy_", x.shape, new.shape) != x.shape:
        raise ValueError(f"copy_: a value of shape {new.shape} into a tensor of shape {x.shape}")
    if new is src:  # whose hooks see what flows back through this tensor, too
        new = copied(new)
    writing.take_over(x, new if new.shape == x.shape else stretch(new, x.shape), apart=True)
    return x


def detach_(x: A) -> A:
    """Cuts this tensor off what it was computed from: no gradient flows through it. Returns it.

    What was computed from it before has no gradient any more: ``backward`` raises an error there.

    Example:
      >>> from tg_frontend import Tensor
      >>> y = Tensor([1.0], requires_grad=True) * 2
      >>> y.detach_().requires_grad
      False
    """
    becoming.sever(x)
    x._wants_grad, x._cut = False, Lineage(ref(x))
    return x


def fill_diagonal_(x: A, fill_value: ConstType, wrap: bool = False) -> A:
    """Writes a number to the diagonal, where all indices are equal. Returns this tensor.

    Args:
      wrap: go on, in a tall matrix, with another diagonal below the one that has ended.

    Raises:
      ValueError: if there are fewer than two axes, or, of more than two, not all are of one size.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).fill_diagonal_(0)
      Tensor([[0, 2],
              [3, 0]])
    """
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) > 1):
        raise ValueError(f"fill_diagonal_: shape {x.shape}; two axes, or more of one size, are wanted")
    if wrap and x.ndim == 2:
        rows, columns = x._ints()
        hit = iota(type(x), rows * columns, dtypes.int32, x.device).mod(columns + 1).eq(0).reshape(x.shape)
    else:
        places = [
            iota(type(x), n, dtypes.int32, x.device).reshape((*(n if i == axis else 1 for i in range(x.ndim)),))
            for axis, n in enumerate(x._ints())
        ]
        hit = places[0].eq(places[1])
        for place in places[2:]:
            hit = hit & places[0].eq(place)
    value = writing.fitting(x, fill_value, "fill_diagonal_")
    writing.take_over(x, hit.where(value, x))
    return x


def rsub(x: A, other: Any, alpha: float = 1) -> A:
    """other - alpha * x.

    Raises:
      ValueError: if ``alpha`` is a float, and the operands are integers or bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).rsub(10, alpha=2)
      Tensor([8, 6])
    """
    if alpha == 1:
        return arithmetic.sub(x, other, True)
    arithmetic.check_factor(alpha, "alpha", "rsub", *pair(x, other, "rsub"))
    return arithmetic.sub(x * alpha, other, True)


def sum_to_size(x: A, *size: Any) -> A:
    """The sum over the axes that :meth:`expand` would repeat a tensor of that size along.

    What is summed has the dtype of :meth:`sum`.

    Raises:
      ValueError: if a tensor of that size does not expand to this shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1, 2], [3, 4]]).sum_to_size(1, 2)
      Tensor([[4, 6]], dtype=int64)
    """
    wanted = args_to_tuple(size, "sum_to_size")
    more = x.ndim - len(wanted)
    pairs = list(zip(x.shape[max(more, 0) :], wanted, strict=False))
    if more < 0 or any(new not in (1, old) for old, new in pairs):
        raise ValueError(f"sum_to_size: {tuple(wanted)} does not expand to shape {x.shape}")
    axes = (*range(more), *(more + axis for axis, (old, new) in enumerate(pairs) if new == 1 != old))
    if not axes:
        return x
    return x.sum(axes, keepdim=True).reshape(wanted)
