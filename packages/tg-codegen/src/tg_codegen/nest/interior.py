"""Interiors: the part of a dimension in which every mask of a kernel is known to hold.

A padded operand is masked at the rim of its iteration space and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

from tg_shape import Expr, Variable, coefficient, upper

from .nest import Nest
from .spec import UNROLLED, NodeOp
from .trim import conditions, needed, trimming

LEAST_INTERIOR = 12
"""Least values of a dimension in an interior that is worth a copy of the code: it grows on any machine."""


def masks(nest: Nest) -> Iterator[Expr]:
    """The single conditions of all masks, but for those that trim loops: what the masks are the conjunction of."""
    found: dict[Expr, None] = {}
    for node in nest.nodes():
        if node.op is NodeOp.LOAD or node.op is NodeOp.SELECT:
            found |= dict.fromkeys(conditions(node.arg[2] if node.op is NodeOp.LOAD else node.arg))
    for store in nest.stores:
        for _, valid in store.accesses():
            found |= dict.fromkeys(conditions(valid))
    gone = trimming(nest)
    yield from (condition for condition in found if condition not in gone)


def interior(nest: Nest, root: Variable) -> tuple[int, int] | None:
    """The values ``first <= root < end`` for which masks that bound ``root`` hold whatever the other roots are.

    None where there are no such masks. There may be no such values: ``end`` is then less than ``first``, or the same.
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
        room = mask.args[1] - 1 - upper(mask.args[0] - root * by)
        if by > 0:
            end = min(end, room // by + 1)  # by * root <= room
        else:
            first = max(first, -(room // -by))  # -by * root >= -room
    return None if (first, end) == (0, extent) else (first, end)


def settled(nest: Nest, root: Variable) -> bool:
    """Whether masks that bound ``root`` are known in every iteration of its outermost loop: all else is unrolled.

    Where they leave out terms of a sum, copies of the loop at the rim have less to do.
    """
    axes = nest.of_root(root)
    found = [mask for mask in masks(nest) if root in mask.variables()]
    inner = [a for mask in found for v in mask.variables() if v in nest.roots and v is not root
             for a in nest.of_root(v)]
    terms = {mask for n in nest.nodes() if n.op is NodeOp.REDUCE for mask in needed(n)}
    return (bool(found) and len(axes) > 1 and terms.issuperset(found)
            and all(a.kind in UNROLLED for a in [*axes[1:], *inner]))
