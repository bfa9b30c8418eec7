"""Rounding to whole numbers; the gradient is 0."""

from __future__ import annotations

from ..array.array import A
from ..array.computing import copied


def ceil(x: A) -> A:
    """The least whole number not below.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1.2, -1.2]).ceil()
      Tensor([ 2., -1.])
    """
    if x.dtype.kind != "float":
        return copied(x)
    down = x.trunc()
    return (down < x).where(down + 1, down)


def round(x: A, decimals: int = 0) -> A:
    """The nearest whole number; of two, the even one.

    Args:
      decimals: digits kept behind the point; of a negative number so many before it become 0.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.5, 1.5, 2.345]).round()
      Tensor([0., 2., 2.])
      >>> Tensor([0.5, 1.5, 2.345]).round(1)
      Tensor([0.5, 1.5, 2.3])
    """
    if decimals:
        if x.dtype.kind != "float":
            return x if decimals > 0 else round(x / 10**-decimals).mul(10**-decimals).cast(x.dtype)
        power = 10.0 ** abs(decimals)
        return round(x * power) / power if decimals > 0 else round(x / power) * power
    if x.dtype.kind != "float":
        return copied(x)
    down = x.floor()
    rest = x.detach() - down.detach()
    half = down * 0.5
    even = half.floor().eq(half)
    up = (-1 - down).neg()  # -0.0, not 0.0, above -1
    return ((rest > 0.5) | (rest.eq(0.5) & ~even)).where(up, down)


def __round__(x: A, ndigits: int | None = None) -> A:
    """For ``round(t)`` and ``round(t, 2)``."""
    return round(x, ndigits or 0)
