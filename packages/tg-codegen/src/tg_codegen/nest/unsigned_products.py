"""Products of signed bytes, for an instruction whose first operand has no sign.

``sum(a * b)`` is ``sum((a + 128) * b) - sum(128 * b)``, and ``a + 128`` is ``a`` as an unsigned byte with its top bit
flipped. The second sum knows nothing of the rows: where their loop is inside of those of the columns, it is computed
once for all of them; so it is where all rows are one tile. Where a loop of columns is inside of the rows', the sums of
all its columns are kept in scratch. Signs are flipped while the rows of a tile are copied. All integers are modulo
2**32, so that nothing overflows that would not come back.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import coefficient, upper

from ..ir.matrix import WITHOUT_SIGN
from ..machine.target import Target
from .matrix_products import instruction_for
from .nest import Kind, Nest, Node, NodeOp, NodeTable, Stage

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
    inside = bool(rows) and max(columns, default=-1) > max(rows)
    around = next((serial[number].name for number in reversed(columns) if rows and number < max(rows)), None)
    if inside and not fits(nest, b, around, target):
        return nest
    if not rows and registers(nest, b) > target.registers:  # then both sums are made in one loop
        return nest
    difference, unsigned, sums = without_sign(nest, node, a, b)
    new = replaced(nest, node, difference)
    if inside:
        new = replace(new, stages=(*new.stages, Stage(sums, around)))
    tile = next((axis.name for axis in reversed(serial) if axis.root in a.free), None)
    if not copied(nest, a, tile, target):
        return new
    further = next_tile(nest, a, tile, target)
    ahead = () if further == 0 or any(load is a for load, _ in new.ahead) else ((a, further),)
    return replace(new, stages=(*new.stages, Stage(unsigned, tile)), ahead=(*new.ahead, *ahead))


def next_tile(nest: Nest, a: Node, tile: str | None, target: Target) -> int:
    """Elements from a tile of rows to the next, which is fetched ahead while a tile is copied; 0 where all are near."""
    nbytes = prod(upper(nest.roots[root].extent) for root in a.free) * a.dtype.itemsize
    if tile is None or nbytes <= target.resident_bytes or not target.cpu.tile_ahead_bytes:
        return 0
    axis = nest.axis(tile)
    return max(0, (coefficient(a.arg[1], axis.root) or 0) * axis.stride)


def registers(nest: Nest, b: Node) -> int:
    """Registers that a tile takes with the sums for its columns, the vectors of ``b``, a scalar and a constant."""
    tile = [axis for axis in nest.axes if axis.kind is Kind.UPCAST]
    vectors = prod(upper(axis.extent) for axis in tile if axis.root in b.free)
    return prod(upper(axis.extent) for axis in tile) + 2 * vectors + 2


def fits(nest: Nest, b: Node, around: str | None, target: Target) -> bool:
    """Whether scratch holds the sums of all columns of ``b`` inside the loop ``around``."""
    names = [axis.name for axis in nest.axes]
    inner = nest.axes[0 if around is None else names.index(around) + 1 :]
    extents = [axis.extent for axis in inner if axis.root in b.free and not nest.roots[axis.root].reduce]
    sizes = [extent for extent in extents if isinstance(extent, int)]
    return len(sizes) == len(extents) and prod(sizes) * dtypes.int32.itemsize <= target.scratch_bytes


def copied(nest: Nest, a: Node, tile: str | None, target: Target) -> bool:
    """Whether the rows of a tile are copied inside the loop ``tile``, so that signs are flipped in whole vectors.

    In the loop of the products it would take an instruction for every few terms of a row.
    """
    if a.op is not NodeOp.LOAD or any(stage.node is a for stage in nest.stages):
        return False
    if not any(nest.roots[root].reduce and coefficient(a.arg[1], root) == 1 for root in a.free):
        return False
    names = [axis.name for axis in nest.axes]
    inner = nest.axes[0 if tile is None else names.index(tile) + 1 :]
    extents = [axis.extent for axis in inner if axis.root in a.free]
    sizes = [extent for extent in extents if isinstance(extent, int)]
    return len(sizes) == len(extents) and prod(sizes) <= min(target.resident_bytes, target.scratch_bytes)


def without_sign(nest: Nest, node: Node, a: Node, b: Node) -> tuple[Node, Node, Node]:
    """A sum of products of signed bytes as the difference of two sums, both of unsigned ones times ``b``.

    Returns:
      The difference, ``a`` without a sign, and the second sum, negated.
    """
    table = NodeTable()
    table.roots = nest.roots
    flipped = table.make(Ops.XOR, a.dtype, (a, table.make(NodeOp.CONST, a.dtype, (), -TOP_BIT)))
    first = table.make(Ops.BITCAST, dtypes.uint8, (flipped,))
    every = table.make(NodeOp.CONST, dtypes.uint8, (), TOP_BIT)
    second = table.make(Ops.CAST, node.dtype, (b,))
    products, sums = (
        table.make(NodeOp.REDUCE, node.dtype, (table.make(Ops.MUL, node.dtype, (wide, second)),), node.arg)
        for wide in (table.make(Ops.CAST, node.dtype, (x,)) for x in (first, every))
    )
    negated = table.make(Ops.NEG, node.dtype, (sums,))
    return table.make(Ops.ADD, node.dtype, (products, negated)), first, negated


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
