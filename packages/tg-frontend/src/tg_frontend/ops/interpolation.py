"""Resampling along axes: nearest, linear, cubic and Lanczos interpolation, with PyTorch's coordinates."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import permutations

from tg_dtype import DType, dtypes, truncate
from tg_shape import sint, upper

from ..array.array import A
from ..array.axes import iota
from ..array.casts import floating
from ..array.computing import copied
from ..array.ingest import value_of
from ..array.movement import stretch
from . import rounding
from .elementwise import clip
from .indexing import getitem
from .taps import precision, quantised, smoothing_taps, taps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SPATIAL = {
    "linear": None, "bilinear": 2, "trilinear": 3, "bicubic": 2, "lanczos": 2, "nearest": None, "nearest-exact": None,
}  # fmt: skip
_SMOOTHED = ("bilinear", "bicubic", "lanczos")
ONE_BY_ONE = 8
"""How long an element takes whose neighbours come from computed places of one row, beside one of whole rows."""
_CUBIC = -0.75  # the slope of the cubic convolution kernel that PyTorch and OpenCV use


def interpolate(
    x: A,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "linear",
    align_corners: bool | None = None,
    antialias: bool = False,
) -> A:
    """The last axes resampled to ``size``, or by a factor.

    Integers are interpolated as floats, rounded and held within their range; uint8, the bytes of pictures, axis by axis
    from the last with weights in fixed point, to the bit as PyTorch and Pillow do it.

    Args:
      size: the new sizes of the last axes; one number for all but the first two.
      scale_factor: or by how much they grow, one number or one an axis; sizes are rounded down.
      mode: ``"nearest"`` (also ``"nearest-exact"``), ``"linear"`` along every resampled axis (also ``"bilinear"``
        of two and ``"trilinear"`` of three), ``"bicubic"``, or ``"lanczos"`` with ``antialias``, as PyTorch has them.
        PyTorch's default is nearest.
      align_corners: of all but nearest: whether the first and last elements keep their places.
      antialias: of ``"bilinear"``, ``"bicubic"`` and ``"lanczos"``: whether an element of a smaller picture is the mean
        of all that it stands for, weighted, as Pillow has it.

    Raises:
      ValueError: if there is no such mode, it does not smooth, not one of ``size`` and ``scale_factor`` is given, or
        they do not fit the shape.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([[[1.0, 3.0]]]).interpolate(scale_factor=2).tolist()
      [[[1.0, 1.5, 2.5, 3.0]]]
    """
    still = antialias or x.dtype is dtypes.uint8 or mode not in ("bicubic", "nearest-exact")
    sizes, ratios = _sizes_and_ratios(x.shape, size, scale_factor, mode, still)
    if align_corners is not None and mode.startswith("nearest") and align_corners:
        raise ValueError(f"interpolate: align_corners is not for mode {mode!r}")
    if antialias and mode not in _SMOOTHED:
        raise ValueError(f"interpolate: antialias is for {', '.join(_SMOOTHED)}, not for mode {mode!r}")
    if mode == "lanczos" and not antialias:
        raise ValueError("interpolate: mode 'lanczos' is for antialias=True")
    axes = [*zip(range(x.ndim - len(sizes), x.ndim), sizes, ratios, strict=True)]
    out = x
    if mode.startswith("nearest"):
        for axis, new, ratio in cheapest_order(x.shape, axes):
            out = _nearest(out, axis, new, ratio, mode == "nearest-exact")
    elif x.dtype is dtypes.uint8:
        for axis, new, ratio in reversed(axes):
            out = _of_bytes(out, axis, new, ratio, mode, bool(align_corners), antialias)
    else:
        out = floating(x)
        out = out if out.dtype.itemsize >= 4 else out.cast(dtypes.float32)
        for axis, new, ratio in axes if antialias else cheapest_order(x.shape, axes):
            if antialias:
                out = _smoothed(out, axis, new, ratio, mode, bool(align_corners))
            else:
                out = _resampled(out, axis, new, ratio, mode, bool(align_corners))
    if out is x:
        return copied(x)
    if out.dtype is x.dtype:
        return out
    if x.dtype.kind == "float":
        return out.cast(x.dtype)
    return clip(rounding.round(out), x.dtype.min, x.dtype.max).cast(x.dtype)


def cheapest_order(
    shape: tuple[sint, ...], axes: Sequence[tuple[int, int, float]]
) -> tuple[tuple[int, int, float], ...]:
    """Axes to resample, one after the other, in the order that takes the least time.

    Args:
      shape: of what is resampled.
      axes: which they are, with their new sizes and ratios.
    """
    def cost(order: tuple[tuple[int, int, float], ...]) -> int:
        sizes = [upper(dim) for dim in shape]
        total = 0
        for axis, new, _ in order:
            sizes[axis] = new
            total += math.prod(sizes) * (ONE_BY_ONE if axis == len(sizes) - 1 else 1)
        return total

    return min(permutations(axes), key=cost)


def _sizes_and_ratios(
    shape: tuple[sint, ...], size: int | Sequence[int] | None, scale_factor: float | Sequence[float] | None, mode: str,
    still: bool,
) -> tuple[tuple[int, ...], tuple[float, ...]]:  # fmt: skip
    """The new sizes of the last axes, and how many old elements lie in one new element along each.

    ``still`` says whether an axis that keeps its length is left as it is, whatever the factor, as PyTorch has it.

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
    if 0 in old:
        raise ValueError(f"interpolate: there is nothing to interpolate in shape {shape}")
    if size is not None:
        if any(not isinstance(s, int) or isinstance(s, bool) or s < 1 for s in wanted):
            raise ValueError(f"interpolate: size {size!r} for shape {shape}")
        return wanted, tuple(o / n for o, n in zip(old, wanted, strict=True))
    if any(not isinstance(s, (int, float)) or not 0 < s < math.inf for s in wanted):
        raise ValueError(f"interpolate: scale_factor {scale_factor!r}")
    new = tuple(math.floor(o * s) for o, s in zip(old, wanted, strict=True))
    if any(n < 1 for n in new):
        raise ValueError(f"interpolate: scale_factor {scale_factor!r} leaves nothing of shape {shape}")
    return new, tuple(1.0 if still and o == n else 1 / s for o, n, s in zip(old, new, wanted, strict=True))


