"""Maximum and minimum: flatten, and drop an argument if its difference to another has a known sign."""

from __future__ import annotations

from functools import lru_cache

from ..bounds import bounds_of, is_nonnegative
from ..expr import Expr, intern, order_of, sint


@lru_cache(maxsize=1 << 12)
def maximum(args: tuple[sint, ...]) -> sint:
    """The largest of the arguments.

    Raises:
      ValueError: if there is none.
    """
    return _extreme("max", args)


@lru_cache(maxsize=1 << 12)
def minimum(args: tuple[sint, ...]) -> sint:
    """The smallest of the arguments.

    Raises:
      ValueError: if there is none.
    """
    return _extreme("min", args)


def _extreme(op: str, args: tuple[sint, ...]) -> sint:
    if not args:
        raise ValueError(f"{op}: at least one argument is needed")
    pending = list(args)
    kept: list[sint] = []
    while pending:
        a = pending.pop()
        if isinstance(a, Expr) and a.op == op:
            pending.extend(a.args)
        elif not any(_covers(op, k, a) for k in kept):
            kept = [k for k in kept if not _covers(op, a, k)]
            kept.append(a)
    if len(kept) == 1:
        return kept[0]
    ends = [bounds_of(k) for k in kept]
    pick = max if op == "max" else min
    kept.sort(key=lambda k: (isinstance(k, int), order_of(k)))
    return intern(op, tuple(kept), pick(lo for lo, _ in ends), pick(hi for _, hi in ends))


def _covers(op: str, a: sint, b: sint) -> bool:
    """Whether ``b`` never matters beside ``a``."""
    return is_nonnegative(a - b if op == "max" else b - a)
