"""Maxima and means of windows."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.array import A
from ..array.axes import iota
from ..array.casts import floating
from ..array.ingest import value_of
from .convolution import check_windows_fit, paddings, per_axis
from .creation import ones_like, zeros
from .gather_scatter import scatter
from .predicates import isnan
from .window_reductions import WindowMax, WindowShape, WindowSum
from .windows import windows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Numbers = int | Sequence[int]


def _pool_arguments(
    x: A, n: int, kernel_size: Numbers, stride: Any, dilation: Numbers, padding: Any, ceil_mode: bool, what: str
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], list[tuple[int, int]], list[tuple[int, int]]]:
    if x.ndim < n:
        raise ValueError(f"{what}: input of shape {x.shape} for a kernel of {n} axes")
    if any(isinstance(dim, int) and dim == 0 for dim in x.shape[-n:]):
        raise ValueError(f"{what}: input of shape {x.shape} has nothing along an axis of the kernel")
    kernel = per_axis(kernel_size, n, f"{what}: kernel_size", 1)
    steps = kernel if stride is None or stride == () else per_axis(stride, n, f"{what}: stride", 1)
    gaps = per_axis(dilation, n, f"{what}: dilation", 1)
    pads = paddings(padding, n, what)
    for size, gap, (before, after) in zip(kernel, gaps, pads, strict=True):
        if min(before, after) < 0:
            raise ValueError(f"{what}: padding {padding!r} is negative")
        if max(before, after) > gap * (size - 1):
            raise ValueError(f"{what}: padding {padding!r}: windows of {kernel} would lie in the padding alone")
    whole = list(pads)
    if ceil_mode:
        for i, size in enumerate(x._ints()[-n:]):
            before, after = pads[i]
            reach = gaps[i] * (kernel[i] - 1) + 1
            count = -(-(size + before + after - reach) // steps[i]) + 1
            if (count - 1) * steps[i] >= size + before:  # a window may not lie in the padding alone
                count -= 1
            whole[i] = (before, max(after, (count - 1) * steps[i] + reach - size - before))
    spatial = tuple(d + b + a for d, (b, a) in zip(x.shape[-n:], whole, strict=True))
    check_windows_fit(x, spatial, kernel, steps, gaps, what)
    return kernel, steps, gaps, pads, whole


def _axes(kernel_size: Numbers) -> int:
    return 2 if isinstance(kernel_size, int) else len(kernel_size)


def check_rank(x: A, n: int, what: str) -> None:
    """Sees to it that a tensor has ([batch,] channels and ``n`` axes more).

    Raises:
      ValueError: if it has another number of axes.
    """
    if x.ndim not in (n + 1, n + 2):
        raise ValueError(f"{what}: input of shape {x.shape}; ([batch,] channels and {n} more axes) is wanted")


def max_pool2d(
    x: A,
    kernel_size: Numbers = (2, 2),
    stride: Numbers | None = None,
    *,
    dilation: Numbers = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of the last axes. Padding never wins; ties share the gradient evenly, NaN has none.

    Args:
      kernel_size: one number for each of the last axes (two, if it is one number).
      stride: distance of windows; the kernel size if not given.
      ceil_mode: windows may hang over at the end.
      return_indices: also tell where each maximum is (the first, of several; int32), counted through the last axes.

    Returns:
      The maxima; with ``return_indices`` they and the positions.

    Raises:
      ValueError: if no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[[[1.0, 2.0], [3.0, 6.0]]]]).max_pool2d()[0, 0]
      Tensor([[6.]])
    """
    n = _axes(kernel_size)
    return _max_pool(x, n, kernel_size, stride, dilation, padding, ceil_mode, return_indices, "max_pool2d")


