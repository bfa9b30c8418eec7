"""The simplification rules, one family of operators a module. Importing this package fills `tg_shape.expr.ENGINE`.

A rule is sound for all integers that satisfy the bounds, division flooring as Python's. ``tests/test_rules_z3.py``
proves the division, modulo and comparison rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..expr import ENGINE, Variable, sint
from . import boolean, compare, division, extrema, product, sums

__all__ = ["boolean", "compare", "division", "extrema", "product", "sums"]


def _bind(args: Sequence[sint]) -> sint:
    var, value = args
    assert isinstance(var, Variable) and isinstance(value, int)
    return var.bind(value)


ENGINE.add = sums.add
ENGINE.mul = product.mul
ENGINE.floordiv = division.floordiv
ENGINE.mod = division.mod
ENGINE.lt = compare.lt
ENGINE.eq = compare.eq
ENGINE.ne = compare.ne
ENGINE.conj = boolean.conj
ENGINE.disj = boolean.disj
ENGINE.invert = boolean.invert
ENGINE.maximum = extrema.maximum
ENGINE.minimum = extrema.minimum
ENGINE.rebuild.update(
    {
        "add": sums.add_all,
        "mul": product.mul_all,
        "floordiv": lambda a: division.floordiv(a[0], a[1]),
        "mod": lambda a: division.mod(a[0], a[1]),
        "lt": lambda a: compare.lt(a[0], a[1]),
        "eq": lambda a: compare.eq(a[0], a[1]),
        "ne": lambda a: compare.ne(a[0], a[1]),
        "and": lambda a: boolean.conj(tuple(a)),
        "or": lambda a: boolean.disj(tuple(a)),
        "max": lambda a: extrema.maximum(tuple(a)),
        "min": lambda a: extrema.minimum(tuple(a)),
        "bind": _bind,
    }
)
