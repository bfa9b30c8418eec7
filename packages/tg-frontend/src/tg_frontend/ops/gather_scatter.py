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
from ..array.writing import as_value
from ..autograd.functions import Scatter, ScatterAdd, ScatterMax, ScatterProd, TakeAlong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


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
    check_places(x, axis, index, what)
    return axis, signed(x._wrap(index.lazydata), x.shape[axis] if x.ndim else 1)


def check_places(x: A, axis: int, index: A, what: str) -> None:
    """Sees to it that there is a place for an index to name.

    Raises:
      IndexError: if there is none along the axis, whatever the index holds.
    """
    if x.ndim and x.shape[axis] == 0 and index.numel() != 0:
        raise IndexError(f"{what}: an index of shape {index.shape} into axis {axis} of shape {x.shape}, which is empty")


def gather(x: A, dim: int, index: A) -> A:
    """One element for each element of ``index``: its own place, with the position along ``dim`` replaced.

    A position outside of the axis reads as 0; none counts from the end.

    Raises:
      ValueError: if the index has another number of axes, or is larger than this tensor along other axes.
      TypeError: if the index holds no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> t = Tensor([[1, 2], [3, 4]])
      >>> t.gather(1, Tensor([[0, 0], [1, 0]])).tolist()
      [[1, 1], [4, 3]]
    """
    if x.ndim == 0 and isinstance(index, Array) and index.ndim == 1:  # one element is an axis of one
        return gather(x.reshape((1,)), dim, index)
    axis, at = _along(x, dim, index, "gather")
    if x.ndim == 0:
        return gather(x.reshape((1,)), 0, at.reshape((1,))).reshape(())
    box = x.shrink([None if i == axis else (0, d) for i, d in enumerate(at.shape)])
    pre, post = prod(at.shape[:axis]), prod(at.shape[axis + 1 :])
    found = box.reshape((pre, box.shape[axis], post))._apply(TakeAlong(), at.reshape((pre, at.shape[axis], post)))
    return found.reshape(at.shape)


def _sources(x: A, at: A, src: Any, what: str) -> A:
    """A value for each position.

    Raises:
      ValueError: if there are too few.
    """
    value = as_value(x, src, what)
    if value.shape == ():
        return stretch(value, at.shape)
    if value.ndim != x.ndim or any(not _not_above(a, b) for a, b in zip(at.shape, value.shape, strict=True)):
        raise ValueError(f"{what}: a source of shape {value.shape} is smaller than the index of shape {at.shape}")
    return value.shrink([(0, d) for d in at.shape])


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
    value = _sources(x, at, src, "scatter")
    if at.numel() == 0 or x.numel() == 0:
        return copied(x, value)
    return x._apply(Scatter(axis), at, value)


def scatter_add(x: A, dim: int, index: A, src: Any) -> A:
    """This tensor with ``src`` added at the positions ``index`` along ``dim``, as :func:`scatter_reduce` by sums.

    Raises:
      ValueError: if the shapes do not fit.
      TypeError: if the index holds no integers, or the source has another dtype.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 1, 1]).scatter_add(0, Tensor([2, 2]), Tensor([5, 7]))
      Tensor([ 1,  1, 13])
    """
    return scatter_reduce(x, dim, index, src, "sum")


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
    if reduce not in REDUCTIONS:
        raise ValueError(f"scatter_reduce: reduce {reduce!r}; there are {', '.join(REDUCTIONS)}")
    axis, at = _along(x, dim, index, "scatter_reduce")
    if x.ndim == 0:
        return scatter_reduce(x.reshape((1,)), 0, at.reshape((1,)), src, reduce, include_self).reshape(())
    value = _sources(x, at, src, "scatter_reduce")
    if at.numel() == 0 or x.numel() == 0:
        return copied(x, value)
    return combined(x, axis, at, value, reduce, include_self)


def combined(x: A, axis: int, at: A, value: A, reduce: str, include_self: bool = True) -> A:
    """:func:`scatter_reduce` of operands that fit: sums and products of narrow numbers are rounded once."""
    if reduce in ("amax", "amin"):
        if not include_self:
            least = dtypes.min(x.dtype) if reduce == "amax" else dtypes.max(x.dtype)
            x = x._apply(Scatter(axis), at, stretch(as_value(x, least, "scatter_reduce"), at.shape))
        if reduce == "amax":
            return x._apply(ScatterMax(axis), at, value)
        return _turned(_turned(x)._apply(ScatterMax(axis), at, _turned(value)))
    dtype = x.dtype
    wide, value = x.cast(sum_acc_dtype(dtype)), value.cast(sum_acc_dtype(dtype))
    if not include_self:
        none = as_value(wide, 1 if reduce == "prod" else 0, "scatter_reduce")
        wide = wide._apply(Scatter(axis), at, stretch(none, at.shape))
    if reduce == "prod":
        return wide._apply(ScatterProd(axis), at, value).cast(dtype)
    out = wide._apply(ScatterAdd(axis), at, value)
    if reduce == "mean":
        one = as_value(x.cast(dtypes.int32), 1, "scatter_reduce")
        own = stretch(one * int(include_self), x.shape)
        count = own._apply(ScatterAdd(axis), at, stretch(one, at.shape)).maximum(1)
        out = out / count.cast(out.dtype) if dtype.kind == "float" else out // count.cast(out.dtype)
    return out.cast(dtype)


def _turned(x: A) -> A:
    """Numbers in their reverse order; twice, themselves."""
    return -x if x.dtype.kind == "float" else x.bitwise_not()


def one_hot(x: A, num_classes: int = -1) -> A:
    """A new last axis: 1 at the position that the element names, 0 elsewhere (int32).

    Args:
      num_classes: length of the axis; -1 is one more than the greatest element, which is computed at once.

    Raises:
      TypeError: if the elements are no integers.
      ValueError: if an element is negative where the classes are counted, or there are no classes.

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
    if num_classes < 0 or (num_classes == 0 and x.numel() != 0):
        raise ValueError(f"one_hot: {num_classes} is not a number of classes")
    classes = signed(x, num_classes)
    return classes.unsqueeze(-1).eq(iota(type(x), num_classes, classes.dtype, x.device)).cast(dtypes.int32)


def _not_above(a: sint, b: sint) -> bool:
    return a == b or (isinstance(a, int) and isinstance(b, int) and a <= b)
