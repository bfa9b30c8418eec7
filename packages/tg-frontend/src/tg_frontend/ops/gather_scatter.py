"""Reading and writing at computed positions along an axis: gather, scatter, one-hot.

A position outside of the axis reads as 0 and is not written: it cannot be checked before it is computed.
"""

from __future__ import annotations

from tg_dtype import dtypes, sum_acc_dtype
from tg_shape import prod, sint

from ..array.array import A, Array
from ..array.axes import iota
from ..array.computing import copied
from ..array.movement import stretch
from ..array.positions import signed
from ..array.shapes import broadcast_shape
from ..array.writing import as_value
from ..autograd.functions import Max, TakeAlong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def _along(x: A, dim: int, index: Any, what: str) -> tuple[int, A]:
    axis = x._axis(dim, what)
    if not isinstance(index, Array):
        raise TypeError(f"{what}: the index is a tensor, got a {type(index).__name__}")
    if not dtypes.is_int(index.dtype):
        raise TypeError(f"{what}: indices are integers, got a tensor of {index.dtype.name}")
    if index.device != x.device:
        raise ValueError(f"{what}: an index on {index.device} for a tensor on {x.device}; use .to()")
    fits = index.ndim == x.ndim and all(
        i == axis or _not_above(a, b) for i, (a, b) in enumerate(zip(index.shape, x.shape, strict=True))
    )
    if not fits:
        raise ValueError(f"{what}: an index of shape {index.shape} for shape {x.shape} along axis {dim}")
    return axis, signed(x._wrap(index.lazydata), x.shape[axis] if x.ndim else 1)


def gather(x: A, dim: int, index: A) -> A:
    """One element for each element of ``index``: its own place, with the position along ``dim`` replaced.

    Raises:
      ValueError: if the index has another number of axes, or is larger than this tensor along other axes.
      TypeError: if the index holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> t = Tensor([[1, 2], [3, 4]])
      >>> t.gather(1, Tensor([[0, 0], [1, 0]])).tolist()
      [[1, 1], [4, 3]]
    """
    axis, at = _along(x, dim, index, "gather")
    if x.ndim == 0:  # one element is an axis of one, as PyTorch has it
        return gather(x.reshape((1,)), 0, at.reshape((1,))).reshape(())
    box = x.shrink([None if i == axis else (0, d) for i, d in enumerate(at.shape)])
    pre, post = prod(at.shape[:axis]), prod(at.shape[axis + 1 :])
    found = box.reshape((pre, box.shape[axis], post))._apply(TakeAlong(), at.reshape((pre, at.shape[axis], post)))
    return found.reshape(at.shape)


def _one_hots(x: A, axis: int, at: A, src: Any, what: str) -> tuple[A, A]:
    """Where element m goes to position k, (pre, m, k, post), and the sources, (pre, m, 1, post)."""
    value = as_value(x, src, what)
    if value.shape == ():
        value = stretch(value, at.shape)
    if value.ndim != x.ndim or any(not _not_above(a, b) for a, b in zip(at.shape, value.shape, strict=True)):
        raise ValueError(f"{what}: a source of shape {value.shape} is smaller than the index of shape {at.shape}")
    value = value.shrink([(0, d) for d in at.shape])
    around = [(0, 0) if i == axis else (0, d - at.shape[i]) for i, d in enumerate(x.shape)]
    at, value = at.pad(around, value=-1), value.pad(around)
    pre, post = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    m, n = at.shape[axis], x.shape[axis]
    targets = iota(type(x), n, at.dtype if at.dtype.itemsize > 4 else dtypes.int32, x.device).reshape((1, 1, n, 1))
    hit = at.reshape((pre, m, 1, post)).eq(targets)
    return hit, value.reshape((pre, m, 1, post))


