"""Neighbours along an axis combined, segment by segment."""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_runtime import capturing

from ..array.array import A
from ..array.axes import iota
from ..array.computing import copied
from ..array.movement import stretch
from .creation import full
from .gather_scatter import combined
from .scan import cumsum
from .searching import lower_bound

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOTHING = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}
"""What a segment without elements gives, by the reduction."""
_REDUCTIONS = {"max": "amax", "min": "amin"}


def segment_reduce(
    x: A, reduce: str, *, lengths: A | None = None, indices: A | None = None, offsets: A | None = None, axis: int = 0,
    unsafe: bool = False, initial: float | None = None,
) -> A:  # fmt: skip
    """The elements of each segment along an axis combined; the segments follow one another.

    Args:
      reduce: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.
      lengths: how long each segment is, shape (…, n): integers whose sum along the last axis is the size of the axis.
      indices: not taken, as PyTorch takes none yet.
      offsets: where each segment begins, and where the last one ends, shape (…, n + 1): instead of lengths.
      axis: the axis, which is the last one of ``lengths``; those in front of it are this tensor's, too.
      unsafe: do not check that the lengths fit; what is left over is then in no segment. They are computed at once to
        be checked, except inside of a TinyJit.
      initial: what each segment begins with. If it is not given, an empty one gives 0 for sums, 1 for products, NaN
        for means, and infinities for the others.

    Returns:
      Shape with n in the place of the axis' size.

    Raises:
      TypeError: if the elements are no floats, or the lengths no integers.
      ValueError: if there is no such reduction, neither lengths nor offsets are given, or they do not fit.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.0, 2.0, 3.0, 4.0]).segment_reduce("sum", lengths=Tensor([1, 0, 3])).tolist()
      [1.0, 0.0, 9.0]
    """
    what = "segment_reduce"
    if reduce not in _NOTHING:
        raise ValueError(f"{what}: reduce {reduce!r}; there are {', '.join(_NOTHING)}")
    if x.dtype.kind != "float":
        raise TypeError(f"{what}: floats are wanted, got a tensor of {x.dtype.name}")
    if indices is not None or (lengths is None) == (offsets is None):
        raise ValueError(f"{what}: segments are told by lengths or by offsets, by one of them")
    along = x._axis(axis, what)
    told: Any = offsets if lengths is None else lengths
    if not dtypes.is_int(told.dtype):
        raise TypeError(f"{what}: lengths and offsets are integers, got a tensor of {told.dtype.name}")
    sizes, front = x._ints(), x._ints()[:along]
    if told.ndim != along + 1 or told._ints()[:-1] != front or (lengths is None and told._ints()[-1] == 0):
        raise ValueError(f"{what}: lengths of shape {told.shape} along axis {axis} of shape {x.shape}")
    ends, start, count = _ends(x, told, lengths is None, sizes[along], unsafe)
    # the segment of a position: how many end at it or before it; none for positions in front of the first one
    rows = math.prod(front)
    place = iota(type(x), sizes[along], dtypes.int32, x.device)
    each = stretch(place.reshape((1, -1)), (rows, sizes[along]))
    found = lower_bound(ends.reshape((rows, count)).contiguous(), each.contiguous(), True)
    inside = each >= start.reshape((rows, 1))
    found = inside.where(found, count).reshape((*front, sizes[along], *(1 for _ in sizes[along + 1 :])))
    shape = (*front, count, *sizes[along + 1 :])
    begin = _NOTHING[reduce] if initial is None else initial
    out = full(type(x), shape, begin, x.device, x.dtype)
    if 0 in (x.numel(), count):
        return copied(out, x)
    at = stretch(found, sizes)
    if reduce == "mean" and initial is not None:
        number = (ends - start.cat(ends.shrink([*((0, n) for n in front), (0, count - 1)]), dim=-1)).maximum(1)
        number = number.reshape((*front, count, *(1 for _ in sizes[along + 1 :])))
        total: A = combined(out, along, at, x, "sum") / number.cast(x.dtype)
        return total
    result: A = combined(out, along, at, x, _REDUCTIONS.get(reduce, reduce), initial is not None)
    return result


def _ends(x: A, told: A, offsets: bool, size: int, unsafe: bool) -> tuple[A, A, int]:
    """Where segments end, where the first one begins, and how many there are: int32, checked where that is wanted."""
    told = told.cast(dtypes.int32)
    front, last = told._ints()[:-1], told._ints()[-1]
    rest = [(0, n) for n in front]
    if offsets:
        ends, start, count = told.shrink([*rest, (1, last)]), told.shrink([*rest, (0, 1)]), last - 1
        lengths = ends - told.shrink([*rest, (0, last - 1)])
    else:
        ends, count, lengths = cumsum(told, -1).cast(dtypes.int32), last, told
        start = full(type(x), (*front, 1), 0, x.device, dtypes.int32)
    if not unsafe and not capturing():
        if lengths.numel() != 0 and bool((lengths < 0).any().item()):
            raise ValueError("segment_reduce: the length of a segment is negative")
        total = lengths.sum(-1)
        if not offsets and total.numel() != 0 and bool(total.ne(size).any().item()):
            raise ValueError(f"segment_reduce: the lengths do not add up to {size}, the size of the axis")
        if offsets and told.numel() != 0 and bool(((start < 0).any() | (ends > size).any()).item()):
            raise ValueError(f"segment_reduce: an offset is outside of an axis of size {size}")
    return ends, start, count
