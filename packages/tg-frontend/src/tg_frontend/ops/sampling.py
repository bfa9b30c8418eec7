"""Random choices: permutations, dropped elements, draws."""

from __future__ import annotations

import math

from tg_dtype import dtypes

from ..array.array import A
from ..array.base import DTypeLike
from ..array.casts import floating
from ..array.gradients import in_training
from ..array.ingest import placed, sure_of
from ..host.coerce import to_dtype
from ..memory.realization import readable
from ..plain_numbers import without_numpy
from .creation import checked_shape
from .elementary import log
from .random import fractions, rand, rand_like
from .scan import cumsum
from .sorting import argsort
from .streams import random_words
from .topk import topk


def randperm(cls: type[A], n: int, device: str | None = None, dtype: DTypeLike | None = None) -> A:
    """The integers from 0 to n - 1 in random order.

    Raises:
      ValueError: if ``n`` is negative.

    Example:
      >>> from tg_frontend import Tensor
      >>> sorted(Tensor.randperm(5).tolist())
      [0, 1, 2, 3, 4]
    """
    sizes = checked_shape((n,), "randperm")
    words = cls._wrap(random_words(sizes, placed(device))[0].contiguous())
    return argsort(words).cast(to_dtype(dtype) if dtype is not None else dtypes.default_int)


def dropout(x: A, p: float = 0.5, training: bool | None = None) -> A:
    """In training: elements dropped (0) with probability ``p``, the others over 1 - p. Else the tensor itself.

    Args:
      training: whether; None: as :meth:`train` says.

    Raises:
      ValueError: if ``p`` is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.ones(4).dropout(0.5)
      Tensor([1., 1., 1., 1.])
      >>> with Tensor.train():
      ...     kept = Tensor.ones(1000).dropout(0.5)
      >>> sorted(set(kept.tolist()))
      [0.0, 2.0]
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: {p!r} is not a probability")
    if p == 0 or not (in_training(x, "dropout") if training is None else training):
        return x
    if p == 1:
        return x * 0
    keep = (fractions(type(x), x.shape, x.device, dtypes.float32, "dropout") >= p).contiguous()
    return keep.where(x, 0) * (1 / (1 - p))


def bernoulli(x: A, p: float | None = None) -> A:
    """Ones with a probability, zeros otherwise, in this tensor's shape, dtype and device.

    The probabilities are computed at once and looked at, but for those inside of a TinyJit or of ``vmap``: there one
    that is refused elsewhere gives NaN.

    Args:
      p: the probability; the elements are, if it is not given.

    Raises:
      ValueError: if one is not between 0 and 1.
      TypeError: if the elements are to be probabilities, and are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).bernoulli()
      Tensor([0., 1.])
    """
    if p is not None:
        if not 0 <= p <= 1:
            raise ValueError(f"bernoulli: {p!r} is not a probability")
        return (fractions(type(x), x.shape, x.device, dtypes.float32, "bernoulli") < p).cast(x.dtype)
    if not dtypes.is_float(x.dtype):
        raise TypeError(f"bernoulli: probabilities are floats, got a tensor of {x.dtype.name}")
    chances = x.detach().cast(dtypes.float32)
    good, known = (chances >= 0) & (chances <= 1), readable(chances.lazydata)
    if known and good.logical_not().any().item():
        raise ValueError("bernoulli: probabilities are between 0 and 1")
    drawn = (fractions(type(x), x.shape, x.device, dtypes.float32, "bernoulli") < chances).cast(x.dtype)
    return drawn if known else good.where(drawn, math.nan)


def multinomial(x: A, num_samples: int = 1, replacement: bool = False) -> A:
    """Positions drawn with the elements as weights (of each row of a matrix): int32, (…, num_samples).

    The weights are computed at once and looked at, but for those inside of a TinyJit or of ``vmap``: there a row of
    weights from which nothing can be drawn gives -1.

    Raises:
      ValueError: if the shape has not one or two axes; a weight is negative, infinite or NaN; a row has none above 0,
        or without replacement fewer than are drawn.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0, 0.0]).multinomial(3, replacement=True)
      Tensor([1, 1, 1])
    """
    num_samples = without_numpy(num_samples)  # before anything is drawn
    if not 1 <= x.ndim <= 2 or num_samples < 1:
        raise ValueError(f"multinomial: {num_samples!r} samples of weights of shape {x.shape}")
    weights = floating(x.detach()).cast(dtypes.float32).contiguous()
    least = 1 if replacement else num_samples
    n = sure_of(weights.shape[-1], least, weights.shape)
    if isinstance(n, int) and n < least:
        raise ValueError(f"multinomial: {num_samples} samples of {n} without replacement")
    above = (weights > 0).sum(-1, keepdim=True)
    bad = ((weights >= 0) & (weights < math.inf)).logical_not().any(-1, keepdim=True)
    bad = bad | (above < (1 if replacement else num_samples))
    if readable(weights.lazydata):
        weights.realize()
        if bad.any().item():
            few = "" if replacement else f", and {num_samples} of them at least"
            raise ValueError(f"multinomial: weights are finite and not negative, some in each row above 0{few}")
        return _draw(weights, num_samples, replacement)
    return bad.where(-1, _draw(weights, num_samples, replacement))


def _draw(x: A, num_samples: int, replacement: bool) -> A:
    """Positions drawn with these float32 weights."""
    weights = x
    *lead, n = weights.shape
    if not replacement:
        # The least of exponential times, one for each element at a rate of its weight, is that element's turn.
        times = -log(1 - rand_like(weights)) / weights
        return topk(times, num_samples, largest=False)[1]
    sums = cumsum(weights, -1)
    total = sums.shrink([*(None for _ in lead), (n - 1, n)])
    points = rand(type(x), *lead, num_samples, 1, device=x.device) * total.unsqueeze(-1)
    passed = (sums.unsqueeze(-2) <= points).sum(-1, dtype=dtypes.int32)
    return passed.minimum(n - 1)