def _max_pool(
    x: A, n: int, kernel_size: Numbers, stride: Any, dilation: Numbers, padding: Any, ceil_mode: bool,
    return_indices: bool, what: str,
) -> Any:  # fmt: skip
    arguments = _pool_arguments(x, n, kernel_size, stride, dilation, padding, ceil_mode, what)
    kernel, steps, gaps, _, pads = arguments
    out = x._apply(WindowMax(WindowShape(kernel, steps, gaps, pads)))
    if not return_indices:
        return out
    seen = x.detach().pad([*((0, 0),) * (x.ndim - n), *pads], value=dtypes.min(x.dtype))
    seen = windows(seen, kernel, steps, gaps)
    axes = tuple(range(x.ndim, x.ndim + n))
    place, size = positions(x, n)
    place = windows(place.pad([*((0, 0),) * (x.ndim - n), *pads], value=size), kernel, steps, gaps)
    best = out.reshape((*out.shape, *(1 for _ in axes)))
    return out, first_place(seen, best, place, size, axes)


def positions(x: A, n: int) -> tuple[A, int]:
    """The numbers of the places along the last ``n`` axes, broadcastable to ``x``, and how many there are."""
    spatial = tuple(value_of(dim, x.shape) for dim in x.shape[-n:])
    size = math.prod(spatial)
    return iota(type(x), size, dtypes.int32, x.device).reshape((*(1,) * (x.ndim - n), *spatial)), size


def first_place(seen: A, best: A, place: A, size: int, axes: tuple[int, ...]) -> A:
    """The least number of a place where ``seen`` is its maximum along ``axes``, which NaN is wherever it is."""
    seen = seen.detach()
    hit = seen.eq(best.detach()) | isnan(seen)
    return hit.where(place, size).min(axes)


