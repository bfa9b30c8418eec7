"""Random numbers of other distributions, in the shape of a tensor: as a new one, or written into it."""

from __future__ import annotations

import math

from tg_dtype import DType, dtypes

from ..array import writing
from ..array.array import A
from .elementary import exp, log1p, tan
from .random import fractions, normal, randint, uniform
from .rounding import ceil
from .sampling import bernoulli

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _unit(x: A, what: str, integers: bool = False) -> A:
    """Uniform fractions in the shape of a tensor, in 32 bits at least."""
    if x.dtype.kind != "float" and not (integers and dtypes.is_int(x.dtype)):
        raise TypeError(f"{what}: the tensor is of floats{' or integers' if integers else ''}, got {x.dtype.name}")
    return fractions(type(x), x.shape, x.device, dtypes.float64 if _wide(x) is dtypes.float64 else None, what)


def _numbers(what: str, **given: Any) -> None:
    for name, value in given.items():
        if not isinstance(value, (int, float)):
            raise TypeError(f"{what}: {name} is a number, got {value!r} of type {type(value).__name__}")


def _wide(x: A) -> DType:
    return dtypes.float64 if x.dtype.itemsize == 8 and x.dtype.kind == "float" else dtypes.float32


def _drawn(x: A, sample: A) -> A:
    out = sample.cast(x.dtype).contiguous()
    return out._wrap(out.lazydata)


def exponential(x: A, rate: float = 1.0) -> A:
    """Drawn with the density rate * exp(-rate * y) above 0, in this tensor's shape, dtype and device.

    Raises:
      ValueError: if the rate is not positive.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.zeros(100).exponential() >= 0).all().item()
      True
    """
    if not rate > 0:
        raise ValueError(f"exponential: a rate is positive, got {rate!r}")
    return _drawn(x, log1p(-_unit(x, "exponential")) * (-1 / rate))


def cauchy(x: A, median: float = 0.0, sigma: float = 1.0) -> A:
    """Drawn from Cauchy's distribution, in this tensor's shape, dtype and device.

    Args:
      median: which half of them are below.
      sigma: half the width at half the height of the density.

    Raises:
      ValueError: if ``sigma`` is not positive.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 3).cauchy().shape
      (2, 3)
    """
    if not sigma > 0:
        raise ValueError(f"cauchy: sigma is positive, got {sigma!r}")
    return _drawn(x, tan((_unit(x, "cauchy") - 0.5) * math.pi) * sigma + median)


def geometric(x: A, p: float) -> A:
    """How many trials until the first success, each with probability ``p``: 1, 2, …; in this shape, dtype and device.

    Raises:
      ValueError: if ``p`` is not between 0 and 1.
      TypeError: if the elements are bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(3).geometric(1.0)
      Tensor([1., 1., 1.])
    """
    if not 0 < p <= 1:
        raise ValueError(f"geometric: {p!r} is no probability above 0")
    unit = _unit(x, "geometric", integers=True)
    if p == 1:
        return _drawn(x, unit * 0 + 1)
    return _drawn(x, ceil(log1p(-unit) * (1 / math.log1p(-p))).maximum(1))


def log_normal(x: A, mean: float = 1.0, std: float = 2.0) -> A:
    """Drawn so that the logarithm is normal with this mean and deviation, in this tensor's shape, dtype and device.

    Raises:
      ValueError: if the standard deviation is not positive.
      TypeError: if the elements are no floats, or the mean or the deviation is no number.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.zeros(100).log_normal() > 0).all().item()
      True
    """
    _numbers("log_normal", mean=mean, std=std)
    if not std > 0:
        raise ValueError(f"log_normal: a standard deviation is positive, got {std!r}")
    if x.dtype.kind != "float":
        raise TypeError(f"log_normal: the tensor is of floats, got {x.dtype.name}")
    return _drawn(x, exp(normal(type(x), *x.shape, mean=mean, std=std, device=x.device, dtype=_wide(x))))


