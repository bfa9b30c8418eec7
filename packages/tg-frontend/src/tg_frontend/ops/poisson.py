"""Counts of events at given rates: Poisson's distribution.

Counts at small rates are found by inversion, those at large ones by transformed rejection with a squeeze: W. Hörmann,
"The transformed rejection method for generating Poisson random variables", Insurance: Mathematics and Economics 12,
1993, algorithm PTRS; probabilities are those of :mod:`~tg_frontend.ops.counting`.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.array import A
from ..memory.realization import readable
from .counting import AHEAD, FEW, MOST, SMALL, TRIALS, accepted, deviance, log_root, proposal, rising, searched, series
from .elementary import exp, log, sqrt
from .streams import Stream, random_words


def poisson(x: A) -> A:
    """Counts of events of which this many, the elements, are expected: draws from Poisson's distributions.

    Every count is right with the probabilities of the distribution to within the rounding of float32 (of float64 for
    rates of float64). The rates are computed at once and looked at, but for those inside of a TinyJit or of ``vmap``:
    there a rate that is refused elsewhere gives NaN. The gradient is 0. Source: see the module.

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
    if readable(rates.lazydata):
        if good.logical_not().any().item():
            raise ValueError("poisson: rates are finite and not negative")
        some, others = int(large.any().item()), int(large.logical_not().any().item())
    # both are drawn in any case, so that what follows depends on no rate
    words, proposals = random_words(x.shape, x.device), Stream((*x.shape, TRIALS), x.device)
    counts = rates
    if others:
        counts = searched(_table(large.where(1, rates)), *(x._wrap(word) for word in words))
    if some:
        counts = large.where(accepted(_proposed, (large.where(rates, SMALL),), proposals), counts)
    return good.where(counts, math.nan).cast(x.dtype) + x.floor() * 0  # through which a gradient of 0 flows


def _table(rates: A) -> list[A]:
    """The probabilities of 0, 1, …."""
    chances = [exp(-rates)]
    for k in range(1, MOST):
        chances.append(chances[-1] * (rates * (1 / k)))
    return chances


def _proposed(rates: A, turn: A, height: A) -> tuple[A, A]:
    """Counts for two random words each, and whether they are accepted."""
    kind = rates.dtype
    b = sqrt(rates) * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    u, us, v = proposal(turn, height, kind)
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
    few = count < FEW
    many = few.where(count + AHEAD, count)
    error = series(many)
    root = log_root(many)
    factorial = many * log(many) - many + root + error - log(rising(few.where(count, 0)))
    plainly = count * log(rates) - rates - factorial
    return few.where(plainly, -error - root - deviance(many, apart, rates))
