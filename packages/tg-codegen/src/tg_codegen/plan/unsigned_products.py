"""Products of signed bytes, for an instruction whose first operand has no sign.

``sum(a * b)`` is ``sum((a + 128) * b) - sum(128 * b)``, and ``a + 128`` is ``a`` as an unsigned byte with its top bit
flipped. The second sum knows nothing of the rows: where their loop is inside of those of the columns, it is computed
once for all of them; so it is where all rows are one tile. Where a loop of columns is inside of the rows', the sums of
all its columns are kept in scratch. Signs are flipped while the rows of a tile are copied. All integers are modulo
2**32, so that nothing overflows that would not come back.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Set
from dataclasses import dataclass, replace
from math import prod

from tg_dtype import dtypes
from tg_lazy import Ops
from tg_shape import Variable, coefficient, upper

from ..ir.matrix import WITHOUT_SIGN, MatrixInstruction
from ..machine.target import Target
from ..nest.matrix_products import factors, instruction_for
from ..nest.nest import Axis, Nest, Node, NodeTable, Stage
from ..nest.scratch import stages_fit
from ..nest.spec import SERIAL_OUTPUT, Kind, NodeOp
from .actions import ActionError, Convert, LoopAction, Prefetch, loads_of, reductions_of

TOP_BIT = 128


@dataclass(frozen=True, slots=True)
class ProductOperands:
    """A sum of products, lanes being along one of its operands.

    Attributes:
      node: the sum.
      a: the operand of the rows: the lanes do not depend on it.
      b: the other one.
    """

    node: Node
    a: Node
    b: Node


@dataclass(frozen=True, slots=True)
class UnsignedProducts(LoopAction):
    """Makes a sum of products of signed bytes one of unsigned and signed ones, less a sum that all rows have in common.

    That sum is kept for all its columns where they are inside of a loop of rows.
    """

    def apply(self, nest: Nest) -> Nest:
        found = signed_product(nest)
        if found is None:
            raise ActionError(f"{self}: the kernel is no sum of products of signed bytes with lanes along one of them")
        if any(stage.node is found.node for stage in nest.stages):
            raise ActionError(f"{self}: what is kept of the sum would be of another one")
        inside, around = place(nest, found)
        if inside and columns_inside(nest, found.b, around) is None:
            raise ActionError(f"{self}: a symbolic number of columns is inside of the rows")
        difference, sums = without_sign(nest, found)
        new = with_node(nest, found.node, difference)
        return replace(new, stages=(*new.stages, Stage(sums, around))) if inside else new


def signed_product(nest: Nest) -> ProductOperands | None:
    """The product of signed bytes that a nest is, if it is one."""
    found = integers(nest)
    return None if found is None or any(x.dtype is not dtypes.int8 for x in (found.a, found.b)) else found


def integers(nest: Nest) -> ProductOperands | None:
    """The sum of products of narrower integers in 32 bits that a nest is, if it is one."""
    reductions, lanes = reductions_of(nest), [axis.root for axis in nest.axes if axis.kind is Kind.VECTOR]
    pair = factors(reductions[0]) if len(reductions) == 1 and lanes else None
    if pair is None or any(not dtypes.is_int(factor.dtype) or factor.dtype.itemsize > 2 for factor in pair):
        return None
    if reductions[0].dtype is not dtypes.int32 or (lanes[-1] in pair[0].free) is (lanes[-1] in pair[1].free):
        return None
    a, b = pair if lanes[-1] in pair[1].free else reversed(pair)
    return ProductOperands(reductions[0], a, b)


def serial(nest: Nest) -> list[Axis]:
    """The loops around the outputs that run more than once."""
    return [axis for axis in nest.axes if axis.kind in SERIAL_OUTPUT and upper(axis.extent) > 1]


def rows_of(nest: Nest, found: ProductOperands) -> list[int]:
    """The positions of the serial loops on which the sum depends and its second operand does not."""
    return [number for number, axis in enumerate(serial(nest)) if axis.root in found.node.free - found.b.free]


def place(nest: Nest, found: ProductOperands) -> tuple[bool, str | None]:
    """Whether columns are inside of a loop of rows, and the loop of columns around the rows, if there is one."""
    loops, rows = serial(nest), rows_of(nest, found)
    columns = [number for number, axis in enumerate(loops) if axis.root in found.b.free]
    around = next((loops[number].name for number in reversed(columns) if rows and number < max(rows)), None)
    return bool(rows) and max(columns, default=-1) > max(rows), around


def proposed(nest: Nest, target: Target) -> Iterator[LoopAction]:
    """The action for an instruction whose first operand has no sign, and a copy of the rows to flip their signs.

    It gains where the other sum is computed once for many rows, and registers or scratch hold it.
    """
    found = signed_product(nest)
    if found is None or not contracted_by(nest, found, WITHOUT_SIGN, target):
        return
    inside, around = place(nest, found)
    if inside:
        columns = columns_inside(nest, found.b, around)
        if columns is None or not stages_fit(UnsignedProducts().apply(nest), target):
            return
    if not rows_of(nest, found) and registers(nest, found.b) > target.registers:  # both sums are made in one loop
        return
    yield UnsignedProducts()
    tile = tile_of(nest, found.a)
    if pays_to_copy(nest, found.a, tile, found.a.dtype.itemsize, target):
        yield from copies(UnsignedProducts().apply(nest), found.a, tile, target)


def contracted_by(
    nest: Nest, found: ProductOperands, instructions: Container[MatrixInstruction], target: Target
) -> bool:
    """Whether one of some matrix instructions takes the terms of a sum of which nothing is kept."""
    lanes = [axis.root for axis in nest.axes if axis.kind is Kind.VECTOR]
    if all(axis.kind is not Kind.CONTRACT for axis in nest.axes) or any(s.node is found.node for s in nest.stages):
        return False
    instruction = instruction_for(found.node, lanes[-1], None, target.matrices)
    return instruction is not None and instruction[0] in instructions


def tile_of(nest: Nest, a: Node) -> str | None:
    """The innermost loop of the rows of ``a``."""
    return next((axis.name for axis in reversed(serial(nest)) if axis.root in a.free), None)


def copies(nest: Nest, a: Node, tile: str | None, target: Target) -> Iterator[LoopAction]:
    """Keeps what the rows ``a`` of a tile are converted to, if it fits, and fetches the next tile meanwhile."""
    if sum(a in node.src for node in nest.nodes()) > 1:  # the rows are read for something else, too
        return
    number = loads_of(nest).index(a)
    if not stages_fit(Convert(number, tile).apply(nest), target):
        return
    yield Convert(number, tile)
    further = tile_distance(nest, a, tile, target)
    if further and all(load is not a for load, _ in nest.ahead):
        yield Prefetch(number, further)


def tile_distance(nest: Nest, a: Node, tile: str | None, target: Target) -> int:
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


def size_inside(nest: Nest, roots: Set[Variable], loop: str | None) -> int | None:
    """The product of the extents of loops over ``roots`` inside of ``loop``; None if that is symbolic."""
    names = [axis.name for axis in nest.axes]
    inner = nest.axes[0 if loop is None else names.index(loop) + 1 :]
    extents = [axis.extent for axis in inner if axis.root in roots]
    sizes = [extent for extent in extents if isinstance(extent, int)]
    return prod(sizes) if len(sizes) == len(extents) else None


def columns_inside(nest: Nest, b: Node, around: str | None) -> int | None:
    """How many sums the columns of ``b`` have inside of the loop ``around``; None if that is symbolic."""
    return size_inside(nest, {root for root in b.free if not nest.roots[root].reduce}, around)


def pays_to_copy(nest: Nest, a: Node, tile: str | None, itemsize: int, target: Target) -> bool:
    """Whether the rows of a tile are copied inside the loop ``tile``, so that they are converted in whole vectors.

    In the loop of the products it would take an instruction or two for every few terms of a row.

    Args:
      nest: its loops are planned.
      a: the operand of the rows.
      tile: the loop.
      itemsize: bytes of an element of the copy.
      target: the machine.
    """
    if a.op is not NodeOp.LOAD or any(stage.node is a for stage in nest.stages):
        return False
    if not any(nest.roots[root].reduce and coefficient(a.arg[1], root) == 1 for root in a.free):
        return False
    size = size_inside(nest, a.free, tile)
    return size is not None and size * itemsize <= target.resident_bytes


def without_sign(nest: Nest, found: ProductOperands) -> tuple[Node, Node]:
    """A sum of products of signed bytes as the difference of two sums, both of unsigned ones times ``b``.

    Returns:
      The difference, and the second sum, negated.
    """
    node, a, b = found.node, found.a, found.b
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
    return table.make(Ops.ADD, node.dtype, (products, negated)), negated


def with_node(nest: Nest, old: Node, new: Node) -> Nest:
    """A nest in which a node, wherever it is used, is another one."""
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
