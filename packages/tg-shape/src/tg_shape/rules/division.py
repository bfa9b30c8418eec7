"""Floor division and modulo by a positive divisor ``c``; ``x = c*(x//c) + x%c`` with ``0 <= x%c < c`` throughout.

One decomposition serves both: ``num = c*Q + g*N + R`` with ``0 <= R < g`` and ``c = g*d``, hence
``num // c = Q + N//d`` and ``num % c = g*(N%d) + R``. What it takes out, in order:

| rule | left | right |
| --- | --- | --- |
| whole multiples | `(c*a*x + y) // c` | `a*x + y//c` |
| one period | `y // c` where `y` stays in `[q*c, q*c + c)` | `q` |
| partial multiples | `(g*x + r) // (g*d)` where `0 <= r < g` | `x // d` |
| numerator from 0 | `y // c` where `y.vmin = q*c + s` | `q + (y - q*c) // c` |
| nested quotient | `(x//a + y) // c` | `(x + a*y) // (a*c)` |
| remainder in quotient | `(x % (c*a)) // c` | `(x//c) % a` |
| remainder in remainder | `(k*(x%a) + y) % c` where `c` divides `k*a` | `(k*x + y) % c` |
| negative divisor | `x // -c`, `x % -c` | `(-x) // c`, `-((-x) % c)` |

A symbolic divisor divides by the same rules where the comparisons they need can be proved (`tg_shape.bounds`). It is
taken not to be 0, for which there is no quotient.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from ..bounds import bounds_of, is_nonnegative
from ..expr import Expr, Terms, intern, sint
from ..linear import from_terms, interval, terms_of
from .symbolic_division import split_symbolic


@lru_cache(maxsize=1 << 14)
def floordiv(num: sint, den: sint) -> sint:
    """``num // den``, rounding down.

    Raises:
      ZeroDivisionError: if ``den`` is 0.
    """
    if isinstance(den, int):
        if den == 0:
            raise ZeroDivisionError(f"division of {num!r} by zero")
        if isinstance(num, int):
            return num // den
        if den < 0:
            return floordiv(-num, -den)
        if den == 1:
            return num
        quotient, _, inner, d, _ = split(num, den)
        return quotient + _quotient(inner, d)
    if den.vmax < 0:
        return floordiv(-num, -den)
    if den.vmin < 0:
        return _unbounded_quotient(num, den)
    quotient, _, inner, over, _ = split_symbolic(num, den)
    if isinstance(over, int):
        return quotient + (inner // over)
    if inner == 0:
        return quotient
    if isinstance(inner, Expr) and inner.op == "floordiv" and is_nonnegative(inner.args[1]):
        return quotient + inner.args[0] // (inner.args[1] * over)
    return quotient + intern("floordiv", (inner, over), *_quotient_bounds(inner, over))


@lru_cache(maxsize=1 << 14)
def mod(num: sint, den: sint) -> sint:
    """``num % den``, with the sign of ``den``.

    Raises:
      ZeroDivisionError: if ``den`` is 0.
    """
    if isinstance(den, int):
        if den == 0:
            raise ZeroDivisionError(f"remainder of {num!r} by zero")
        if isinstance(num, int):
            return num % den
        if den < 0:
            return -mod(-num, -den)
        if den == 1:
            return 0
        _, g, left, d, rest = split(num, den)
        return g * _remainder(left, d) + rest
    if den.vmax < 0:
        return -mod(-num, -den)
    if den.vmin < 0:
        bound = max(abs(den.vmin), abs(den.vmax)) - 1
        return 0 if num == 0 else intern("mod", (num, den), -bound, bound)
    _, unit, inner, over, rest = split_symbolic(num, den)
    if isinstance(over, int):
        return unit * (inner % over) + rest
    if inner == 0:
        return rest
    lo, hi = bounds_of(inner)
    most = min(over.vmax - 1, hi) if lo >= 0 else over.vmax - 1
    return unit * intern("mod", (inner, over), 0, most) + rest


def split(num: Expr, c: int) -> tuple[sint, int, sint, int, sint]:
    """``(Q, g, N, d, R)`` of the module docstring, for ``c >= 2``; ``N`` is 0 when nothing is left to divide."""
    pairs, const = terms_of(num)
    whole: dict[Expr, int] = {}
    rest: list[tuple[Expr, int]] = []
    for t, k in pairs:
        q, r = (k // c, k % c) if k > 0 else (-(-k // c), -(-k % c))
        if q:
            whole[t] = q
        if r:
            rest.append((t, r))
    shift, const = divmod(const, c)
    fitted = _in_one_period(tuple(rest), const, c)
    if fitted is not None:
        extra, remainder = fitted
        return from_terms(whole, shift) + extra, c, 0, 1, remainder
    for g in sorted({gcd(r, c) for _, r in rest} - {1, c} | ({gcd(c, *(r for _, r in rest))} - {1}), reverse=True):
        inside: dict[Expr, int] = {}
        outside: list[tuple[Expr, int]] = []
        for t, k in rest:
            q, r = (k // g, k % g) if k > 0 else (-(-k // g), -(-k % g))
            if q:
                inside[t] = q
            if r:
                outside.append((t, r))
        fitted = _in_one_period(tuple(outside), const, g)
        if fitted is None:
            continue
        extra, remainder = fitted
        inner = from_terms(inside, 0) + extra
        d = c // g
        if isinstance(inner, int):
            return from_terms(whole, shift) + inner // d, c, 0, 1, g * (inner % d) + remainder
        if d == 1:
            return from_terms(whole, shift) + inner, g, 0, 1, remainder
        deeper, g2, inner, d, remainder2 = split(inner, d)
        return from_terms(whole, shift) + deeper, g * g2, inner, d, g * remainder2 + remainder
    lo, _ = interval(tuple(rest), const)
    start = lo // c
    return from_terms(whole, shift + start), 1, from_terms(dict(rest), const - start * c), c, 0


def _in_one_period(pairs: Terms, const: int, c: int) -> tuple[sint, sint] | None:
    """``(Q, R)`` with ``pairs + const = c*Q + R`` and ``0 <= R < c``, if found; ``Q`` may take from single terms."""
    lo, hi = interval(pairs, const)
    q = lo // c
    if hi // c == q:
        return q, from_terms(dict(pairs), const - q * c)
    if not any(2 * abs(k) > c for _, k in pairs):
        return None
    taken: dict[Expr, int] = {}
    near: list[tuple[Expr, int]] = []
    for t, k in pairs:
        if 2 * abs(k) > c:
            taken[t] = 1 if k > 0 else -1
            k -= c * taken[t]
        near.append((t, k))
    lo, hi = interval(tuple(near), const)
    q = lo // c
    if hi // c != q:
        return None
    return from_terms(taken, q), from_terms(dict(near), const - q * c)


def _quotient(inner: sint, d: int) -> sint:
    """``inner // d`` for what `split` left: ``inner`` cannot be divided further by its terms."""
    if isinstance(inner, int):
        return inner // d
    pairs, const = terms_of(inner)
    if len(pairs) == 1 and const == 0:
        only, k = pairs[0]
        if k == 1 and only.op == "mod":
            x, a = only.args
            if isinstance(a, int) and a % d == 0:
                return (x // d) % (a // d)
    nested = [t for t, k in pairs if t.op == "floordiv"]
    if len(nested) == 1 and (nested[0], 1) in pairs:
        x, a = nested[0].args
        if isinstance(a, int):
            return (x + a * (inner - nested[0])) // (a * d)
    return intern("floordiv", (inner, d), inner.vmin // d, inner.vmax // d)


def _remainder(inner: sint, d: int) -> sint:
    """``inner % d`` for what `split` left."""
    if isinstance(inner, int):
        return inner % d
    pairs, const = terms_of(inner)
    unwrapped: sint = const
    found = False
    for t, k in pairs:
        if t.op == "mod":
            x, a = t.args
            if isinstance(a, int) and (k * a) % d == 0:
                unwrapped = unwrapped + k * x
                found = True
                continue
        unwrapped = unwrapped + k * t
    if found:
        return unwrapped % d
    return intern("mod", (inner, d), 0, min(d - 1, inner.vmax))


def _quotient_bounds(num: sint, den: Expr) -> tuple[int, int]:
    lo, hi = bounds_of(num)
    least = max(den.vmin, 1)
    ends = lo // least, lo // den.vmax, hi // least, hi // den.vmax
    return min(ends), max(ends)


def _unbounded_quotient(num: sint, den: Expr) -> sint:
    """A quotient whose divisor may have either sign: nothing is simplified."""
    if num == 0:
        return 0
    lo, hi = bounds_of(num)
    most = max(abs(lo), abs(hi))
    return intern("floordiv", (num, den), -most, most)
