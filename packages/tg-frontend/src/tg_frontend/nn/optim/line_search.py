"""Steps along a direction that lower the loss enough and flatten it enough: the strong conditions of Wolfe.

Source: Nocedal and Wright, "Numerical optimization", 2nd edition, 2006, chapter 3: the conditions are (3.7), the search
is algorithms 3.5 and 3.6, and trial steps are minimisers of cubics, (3.59), kept away from the ends of the bracket.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

from ...tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DECREASE = 1e-4
"""Of the slope at the beginning that the loss has to fall by: c1, as the book has it for quasi-Newton methods."""
CURVATURE = 0.9
"""Of the slope at the beginning that may be left: c2, likewise."""
TRIALS = 25
"""Evaluations at most, as PyTorch has it."""
_FARTHER = (0.01, 10.0)
"""The next trial beyond one that is too short: at least so much of the last increase further, at most so many times
as far."""
_MARGIN = 0.1
"""Trials that come closer to an end of the bracket, as a part of it, twice or beyond it, are moved to this distance."""


@dataclass(frozen=True)
class Point:
    """A place on the line.

    Attributes:
      size: of the step.
      loss: there.
      slope: of the loss along the direction.
      gradient: of the loss, flat.
    """

    size: float
    loss: float
    slope: float
    gradient: Tensor


def cubic_minimiser(a: Point, b: Point, low: float, high: float) -> float:
    """Where the cubic with the losses and slopes of two points is least within bounds; their middle if nowhere.

    Example:
      >>> from tg_frontend import Tensor
      >>> none = Tensor([0.0])
      >>> cubic_minimiser(Point(0.0, 4.0, -4.0, none), Point(1.0, 1.0, -2.0, none), 0.0, 10.0)  # of (x - 2) ** 2
      2.0
    """
    if a.size > b.size:
        a, b = b, a
    if a.size < b.size and all(isfinite(value) for value in (a.loss, a.slope, b.loss, b.slope)):
        first = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.size - b.size)
        square = first * first - a.slope * b.slope
        if square >= 0:
            root = sqrt(square)
            below = b.slope - a.slope + 2 * root
            if below:
                found = b.size - (b.size - a.size) * ((b.slope + root - first) / below)
                return min(max(found, low), high)
    return (low + high) / 2


def strong_wolfe(
    at: Callable[[float], Point], begin: Point, size: float, farthest: float, least_change: float
) -> tuple[Point, int]:
    """A step that fulfils the conditions; if none was found, the best one that lowers the loss enough.

    Args:
      at: evaluates the loss at a step of a size.
      begin: the point with the size 0, whose slope is negative.
      size: of the first trial.
      farthest: that a step of size 1 moves any parameter.
      least_change: the search ends where what is left moves no parameter farther.

    Returns:
      The point, and how many were evaluated.
    """

    def too_high(point: Point) -> bool:
        return not point.loss <= begin.loss + DECREASE * point.size * begin.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -CURVATURE * begin.slope

    before, ends = begin, None
    for tried in range(1, TRIALS + 1):
        now = at(size)
        if too_high(now) or (tried > 1 and now.loss >= before.loss):
            ends = (before, now)
        elif flat(now):
            return now, tried
        elif now.slope >= 0:
            ends = (now, before)
        if ends is not None:
            break
        nearest = now.size + _FARTHER[0] * (now.size - before.size)
        size = cubic_minimiser(before, now, nearest, now.size * _FARTHER[1])
        before = now
    if ends is None:
        return before, tried  # it fell all the way
    low, high = ends  # the first of them is the best that has fallen enough; a flat point is between
    close = False
    while tried < TRIALS and abs(high.size - low.size) * farthest >= least_change:
        left, right = sorted((low.size, high.size))
        size = cubic_minimiser(low, high, left, right)
        near = min(right - size, size - left) < _MARGIN * (right - left)
        if near and (close or size in (left, right)):
            margin = _MARGIN * (right - left)
            size = right - margin if right - size < size - left else left + margin
            near = False
        close = near
        now, tried = at(size), tried + 1
        if too_high(now) or now.loss >= low.loss:
            high = now
        elif flat(now):
            return now, tried
        else:
            low, high = now, low if now.slope * (high.size - low.size) >= 0 else high
    return low, tried
