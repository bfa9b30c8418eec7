"""Special functions."""

from __future__ import annotations

from tg_lazy import Ops

from ..array.array import A
from .elementary import elementary


def erf(x: A) -> A:
    """The error function.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).erf().round(4)
      Tensor([0.    , 0.8427])
    """
    return elementary(x, Ops.ERF)


def erfc(x: A) -> A:
    """1 less the error function, accurate where that is tiny.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([0.0, 1.0]).erfc().round(4)
      Tensor([1.    , 0.1573])
    """
    return elementary(x, Ops.ERFC)