def scatter(x: A, dim: int, index: A, src: Any, reduce: str | None = None) -> A:
    """This tensor with ``src`` at the positions ``index`` along ``dim``; of several for one place the last stays.

    Positions outside of the axis are left out.

    Args:
      reduce: ``"add"`` or ``"multiply"`` combines with what is there instead.

    Raises:
      ValueError: if the shapes do not fit, or there is no such ``reduce``.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 0, 0]).scatter(0, Tensor([2, 0]), Tensor([5, 7]))
      Tensor([7, 0, 5])
    """
    if reduce not in (None, "add", "multiply"):
        raise ValueError(f"scatter: reduce {reduce!r}; there are 'add' and 'multiply'")
    if reduce is not None:
        return scatter_reduce(x, dim, index, src, "sum" if reduce == "add" else "prod")
    axis, at = _along(x, dim, index, "scatter")
    if x.ndim == 0:
        return scatter(x.reshape((1,)), 0, at.reshape((1,)), src).reshape(())
    hit, value = _one_hots(x, axis, at, src, "scatter")
    pre, m, n, post = broadcast_shape("scatter", hit.shape, value.shape)
    order = iota(type(x), m, dtypes.int32, x.device).reshape((1, m, 1, 1)) + 1
    last = stretch(hit.where(order, 0), (pre, m, n, post))._apply(Max((1,))) if m != 0 else None
    if last is None:
        return copied(x)
    last = last.reshape((pre, n, post))
    found = value.reshape((pre, m, post))._apply(TakeAlong(), last - 1)
    return (last > 0).where(found, x.reshape((pre, n, post))).reshape(x.shape)


def scatter_reduce(x: A, dim: int, index: A, src: Any, reduce: str, include_self: bool = True) -> A:
    """This tensor with the sources that go to one place combined: ``sum``, ``prod``, ``mean``, ``amax``, ``amin``.

    Args:
      include_self: combine with what is there, too; places to which nothing goes stay in either case.

    Raises:
      ValueError: if the shapes do not fit, or there is no such ``reduce``.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 1, 1]).scatter_reduce(0, Tensor([2, 2]), Tensor([5, 7]), reduce="sum")
      Tensor([ 1,  1, 13])
    """
    if reduce not in _REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce {reduce!r}; there are {', '.join(_REDUCTIONS)}")
    axis, at = _along(x, dim, index, "scatter_reduce")
    if x.ndim == 0:
        return scatter_reduce(x.reshape((1,)), 0, at.reshape((1,)), src, reduce, include_self).reshape(())
    if at.numel() == 0:
        return copied(x)
    hit, value = _one_hots(x, axis, at, src, "scatter_reduce")
    pre, n, post = hit.shape[0], x.shape[axis], hit.shape[3]
    mine = x.reshape((pre, n, post))
    reached = hit.any(1)
    if reduce in ("sum", "mean"):
        out = hit.where(value, 0).sum(1, dtype=sum_acc_dtype(x.dtype)).cast(x.dtype)
        out = mine + out if include_self else out
        if reduce == "mean":
            count = hit.sum(1) + (1 if include_self else 0)
            exact = x.dtype.kind == "float"
            out = out / count.maximum(1).cast(x.dtype) if exact else out // count.maximum(1).cast(x.dtype)
    elif reduce == "prod":
        out = hit.where(value, 1).prod(1, dtype=sum_acc_dtype(x.dtype)).cast(x.dtype)
        out = mine * out if include_self else out
    elif reduce == "amax":
        out = hit.where(value, dtypes.min(x.dtype)).max(1)
        out = mine.maximum(out) if include_self else out
    else:
        out = hit.where(value, dtypes.max(x.dtype)).min(1)
        out = mine.minimum(out) if include_self else out
    return reached.where(out, mine).reshape(x.shape)


def one_hot(x: A, num_classes: int = -1) -> A:
    """A new last axis: 1 at the position that the element names, 0 elsewhere (int32).

    Args:
      num_classes: length of the axis; -1 is one more than the greatest element, which is computed at once.

    Raises:
      TypeError: if the elements are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0, 2]).one_hot(3)
      Tensor([[1, 0, 0],
              [0, 0, 1]])
    """
    if not dtypes.is_int(x.dtype):
        raise TypeError(f"one_hot: integers are wanted, got a tensor of {x.dtype.name}")
    if num_classes == -1:
        num_classes = int(x.max().item()) + 1
        if int(x.min().item()) < 0:
            raise ValueError(f"one_hot: class {x.min().item()} is negative")
    if num_classes < 0:
        raise ValueError(f"one_hot: {num_classes} is not a number of classes")
    classes = signed(x, num_classes)
    return classes.unsqueeze(-1).eq(iota(type(x), num_classes, classes.dtype, x.device)).cast(dtypes.int32)


def _not_above(a: sint, b: sint) -> bool:
    return a == b or (isinstance(a, int) and isinstance(b, int) and a <= b)
