"""Special functions."""

from __future__ import annotations

from tg_lazy import Ops

from ..array.array import A
from .elementary import elementary


def erf(x: A) -> A:
    """The error function."""
    return elementary(x, Ops.ERF)


def erfc(x: A) -> A:
    """1 less the error function, accurate where that is tiny."""
    return elementary(x, Ops.ERFC)
