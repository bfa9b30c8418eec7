"""Which elements of an axis a resampled one is made of, and how much each weighs: filters of pictures, as numbers."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Taps = tuple[list[list[int]], list[list[float]]]
    """Of each new element the places of old ones, and their weights: of the same length everywhere, which sum to 1."""

_SHARP, _SOFT = -0.75, -0.5  # the slope of the cubic kernel at 1: of OpenCV's, and of Pillow's which smooths
_BITS = 22  # the most that a weight in fixed point has behind its point; it is an int16 with its sign


def _linear(d: float) -> float:
    return max(0.0, 1.0 - abs(d))


def _cubic(slope: float) -> Callable[[float], float]:
    """The cubic convolution kernel of a slope (Keys, 1981)."""

    def weight(d: float) -> float:
        d = abs(d)
        if d < 1:
            return ((slope + 2) * d - (slope + 3)) * d * d + 1
        return (((d - 5) * d + 8) * d - 4) * slope if d < 2 else 0.0

    return weight


def _lanczos(d: float) -> float:
    def sinc(t: float) -> float:
        return math.sin(math.pi * t) / (math.pi * t) if t else 1.0

    return sinc(d) * sinc(d / 3) if -3 <= d < 3 else 0.0


_SMOOTHING: dict[str, tuple[int, Callable[[float], float]]] = {
    "bilinear": (1, _linear),
    "bicubic": (2, _cubic(_SOFT)),
    "lanczos": (3, _lanczos),
}
"""How far a filter reaches to either side, and its weight at a distance."""


def smoothing_taps(old: int, new: int, step: float, mode: str) -> Taps:
    """Taps with which a smaller axis has no moire: the filter is as wide as what a new element stands for.

    As in PyTorch, corners that keep their places change the step, not the first centre.

    Args:
      old: the elements of the axis.
      new: how many it is to have.
      step: how many old elements lie between the centres of two new ones.
      mode: ``"bilinear"``, ``"bicubic"`` or ``"lanczos"``.
    """
    reach, filter_at = _SMOOTHING[mode]
    support = reach * max(step, 1.0)
    scale = 1 / max(step, 1.0)
    places, weights = [], []
    for i in range(new):
        centre = step * (i + 0.5)
        first = max(int(centre - support + 0.5), 0)
        last = min(int(centre + support + 0.5), old)
        found = [filter_at((j - centre + 0.5) * scale) for j in range(first, last)]
        total = sum(found)
        places.append([*range(first, last)])
        weights.append([w / total for w in found] if total else found)
    return _even(places, weights)


def taps(old: int, new: int, step: float, mode: str, align_corners: bool) -> Taps:
    """Taps between the two neighbours of a place, or four of ``"bicubic"``; the ends of the axis go on for ever."""
    reach, filter_at = (2, _cubic(_SHARP)) if mode == "bicubic" else (1, _linear)
    places, weights = [], []
    for i in range(new):
        at = step * i if align_corners else step * (i + 0.5) - 0.5
        below = math.floor(at)
        shares: dict[int, float] = {}
        for j in range(below - reach + 1, below + reach + 1):
            place = min(max(j, 0), old - 1)
            shares[place] = shares.get(place, 0.0) + filter_at(j - at)
        places.append([*shares])
        weights.append([*shares.values()])
    return _even(places, weights)


def precision(weights: Sequence[Sequence[float]]) -> int:
    """With how many bits behind the point the largest of some weights fits into an int16."""
    most = max((w for row in weights for w in row), default=0.0)
    return next((bits for bits in range(_BITS) if int(0.5 + most * (2 << bits)) >= 1 << 15), _BITS)


def quantised(weights: Sequence[Sequence[float]], bits: int) -> list[list[int]]:
    """Weights in fixed point with so many bits behind the point, rounded to the nearest."""
    return [[int(math.copysign(0.5, w) + w * (1 << bits)) for w in row] for row in weights]


def _even(places: list[list[int]], weights: list[list[float]]) -> Taps:
    """The same with rows of one length: what is added weighs nothing."""
    most = max((len(row) for row in places), default=0)
    return (
        [[*row, *[row[-1] if row else 0] * (most - len(row))] for row in places],
        [[*row, *[0.0] * (most - len(row))] for row in weights],
    )
