"""Expressions as integer combinations of atoms: what sums are made of."""

from __future__ import annotations

from .expr import Expr, Terms, intern, order_of, sint


def terms_of(e: sint) -> tuple[Terms, int]:
    """``e`` as ``sum(coefficient * atom) + constant``; an atom is not a sum and carries no integer coefficient."""
    if isinstance(e, int):
        return (), e
    return e.lin if e.lin is not None else (((e, 1),), 0)


def factors_of(atom: Expr) -> tuple[Expr, ...]:
    """The factors of an atom: the atom itself, or what it is the product of."""
    return atom.args if atom.op == "mul" else (atom,)  # type: ignore[return-value]


def scaled(atom: Expr, c: int) -> Expr:
    """``atom * c`` for an atom and a coefficient that is not 0."""
    if c == 1:
        return atom
    lo, hi = (atom.vmin * c, atom.vmax * c) if c > 0 else (atom.vmax * c, atom.vmin * c)
    return intern("mul", (*factors_of(atom), c), lo, hi, (((atom, c),), 0))


def build(pairs: Terms, const: int) -> sint:
    """The sum of terms that are in order, with distinct atoms, no zero coefficient and no constant atom."""
    if not pairs:
        return const
    if const == 0 and len(pairs) == 1:
        return scaled(*pairs[0])
    lo = hi = const
    args: list[sint] = []
    products = False
    for atom, c in pairs:
        products = products or atom.op == "mul"
        if c > 0:
            lo += c * atom.vmin
            hi += c * atom.vmax
        else:
            lo += c * atom.vmax
            hi += c * atom.vmin
        args.append(scaled(atom, c))
    if const:
        args.append(const)
    if products:
        low, high = polynomial_interval(pairs, const)
        lo, hi = max(lo, low), min(hi, high)
        if lo == hi:
            return lo
    return intern("add", tuple(args), lo, hi, (pairs, const))


def from_terms(terms: dict[Expr, int], const: int) -> sint:
    """The sum of collected terms, in any order; zero coefficients and atoms of one value are dropped."""
    pairs = []
    for atom, c in terms.items():
        if atom.vmin == atom.vmax:
            const += c * atom.vmin
        elif c:
            pairs.append((atom, c))
    if len(pairs) > 1:
        pairs.sort(key=_pair_order)
    return build(tuple(pairs), const)


def _pair_order(pair: tuple[Expr, int]) -> tuple[object, ...]:
    return pair[0].order


def interval(pairs: Terms, const: int) -> tuple[int, int]:
    """Bounds of ``sum(coefficient * atom) + const``."""
    lo = hi = const
    for atom, c in pairs:
        if c > 0:
            lo += c * atom.vmin
            hi += c * atom.vmax
        else:
            lo += c * atom.vmax
            hi += c * atom.vmin
    return lo, hi


def polynomial_interval(pairs: Terms, const: int) -> tuple[int, int]:
    """Bounds of a sum of products: as a polynomial in the distances of the factors from their lowest values.

    ``n*n*2 - n`` for ``n >= 1`` is ``2*t*t + 3*t + 1`` with ``t = n - 1``, hence at least 1.
    """
    shifted: dict[tuple[Expr, ...], int] = {(): const}
    for atom, c in pairs:
        part: dict[tuple[Expr, ...], int] = {(): c}
        for f in factors_of(atom):
            grown: dict[tuple[Expr, ...], int] = {}
            for monomial, k in part.items():
                with_f = tuple(sorted((*monomial, f), key=order_of))
                grown[with_f] = grown.get(with_f, 0) + k
                grown[monomial] = grown.get(monomial, 0) + k * f.vmin
            part = grown
        for monomial, k in part.items():
            shifted[monomial] = shifted.get(monomial, 0) + k
    lo = hi = shifted.pop(())
    for monomial, k in shifted.items():
        most = k
        for f in monomial:
            most *= f.vmax - f.vmin
        lo += min(most, 0)
        hi += max(most, 0)
    return lo, hi


def linear_terms(e: sint) -> tuple[list[tuple[Expr, int]], int]:
    """``e`` as a sum: atoms (variables, quotients, remainders, products…) with integer coefficients, and the constant.

    Example:
      >>> from tg_shape import Variable
      >>> i, j = Variable("i", 0, 9), Variable("j", 0, 9)
      >>> linear_terms(i * 4 + j // 2 + 7)
      ([(i, 4), (j//2, 1)], 7)
    """
    pairs, const = terms_of(e)
    return list(pairs), const


def coefficient(e: sint, var: Expr) -> int | None:
    """By how much ``e`` grows with ``var``: its integer coefficient.

    Args:
      e: an index or a size; an integer has no variables.
      var: usually a loop's variable, whose coefficient is the stride of the accesses at index ``e``.

    Returns:
      0 if ``var`` does not occur, None if ``e`` is not linear in it.

    Example:
      >>> from tg_shape import Variable
      >>> i, j = Variable("i", 0, 9), Variable("j", 0, 9)
      >>> index = i * 4 + j // 2
      >>> coefficient(index, i), coefficient(index, j), coefficient(5, i)
      (4, None, 0)
    """
    found = 0
    for atom, c in terms_of(e)[0]:
        if atom is var:
            found = c
        elif atom.op != "var" and var in atom.variables():
            return None
    return found


def symbolic_stride(e: sint, var: Expr) -> sint | None:
    """By how much ``e`` grows with ``var``, where sizes that vary may multiply it.

    Args:
      e: an index or a size.
      var: usually a loop's variable.

    Returns:
      0 if ``var`` does not occur, None if ``e`` is not linear in it.

    Example:
      >>> from tg_shape import Variable
      >>> i, n = Variable("i", 0, 9), Variable("n", 1, 9)
      >>> symbolic_stride(i * n * 3 + i + n, i), symbolic_stride(i * 4, i), symbolic_stride(i * i, i)
      (n*3 + 1, 4, None)
    """
    found: sint = 0
    for atom, c in terms_of(e)[0]:
        if atom is var:
            found = found + c
        elif atom.op != "var" and var in atom.variables():
            others = [f for f in factors_of(atom) if f is not var]
            if len(others) != len(factors_of(atom)) - 1 or any(var in f.variables() for f in others):
                return None
            product: sint = c
            for f in others:
                product = product * f
            found = found + product
    return found


def step(index: sint, var: Expr) -> int:
    """How far apart two neighbours along a loop lie: the size of the coefficient of ``var``.

    Args:
      index: an index of elements in memory.
      var: a loop's variable.

    Returns:
      Elements, never negative; 0 where the index does not move with ``var``, or not evenly.

    Example:
      >>> from tg_shape import Variable
      >>> i, j = Variable("i", 0, 9), Variable("j", 0, 9)
      >>> index = 36 - i * 4 + j // 2
      >>> step(index, i), step(index, j), step(5, i)
      (4, 0, 0)
    """
    return abs(coefficient(index, var) or 0)


__all__ = [
    "build",
    "coefficient",
    "factors_of",
    "from_terms",
    "interval",
    "linear_terms",
    "order_of",
    "scaled",
    "step",
    "symbolic_stride",
    "terms_of",
]
