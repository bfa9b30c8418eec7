"""Products of signed bytes, for an instruction whose first operand has no sign.

``sum(a * b)`` is ``sum((a + 128) * b) - sum(128 * b)``, and ``a + 128`` is ``a`` as an unsigned byte with its top bit
flipped. The second sum knows nothing of the rows: where their loop is inside of those of the columns, it is computed
once for all of them. All integers are modulo 2**32, so that nothing overflows that would not come back.
"""

from __future__ import annotations

from dataclasses import replace

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import upper

from ..ir.matrix import WITHOUT_SIGN
from ..machine.target import Target
from .matrix_products import instruction_for
from .nest import Kind, Nest, Node, NodeOp, NodeTable

TOP_BIT = 128


def unsigned_products(nest: Nest, target: Target) -> Nest:
    """A planned nest, its product of signed bytes without one sign where that is computed once for many rows."""
    reductions = [n for n in nest.nodes() if n.op is NodeOp.REDUCE]
    kinds = {axis.kind: axis for axis in nest.axes}
    if len(reductions) != 1 or Kind.VECTOR not in kinds or Kind.CONTRACT not in kinds:
        return nest
    node = reductions[0]
    found = instruction_for(node, kinds[Kind.VECTOR].root, None, target.matrices)
    if found is None or found[0] not in WITHOUT_SIGN or any(stage.node is node for stage in nest.stages):
        return nest
    _, a, b = found
    serial = [axis for axis in nest.axes if axis.kind in (Kind.LOOP, Kind.THREAD) and upper(axis.extent) > 1]
    rows = [number for number, axis in enumerate(serial) if axis.root in node.free - b.free]
    columns = [number for number, axis in enumerate(serial) if axis.root in b.free]
    if not rows or max(columns, default=-1) > min(rows):
        return nest
    return replaced(nest, node, without_sign(nest, node, a, b))


def without_sign(nest: Nest, node: Node, a: Node, b: Node) -> Node:
    """A sum of products of signed bytes as the difference of two sums, both of unsigned ones times ``b``."""
    table = NodeTable()
    table.roots = nest.roots
    flipped = table.make(Ops.XOR, a.dtype, (a, table.make(NodeOp.CONST, a.dtype, (), -TOP_BIT)))
    first = table.make(Ops.BITCAST, dtypes.uint8, (flipped,))
    every = table.make(NodeOp.CONST, dtypes.uint8, (), TOP_BIT)
    second = table.make(Ops.CAST, node.dtype, (b,))
    sums = (
        table.make(NodeOp.REDUCE, node.dtype, (table.make(Ops.MUL, node.dtype, (wide, second)),), node.arg)
        for wide in (table.make(Ops.CAST, node.dtype, (x,)) for x in (first, every))
    )
    return table.make(Ops.SUB, node.dtype, tuple(sums))


def replaced(nest: Nest, old: Node, new: Node) -> Nest:
    """A nest with another node in the place of one, and of what is made of it."""
    table = NodeTable()
    table.roots = nest.roots
    found: dict[Node, Node] = {}
    for node in nest.nodes():
        src = tuple(found[s] for s in node.src)
        kept = node if src == node.src else table.make(node.op, node.dtype, src, node.arg)
        found[node] = new if node is old else kept
    return replace(
        nest, stores=tuple(store.over(store.roots, found, lambda index: index) for store in nest.stores),
        stages=tuple(replace(stage, node=found[stage.node]) for stage in nest.stages),
        ahead=tuple((found[load], distance) for load, distance in nest.ahead),
    )  # fmt: skip
