"""Maxima of windows that lie irregularly, drawn at random (Graham, "Fractional max-pooling", 2014)."""

from __future__ import annotations

from math import prod

from tg_dtype import dtypes

from ...array.ingest import value_of
from ...ops.pooling import first_place
from ...tensor import Tensor
from .sizes import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Numbers = int | Sequence[int]
    Ratios = float | Sequence[float]


def _sizes(have: list[int], output_size: Any, output_ratio: Any, what: str) -> tuple[int, ...]:
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{what}: output_size {output_size!r}, output_ratio {output_ratio!r}; one of them is wanted")
    if output_size is not None:
        return numbers(output_size, len(have), f"{what}: output_size")
    ratios = tuple(output_ratio) if isinstance(output_ratio, (tuple, list)) else (output_ratio,) * len(have)
    if len(ratios) != len(have) or any(not 0 < ratio < 1 for ratio in ratios):
        raise ValueError(f"{what}: output_ratio {output_ratio!r}; {len(have)} numbers between 0 and 1 are wanted")
    return tuple(int(size * ratio) for size, ratio in zip(have, ratios, strict=True))


def _starts(samples: Tensor, have: int, kernel: int, want: int) -> Tensor:
    """Where ``want`` windows begin, the last of them at the end: int32, shape (batch, channels, want)."""
    last = have - kernel
    step = last / (want - 1) if want > 1 else 0.0
    places = Tensor.arange(want, dtype=samples.dtype, device=samples.device)
    u = samples.unsqueeze(-1)
    starts = ((places + u) * step).cast(dtypes.int32) - (u * step).cast(dtypes.int32)
    return (places < want - 1).where(starts, last)


def _maxima(
    x: Tensor, n: int, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool, samples: Any,
    what: str,
) -> Any:  # fmt: skip
    if x.ndim not in (n + 1, n + 2):
        raise ValueError(f"{what}: input of shape {x.shape}; ([batch,] channels and {n} more axes) is wanted")
    kernels = numbers(kernel_size, n, f"{what}: kernel_size")
    have = [value_of(size, x.shape) for size in x.shape[-n:]]
    wants = _sizes(have, output_size, output_ratio, what)
    for size, kernel, want in zip(have, kernels, wants, strict=True):
        if want < 1 or want + kernel - 1 > size:
            fit = size - kernel + 1
            raise ValueError(f"{what}: {want} windows of {kernel} in an axis of {size}; at most {fit} fit")
    images = x if x.ndim == n + 2 else x.unsqueeze(0)
    batch, channels = images.shape[:2]
    if samples is None:
        samples = Tensor.rand(batch, channels, n, device=x.device)
    elif samples.ndim != 3 or samples.shape[1:] != (channels, n) or samples.shape[0] < batch:
        raise ValueError(f"{what}: _random_samples of shape {samples.shape}; {(batch, channels, n)} is wanted")
    elif samples.shape[0] != batch:
        samples = samples.shrink(((0, batch), None, None))  # PyTorch takes those of a larger batch
    # The draws of two axes are those of width and height, of three those of depth, height and width: as PyTorch's.
    drawn = (1, 0) if n == 2 else (0, 1, 2)
    starts = [_starts(samples[:, :, i], *sizes) for i, *sizes in zip(drawn, have, kernels, wants, strict=True)]
    seen = images
    where = Tensor.zeros(*(1,) * (2 * n + 2), dtype=dtypes.int32, device=x.device)
    for i, (begin, size, kernel, want) in enumerate(zip(starts, have, kernels, wants, strict=True)):
        at = begin.unsqueeze(-1) + Tensor.arange(kernel, dtype=dtypes.int32, device=x.device)
        lines = at.reshape(batch, channels, *(1,) * i, want * kernel, *(1,) * (n - 1 - i))
        seen = seen.gather(2 + i, lines.expand(*seen.shape[: 2 + i], want * kernel, *seen.shape[3 + i :]))
        lead, rest = (1, 1) * i, (1, 1) * (n - 1 - i)
        where = where * size + at.reshape(batch, channels, *lead, want, kernel, *rest)
    seen = seen.reshape(batch, channels, *(part for sizes in zip(wants, kernels, strict=True) for part in sizes))
    axes = tuple(3 + 2 * i for i in range(n))
    best, shape = seen.max(axes, keepdim=True), (*x.shape[:-n], *wants)
    out = best.reshape(shape)
    return (out, first_place(seen, best, where, prod(have), axes).reshape(shape)) if return_indices else out


def fractional_max_pool2d(
    x: Tensor, kernel_size: Numbers, output_size: Numbers | None = None, output_ratio: Ratios | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """The maxima of windows of height and width, as many as are wanted, that begin where numbers drawn at random say.

    Args:
      kernel_size: height and width of a window, or one number for both.
      output_size: number of windows along each axis.
      output_ratio: that number as a part of the axis, between 0 and 1, in place of ``output_size``.
      return_indices: whether to give the positions of the maxima as well, counted in the flattened plane.
      _random_samples: what is drawn otherwise: numbers in [0, 1), shape (batch, channels, 2), of width and height.

    Raises:
      ValueError: if the input is not ([batch,] channels, height, width); so many windows do not fit; or not one of
        ``output_size`` and ``output_ratio`` is given.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.fractional_max_pool2d(Tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2, output_size=1)
      Tensor([[[4.]]])
    """
    what = "fractional_max_pool2d"
    return _maxima(x, 2, kernel_size, output_size, output_ratio, return_indices, _random_samples, what)


def fractional_max_pool3d(
    x: Tensor, kernel_size: Numbers, output_size: Numbers | None = None, output_ratio: Ratios | None = None,
    return_indices: bool = False, _random_samples: Tensor | None = None,
) -> Any:  # fmt: skip
    """:func:`fractional_max_pool2d` of depth, height and width; so are ``_random_samples`` ordered.

    Raises:
      ValueError: as there, of ([batch,] channels, depth, height, width).

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.nn import functional as F
      >>> F.fractional_max_pool3d(Tensor.ones(1, 5, 7, 6), 2, output_ratio=0.5).shape
      (1, 2, 3, 3)
    """
    what = "fractional_max_pool3d"
    return _maxima(x, 3, kernel_size, output_size, output_ratio, return_indices, _random_samples, what)
