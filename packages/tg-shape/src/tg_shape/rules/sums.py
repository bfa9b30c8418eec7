"""Addition: flatten, collect like terms, and recombine quotients with their remainders.

| left | right |
| --- | --- |
| `k*d*(x//d) + k*(x%d)` | `k*x` |
| `k*a*((x//a + y) % b) + k*(x%a)` | `k*((x + a*y) % (a*b))` |
| `k*max(x, 0) - k*max(-x, 0)` | `k*x` |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..expr import Expr, sint
from ..linear import build, factors_of, from_terms, terms_of
from .extrema import maximum


@lru_cache(maxsize=1 << 14)
def add(a: sint, b: sint) -> sint:
    """``a + b``."""
    if isinstance(a, int):
        a, b = b, a
    if isinstance(a, int):
        return a + b
    pairs, const = terms_of(a)
    if isinstance(b, int):
        return (
            a
            if b == 0 and a.vmin != a.vmax
            else from_terms(dict(pairs), const + b)
            if len(pairs) == 1
            else build(pairs, const + b)
        )
    terms = dict(pairs)
    more, extra = terms_of(b)
    for atom, c in more:
        terms[atom] = terms.get(atom, 0) + c
    return collect(terms, const + extra)


def combine(parts: Iterable[tuple[sint, int]], const: int) -> sint:
    """``sum(coefficient * part) + const`` for any expressions, collected once."""
    terms: dict[Expr, int] = {}
    for part, c in parts:
        pairs, extra = terms_of(part)
        const += c * extra
        for atom, k in pairs:
            terms[atom] = terms.get(atom, 0) + c * k
    return collect(terms, const)


def add_all(args: Sequence[sint]) -> sint:
    """The sum of ``args``."""
    return combine([(a, 1) for a in args], 0)


_COMBINES = frozenset({"max", "mod", "mul"})
"""What terms are that rules may combine with others."""


def collect(terms: dict[Expr, int], const: int) -> sint:
    """The normal form of a sum of atoms."""
    changed = any(atom.op in _COMBINES for atom in terms)
    while changed:
        changed = False
        for atom, c in list(terms.items()):
            if c == 0:
                continue
            if atom.op == "max" and (positive := _positive_part(atom)) is not None:
                opposite, _ = terms_of(maximum((-positive, 0)))
                if len(opposite) == 1 and opposite[0][1] == 1 and terms.get(opposite[0][0]) == -c:
                    terms[atom], terms[opposite[0][0]] = 0, 0
                    pairs, extra = terms_of(positive)
                    const += extra * c
                    for t, k in pairs:
                        terms[t] = terms.get(t, 0) + k * c
                    changed = True
                    break
            for i, factor in enumerate(factors_of(atom)):
                if factor.op == "mod":
                    found = _recombined(terms, atom, c, i, factor)
                    if found is not None:
                        used, new = found
                        for t, k in used:
                            terms[t] -= k
                        pairs, extra = terms_of(new)
                        const += extra
                        for t, k in pairs:
                            terms[t] = terms.get(t, 0) + k
                        changed = True
                        break
            if changed:
                break
    return from_terms(terms, const)


def _positive_part(atom: Expr) -> Expr | None:
    """``x`` where ``atom`` is ``max(x, 0)``."""
    if len(atom.args) != 2 or 0 not in [a for a in atom.args if isinstance(a, int)]:
        return None
    return next((a for a in atom.args if isinstance(a, Expr)), None)


def _recombined(
    terms: dict[Expr, int], atom: Expr, c: int, at: int, rem: Expr
) -> tuple[list[tuple[Expr, int]], sint] | None:
    """The terms that go with ``c * atom``, whose factor number ``at`` is ``rem = num % den``, and what all become."""
    num, den = rem.args
    scale: sint = c
    for i, factor in enumerate(factors_of(atom)):
        if i != at:
            scale = scale * factor
    partner, const = terms_of(scale * (den * (num // den)))
    if const == 0 and partner and all(terms.get(t) == k for t, k in partner):
        return [(atom, c), *partner], scale * num
    for other, k in terms.items():
        if other is atom or k == 0:
            continue
        for i, factor in enumerate(factors_of(other)):
            if factor.op != "mod":
                continue
            found = _joined(num, den, factor)
            if found is None:
                continue
            inner, joined = found
            outer_scale: sint = k
            for n, f in enumerate(factors_of(other)):
                if n != i:
                    outer_scale = outer_scale * f
            if outer_scale is scale * inner or outer_scale == scale * inner:
                return [(atom, c), (other, k)], scale * joined
    return None


def _joined(num: sint, den: sint, high: Expr) -> tuple[sint, sint] | None:
    """For ``high = (x//a + y) % b`` and ``num % den = x % a``: ``a`` and ``(x + a*y) % (a*b)``."""
    inside, b = high.args
    pairs, _ = terms_of(inside)
    for quotient, k in pairs:
        if k == 1 and quotient.op == "floordiv" and quotient.args[1] == den:
            x, a = quotient.args
            whole = x + a * (inside - quotient)
            if (whole % a) == (num % den):
                return a, whole % (a * b)
    return None
