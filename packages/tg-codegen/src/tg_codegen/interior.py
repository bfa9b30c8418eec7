"""Interiors: the part of a dimension in which every mask of a kernel is known to hold.

A padded operand is masked at the rim of its iteration space and nowhere else. A loop over a padded dimension is
emitted in parts, before, inside and after the interior; inside, bounds prove the masks away.
"""

from __future__ import annotations

from collections.abc import Iterator

from tg_shape import Expr, Variable, coefficient, sint

from .nest import Nest, NodeOp
from .trim import conditions, trimming

LEAST = 12
"""Interiors of fewer iterations are not worth a loop of their own."""


def masks(nest: Nest) -> Iterator[Expr]:
    """The single conditions of all masks, but for those that trim loops: what the masks are the conjunction of."""
    found: dict[Expr, None] = {}
    for node in nest.nodes():
        if node.op is NodeOp.LOAD or node.op is NodeOp.SELECT:
            found |= dict.fromkeys(conditions(node.arg[2] if node.op is NodeOp.LOAD else node.arg))
    for store in nest.stores:
        found |= dict.fromkeys(conditions(store.valid))
    gone = trimming(nest)
    yield from (condition for condition in found if condition not in gone)


def highest(expr: sint) -> int:
    """The greatest value of an expression."""
    return expr if isinstance(expr, int) else expr.vmax


def interior(nest: Nest, root: Variable) -> tuple[int, int] | None:
    """The values ``first <= root < end`` for which masks that bound ``root`` hold whatever the other roots are.

    None where there are no such masks, or where the interior is too small to matter.
    """
    extent = nest.roots[root].extent
    if not isinstance(extent, int):
        return None
    first, end = 0, extent
    for mask in masks(nest):
        if mask.op != "lt" or not isinstance(mask.args[0], Expr) or not isinstance(mask.args[1], int):
            continue
        by = coefficient(mask.args[0], root)
        if not by:
            continue
        room = mask.args[1] - 1 - highest(mask.args[0] - root * by)
        if by > 0:
            end = min(end, room // by + 1)  # by * root <= room
        else:
            first = max(first, -(room // -by))  # -by * root >= -room
    if (first, end) == (0, extent) or end - first < max(LEAST, extent // 2):
        return None
    return first, end
