"""Sums, products and quotients of parts, of which None is zero throughout."""

from __future__ import annotations

from .parts import Parts, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def negated(x: Any) -> Any:
    """-x; None stays zero."""
    return None if x is None else -x


def times(x: Any, y: Any) -> Any:
    """A product of parts, of which None is zero."""
    return None if x is None or y is None else x * y


def plus(x: Any, y: Any) -> Any:
    """A sum of parts, of which None is zero."""
    if x is None or y is None:
        return kept(y if x is None else x)
    return x + y


def minus(x: Any, y: Any) -> Any:
    """A difference of parts, of which None is zero."""
    return plus(x, None) if y is None else (-y if x is None else x - y)


def zero(x: Any) -> Any:
    """0 for None."""
    return 0.0 if x is None else x


def product(a: Parts, b: Parts) -> Parts:
    """The product of two operands."""
    return Parts(minus(times(a.re, b.re), times(a.im, b.im)), plus(times(a.re, b.im), times(a.im, b.re)))


def quotient(a: Parts, b: Parts) -> Parts:
    """a / b by Smith's method (Algorithm 116, CACM 5, 1962), which overflows only where the quotient does nearly."""
    if b.im is None:
        return Parts(a.re / b.re, None if a.im is None else a.im / b.re)
    if not hasattr(b.re, "dtype"):  # a number: 1/b is exact enough only by the same method
        c, d = b
        if c == d == 0:
            return Parts(a.re / 0.0, zero(a.im) / 0.0)
        large = abs(c) >= abs(d)
        r = d / c if large else c / d
        scale = (c + d * r) if large else (c * r + d)
        x, y = a.re, zero(a.im)
        re, im = (x + y * r, y - x * r) if large else (x * r + y, y * r - x)
        return Parts(re / scale, im / scale)
    c, d = b.re, b.im
    large = c.detach().abs() >= d.detach().abs()
    none = (c == 0).logical_and(d == 0)
    p, q = large.where(c, d), large.where(d, c)
    r = none.where(0.0, q / none.where(1.0, p))
    scale = p + q * r
    re, im = a.re, zero(a.im)
    # of 0 neither part is large, and both are divided by 0
    one, two = (re + im * r, im - re * r), (re * r + im, im * r - re)
    return Parts(large.where(one[0], two[0]) / scale, large.where(one[1], two[1]) / scale)
