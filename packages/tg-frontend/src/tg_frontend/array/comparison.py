"""Comparisons."""

from __future__ import annotations

from tg_lazy import Ops

from .base import B
from .operands import alu, pair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def compare(t: B, op: Ops, x: Any, what: str, reverse: bool = False) -> B:
    """A comparison that is an op, of operands that are broadcast and promoted."""
    a, b = pair(t, x, what, reverse)
    return alu(a, op, b)


def eq(t: B, x: Any) -> B:
    """Where t == x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).eq(2)
      Tensor([False,  True])
    """
    return compare(t, Ops.CMPEQ, x, "eq")


def ne(t: B, x: Any) -> B:
    """Where t != x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2]).ne(2)
      Tensor([ True, False])
    """
    return compare(t, Ops.CMPNE, x, "ne")


def lt(t: B, x: Any) -> B:
    """Where t < x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).lt(2)
      Tensor([ True, False, False])
    """
    return compare(t, Ops.CMPLT, x, "lt")


def gt(t: B, x: Any) -> B:
    """Where t > x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).gt(2)
      Tensor([False, False,  True])
    """
    return compare(t, Ops.CMPLT, x, "gt", reverse=True)


def le(t: B, x: Any) -> B:
    """Where t <= x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).le(2)
      Tensor([ True,  True, False])
    """
    return at_least(t, x, "le", reverse=True)


def ge(t: B, x: Any) -> B:
    """Where t >= x.

    Example:
      >>> from tg_frontend import Tensor
      >>> Tensor([1, 2, 3]).ge(2)
      Tensor([False,  True,  True])
    """
    return at_least(t, x, "ge", reverse=False)


def at_least(t: B, x: Any, what: str, reverse: bool) -> B:
    """Where the first operand is the second or more; ``reverse`` exchanges them."""
    a, b = pair(t, x, what, reverse)
    if a.dtype.kind == "float":  # a NaN is not at least anything
        return alu(alu(b, Ops.CMPLT, a), Ops.OR, alu(a, Ops.CMPEQ, b))
    return alu(alu(a, Ops.CMPLT, b), Ops.NOT)
