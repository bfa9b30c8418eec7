"""Passes of 2, 4, 8 or 16 numbers each, as butterflies: stages of sums and differences, with roots between them.

The numbers of an axis are seen as an axis of 2 for each bit. A stage replaces the bit j of two numbers that it combines
by the bit k of what it makes of them, the sum or the difference, and the roots between stages depend on such bits
alone: w(4), w(8) and w(16), the roots of 1 that one of 4, 8 or 16 parts of a turn backward leads to (J. W. Cooley and
J. W. Tukey, "An algorithm for the machine calculation of complex Fourier series", 1965).

Nothing is in memory between stages, and both parts are one tensor: planners compute all numbers of a butterfly side by
side, which have most in common, and know every bit there.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes
from tg_lazy import LazyBuffer, Ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Lazies = tuple[LazyBuffer, LazyBuffer]


def butterfly(x: Lazies, axis: int, to: int) -> Lazies:
    """Transforms along an axis, whose results are before another one, an axis of 2 for each bit.

    Args:
      x: the real and the imaginary part, of which the axis has a power of two.
      axis: along which.
      to: how many other axes come before the results, ``axis`` at the least.

    Returns:
      Both parts, of shape (..., 2, 2, …, ...).
    """
    shape = x[0].shape
    bits = int(shape[axis]).bit_length() - 1
    shape = (*shape[:axis], *[2] * bits, *shape[axis + 1 :])
    x = x[0].reshape(shape), x[1].reshape(shape)
    for bit in range(axis, axis + bits):
        x = _stage(x[0], bit), _stage(x[1], bit)
        if bit < axis + bits - 1:  # times root j (k0 + 2 k1 + …) of twice as many, of which the axes before have the k
            for earlier in range(bit, axis - 1, -1):
                x = _turned(x, (earlier, bit + 1), 1 << (bit + 2 - earlier))
    others = [n for n in range(len(shape)) if not axis <= n < axis + bits]
    order = (*others[:to], *range(axis + bits - 1, axis - 1, -1), *others[to:])
    return x[0].permute(order), x[1].permute(order)


def stacked(x: Lazies, at: int) -> LazyBuffer:
    """Both parts as one tensor: of shape (..., ...) each, of shape (..., 2, ...) together, 2 being axis ``at``."""
    lead, rest = x[0].shape[:at], x[0].shape[at:]
    re, im = (part.reshape((*lead, 1, *rest)).expand((*lead, 2, *rest)) for part in x)
    return _ones(re, (at,)).alu(Ops.WHERE, im, re)


def _ones(like: LazyBuffer, axes: Sequence[int]) -> LazyBuffer:
    """Whether the bits of some axes are all 1, in a shape in which these axes are of 2."""
    one = LazyBuffer.const(True, dtypes.bool, (1,) * len(like.shape), like.device)
    return one.pad([(int(axis in axes), 0) for axis in range(len(like.shape))]).expand(like.shape)


def _stage(x: LazyBuffer, axis: int) -> LazyBuffer:
    """The sum of what is at 0 and at 1 of an axis, and the difference."""
    bounds = [(0, dim) for dim in x.shape]
    bounds[axis] = (0, 1)
    a = x.shrink(bounds).expand(x.shape)
    bounds[axis] = (1, 2)
    b = x.shrink(bounds).expand(x.shape)
    return _ones(x, (axis,)).alu(Ops.WHERE, a.alu(Ops.SUB, b), a.alu(Ops.ADD, b))


def _turned(x: Lazies, axes: Sequence[int], n: int) -> Lazies:
    """Numbers, times w(n) where the bits of some axes are all 1."""
    re, im = x
    here = _ones(re, axes)
    if n == 4:
        return here.alu(Ops.WHERE, im, re), here.alu(Ops.WHERE, re.alu(Ops.NEG), im)
    if n == 8:
        half = re.const_like(math.sqrt(0.5))
        a, b = re.alu(Ops.ADD, im).alu(Ops.MUL, half), im.alu(Ops.SUB, re).alu(Ops.MUL, half)
    else:
        c, s = re.const_like(math.cos(2 * math.pi / n)), re.const_like(math.sin(2 * math.pi / n))
        a = re.alu(Ops.MULACC, c, im.alu(Ops.MUL, s))
        b = im.alu(Ops.MULACC, c, re.alu(Ops.MUL, s).alu(Ops.NEG))
    return here.alu(Ops.WHERE, a, re), here.alu(Ops.WHERE, b, im)
