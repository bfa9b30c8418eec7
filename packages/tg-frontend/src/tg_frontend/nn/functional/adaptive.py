"""Pools whose windows follow from the size of the result; and those of powers."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ...array.casts import floating
from ...array.ingest import value_of
from ...ops.pooling import first_place, positions
from ...tensor import Tensor
from .arranged import avg_pool2d

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Sizes = int | Sequence[int | None] | None
    Numbers = int | Sequence[int]


def _sizes(x: Tensor, n: int, output_size: Any, what: str) -> tuple[int, ...]:
    if x.ndim not in (n + 1, n + 2):
        raise ValueError(f"{what}: input of shape {x.shape}; ([batch,] channels and {n} more axes) is wanted")
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if len(given) == 1:
        given = tuple(given) * n
    old = [value_of(dim, x.shape) for dim in x.shape[-n:]]
    sizes = tuple(have if want is None else want for have, want in zip(old, given, strict=len(given) == n))
    if len(given) != n or any(not isinstance(size, int) or isinstance(size, bool) or size < 0 for size in sizes):
        raise ValueError(f"{what}: output_size {output_size!r}; {n} sizes, each a whole number or None, are wanted")
    if any(have == 0 for have in old):
        raise ValueError(f"{what}: there is no element in input of shape {x.shape}")
    return sizes


def _bounds(have: int, want: int) -> list[tuple[int, int]]:
    return [(i * have // want, -(-(i + 1) * have // want)) for i in range(want)]


def _cut(x: Tensor, axis: int, want: int) -> tuple[Tensor, Tensor | None]:
    """An axis as two, of windows and of their elements; and which elements are there, if not all.

    Windows are as long as the longest; the shorter ones repeat their last element.
    """
    have = value_of(x.shape[axis], x.shape)
    shape = x.shape
    if want and have % want == 0:
        return x.reshape((*shape[:axis], want, have // want, *shape[axis + 1 :])), None
    bounds = _bounds(have, want)
    longest = max((end - begin for begin, end in bounds), default=1)
    table = [[min(begin + i, end - 1) for i in range(longest)] for begin, end in bounds]
    at = Tensor(table, dtype=dtypes.int32, device=x.device).reshape(want * longest)
    there = Tensor([[begin + i < end for i in range(longest)] for begin, end in bounds], device=x.device)
    there = there.cast("bool").reshape(want, longest, *(1,) * (len(shape) - axis - 1))
    return x.index_select(axis, at).reshape((*shape[:axis], want, longest, *shape[axis + 1 :])), there


def adaptive_mean(x: Tensor, n: int, output_size: Any, what: str) -> Tensor:
    """The means of the windows that divide the last ``n`` axes into so many parts; of integers they are floats.

    Raises:
      ValueError: if the sizes do not fit.
    """
    sizes, x = _sizes(x, n, output_size, what), floating(x)
    dtype = x.dtype
    out = x.cast(dtypes.float32) if dtype.itemsize < 4 else x
    for axis, want in zip(range(x.ndim - n, x.ndim), sizes, strict=True):
        cut, there = _cut(out, axis, want)
        if there is None:
            out = cut.mean(axis + 1)
        else:
            out = there.where(cut, 0).sum(axis + 1) / there.sum(1).cast(cut.dtype)
    return out.cast(dtype)


def _maxima(x: Tensor, n: int, output_size: Any, return_indices: bool, what: str) -> Any:
    sizes = _sizes(x, n, output_size, what)
    place, count = positions(x, n)
    if not dtypes.is_float(x.dtype):
        x = x.cast(dtypes.default_float)
    seen = x
    for axis, want in zip(range(x.ndim - 1, x.ndim - n - 1, -1), reversed(sizes), strict=True):
        seen, _ = _cut(seen, axis, want)  # elements that stand twice change no maximum, nor its place
        place, _ = _cut(place, axis, want)
    axes = tuple(x.ndim - n + 2 * i + 1 for i in range(n))
    best = seen.max(axes, keepdim=True)
    out = best.reshape((*x.shape[:-n], *sizes))
    return (out, first_place(seen, best, place, count, axes)) if return_indices else out


def adaptive_avg_pool1d(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of windows that divide the last axis into ``output_size`` parts.

    Raises:
      ValueError: if the input has another number of axes, or the size is none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_avg_pool1d(Tensor([[1.0, 2.0, 3.0, 4.0, 9.0]]), 3)
      Tensor([[1.5, 3. , 6.5]])
    """
    return adaptive_mean(x, 1, output_size, "adaptive_avg_pool1d")


