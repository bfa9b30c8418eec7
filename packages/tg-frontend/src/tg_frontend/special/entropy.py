"""Products with logarithms."""

from __future__ import annotations

import math

from ..array.array import A
from ..array.operands import float_pair
from ..ops.elementary import log, log1p
from .pointwise import pointwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def entr(x: A) -> A:
    """-x * log(x): 0 at 0, -inf below.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import entr
      >>> entr(Tensor([0.0, 0.5, -1.0])).round(4)
      Tensor([0.    , 0.3466,   -inf])
    """
    return pointwise("entr", _entr, lambda x: -log(x) - 1, x)


def _entr(x: A) -> A:
    positive = (x > 0) & (x < math.inf)
    found = positive.where(x, 1) * -log(positive.where(x, 1))
    rest = x.eq(0).where(0, (x < 0).where(-math.inf, -x))
    return positive.where(found, rest)


def xlog1py(x: A, other: Any) -> A:
    """x * log(1 + other), 0 where x is 0 unless other is NaN.

    Example:
      >>> from tg_frontend import Tensor
      >>> from tg_frontend.special import xlog1py
      >>> xlog1py(Tensor([0.0, 2.0]), Tensor([-1.0, 0.5])).round(4)
      Tensor([0.    , 0.8109])
    """
    a, b = float_pair(x, other, "xlog1py")
    nothing = a.eq(0) & ((b <= -1) | b.eq(math.inf))
    return nothing.where(0, a * log1p(nothing.where(0, b)))
