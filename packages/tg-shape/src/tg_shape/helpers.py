"""Functions on integers that may be symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .expr import ENGINE, sint


def prod(xs: Iterable[sint]) -> sint:
    """The product; 1 if there are no factors."""
    out: sint = 1
    for x in xs:
        out = out * x
    return out


def smax(*xs: sint) -> sint:
    """The largest, symbolic where it must be.

    Example:
      >>> from tg_shape import Variable
      >>> n = Variable("n", 1, 8)
      >>> smax(n, 0), smax(n, 4), smax(n, 9)
      (n, max(n, 4), 9)
    """
    return ENGINE.maximum(xs)


def smin(*xs: sint) -> sint:
    """The smallest, symbolic where it must be."""
    return ENGINE.minimum(xs)


def ceildiv(a: sint, b: sint) -> sint:
    """``a / b``, rounded up."""
    return -(-a // b)


def even_part(extent: int, most: int) -> int | None:
    """The largest divisor of ``extent`` that is more than half of ``most`` and at most ``most``; None if there is none.

    Example:
      >>> even_part(4096, 1000), even_part(18, 12), even_part(17, 12)
      (512, 9, None)
    """
    return next((n for n in range(min(most, extent), most // 2, -1) if extent % n == 0), None)


def resolve(condition: sint | bool, default: bool = True) -> bool:
    """The truth of a condition if its bounds decide it, else ``default``.

    Example:
      >>> from tg_shape import Variable
      >>> n = Variable("n", 1, 8)
      >>> resolve(n < 9), resolve(n < 1), resolve(n < 4, default=False)
      (True, False, False)
    """
    if isinstance(condition, int):
        return bool(condition)
    if condition.vmin > 0 or condition.vmax < 0:
        return True
    return default


def sym_eval(x: sint, values: Mapping[Any, int]) -> int:
    """The value of ``x`` with variables (or their names) replaced; an integer is itself."""
    return ENGINE.evaluate(x, values)


def bound_value(x: sint) -> int | None:
    """The value of ``x`` where every variable in it is bound to one; None where one is not.

    Example:
      >>> from tg_shape import Variable
      >>> n = Variable("n", 1, 8)
      >>> bound_value(n.bind(3) + 1), bound_value(n + 1)
      (4, None)
    """
    if isinstance(x, int):
        return x
    try:
        return ENGINE.evaluate(x, {})
    except KeyError:
        return None