def adaptive_avg_pool2d(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of windows that divide the last two axes into ``output_size`` parts; None keeps an axis.

    Raises:
      ValueError: if the input has another number of axes, or the sizes are none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_avg_pool2d(Tensor([[[1.0, 2.0, 6.0], [3.0, 4.0, 8.0]]]), (1, 2))
      Tensor([[[2.5, 5. ]]])
    """
    return adaptive_mean(x, 2, output_size, "adaptive_avg_pool2d")


def adaptive_avg_pool3d(x: Tensor, output_size: Sizes) -> Tensor:
    """The means of windows that divide the last three axes into ``output_size`` parts; None keeps an axis.

    Raises:
      ValueError: if the input has another number of axes, or the sizes are none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_avg_pool3d(Tensor.ones(1, 4, 5, 6), (2, None, 3)).shape
      (1, 2, 5, 3)
    """
    return adaptive_mean(x, 3, output_size, "adaptive_avg_pool3d")


def adaptive_max_pool1d(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of windows that divide the last axis into ``output_size`` parts.

    Returns:
      The maxima; with ``return_indices`` they and their positions.

    Raises:
      ValueError: if the input has another number of axes, or the size is none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_max_pool1d(Tensor([[1.0, 2.0, 3.0, 4.0, 9.0]]), 3)
      Tensor([[2., 4., 9.]])
    """
    return _maxima(x, 1, output_size, return_indices, "adaptive_max_pool1d")


def adaptive_max_pool2d(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of windows that divide the last two axes into ``output_size`` parts; None keeps an axis.

    Returns:
      The maxima; with ``return_indices`` they and their positions in the two axes, counted along rows.

    Raises:
      ValueError: if the input has another number of axes, or the sizes are none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_max_pool2d(Tensor([[[1.0, 2.0, 6.0], [3.0, 4.0, 8.0]]]), (1, 2))
      Tensor([[[4., 8.]]])
    """
    return _maxima(x, 2, output_size, return_indices, "adaptive_max_pool2d")


def adaptive_max_pool3d(x: Tensor, output_size: Sizes, return_indices: bool = False) -> Any:
    """The maxima of windows that divide the last three axes into ``output_size`` parts; None keeps an axis.

    Returns:
      The maxima; with ``return_indices`` they and their positions in the three axes, counted along rows.

    Raises:
      ValueError: if the input has another number of axes, or the sizes are none.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.adaptive_max_pool3d(Tensor.ones(1, 4, 5, 6), (2, None, 3)).shape
      (1, 2, 5, 3)
    """
    return _maxima(x, 3, output_size, return_indices, "adaptive_max_pool3d")


def _powers(x: Tensor, norm_type: float, name: str) -> Tensor:
    if norm_type == 0:
        raise ValueError(f"functional.{name}: norm_type is 0, and there is no such root")
    return x**norm_type


def _root(mean: Tensor, norm_type: float, elements: int) -> Tensor:
    return (mean.sign() * mean.abs() * elements) ** (1.0 / norm_type)


def _volume(kernel_size: Numbers, n: int) -> int:
    return kernel_size**n if isinstance(kernel_size, int) else math.prod(kernel_size)


def lp_pool1d(
    x: Tensor, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of that power, of each window of one axis.

    Raises:
      ValueError: if ``norm_type`` is 0, the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.lp_pool1d(Tensor([[3.0, 4.0, 6.0, 8.0]]), 2, 2)
      Tensor([[ 5., 10.]])
    """
    mean = _powers(x, norm_type, "lp_pool1d").avg_pool1d(kernel_size, stride, 0, ceil_mode)
    return _root(mean, norm_type, _volume(kernel_size, 1))


def lp_pool2d(
    x: Tensor, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of that power, of each window of two axes.

    Raises:
      ValueError: if ``norm_type`` is 0, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.lp_pool2d(Tensor([[[3.0, 4.0], [0.0, 0.0]]]), 2, 2)
      Tensor([[[5.]]])
    """
    mean = avg_pool2d(_powers(x, norm_type, "lp_pool2d"), kernel_size, stride, 0, ceil_mode)
    return _root(mean, norm_type, _volume(kernel_size, 2))


def lp_pool3d(
    x: Tensor, norm_type: float, kernel_size: Numbers, stride: Numbers | None = None, ceil_mode: bool = False
) -> Tensor:
    """The ``norm_type``-th root of the sum of that power, of each window of three axes.

    Raises:
      ValueError: if ``norm_type`` is 0, the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.lp_pool3d(Tensor.ones(1, 4, 4, 4), 2, 2).shape
      (1, 2, 2, 2)
    """
    mean = _powers(x, norm_type, "lp_pool3d").avg_pool3d(kernel_size, stride, 0, ceil_mode)
    return _root(mean, norm_type, _volume(kernel_size, 3))