def _nearest(x: A, axis: int, new: int, ratio: float, exact: bool) -> A:
    """An axis with ``new`` elements, ``ratio`` old ones to one of them; the centre's neighbour if ``exact``."""
    old = value_of(x.shape[axis], x.shape)
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    if new % old == 0 and _repeats(old, new // old, ratio, exact, _places_of(x)):
        out = stretch(x.reshape((*lead, old, 1, *rest)), (*lead, old, new // old, *rest))
        return copied(out.reshape((*lead, new, *rest)))
    i = iota(type(x), new, dtypes.int32, x.device).cast(_places_of(x))
    at = (i + 0.5) * ratio if exact else i * ratio
    return _rows(x, axis, clip(_below(at), 0, old - 1))


@lru_cache(maxsize=256)
def _repeats(old: int, times: int, ratio: float, exact: bool, dtype: DType) -> bool:
    """Whether ``old * times`` nearest elements are each old one as often, positions being rounded as in ``dtype``.

    A position that should be whole may be rounded to below that, as 3 times a third of 41 in float32.
    """
    step = truncate(ratio, dtype)  # a float64 holds the product of two float32
    places = (truncate(truncate(i + 0.5 if exact else float(i), dtype) * step, dtype) for i in range(old * times))
    return all(math.floor(place) == i // times for i, place in enumerate(places))


def _resampled(x: A, axis: int, new: int, ratio: float, mode: str, align_corners: bool) -> A:
    """An axis of floats with ``new`` elements, ``ratio`` old ones to one of them, between two or four neighbours."""
    old = value_of(x.shape[axis], x.shape)
    wide = _places_of(x)
    i = iota(type(x), new, dtypes.int32, x.device).cast(wide)
    at = i * ((old - 1) / max(new - 1, 1)) if align_corners else (i + 0.5) * ratio - 0.5
    if mode != "bicubic":
        at = clip(at, 0, old - 1)
    first = _below(at)
    part = _along(at - first.cast(wide), x.ndim, axis).cast(x.dtype)
    if mode != "bicubic":
        a, b = (_rows(x, axis, clip(first + k, 0, old - 1)) for k in (0, 1))
        return a + (b - a) * part
    terms = [
        _rows(x, axis, clip(first + k, 0, old - 1)) * weight
        for k, weight in zip(range(-1, 3), _cubic_weights(part), strict=True)
    ]
    return terms[0] + terms[1] + terms[2] + terms[3]


def _smoothed(x: A, axis: int, new: int, ratio: float, mode: str, align_corners: bool) -> A:
    """An axis of floats with ``new`` elements, each the weighted mean of those that it stands for."""
    old = value_of(x.shape[axis], x.shape)
    places, weights = smoothing_taps(old, new, _step(old, new, ratio, align_corners), mode)
    terms, factors = _terms(x, axis, places, weights, x.dtype)
    return (terms * factors).sum(axis + 1)


def _of_bytes(x: A, axis: int, new: int, ratio: float, mode: str, align_corners: bool, antialias: bool) -> A:
    """An axis of uint8 with ``new`` elements: sums of products with weights in fixed point, as in a picture's resizer.

    Weights have as many bits as an int16 holds; one half is added and the fraction dropped, once an axis
    (``aten/src/ATen/native/cpu/UpSampleKernel.cpp``, after Pillow's ``Resample.c``).
    """
    old = value_of(x.shape[axis], x.shape)
    step = _step(old, new, ratio, align_corners)
    if antialias:
        places, weights = smoothing_taps(old, new, step, mode)
    else:
        places, weights = taps(old, new, step, mode, align_corners)
    bits = precision(weights)
    terms, factors = _terms(x.cast(dtypes.int32), axis, places, quantised(weights, bits), dtypes.int32)
    total = (terms * factors).sum(axis + 1, dtype=dtypes.int32) + (1 << bits >> 1)
    return clip(total >> bits, 0, 255).cast(dtypes.uint8)


def _step(old: int, new: int, ratio: float, align_corners: bool) -> float:
    """How many old elements lie between the centres of two new ones."""
    return (old - 1) / (new - 1) if align_corners and new > 1 else 0.0 if align_corners else ratio


def _terms(
    x: A, axis: int, places: list[list[int]], weights: Sequence[Sequence[float]], dtype: DType
) -> tuple[A, A]:  # fmt: skip
    """The elements at some places of an axis, which becomes two, and the weights of them, which broadcast to them."""
    make = type(x)
    index = make(places, dtype=dtypes.int32, device=x.device)
    factors = make(weights, dtype=dtype, device=x.device)
    return _rows(x, axis, index), factors.reshape((*factors.shape, *(1,) * (x.ndim - 1 - axis)))


def _places_of(x: A) -> DType:
    """The dtype of positions along an axis of a tensor."""
    return dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32


def _along(x: A, ndim: int, axis: int) -> A:
    """A vector as it broadcasts to an axis of a tensor of so many."""
    return x.reshape((-1, *(1,) * (ndim - 1 - axis)))


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
