"""What draws of counts share.

That is a table of probabilities that is searched, proposals of which one is accepted, and the terms of the logarithm of
a probability, computed without cancellation.

Source of those: C. Loader, "Fast and accurate computation of binomial probabilities", 2000: so float32 is enough.
"""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes

from ..array.array import A
from ..array.axes import iota
from .elementary import log
from .streams import Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

SMALL = 10.0
"""Below this many expected counts a table is searched; the rejections are stated for as many and more."""
MOST = 48
"""So long a table is: counts of which 10 are expected are above it with probability 4e-18 at most."""
TRIALS = 24
"""So many proposals are looked at for each element. One is rejected with probability 0.25 at most, so all are with
probability 3e-15 at most; then the last one is taken."""
FEW = 16
"""Logarithms of factorials below this are taken of a number that is greater by ``AHEAD``."""
AHEAD = 8
WORD = 2.0**-32


def fraction(word: A, kind: DType) -> A:
    """Between 0 and 1; near 0 to 32 bits."""
    return (word.cast(kind) + 0.5) * WORD


def proposal(turn: A, height: A, kind: DType) -> tuple[A, A, A]:
    """What transformed rejection draws, of two random words: U from -0.5 to 0.5, 0.5 - abs(U), and V from 0 to 1.

    The second is as accurate near 0 as V is: it is taken from the nearer end of what the word says.
    """
    lower = turn < 1 << 31
    from_end = fraction(lower.where(turn, turn ^ 0xFFFFFFFF), kind)
    return lower.where(from_end - 0.5, 0.5 - from_end), from_end, fraction(height, kind)


def searched(chances: Sequence[A], coarse: A, fine: A) -> A:
    """How many counts have a cumulative probability below one that is drawn.

    Probabilities in the upper half are told by what they are less than 1, and compared with sums from the other end: so
    the tails are drawn as accurately as the middle.

    Args:
      chances: the probabilities of 0, 1, ….
      coarse: random words.
      fine: more of them, for the digits behind.
    """
    kind = chances[0].dtype
    upper = coarse < 1 << 31
    distance = upper.where(coarse, coarse ^ 0xFFFFFFFF).cast(kind) * WORD
    distance = distance + fraction(fine, kind) * WORD  # from 0, or from 1
    below, low = chances[0], chances[0] * 0
    for chance in chances[1:]:
        low = low + (below < distance).cast(kind)
        below = below + chance
    above, high = chances[0] * 0, chances[0] * 0
    for chance in reversed(chances):
        above, more = above + chance, above > distance
        high = high + more.cast(kind)
    return upper.where(high, low)


def accepted(proposed: Callable[..., tuple[A, A]], parameters: Sequence[A], proposals: Stream) -> A:
    """For each element the first proposal that is accepted.

    Args:
      proposed: counts for parameters and two random words, and whether they are accepted.
      parameters: of the distributions.
      proposals: words, ``TRIALS`` for each element.
    """
    like = parameters[0]
    place = iota(type(like), TRIALS, dtypes.int32, like.device)
    _, good = proposed(*(one.unsqueeze(-1) for one in parameters), *(like._wrap(word) for word in proposals.words()))
    first = good.where(place, TRIALS - 1).min(-1).contiguous()
    found, _ = proposed(*parameters, *(like._wrap(word) for word in proposals.words_along(first.lazydata)))
    return found


def series(count: A) -> A:
    """log(n!) less n * log(n) - n + log(2 * pi * n) / 2, by Stirling's series, for n from 8."""
    inverse = 1 / count
    square = inverse * inverse
    return inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square * (1 / 1188)))))


def rising(count: A) -> A:
    """(n + 1) * … * (n + 8)."""
    out = count + 1
    for k in range(2, AHEAD + 1):
        out = out * (count + k)
    return out


def stirling_error(count: A) -> A:
    """:func:`series` for n from 1: below 16 of a number that is greater by 8."""
    few = count < FEW
    many = few.where(count + AHEAD, count)
    small = few.where(count, 1)
    back = (
        many * log(many) - small * log(small) + (log(many) - log(small)) * 0.5 - AHEAD - log(rising(small))
    )  # fmt: skip
    return series(many) + few.where(back, 0)


def deviance(count: A, apart: A, rates: A) -> A:
    """count * log(count / rate) - apart, without cancellation where both are near."""
    total = count + rates
    ratio = apart / total
    square = ratio * ratio
    terms: Any = square * 0
    for k in range(8, 0, -1):
        terms = (terms + 1 / (2 * k + 1)) * square
    near = apart * ratio + count * ratio * 2 * terms
    return (apart.abs() < total * 0.1).where(near, count * log(count / rates) - apart)


def log_root(count: A) -> A:
    """log(2 * pi * n) / 2."""
    return log(count * (2 * math.pi)) * 0.5
