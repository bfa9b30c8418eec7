"""Which parts a kernel is stated with, and which rows of its internal buffers a block has.

Where a kernel has internal buffers, its stores are parts that run one after the other for each block of rows: the outer
dimensions, which all accesses of the internal buffers share, are loops around all parts. Each part is a nest of its
own, planned as any other, in which a row's number within the block is one more dimension. An internal buffer becomes
scratch of one block, with the rows of a block next to each other, so that every part can have its lanes there.
Attention is such a kernel: scores, softmax and weighted sum of one block of queries.

Where the block's size does not divide the rows, those that are left over are a smaller block: nests of their own, which
run once, after the loop over the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from tg_shape import Expr, Variable, coefficient, sint, substitute, upper

from ..ir.errors import EmitError
from .kernel import Kernel
from .nest import Axis, Nest, Node, NodeTable, Root, Store, with_expressions
from .spec import Kind, NodeOp
from .texels import with_texels

BLOCK_ROWS = 64
"""Rows of a block, at the most: several register tiles, each of which reads what the rows have in common once.

More rows take more scratch, and read no less: this is how the algorithm is arranged, on any machine.
"""


def stated(nest: Nest) -> Kernel:
    """The kernel that a nest states: as it is, or where it has internal buffers, in parts for each single row.

    Raises:
      EmitError: if the accesses of an internal buffer share no outer dimension of known extent; or an image is written
        otherwise than by whole texels.
    """
    if internal_slots(nest):
        return in_blocks(nest, 1)
    return Kernel(nest, (with_texels(nest),))


def internal_slots(nest: Nest) -> list[int]:
    """The slots that are no arguments."""
    return [slot for slot, buffer in enumerate(nest.buffers) if buffer.internal]


def indices_of(nest: Nest, slot: int) -> list[sint]:
    """The index expressions with which a slot is read and written."""
    written = [s.index for s in nest.stores if s.slot == slot]
    return written + [n.arg[1] for n in nest.nodes() if n.op is NodeOp.LOAD and n.arg[0] == slot]


def shared_roots(nest: Nest) -> list[Variable]:
    """The output dimensions that every access of every internal buffer walks alike, outermost first.

    Raises:
      EmitError: if there is none of known extent.
    """
    slots = internal_slots(nest)
    found: list[tuple[int, Variable]] = []
    for root in nest.roots.values():
        steps = [{coefficient(index, root.var) for index in indices_of(nest, slot)} for slot in slots]
        if root.reduce or any(len(s) != 1 or not next(iter(s)) for s in steps):
            continue
        found.append((next(iter(steps[0])) or 0, root.var))
    shared = [root for _, root in sorted(found, key=lambda pair: -pair[0])]
    while shared and not all(keeps_to_rows(nest, slot, shared) for slot in slots):
        shared.pop()  # within what the accesses do not share
    if not shared or not all(isinstance(nest.roots[root].extent, int) for root in shared):
        raise EmitError("the accesses of the kernel's internal buffers share no outer dimension of known extent")
    return shared


def row_width(nest: Nest, slot: int, shared: Sequence[Variable]) -> int:
    """The number of elements that an internal slot has for one iteration of the shared dimensions."""
    return max(upper(at_row(index, shared)) for index in indices_of(nest, slot)) + 1


def keeps_to_rows(nest: Nest, slot: int, shared: Sequence[Variable]) -> bool:
    """Whether the elements of each iteration of the shared dimensions lie together, before those of the next one."""
    return row_width(nest, slot, shared) <= (coefficient(indices_of(nest, slot)[0], shared[-1]) or 0)


def at_row(index: sint, shared: Sequence[Variable]) -> sint:
    """An index of an internal buffer within its row."""
    return substitute(index, dict.fromkeys(shared, 0))


def in_blocks(nest: Nest, block: int) -> Kernel:
    """A kernel with internal buffers in parts, for ``block`` rows at a time.

    Raises:
      EmitError: if the accesses of an internal buffer share no outer dimension of known extent.
    """
    shared = shared_roots(nest)
    *extents, rows = (upper(nest.roots[root].extent) for root in shared)
    full, left = divmod(rows, block)
    number = Variable(f"{shared[-1].name}.block", 0, full - 1)
    outer = [*zip(shared[:-1], extents, strict=True), (number, full)]
    loops = tuple(Axis(root.name, root, 1, extent, Kind.LOOP) for root, extent in outer)
    parts = tuple(part_of(nest, store, shared, number * block, block) for store in nest.stores)
    last = tuple(part_of(nest, store, shared, full * block, left) for store in nest.stores) if left else ()
    scratch = {slot: row_width(nest, slot, shared) * block for slot in internal_slots(nest)}
    return Kernel(nest, parts, loops, block, last, scratch)


def part_of(nest: Nest, store: Store, shared: Sequence[Variable], first: sint, block: int) -> Nest:
    """The nest of one store in a block of rows: outer dimensions are given, the row within the block is a root.

    Args:
      nest: the kernel.
      store: which of its stores.
      shared: the outer dimensions, of which the last one counts rows.
      first: the block's first row.
      block: how many rows it has.
    """
    row = shared[-1]
    within = Variable(f"{row.name}.row", 0, block - 1)
    table = NodeTable()
    mine = store.value.toposort()
    used = {v for n in mine for v in n.free} | set(store.roots)
    used |= {v for n in mine if n.op is NodeOp.REDUCE for v in n.arg[1]}
    kept = {var: root for var, root in nest.roots.items() if var in used and var not in shared}
    single = block == 1
    table.roots = kept if single else {within: Root(within, block, False), **kept}
    swap: dict[Expr, sint] = {row: first if single else first + within}
    internal = set(internal_slots(nest))

    def at(expr: sint) -> sint:
        return substitute(expr, swap)

    def place(slot: int, index: sint) -> sint:
        if slot in internal:
            return at_row(index, shared) if single else at_row(index, shared) * block + within
        return at(index)

    new: dict[Node, Node] = {}
    for node in mine:
        arg = node.arg
        if node.op is NodeOp.LOAD:
            arg = (arg[0], place(arg[0], arg[1]), at(arg[2]))
        else:
            arg = with_expressions(node.op, arg, at)
        new[node] = table.make(node.op, node.dtype, tuple(new[s] for s in node.src), arg)
    roots = tuple(v for v in store.roots if v not in shared)
    roots = roots if single else (within, *roots)
    moved = Store(store.slot, place(store.slot, store.index), at(store.valid), new[store.value], roots)
    axes = [Axis(r.var.name, r.var, 1, r.extent, Kind.REDUCE if r.reduce else Kind.LOOP) for r in table.roots.values()]
    return Nest((moved,), nest.buffers, table.roots, tuple(axes))
