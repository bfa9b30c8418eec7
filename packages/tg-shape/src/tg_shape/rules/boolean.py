"""And, or and not on 0/1 expressions.

Both flatten, drop duplicates and absorb (``a & (a | b)`` is ``a``). Comparisons of one expression with constants are
intersected (and) or united (or) as intervals; a contradiction is 0 and a tautology 1.
"""

from __future__ import annotations

from functools import lru_cache

from ..expr import Expr, intern, order_of, sint
from ..linear import terms_of


def _checked(name: str, args: tuple[sint, ...]) -> None:
    for a in args:
        lo, hi = (a, a) if isinstance(a, int) else (a.vmin, a.vmax)
        if lo < 0 or hi > 1:
            raise ValueError(
                f"{name}: operands must be booleans (0 or 1), got {a!r} with values from {lo} to {hi}; "
                "compare it with 0 first"
            )


@lru_cache(maxsize=1 << 14)
def conj(args: tuple[sint, ...]) -> sint:
    """``1`` where every argument is 1.

    Raises:
      ValueError: if an argument can be anything but 0 and 1.
    """
    _checked("and", args)
    flat: dict[Expr, None] = {}
    for a in args:
        if isinstance(a, int):
            if a == 0:
                return 0
        elif a.op == "and":
            flat.update(dict.fromkeys(x for x in a.args if isinstance(x, Expr)))
        else:
            flat[a] = None
    parts = _intersected(list(flat))
    if parts is None:
        return 0
    kept = set(parts)
    parts = [p for p in parts if not (p.op == "or" and any(x in kept for x in p.args))]
    if any(_inverse(p) in kept for p in parts if p.op not in ("and", "or")):
        return 0
    if not parts:
        return 1
    if len(parts) == 1:
        return parts[0]
    return intern("and", tuple(sorted(parts, key=order_of)), 0, 1)


@lru_cache(maxsize=1 << 14)
def disj(args: tuple[sint, ...]) -> sint:
    """``1`` where some argument is 1.

    Raises:
      ValueError: if an argument can be anything but 0 and 1.
    """
    _checked("or", args)
    flat: dict[Expr, None] = {}
    for a in args:
        if isinstance(a, int):
            if a == 1:
                return 1
        elif a.op == "or":
            flat.update(dict.fromkeys(x for x in a.args if isinstance(x, Expr)))
        else:
            flat[a] = None
    # The union of intervals is the complement of the intersection of their complements.
    simple = [p for p in flat if p.op in ("lt", "eq", "ne")]
    others = [p for p in flat if p.op not in ("lt", "eq", "ne")]
    outside = _intersected([_inverse(p) for p in simple])
    if outside is None:
        return 1
    parts = [_inverse(p) for p in outside] + others
    kept = set(parts)
    parts = [p for p in parts if not (p.op == "and" and any(x in kept for x in p.args))]
    if any(_inverse(p) in kept for p in parts if p.op not in ("and", "or")):
        return 1
    if not parts:
        return 0
    if len(parts) == 1:
        return parts[0]
    return intern("or", tuple(sorted(parts, key=order_of)), 0, 1)


@lru_cache(maxsize=1 << 14)
def invert(a: sint) -> sint:
    """``1 - a`` for a boolean.

    Raises:
      ValueError: if ``a`` can be anything but 0 and 1.
    """
    _checked("not", (a,))
    if isinstance(a, int):
        return 1 - a
    if a.op == "and":
        return disj(tuple(invert(x) for x in a.args))
    if a.op == "or":
        return conj(tuple(invert(x) for x in a.args))
    return _inverse(a)


def _inverse(a: Expr) -> Expr:
    """The complement of a boolean that is neither ``and`` nor ``or``."""
    if a.op == "eq":
        out: sint = intern("ne", a.args, 0, 1)
    elif a.op == "ne":
        out = intern("eq", a.args, 0, 1)
    elif a.op == "lt":
        e, c = a.args
        out = (-e).lt(1 - c) if isinstance(e, Expr) and isinstance(-e, Expr) else 0  # type: ignore[union-attr]
    else:
        out = intern("lt", (a, 1), 0, 1)
    assert isinstance(out, Expr)
    return out


def _range_of(p: Expr) -> tuple[Expr, int | None, int | None] | None:
    """A comparison with a constant as ``(e, lowest, highest)``, where ``e`` and ``-e`` share one form."""
    if p.op not in ("lt", "eq"):
        return None
    e, c = p.args
    assert isinstance(e, Expr) and isinstance(c, int)
    if p.op == "eq":
        return e, c, c
    if terms_of(e)[0][0][1] > 0:
        return e, None, c - 1
    minus = -e
    assert isinstance(minus, Expr)
    return minus, 1 - c, None


def _intersected(parts: list[Expr]) -> list[Expr] | None:
    """The same conjunction with one interval an expression; None if it is never true."""
    low: dict[Expr, int] = {}
    high: dict[Expr, int] = {}
    groups: dict[Expr, list[Expr]] = {}
    out: list[Expr] = []
    holes: list[Expr] = []
    for p in parts:
        found = _range_of(p)
        if found is None:
            (holes if p.op == "ne" else out).append(p)
            continue
        e, lo, hi = found
        groups.setdefault(e, []).append(p)
        if lo is not None:
            low[e] = max(low.get(e, lo), lo)
        if hi is not None:
            high[e] = min(high.get(e, hi), hi)
    for e, members in groups.items():
        if len(members) == 1 and not holes:
            out.append(members[0])
            continue
        lo, hi = low.get(e), high.get(e)
        inner_lo, inner_hi = e.vmin if lo is None else lo, e.vmax if hi is None else hi
        for p in [p for p in holes if p.args[0] is e]:  # an interval's end may be a hole
            c = p.args[1]
            assert isinstance(c, int)
            if not inner_lo <= c <= inner_hi:
                holes.remove(p)
        if inner_lo > inner_hi:
            return None
        if inner_lo == inner_hi:
            if intern("ne", (e, inner_lo), 0, 1) in holes:
                return None
            same = e.eq(inner_lo)
            if same == 0:
                return None
            assert isinstance(same, Expr)
            out.append(same)
            continue
        for bound in ((-e).lt(1 - lo) if lo is not None else 1, e.lt(hi + 1) if hi is not None else 1):  # type: ignore[union-attr]
            if isinstance(bound, Expr):
                out.append(bound)
            elif bound == 0:
                return None
    return out + holes