def exponential_(x: A, rate: float = 1.0) -> A:
    """Fills this tensor as :meth:`exponential` draws. Returns it.

    Raises:
      ValueError: if the rate is not positive.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.zeros(100).exponential_(2.0) >= 0).all().item()
      True
    """
    return writing.assign(x, exponential(x, rate))


def cauchy_(x: A, median: float = 0.0, sigma: float = 1.0) -> A:
    """Fills this tensor as :meth:`cauchy` draws. Returns it.

    Raises:
      ValueError: if ``sigma`` is not positive.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(2, 3).cauchy_().shape
      (2, 3)
    """
    return writing.assign(x, cauchy(x, median, sigma))


def geometric_(x: A, p: float) -> A:
    """Fills this tensor as :meth:`geometric` draws. Returns it.

    Raises:
      ValueError: if ``p`` is not between 0 and 1.
      TypeError: if the elements are bools.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(3).geometric_(1.0)
      Tensor([1., 1., 1.])
    """
    return writing.assign(x, geometric(x, p))


def log_normal_(x: A, mean: float = 1.0, std: float = 2.0) -> A:
    """Fills this tensor as :meth:`log_normal` draws. Returns it.

    Raises:
      ValueError: if the standard deviation is not positive.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> (Tensor.zeros(100).log_normal_() > 0).all().item()
      True
    """
    return writing.assign(x, log_normal(x, mean, std))


def normal_(x: A, mean: float = 0.0, std: float = 1.0) -> A:
    """Fills this tensor with normal numbers. Returns it.

    Raises:
      ValueError: if the standard deviation is negative or NaN.
      TypeError: if the elements are no floats, or the mean or the deviation is no number.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(3).normal_(5.0, 0.0)
      Tensor([5., 5., 5.])
    """
    _numbers("normal_", mean=mean, std=std)
    return writing.assign(x, normal(type(x), *x.shape, mean=mean, std=std, device=x.device, dtype=x.dtype))


def uniform_(x: A, low: float = 0.0, high: float = 1.0) -> A:
    """Fills this tensor with numbers from ``low`` to below ``high``. Returns it.

    Raises:
      ValueError: if ``low`` is above ``high``, or one is not finite.
      TypeError: if the elements are no floats.

    Example:
      >>> from tg_frontend import Tensor
      >>> x = Tensor.zeros(100).uniform_(2.0, 3.0)
      >>> ((x >= 2) & (x < 3)).all().item()
      True
    """
    return writing.assign(x, uniform(type(x), *x.shape, low=low, high=high, device=x.device, dtype=x.dtype))


def bernoulli_(x: A, p: float = 0.5) -> A:
    """Fills this tensor with ones, of this probability, and zeros. Returns it.

    Raises:
      ValueError: if ``p`` is not between 0 and 1.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(3).bernoulli_(1.0)
      Tensor([1., 1., 1.])
    """
    return writing.assign(x, bernoulli(x, p))


def random_(x: A, low: int | None = None, high: int | None = None) -> A:
    """Fills this tensor with integers from ``low`` to below ``high``. Returns it.

    Args:
      low: the least, 0 if it is not given; alone it is ``high``.
      high: if it is not given: as many as the dtype has, floats without a gap; but no more than 2**31.

    Raises:
      ValueError: if the range is empty, or wider than 2**32.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor.zeros(3).random_(4, 5)
      Tensor([4., 4., 4.])
    """
    if high is None:
        low, high = (0, _count(x.dtype) if low is None else low)
    low = 0 if low is None else low
    if not low < high:
        raise ValueError(f"random_: there is no integer from {low} to below {high}")
    kind = x.dtype if dtypes.is_int(x.dtype) else dtypes.int64
    return writing.assign(x, randint(type(x), *x.shape, low=low, high=high, device=x.device, dtype=kind).cast(x.dtype))


def _count(dtype: DType) -> int:
    """How many integers from 0 on a dtype has."""
    if dtype.kind == "float":
        return int(min(1 << (dtypes.finfo(dtype)[1] + 1), 1 << 31))
    largest: Any = dtypes.max(dtype)
    return int(min(int(largest) + 1, 1 << 31))
