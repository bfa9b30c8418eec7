"""Counts of events at given rates: Poisson's distribution.

Counts at small rates are found by inversion, those at large ones by transformed rejection with a squeeze: W. Hörmann,
"The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12,
1993, algorithm PTRS. There the probabilities that proposals are accepted by are computed without cancellation, as C.
Loader has them, "Fast and accurate computation of binomial probabilities", 2000: so float32 is enough.
"""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes
from tg_runtime import capturing

from ..array.array import A
from ..array.axes import iota
from .elementary import exp, log, sqrt
from .streams import Stream, random_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SMALL = 10.0
"""Below this rate counts are found by inversion; the rejection is stated for rates from it on."""
MOST = 48
"""Counts at small rates are below this: above it is 4e-18 of the distribution at rate 10."""
TRIALS = 24
"""So many proposals are looked at for each element. One is rejected with probability 0.25 at most, so all are with
probability 3e-15 at most; then the last one is taken."""
_FEW = 16
"""Logarithms of factorials below this are taken of a number that is greater by ``_AHEAD``."""
_AHEAD = 8
_WORD = 2.0**-32


def poisson(x: A) -> A:
    """Counts of events of which this many, the elements, are expected: draws from Poisson's distributions.

    Every count is right with the probabilities of the distribution to within the rounding of float32 (of float64 for
    rates of float64). The rates are computed at once and looked at, but for those inside of a TinyJit: there a rate
    that is refused elsewhere gives NaN. The gradient is 0. Source: see the module.

    Returns:
      This tensor's shape, dtype and device. Counts that the dtype does not hold exactly are rounded.

    Raises:
      ValueError: if a rate is negative, infinite or NaN.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.manual_seed(0)
      >>> counts = Tensor.full((1000,), 4.0).poisson()
      >>> 3.5 < counts.mean().item() < 4.5, (counts == counts.round()).all().item()
      (True, True)
      >>> Tensor([0.0]).poisson()
      Tensor([0.])
    """
    if x.dtype.kind != "float":
        raise TypeError(f"poisson: rates are floats, got a tensor of {x.dtype.name}")
    kind = dtypes.float64 if x.dtype.itemsize == 8 else dtypes.float32
    rates = x.detach().cast(kind).contiguous()
    good = (rates >= 0) & (rates < math.inf)
    large = rates >= SMALL
    some = others = 1
    if not capturing():
        if good.logical_not().any().item():
            raise ValueError("poisson: rates are finite and not negative")
        some, others = int(large.any().item()), int(large.logical_not().any().item())
    # both are drawn in any case, so that what follows depends on no rate
    words, proposals = random_words(x.shape, x.device), Stream((*x.shape, TRIALS), x.device)
    counts = rates
    if others:
        counts = _inverted(large.where(1, rates), *(x._wrap(word) for word in words))
    if some:
        counts = large.where(_accepted(large.where(rates, SMALL), proposals), counts)
    return good.where(counts, math.nan).cast(x.dtype) + x.floor() * 0  # through which a gradient of 0 flows


def _fraction(word: A, kind: DType) -> A:
    """Between 0 and 1; near 0 to 32 bits."""
    return (word.cast(kind) + 0.5) * _WORD


def _inverted(rates: A, coarse: A, fine: A) -> A:
    """How many counts have a cumulative probability below one that is drawn.

    Probabilities in the upper half are told by what they are less than 1, and compared with sums from the other end: so
    the tails are drawn as accurately as the middle.
    """
    upper = coarse < 1 << 31
    distance = upper.where(coarse, coarse ^ 0xFFFFFFFF).cast(rates.dtype) * _WORD
    distance = distance + _fraction(fine, rates.dtype) * _WORD  # from 0, or from 1
    chances = [exp(-rates)]
    for k in range(1, MOST):
        chances.append(chances[-1] * (rates * (1 / k)))
    below, low = chances[0], rates * 0
    for chance in chances[1:]:
        low = low + (below < distance).cast(rates.dtype)
        below = below + chance
    above, high = rates * 0, rates * 0
    for chance in reversed(chances):
        above, more = above + chance, above > distance
        high = high + more.cast(rates.dtype)
    return upper.where(high, low)


def _accepted(rates: A, proposals: Stream) -> A:
    """For each element the first proposal that is accepted."""
    place = iota(type(rates), TRIALS, dtypes.int32, rates.device)
    one = rates.unsqueeze(-1)
    _, good = _proposed(one, *(rates._wrap(word) for word in proposals.words()))
    first = good.where(place, TRIALS - 1).min(-1).contiguous()
    found, _ = _proposed(rates, *(rates._wrap(word) for word in proposals.words_along(first.lazydata)))
    return found


def _proposed(rates: A, turn: A, height: A) -> tuple[A, A]:
    """Counts for two random words each, and whether they are accepted."""
    kind = rates.dtype
    b = sqrt(rates) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    from_end = (turn < 1 << 31).where(turn, turn ^ 0xFFFFFFFF)  # the nearer end of what is drawn
    us = _fraction(from_end, kind)
    u = (turn < 1 << 31).where(us - 0.5, 0.5 - us)
    v = _fraction(height, kind)
    whole = rates.floor()
    rest = rates - whole
    apart = ((a * 2 / us + b) * u + rest + 0.43).floor()
    count = whole + apart
    quickly = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    never = (count < 0) | ((us < 0.013) & (v > us))
    inverse_alpha = 1.1328 / (b - 3.4) + 1.1239
    chance = _log_chance(count.maximum(0), apart - rest, rates)
    slowly = log(v * inverse_alpha / (a / (us * us) + b)) <= chance
    return count, quickly | (never.logical_not() & slowly)


def _log_chance(count: A, apart: A, rates: A) -> A:
    """The logarithm of the probability of a count, which is ``apart`` more than expected."""
    few = count < _FEW
    many = few.where(count + _AHEAD, count)
    inverse = 1 / many
    square = inverse * inverse
    # log(n!) = n * log(n) - n + log(2 * pi * n) / 2 + error, by Stirling's series
    error = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square * (1 / 1188)))))
    root = log(many * (2 * math.pi)) * 0.5
    beyond = few.where(count + 1, 1)
    for k in range(2, _AHEAD + 1):
        beyond = beyond * few.where(count + k, 1)
    factorial = many * log(many) - many + root + error - log(beyond)
    plainly = count * log(rates) - rates - factorial
    return few.where(plainly, -error - root - _deviance(many, apart, rates))


def _deviance(count: A, apart: A, rates: A) -> A:
    """count * log(count / rate) - apart, without cancellation where both are near."""
    total = count + rates
    ratio = apart / total
    square = ratio * ratio
    series: Any = square * 0
    for k in range(8, 0, -1):
        series = (series + 1 / (2 * k + 1)) * square
    near = apart * ratio + count * ratio * 2 * series
    return (apart.abs() < total * 0.1).where(near, count * log(count / rates) - apart)
