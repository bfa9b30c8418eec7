"""Matrices that differ from a diagonal one by one vector: their eigenvalues or singular values, and their vectors.

D + rho * z @ z.T has the eigenvalues at which 1 + rho * sum(z * z / (d - x)) is 0; a matrix whose first row is z, and
which is diagonal with d beside that, d[0] being 0, has the singular values at which 1 + sum(z * z / (d * d - x * x)) is
0. Between two of d, called poles, there is one. Many such matrices are solved side by side, in segments of one axis.

A root is kept as the pole that is nearer and the distance from it, which is found by bisection on the bits of floats:
as many steps as a float has bits give it to the last one, however small it is. Then z is computed anew, such that the
roots are exact for it; this alone makes the vectors orthogonal. Poles that are equal are taken apart by less than
epsilon, which no float of theirs could say: by a multiple of their places in order, that goes into differences.

Sources: Gu and Eisenstat, "A stable and efficient algorithm for the rank-one modification of the symmetric
eigenproblem", 1994; "A divide-and-conquer algorithm for the bidiagonal SVD", 1995.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tg_dtype import dtypes

from ..tensor import Tensor
from ..transform.scan import scan
from .matrices import epsilon, numbers


class Poles(NamedTuple):
    """Where each segment's function is infinite.

    Attributes:
      values: shape (count, n).
      weights: z, shape (count, n); where it is 0 there is no pole, and the value stays.
      order: what poles are put in order by: their values, unless one is to be the first.
      rho: a factor for each segment, as (count, n); or 1.
      reach: how far beyond the last pole of a segment its root lies at most, as (count, n).
      segments: which segment each belongs to (n,).
      norm: of the whole matrix (count, 1).
      squared: whether squares of the poles are meant, which are not negative then.
    """

    values: Tensor
    weights: Tensor
    order: Tensor
    rho: Tensor | float
    reach: Tensor
    segments: Tensor
    norm: Tensor
    squared: bool


class Roots(NamedTuple):
    """Of each segment.

    Attributes:
      values: shape (count, n), in the place of the pole before each root.
      right: the vectors, 1 / (d - x) * z or the like of unit length, columns of (count, n, n).
      left: those of the other side (of squares only), whose element of the first pole is -1 before it is scaled.
    """

    values: Tensor
    right: Tensor
    left: Tensor | None


def _nearest(x: Tensor) -> float:
    """No root is nearer to a pole: weights are not below epsilon, nor are poles nearer than a part of it."""
    return 2.0**-200 if x.dtype is dtypes.float64 else 2.0**-100


def _unit(x: Tensor) -> Tensor:
    """Columns of length 1; of their squares some may be no floats."""
    x = x / x.abs().max(1, keepdim=True)
    return (x / (x * x).sum(1, keepdim=True).sqrt()).contiguous()


def solved(poles: Poles) -> Roots:
    """The roots of each segment, and the vectors."""
    d, z, segments = poles.values, poles.weights, poles.segments
    n, dtype = d._ints()[1], d.dtype
    place = numbers(n, d)
    there, own = z != 0, place.reshape((-1, 1)) == place
    same = segments.reshape((-1, 1)) == segments
    # in matrices a root or pole in question is of axis 1 and all poles are of axis 2, unless said otherwise
    first, second = poles.order.unsqueeze(2), poles.order.unsqueeze(1)
    earlier = (second < first) | ((second == first) & (place < place.reshape((-1, 1))))
    rank = (same & earlier).cast(dtypes.int32).sum(2).contiguous()
    after = same & (rank.unsqueeze(1) > rank.unsqueeze(2)) & there.unsqueeze(1)
    following = after.where(rank.unsqueeze(1), n).min(2).contiguous()
    is_last = following == n
    ahead = (same & (rank.unsqueeze(1) == following.unsqueeze(2))).where(d.unsqueeze(1), 0).sum(2).contiguous()
    shift = poles.norm * (epsilon(d) / (8 * n))  # for each place in order
    ranks = rank.cast(dtype) * shift

    def apart(pole: Tensor, at: Tensor, origin: Tensor, base: Tensor, distance: Tensor | float) -> tuple[Any, Any]:
        """Poles less what is at a distance from others; and their sums, or 1 where no squares are meant.

        Nobody multiplies the two: of a product that is next to nothing the bits would be lost.
        """
        difference = ((pole - origin) + (at - base)) - distance
        return difference, ((pole + origin) + (at + base)) + distance if poles.squared else 1.0

    active = same & there.unsqueeze(1)

    def function(origin: Tensor, base: Tensor, distance: Tensor) -> Tensor:
        parts = (one.unsqueeze(2) for one in (origin, base, distance))
        difference, total = apart(d.unsqueeze(1), ranks.unsqueeze(1), *parts)
        terms = (z.unsqueeze(1) / active.where(difference, 1)) * (z.unsqueeze(1) / total)
        return 1 + poles.rho * active.where(terms, 0).sum(2)

    width = is_last.where(poles.reach, (ahead - d) + (following.cast(dtype) * shift - ranks))
    width = there.where(width, 1).contiguous()
    before = (is_last | (function(d, ranks, width * 0.5) >= 0)).contiguous()
    origin = before.where(d, ahead).contiguous()
    base = before.where(ranks, following.cast(dtype) * shift).contiguous()
    sign = before.where(1.0, -1.0).cast(dtype).contiguous()
    bits = dtypes.int64 if dtype is dtypes.float64 else dtypes.int32

    def halve(state: tuple[Tensor, Tensor], _: None) -> tuple[tuple[Tensor, Tensor], None]:
        low, high = state
        middle = low + (high - low) // 2
        nearer = before == (function(origin, base, sign * middle.bitcast(dtype)) >= 0)
        return (nearer.where(low, middle), nearer.where(middle, high)), None

    start = (width * 0 + _nearest(d)).bitcast(bits), is_last.where(width, width * 0.5).bitcast(bits)
    (_, high), _ = scan(halve, tuple(part.contiguous() for part in start), length=bits.itemsize * 8 - 2)
    distance = (sign * high.bitcast(dtype)).contiguous()
    # from here on poles are of axis 1, and roots of axis 2
    pole, at = d.unsqueeze(2), ranks.unsqueeze(2)
    difference, total = apart(pole, at, origin.unsqueeze(1), base.unsqueeze(1), distance.unsqueeze(1))
    both = same & there.unsqueeze(1) & there.unsqueeze(2)
    difference = both.where(difference, 1)
    others, sums = apart(pole, at, d.unsqueeze(1), ranks.unsqueeze(1), 0.0)
    apiece = both & own.logical_not()
    ratios = difference / apiece.where(others, 1)
    if poles.squared:
        ratios = ratios * (total / apiece.where(sums, 1))
    weights = both.where(ratios, 1).prod(2).abs().sqrt()
    weights = (z < 0).where(-weights, weights).contiguous().unsqueeze(2)
    stays = own.where(1, 0).cast(dtype)
    values = there.where(origin + distance, d)
    outside = both.where(weights / difference / total, stays)
    if not poles.squared:
        return Roots(values, _unit(outside), None)
    is_first = (rank == 0).unsqueeze(2)
    inside = both.where(is_first.where(-1, (d + ranks).unsqueeze(2) * outside), stays)
    return Roots(values, _unit(outside), _unit(inside))
