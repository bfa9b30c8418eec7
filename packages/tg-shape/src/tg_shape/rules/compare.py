"""Comparisons, valued 0 or 1. Every inequality becomes ``e < c`` with ``e`` free of constants and of a common divisor.

| left | right |
| --- | --- |
| `g*x < c` | `x < ceil(c/g)` |
| `g*x + r < c` where `(c-1-r)//g` is always `q` | `x < q + 1` |
| `x//a + y < c` | `x + a*y < a*c` |
| `-(x//a) + y < c` | `-x + a*y < a*c - a + 1` |
| `g*x + r == c` where of the values of `r` only `s` is `c` modulo `g` | `x == (c - s)/g and r == s` |
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from ..bounds import is_nonnegative
from ..expr import Expr, Terms, intern, sint
from ..linear import build, from_terms, interval, terms_of


@lru_cache(maxsize=1 << 14)
def lt(a: sint, b: sint) -> sint:
    """``a < b``."""
    if isinstance(b, int):
        pairs, const = terms_of(a)
        return _below(pairs, b - const)
    pairs, const = terms_of(a - b)
    return _below(pairs, -const)


def _below(pairs: Terms, c: int) -> sint:
    """``sum(pairs) < c``; the pairs are in order."""
    while True:
        lo, hi = interval(pairs, 0)  # of no terms: 0, which is decided here
        if hi < c:
            return 1
        if lo >= c:
            return 0
        g = gcd(*(k for _, k in pairs))
        if g > 1:
            pairs, c = tuple((t, k // g) for t, k in pairs), -(-c // g)
            continue
        dropped = _without_small_terms(pairs, c) or _without_quotient(pairs, c)
        if dropped is None:
            break
        pairs, c = dropped
    e = build(pairs, 0)
    assert isinstance(e, Expr)
    if e.symbolic_bounds:
        if is_nonnegative(c - 1 - e):
            return 1
        if is_nonnegative(e - c):
            return 0
    return intern("lt", (e, c), 0, 1)


def _without_small_terms(pairs: Terms, c: int) -> tuple[Terms, int] | None:
    """Drops the terms that cannot change the outcome since the others move in larger steps."""
    for g in sorted({abs(k) for _, k in pairs} - {1}, reverse=True):
        large = tuple((t, k // g) for t, k in pairs if k % g == 0)
        small = tuple((t, k) for t, k in pairs if k % g)
        if not small:
            continue
        lo, hi = interval(small, 0)
        q = (c - 1 - hi) // g
        if (c - 1 - lo) // g == q:
            return large, q + 1
    return None


def _without_quotient(pairs: Terms, c: int) -> tuple[Terms, int] | None:
    """Multiplies out a quotient, if there is just one and its coefficient is 1 or -1."""
    quotients = [(t, k) for t, k in pairs if t.op == "floordiv"]
    if len(quotients) != 1 or abs(quotients[0][1]) != 1:
        return None
    ((t, k),) = quotients
    x, a = t.args
    if not isinstance(a, int):
        return None
    rest = from_terms({u: m for u, m in pairs if u is not t}, 0)
    moved, const = terms_of(k * x + a * rest)
    return moved, (a * c if k == 1 else a * c - a + 1) - const


@lru_cache(maxsize=1 << 14)
def eq(a: sint, b: sint) -> sint:
    """``a == b``."""
    e = a - b
    if isinstance(e, int):
        return int(e == 0)
    pairs, const = terms_of(e)
    c = -const
    lo, hi = interval(pairs, 0)
    if not lo <= c <= hi:
        return 0
    g = gcd(*(k for _, k in pairs))
    if c % g:
        return 0
    if pairs[0][1] < 0:
        g = -g
    pairs, c = tuple((t, k // g) for t, k in pairs), c // g
    split = _digits(pairs, c)
    if split is not None:
        return split
    if len(pairs) == 1 and pairs[0][0].op in _BOOLEAN_OPS:
        return pairs[0][0] if c == 1 else ~pairs[0][0]
    left = build(pairs, 0)
    assert isinstance(left, Expr)
    if left.symbolic_bounds and (is_nonnegative(left - c - 1) or is_nonnegative(c - left - 1)):
        return 0
    return intern("eq", (left, c), 0, 1)


_BOOLEAN_OPS = frozenset(("lt", "eq", "ne", "and", "or"))


def _digits(pairs: Terms, c: int) -> sint | None:
    """``g*x + r == c`` as an equation for ``x`` and one for ``r``, if the range of ``r`` is shorter than ``g``."""
    for g in sorted({abs(k) for _, k in pairs} - {1}, reverse=True):
        small = tuple((t, k) for t, k in pairs if k % g)
        lo, hi = interval(small, 0)
        if not small or hi - lo >= g:
            continue
        s = lo + (c - lo) % g
        if s > hi:
            return 0
        large = from_terms({t: k // g for t, k in pairs if k % g == 0}, 0)
        return _both(eq(large, (c - s) // g), eq(from_terms(dict(small), 0), s))
    return None


def _both(a: sint, b: sint) -> sint:
    return a if b == 1 else 0 if b == 0 else b & a


@lru_cache(maxsize=1 << 14)
def ne(a: sint, b: sint) -> sint:
    """``a != b``."""
    same = eq(a, b)
    return 1 - same if isinstance(same, int) else ~same
