"""How many of several trials succeed: binomial distributions.

Where few are expected, a table is searched; where many are, proposals are rejected by transformed rejection with a
squeeze: W. Hörmann, "The generation of binomial random variates", Journal of Statistical Computation and Simulation 46,
1993, algorithm BTRS; probabilities are those of :mod:`~tg_frontend.ops.counting`.

Tables as long as Poisson's are long enough: the tails of a binomial distribution are less than those of Poisson's with
the same mean. T. W. Anderson and S. M. Samuels, "Some inequalities among binomial and Poisson probabilities", 1967.
"""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.array import A
from ..memory.realization import readable
from .axes import broadcast_tensors
from .counting import MOST, SMALL, TRIALS, accepted, deviance, log_root, proposal, searched, stirling_error
from .elementary import exp, log, log1p, sqrt
from .streams import Stream, random_words


def binomial(x: A, prob: A) -> A:
    """How many of this many trials, the elements, succeed: draws from binomial distributions.

    Every count is right with the probabilities of the distribution to within the rounding of float32 (of float64 for
    trials of float64). Trials and probabilities are computed at once and looked at, but for those inside of a TinyJit:
    there what is refused elsewhere gives NaN. The gradient is 0. Source: see the module.

    Args:
      prob: with which probability one succeeds, in a shape that broadcasts.

    Returns:
      This tensor's dtype and device. Counts that the dtype does not hold exactly are rounded.

    Raises:
      ValueError: if trials are negative, infinite or no whole numbers; or a probability is not between 0 and 1.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.manual_seed(0)
      >>> counts = Tensor.full((1000,), 100.0).binomial(Tensor(0.25))
      >>> 24 < counts.mean().item() < 26, (counts == counts.round()).all().item()
      (True, True)
      >>> Tensor([3.0, 5.0]).binomial(Tensor([0.0, 1.0]))
      Tensor([0., 5.])
    """
    if x.dtype.kind != "float" or prob.dtype.kind != "float":
        raise TypeError(f"binomial: trials and probabilities are floats, got {x.dtype.name} and {prob.dtype.name}")
    kind = dtypes.float64 if x.dtype.itemsize == 8 else dtypes.float32
    trials, one = (part.contiguous() for part in broadcast_tensors(x.detach().cast(kind), prob.detach().cast(kind)))
    good = (trials >= 0) & (trials < math.inf) & (trials == trials.floor()) & (one >= 0) & (one <= 1)
    turned = one > 0.5  # then failures are counted
    rare = turned.where(1 - one, one)
    large = trials * rare >= SMALL
    some = others = 1
    if readable(good.lazydata):
        if good.logical_not().any().item():
            raise ValueError("binomial: trials are whole numbers from 0, and probabilities between 0 and 1")
        some, others = int(large.any().item()), int(large.logical_not().any().item())
    # both are drawn in any case, so that what follows depends on no parameter
    words, proposals = random_words(trials.shape, x.device), Stream((*trials.shape, TRIALS), x.device)
    counts = trials
    if others:
        table = _table(large.where(1, trials), large.where(0.5, rare))
        counts = searched(table, *(x._wrap(word) for word in words))
    if some:
        parameters = large.where(trials, 2 * SMALL), large.where(rare, 0.5)
        counts = large.where(accepted(_proposed, parameters, proposals), counts)
    counts = turned.where(trials - counts, counts)
    out: A = good.where(counts, math.nan).cast(x.dtype)
    return out + (x.floor() + prob.floor().cast(x.dtype)) * 0  # whose slope is 0


def _table(trials: A, prob: A) -> list[A]:
    """The probabilities of 0, 1, …."""
    chances, odds = [exp(trials * log1p(-prob))], prob / (1 - prob)
    for k in range(1, MOST):
        chances.append(chances[-1] * ((trials - (k - 1)).maximum(0) * (1 / k) * odds))
    return chances


def _proposed(trials: A, prob: A, turn: A, height: A) -> tuple[A, A]:
    """Counts for two random words each, and whether they are accepted."""
    kind = trials.dtype
    rates = trials * prob
    spread = sqrt(rates * (1 - prob))
    b = spread * 2.53 + 1.15
    a = b * 0.0248 - 0.0873 + prob * 0.01
    u, us, v = proposal(turn, height, kind)
    whole = rates.floor()
    rest = rates - whole
    moved = ((a * 2 / us + b) * u + rest + 0.5).floor()
    count = whole + moved
    quickly = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
    outside = (count < 0) | (count > trials)
    inside = outside.where(whole, count)
    mode = (rest + prob).floor()  # from the whole part of what is expected
    alpha = (2.83 + 5.1 / b) * spread
    chance = _log_chance(inside, outside.where(-rest, moved - rest), trials, prob)
    best = _log_chance(whole + mode, mode - rest, trials, prob)
    slowly = log(v * alpha / (a / (us * us) + b)) <= chance - best
    return count, (outside.logical_not()) & (quickly | slowly)


def _log_chance(count: A, apart: A, trials: A, prob: A) -> A:
    """The logarithm of the probability of a count, which is ``apart`` more than expected."""
    none, all_ = count <= 0, count >= trials
    end = none | all_
    k = end.where(trials * 0.5, count)
    left = trials - k
    rates = trials * prob
    off = end.where(k - rates, apart)
    root = log_root(trials) - log_root(k) - log_root(left)
    terms = stirling_error(trials) - stirling_error(k) - stirling_error(left) + root
    between = terms - deviance(k, off, rates) - deviance(left, -off, trials - rates)
    return none.where(trials * log1p(-prob), all_.where(trials * log(prob), between))