def avg_pool2d(
    x: A,
    kernel_size: Numbers = (2, 2),
    stride: Numbers | None = None,
    *,
    dilation: Numbers = 1,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> A:
    """The mean of each window of the last axes; of integers it is a float, while PyTorch truncates it.

    Args:
      kernel_size: one number for each of the last axes (two, if it is one number).
      stride: distance of windows; the kernel size if not given.
      ceil_mode: windows may hang over at the end; what hangs over is not counted.
      count_include_pad: whether padding is counted.
      divisor_override: what sums are divided by, instead of the count.

    Raises:
      ValueError: if no window fits, or the divisor is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[[[1.0, 2.0], [3.0, 6.0]]]]).avg_pool2d()[0, 0]
      Tensor([[3.]])
    """
    n = _axes(kernel_size)
    return window_means(
        x, n, kernel_size, stride, dilation, padding, ceil_mode, count_include_pad, divisor_override, "avg_pool2d"
    )


def window_means(
    x: A, n: int, kernel_size: Numbers, stride: Any, dilation: Numbers, padding: Any, ceil_mode: bool,
    count_include_pad: bool, divisor_override: int | None, what: str, truncated: bool = False,
) -> A:  # fmt: skip
    """The mean of each window of the last ``n`` axes; with ``truncated`` those of integers are cut to integers.

    Raises:
      ValueError: if no window fits, or the divisor is 0.
    """
    arguments = _pool_arguments(x, n, kernel_size, stride, dilation, padding, ceil_mode, what)
    kernel, steps, gaps, pads, whole = arguments
    lead = [(0, 0)] * (x.ndim - n)
    axes = tuple(range(x.ndim, x.ndim + n))
    kind = x.dtype
    mode = "trunc" if truncated and dtypes.is_int(kind) else None
    x = floating(x) if mode is None else x

    def mean(total: A, count: Any) -> A:
        return total / count if mode is None else total.div(count, rounding_mode=mode).cast(kind)

    if dtypes.is_float(x.dtype):
        total = x._apply(WindowSum(WindowShape(kernel, steps, gaps, whole)))
    else:
        total = windows(x.pad([*lead, *whole]), kernel, steps, gaps).sum(axes)
    if divisor_override is not None:
        if divisor_override == 0:
            raise ValueError(f"{what}: divisor_override is 0")
        return mean(total, divisor_override)
    if whole == pads and (count_include_pad or all(p == (0, 0) for p in pads)):
        return mean(total, math.prod(kernel))
    ones = ones_like(x.detach())
    if count_include_pad:
        ones = ones.pad([*lead, *pads], value=1)
        ones = ones.pad([*lead, *((0, w[1] - p[1]) for w, p in zip(whole, pads, strict=True))])
    else:
        ones = ones.pad([*lead, *whole])
    return mean(total, windows(ones, kernel, steps, gaps).sum(axes))


def max_unpool2d(
    x: A,
    indices: A,
    kernel_size: Numbers = (2, 2),
    stride: Numbers | None = None,
    *,
    dilation: Numbers = 1,
    padding: Any = 0,
    output_size: Sequence[int] | None = None,
) -> A:
    """Puts maxima back where :meth:`max_pool2d` found them, zeros elsewhere; of several for one place the last.

    Args:
      indices: the positions, from ``max_pool2d(..., return_indices=True)``.
      output_size: sizes of the last axes of the result; those that fit the windows if not given.

    Raises:
      ValueError: if the shapes differ.
      TypeError: if the positions are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor([[[[1.0, 2.0], [3.0, 6.0]]]])
      >>> most, where = x.max_pool2d(return_indices=True)
      >>> most.max_unpool2d(where)[0, 0]
      Tensor([[0., 0.],
              [0., 6.]])
    """
    n = _axes(kernel_size)
    return _max_unpool(x, n, indices, kernel_size, stride, dilation, padding, output_size, "max_unpool2d")


def _max_unpool(
    x: A, n: int, indices: A, kernel_size: Numbers, stride: Any, dilation: Numbers, padding: Any,
    output_size: Sequence[int] | None, what: str,
) -> A:  # fmt: skip
    if indices.shape != x.shape or x.ndim < n:
        raise ValueError(f"{what}: maxima of shape {x.shape} with indices of shape {indices.shape}")
    if not dtypes.is_int(indices.dtype):
        raise TypeError(f"{what}: indices are integers, got a tensor of {indices.dtype.name}")
    kernel = per_axis(kernel_size, n, f"{what}: kernel_size", 1)
    steps = kernel if stride is None or stride == () else per_axis(stride, n, f"{what}: stride", 1)
    gaps = per_axis(dilation, n, f"{what}: dilation", 1)
    *lead, counts = (*x.shape[:-n], [value_of(dim, x.shape) for dim in x.shape[-n:]])
    spatial = tuple(
        (c - 1) * s + d * (k - 1) + 1 - before - after
        for c, s, d, k, (before, after) in zip(counts, steps, gaps, kernel, paddings(padding, n, what), strict=True)
    )
    if output_size is not None:
        sizes = tuple(output_size)
        if len(sizes) not in (n, x.ndim):
            raise ValueError(f"{what}: output_size {sizes} for an input of shape {x.shape}; it has {n} sizes")
        if any(abs(size - usual) >= step for size, usual, step in zip(sizes[-n:], spatial, steps, strict=True)):
            raise ValueError(f"{what}: output_size {sizes} is a step of {steps} or more away from {spatial}")
        spatial = sizes[-n:]
    where_to = indices.detach().reshape((*lead, math.prod(counts)))
    flat = zeros(type(x), *lead, math.prod(spatial), dtype=x.dtype, device=x.device)
    return scatter(flat, -1, where_to, x.reshape(where_to.shape)).reshape((*lead, *spatial))


def max_pool1d(
    x: A,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of one axis, as :meth:`max_pool2d` has it of two.

    This tensor has the shape (batch, channels, *spatial), or (channels, *spatial) for one example.

    Returns:
      The maxima; with ``return_indices`` they and the positions.

    Raises:
      ValueError: if the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 4.0, 2.0, 3.0]]).max_pool1d(2)
      Tensor([[4., 3.]])
    """
    what = "max_pool1d"
    check_rank(x, 1, what)
    return _max_pool(x, 1, kernel_size, stride, dilation, padding, ceil_mode, return_indices, what)


def avg_pool1d(
    x: A,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> A:
    """The mean of each window of one axis, as :meth:`avg_pool2d` has it of two.

    This tensor has the shape (batch, channels, *spatial), or (channels, *spatial) for one example.

    Raises:
      ValueError: if the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[1.0, 4.0, 2.0, 3.0]]).avg_pool1d(2)
      Tensor([[2.5, 2.5]])
    """
    what = "avg_pool1d"
    check_rank(x, 1, what)
    return window_means(x, 1, kernel_size, stride, 1, padding, ceil_mode, count_include_pad, None, what)


def max_unpool1d(
    x: A,
    indices: A,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    output_size: Sequence[int] | None = None,
) -> A:
    """Puts maxima back where :meth:`max_pool1d` found them, zeros elsewhere; of several for one place the last.

    Args:
      indices: the positions, from ``max_pool1d(..., return_indices=True)``.
      output_size: sizes of the last axes of the result; those that fit the windows if not given.

    Raises:
      ValueError: if the shapes differ, or the input has another number of axes.
      TypeError: if the positions are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> most, where = Tensor([[1.0, 4.0, 2.0, 3.0]]).max_pool1d(2, return_indices=True)
      >>> most.max_unpool1d(where, 2)
      Tensor([[0., 4., 0., 3.]])
    """
    what = "max_unpool1d"
    check_rank(x, 1, what)
    return _max_unpool(x, 1, indices, kernel_size, stride, 1, padding, output_size, what)


def max_pool3d(
    x: A,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The maximum of each window of three axes, as :meth:`max_pool2d` has it of two.

    This tensor has the shape (batch, channels, *spatial), or (channels, *spatial) for one example.

    Returns:
      The maxima; with ``return_indices`` they and the positions.

    Raises:
      ValueError: if the input has another number of axes, or no window fits.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 4.0, 2.0, 3.0]).reshape(1, 1, 1, 4).max_pool3d((1, 1, 2)).flatten()
      Tensor([4., 3.])
    """
    what = "max_pool3d"
    check_rank(x, 3, what)
    return _max_pool(x, 3, kernel_size, stride, dilation, padding, ceil_mode, return_indices, what)


