"""Resampling along axes: nearest, linear and cubic interpolation, with PyTorch's coordinates."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_shape import sint

from ..array.array import A
from ..array.axes import iota
from ..array.casts import floating
from ..array.computing import copied
from ..array.ingest import value_of
from . import rounding
from .elementwise import clip
from .indexing import getitem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SPATIAL = {"linear": None, "bilinear": 2, "trilinear": 3, "bicubic": 2, "nearest": None, "nearest-exact": None}
_CUBIC = -0.75  # the slope of the cubic convolution kernel that PyTorch and OpenCV use


def interpolate(
    x: A,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "linear",
    align_corners: bool | None = None,
) -> A:
    """The last axes resampled to ``size``, or by a factor. Integers are interpolated as floats and rounded.

    Args:
      size: the new sizes of the last axes; one number for all but the first two.
      scale_factor: or by how much they grow, one number or one an axis; sizes are rounded down.
      mode: ``"nearest"`` (also ``"nearest-exact"``), ``"linear"`` along every resampled axis (also ``"bilinear"``
        of two and ``"trilinear"`` of three), or ``"bicubic"``, as PyTorch has them. PyTorch's default is nearest.
      align_corners: of all but nearest: whether the first and last elements keep their places.

    Raises:
      ValueError: if there is no such mode, not one of ``size`` and ``scale_factor``, or they do not fit the shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[[1.0, 3.0]]]).interpolate(scale_factor=2).tolist()
      [[[1.0, 1.5, 2.5, 3.0]]]
    """
    sizes, ratios = _sizes_and_ratios(x.shape, size, scale_factor, mode)
    if align_corners is not None and mode.startswith("nearest") and align_corners:
        raise ValueError(f"interpolate: align_corners is not for mode {mode!r}")
    out = x if mode.startswith("nearest") else floating(x)
    out = out if mode.startswith("nearest") or out.dtype.itemsize >= 4 else out.cast(dtypes.float32)
    for axis, (new, ratio) in enumerate(zip(sizes, ratios, strict=True), start=x.ndim - len(sizes)):
        out = _resampled(out, axis, new, ratio, mode, bool(align_corners))
    if out is x:
        return copied(x)
    if out.dtype is x.dtype:
        return out
    return out.cast(x.dtype) if x.dtype.kind == "float" else rounding.round(out).cast(x.dtype)


def _sizes_and_ratios(
    shape: tuple[sint, ...], size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None, mode: str
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The new sizes of the last axes, and how many old elements lie in one new element along each.

    Raises:
      ValueError: if there is no such mode; or not exactly one of ``size`` and ``scale_factor``; or they do not fit.
    """
    if mode not in _SPATIAL:
        raise ValueError(f"interpolate: mode {mode!r}; there are {', '.join(_SPATIAL)}")
    if (size is None) == (scale_factor is None):
        raise ValueError("interpolate: give size or scale_factor, one of the two")
    given: Any = size if size is not None else scale_factor
    axes = _SPATIAL[mode] or max(1, len(shape) - 2)
    wanted = tuple(given) if isinstance(given, (tuple, list)) else (given,) * axes
    if _SPATIAL[mode] not in (None, len(wanted)):
        raise ValueError(f"interpolate: {mode} has {_SPATIAL[mode]} axes, got {given!r}")
    if not 1 <= len(wanted) <= len(shape):
        raise ValueError(f"interpolate: {given!r} for shape {shape}")
    old = tuple(value_of(dim, shape) for dim in shape[len(shape) - len(wanted) :])
    if size is not None:
        if any(not isinstance(s, int) or isinstance(s, bool) or s < 1 for s in wanted):
            raise ValueError(f"interpolate: size {size!r} for shape {shape}")
        return wanted, tuple(o / n for o, n in zip(old, wanted, strict=True))
    if any(not isinstance(s, (int, float)) or not 0 < s < math.inf for s in wanted):
        raise ValueError(f"interpolate: scale_factor {scale_factor!r}")
    new = tuple(math.floor(o * s) for o, s in zip(old, wanted, strict=True))
    if any(n < 1 for n in new):
        raise ValueError(f"interpolate: scale_factor {scale_factor!r} leaves nothing of shape {shape}")
    return new, _ratios(old, new, wanted, mode)


def _ratios(old: Sequence[int], new: Sequence[int], factors: Sequence[float], mode: str) -> tuple[float, ...]:
    """How many old elements lie in one new one. As PyTorch has it, an axis that keeps its length is left as it is."""
    still = mode not in ("bicubic", "nearest-exact")
    return tuple(
        1.0 if still and before == after else 1 / factor
        for before, after, factor in zip(old, new, factors, strict=True)
    )


def _resampled(x: A, axis: int, new: int, ratio: float, mode: str, align_corners: bool) -> A:
    """An axis with ``new`` elements, ``ratio`` old ones to one of them; floats but for the nearest element."""
    old = value_of(x.shape[axis], x.shape)
    wide = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    i = iota(type(x), new, dtypes.int32, x.device).cast(wide)
    if mode.startswith("nearest"):
        at = i * ratio if mode == "nearest" else (i + 0.5) * ratio
        return _rows(x, axis, clip(_below(at), 0, old - 1))
    at = i * ((old - 1) / max(new - 1, 1)) if align_corners else (i + 0.5) * ratio - 0.5
    if mode != "bicubic":
        at = clip(at, 0, old - 1)
    first = _below(at)
    part = (at - first.cast(wide)).reshape((-1, *(1,) * (x.ndim - 1 - axis))).cast(x.dtype)
    if mode != "bicubic":
        a, b = (_rows(x, axis, clip(first + k, 0, old - 1)) for k in (0, 1))
        return a + (b - a) * part
    terms = [
        _rows(x, axis, clip(first + k, 0, old - 1)) * weight
        for k, weight in zip(range(-1, 3), _cubic_weights(part), strict=True)
    ]
    return terms[0] + terms[1] + terms[2] + terms[3]


def _below(at: A) -> A:
    """The whole numbers next below, in memory, for all who use them.

    WebGPU's drivers may round a place that several kernels compute to either side of a whole number: an index and its
    fraction would disagree by one.
    """
    return at.floor().cast(dtypes.int32).contiguous()


def _cubic_weights(t: A) -> list[A]:
    """Weights of the four elements around a place that lies ``t`` behind the second."""
    a = _CUBIC

    def near(d: A) -> A:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: A) -> A:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _rows(x: A, axis: int, index: A) -> A:
    return getitem(x, (*(slice(None),) * axis, index))
