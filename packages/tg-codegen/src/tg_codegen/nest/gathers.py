"""Conditions of gathers: an index that is outside of its buffer under a condition becomes an index and that condition.

A gather reads 0 at an index outside of its buffer. Whoever wants 0 under a condition may state that by such an index:
``buffer[where(condition, i, -1)]``. That index does not step evenly over lanes, but ``i`` may, and then one masked load
reads all of them. So gathers of a nest have the conditions beside their index, as loads have.
"""

from __future__ import annotations

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import sint, upper

from .nest import Node, NodeTable
from .spec import NodeOp


def with_conditions(index: Node, size: sint, table: NodeTable) -> tuple[Node, ...]:
    """A gather's index without the choices that leave its buffer, and the conditions under which it is read.

    Args:
      index: the index, an integer.
      size: how many elements the buffer has.
      table: makes the nodes.
    """
    valid: list[Node] = []
    while index.op is Ops.WHERE:
        condition, chosen, other = index.src
        if outside(other, size):
            index = chosen
            valid.append(condition)
        elif outside(chosen, size):
            index = other
            valid.append(table.make(Ops.NOT, dtypes.bool, (condition,)))
        else:
            break
    return index, *valid


def outside(index: Node, size: sint) -> bool:
    """Whether an index is a number that is certainly in no buffer of ``size`` elements."""
    if index.op is not NodeOp.CONST or not dtypes.is_int(index.dtype):
        return False
    return not 0 <= index.arg < upper(size)