def avg_pool3d(
    x: A,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> A:
    """The mean of each window of three axes, as :meth:`avg_pool2d` has it of two.

    This tensor has the shape (batch, channels, *spatial), or (channels, *spatial) for one example.

    Raises:
      ValueError: if the input has another number of axes, or no window fits; or the divisor is 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 4.0, 2.0, 3.0]).reshape(1, 1, 1, 4).avg_pool3d((1, 1, 2)).flatten()
      Tensor([2.5, 2.5])
    """
    what = "avg_pool3d"
    check_rank(x, 3, what)
    return window_means(x, 3, kernel_size, stride, 1, padding, ceil_mode, count_include_pad, divisor_override, what)


def max_unpool3d(
    x: A,
    indices: A,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    output_size: Sequence[int] | None = None,
) -> A:
    """Puts maxima back where :meth:`max_pool3d` found them, zeros elsewhere; of several for one place the last.

    Args:
      indices: the positions, from ``max_pool3d(..., return_indices=True)``.
      output_size: sizes of the last axes of the result; those that fit the windows if not given.

    Raises:
      ValueError: if the shapes differ, or the input has another number of axes.
      TypeError: if the positions are no integers.

    Example:
      >>> from tg_frontend import Tensor
      >>> most, where = Tensor([1.0, 4.0, 2.0, 3.0]).reshape(1, 1, 1, 4).max_pool3d((1, 1, 2), return_indices=True)
      >>> most.max_unpool3d(where, (1, 1, 2)).flatten()
      Tensor([0., 4., 0., 3.])
    """
    what = "max_unpool3d"
    check_rank(x, 3, what)
    return _max_unpool(x, 3, indices, kernel_size, stride, 1, padding, output_size, what)
