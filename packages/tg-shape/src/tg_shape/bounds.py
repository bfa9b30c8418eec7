"""What can be proved of an expression from the bounds of its variables, symbolic upper bounds included."""

from __future__ import annotations

from .expr import Expr, Variable, sint
from .linear import factors_of, terms_of

_ROUNDS = 4  # replacements of variables by their upper bounds; each nests one level deeper


def bounds_of(x: sint) -> tuple[int, int]:
    """``(vmin, vmax)`` of an expression or an integer."""
    return (x, x) if isinstance(x, int) else (x.vmin, x.vmax)


def upper(x: sint) -> int:
    """The greatest value that ``x`` may take: its ``vmax``, or the integer itself.

    Args:
      x: often the size of a symbolic dimension: memory is planned for the greatest.

    Example:
      >>> n = Variable("n", 1, 8)
      >>> upper(n * 4), upper(5)
      (32, 5)
    """
    return x if isinstance(x, int) else x.vmax


def is_nonnegative(e: sint) -> bool:
    """Whether ``e >= 0`` is proved. False means that it is not proved, not that it is wrong.

    Example:
      >>> from tg_shape import Variable
      >>> n, m = Variable("n", 1, 100), Variable("m", 1, 100)
      >>> i, j = Variable("i", 0, n - 1), Variable("j", 0, m - 1)
      >>> is_nonnegative(n * m - 1 - (i * m + j))
      True
    """
    for _ in range(_ROUNDS):
        if isinstance(e, int):
            return e >= 0
        if e.vmin >= 0:
            return True
        lower = _lowered(e) if e.symbolic_bounds else e
        if lower is e:
            lower = _greatest_in_products(e)
        if lower is e:
            return False
        e = lower
    return (e if isinstance(e, int) else e.vmin) >= 0


def _lowered(e: Expr) -> sint:
    """A lower bound of ``e``: in each term, one variable with a symbolic bound takes the value that is least for it."""
    pairs, const = terms_of(e)
    out: sint = const
    changed = False
    for atom, c in pairs:
        factors = factors_of(atom)
        at = next((i for i, f in enumerate(factors) if isinstance(f, Variable) and not isinstance(f.upper, int)), None)
        others = [f for i, f in enumerate(factors) if i != at]
        if at is None or any(f.vmin < 0 for f in others):
            out = out + c * atom
            continue
        var = factors[at]
        assert isinstance(var, Variable)
        bound: sint = c * (var.upper if c < 0 else var.vmin)
        for f in others:
            bound = bound * f
        out = out + bound
        changed = True
    return out if changed else e


def _greatest_in_products(e: Expr) -> sint:
    """A lower bound of ``e``: in negative products, a variable that only negative terms have takes its greatest value.

    ``63*n - i*n`` for ``i <= 63`` is at least 0: taken alone, ``-i*n`` would be bounded by the greatest ``n``.
    """
    pairs, const = terms_of(e)
    kept: frozenset[Variable] = frozenset().union(*(atom.variables() for atom, c in pairs if c > 0))
    out: sint = const
    changed = False
    for atom, c in pairs:
        factors = factors_of(atom)
        at = next((i for i, f in enumerate(factors) if isinstance(f, Variable) and f not in kept), None)
        if c > 0 or at is None or len(factors) < 2 or any(f.vmin < 0 for f in factors):
            out = out + c * atom
            continue
        bound: sint = c * factors[at].vmax
        for f in (*factors[:at], *factors[at + 1 :]):
            bound = bound * f
        out = out + bound
        changed = True
    return out if changed else e
