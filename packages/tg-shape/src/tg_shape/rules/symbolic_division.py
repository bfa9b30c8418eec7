"""Division by a symbolic divisor that is positive: a polynomial division whose remainder is proved to fit."""

from __future__ import annotations

from collections import Counter

from ..bounds import is_nonnegative
from ..expr import Expr, sint
from ..linear import factors_of, from_terms, terms_of

_STEPS = 16


def split_symbolic(num: sint, den: Expr) -> tuple[sint, sint, sint, sint, sint]:
    """``(Q, g, N, d, R)`` with ``num = den*Q + g*N + R``, ``0 <= R < g``, ``den = g*d``; ``N`` is 0 if all is divided.

    Args:
      num: the numerator.
      den: the divisor, ``den.vmin >= 0``; it is not 0.
    """
    fitted = _fit(0, num, den)
    if fitted is None:
        quotient, rest = _divided(num, den)
        fitted = _fit(quotient, rest, den) if quotient != 0 else None
    if fitted is not None:
        return fitted[0], den, 0, 1, fitted[1]
    pairs, const = terms_of(den)
    if len(pairs) != 1 or const:
        return 0, 1, num, den, 0
    # A divisor of one term: what it divides comes out even if the rest is not proved to fit.
    for g in _parts(den):
        inside, outside = _separated(rest, g)
        over = _exact(den, g)
        if over is None:
            continue
        fitted = _fit(0, outside, g)
        if fitted is not None:
            return quotient, g, inside + fitted[0], over, fitted[1]
    return quotient, 1, rest, den, 0


def _fit(quotient: sint, rest: sint, den: sint) -> tuple[sint, sint] | None:
    """``rest`` as ``den*q + r`` with a small ``q`` and ``0 <= r < den`` proved; gives ``(quotient + q, r)``."""
    for q in (0, -1, 1):
        r = rest - den * q
        if is_nonnegative(r) and is_nonnegative(den - r - 1):
            return quotient + q, r
    return None


def _divided(num: sint, den: Expr) -> tuple[sint, sint]:
    """Quotient and remainder of the polynomials: divides by the leading term of ``den`` while some term allows it."""
    lead, c = max(terms_of(den)[0], key=lambda p: (len(factors_of(p[0])), p[0].order))
    quotient: sint = 0
    for _ in range(_STEPS):
        for atom, k in terms_of(num)[0]:
            left = _without(atom, lead)
            if left is not None and k % c == 0:
                step = left * (k // c)
                quotient = quotient + step
                num = num - step * den
                break
        else:
            break
    return quotient, num


def _without(atom: Expr, divisor: Expr) -> sint | None:
    """``atom / divisor`` if the factors of ``divisor`` are among those of ``atom``."""
    have, need = Counter(factors_of(atom)), Counter(factors_of(divisor))
    if need - have:
        return None
    out: sint = 1
    for f, n in (have - need).items():
        for _ in range(n):
            out = out * f
    return out


def _exact(num: Expr, den: sint) -> sint | None:
    """``num / den`` for products, if it is exact."""
    ((atom, k),) = terms_of(num)[0]
    if isinstance(den, int):
        return None if k % den else from_terms({atom: k // den}, 0)
    ((divisor, c),) = terms_of(den)[0]
    left = _without(atom, divisor)
    return None if left is None or k % c else left * (k // c)


def _parts(den: Expr) -> list[sint]:
    """Divisors, at least 1, of a product that is at least 1; larger first."""
    ((atom, c),) = terms_of(den)[0]
    factors = [f for f in factors_of(atom) if f.vmin >= 0]
    out: list[sint] = []
    if c > 1 and atom.vmin >= 0:
        out.append(atom)
    if len(factors) > 1:
        out.extend(dict.fromkeys(factors))
    if c > 1:
        out.append(c)
    return out


def _separated(e: sint, g: sint) -> tuple[sint, sint]:
    """``(x, y)`` with ``e = g*x + y``: ``x`` takes the terms that ``g`` divides."""
    inside: sint = 0
    outside: sint
    pairs, outside = terms_of(e)
    for atom, k in pairs:
        q = _exact(from_terms({atom: k}, 0), g)  # type: ignore[arg-type]
        if q is None:
            outside = outside + atom * k
        else:
            inside = inside + q
    return inside, outside
