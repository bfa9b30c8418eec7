"""Products of bytes, for an instruction that multiplies wider integers.

Bytes are widened beside each product, unless something does it before. Those of the second operand are, a vector once
for all rows of a tile; those of the first take two instructions for each pair that all lanes share. So the rows of a
tile are widened while they are copied, in whole vectors, once for all columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tg_dtype import dtypes
from tg_lazy import Ops

from ..ir.matrix import WIDER_ROWS
from ..machine.target import Target
from ..nest.nest import Nest, NodeTable
from ..nest.spec import NodeOp
from .actions import ActionError, LoopAction
from .unsigned_products import ProductOperands, contracted_by, copies, integers, pays_to_copy, tile_of, with_node


@dataclass(frozen=True, slots=True)
class WidenRows(LoopAction):
    """Makes the bytes of the rows, in a sum of products with lanes along the columns, integers of 16 bits first."""

    def apply(self, nest: Nest) -> Nest:
        found = byte_rows(nest)
        if found is None:
            raise ActionError(f"{self}: the kernel is no sum of products of bytes with lanes along the other operand")
        node = found.node
        if any(stage.node is node for stage in nest.stages):
            raise ActionError(f"{self}: what is kept of the sum would be of another one")
        table = NodeTable()
        table.roots = nest.roots
        wide = table.make(Ops.CAST, dtypes.int16, (found.a,))
        product = table.make(Ops.MUL, node.dtype, tuple(
            table.make(Ops.CAST, node.dtype, (x,)) for x in (wide, found.b)))
        return with_node(nest, node, table.make(NodeOp.REDUCE, node.dtype, (product,), node.arg))


def byte_rows(nest: Nest) -> ProductOperands | None:
    """The product whose rows are bytes that a nest is, if it is one."""
    found = integers(nest)
    return found if found is not None and found.a.dtype.itemsize == 1 else None


def proposed(nest: Nest, target: Target) -> Iterator[LoopAction]:
    """The action for an instruction that takes its first operand widened, too, and a copy of the rows to widen them."""
    found = byte_rows(nest)
    if found is None or not contracted_by(nest, found, WIDER_ROWS, target):
        return
    tile = tile_of(nest, found.a)
    if pays_to_copy(nest, found.a, tile, dtypes.int16.itemsize, target):
        yield WidenRows()
        yield from copies(WidenRows().apply(nest), found.a, tile, target)
