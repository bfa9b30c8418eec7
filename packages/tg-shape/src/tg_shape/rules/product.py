"""Multiplication: constants scale every term, products of sums expand, squares of booleans collapse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..expr import Expr, intern, sint
from ..linear import build, factors_of, terms_of
from .sums import collect

_MAX_EXPANSION = 64  # terms; a longer product of sums stays a product


@lru_cache(maxsize=1 << 14)
def mul(a: sint, b: sint) -> sint:
    """``a * b``."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int):
        return a * b
    if isinstance(b, int):
        if b == 0:
            return 0
        pairs, const = terms_of(a)
        if len(pairs) == 1 and pairs[0][0].vmin == pairs[0][0].vmax:
            return a.vmin * b
        return build(tuple((atom, c * b) for atom, c in pairs), const * b)
    left, lconst = terms_of(a)
    right, rconst = terms_of(b)
    if len(left) * len(right) > _MAX_EXPANSION:
        return product_atom((a, b))
    terms: dict[Expr, int] = {}
    const = lconst * rconst
    for x, c in left:
        for y, d in right:
            pairs, extra = terms_of(product_atom((*factors_of(x), *factors_of(y))))
            const += c * d * extra
            for atom, k in pairs:  # k is 1 unless a factor has only one value
                terms[atom] = terms.get(atom, 0) + c * d * k
        if rconst:
            terms[x] = terms.get(x, 0) + c * rconst
    if lconst:
        for y, d in right:
            terms[y] = terms.get(y, 0) + d * lconst
    return collect(terms, const)


def mul_all(args: Sequence[sint]) -> sint:
    """The product of ``args``."""
    out: sint = 1
    for a in args:
        out = out * a
    return out


def product_atom(factors: tuple[Expr, ...]) -> sint:
    """The product of factors that are not sums and carry no coefficient."""
    powers: dict[Expr, int] = {}
    coefficient = 1
    for f in factors:
        if f.vmin == f.vmax:
            coefficient *= f.vmin
        elif not (f in powers and f.vmin >= 0 and f.vmax <= 1):
            powers[f] = powers.get(f, 0) + 1
    if coefficient == 0 or not powers:
        return coefficient
    lo = hi = 1
    for f, n in powers.items():
        ends = f.vmin**n, f.vmax**n
        flo, fhi = (0 if n % 2 == 0 and f.vmin < 0 < f.vmax else min(ends)), max(ends)
        corners = lo * flo, lo * fhi, hi * flo, hi * fhi
        lo, hi = min(corners), max(corners)
    flat = sorted((f for f, n in powers.items() for _ in range(n)), key=lambda f: f.order)
    atom: sint = flat[0] if len(flat) == 1 else intern("mul", tuple(flat), lo, hi)
    return atom if coefficient == 1 else atom * coefficient
