"""Kernels in blocks of rows: stores that hand intermediates to one another without memory holding more than a block.

Where a kernel has internal buffers (see :mod:`tg_lazy.ast`), its stores are *parts* that run one after the other for
each block of rows: the outer dimensions, which all accesses of the internal buffers share, are loops around all parts.
Each part is a nest of its own, planned as any other kernel, in which a row's number within the block is one more
dimension. An internal buffer becomes scratch of one block, with the rows of a block next to each other, so that every
part can have its lanes there. Attention is such a kernel: scores, softmax and weighted sum of one block of queries.

Where no block of a good size divides the rows, those that are left over are a smaller block: nests of their own, which
run once, after the loop over the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tg_shape import Expr, Variable, coefficient, sint

from ..ir.errors import EmitError
from ..machine.target import Target
from ..nest.nest import Axis, Kind, Nest, Node, NodeOp, NodeTable, Root, Store
from ..nest.row_nest import RowNest
from .actions import Prefetch, loads_of
from .ahead import fetched_ahead
from .planner import power_below

BLOCK_ROWS = 64
LANES = 8
"""Rows that fill a vector, of 32 bytes if they are float32; wider ones are filled by more of them."""


def internal_slots(nest: Nest) -> list[int]:
    """The slots that are no arguments."""
    return [slot for slot, buffer in enumerate(nest.buffers) if buffer.internal]


def accesses(nest: Nest, slot: int) -> list[sint]:
    """The index expressions with which a slot is read and written."""
    written = [s.index for s in nest.stores if s.slot == slot]
    return written + [n.arg[1] for n in nest.nodes() if n.op is NodeOp.LOAD and n.arg[0] == slot]


def by(index: sint, root: Variable) -> int | None:
    """By how much an index grows with ``root``."""
    return 0 if isinstance(index, int) else coefficient(index, root)


def shared_roots(nest: Nest) -> list[Variable]:
    """The output dimensions that every access of every internal buffer walks alike, outermost first."""
    slots = internal_slots(nest)
    found: list[tuple[int, Variable]] = []
    for root in nest.roots.values():
        steps = [{by(index, root.var) for index in accesses(nest, slot)} for slot in slots]
        if root.reduce or any(len(s) != 1 or not next(iter(s)) for s in steps):
            continue
        found.append((next(iter(steps[0])) or 0, root.var))
    shared = [root for _, root in sorted(found, key=lambda pair: -pair[0])]
    while shared and not all(keeps_to_rows(nest, slot, shared) for slot in slots):
        shared.pop()  # within what the accesses do not share
    return shared


def row_width(nest: Nest, slot: int, shared: Sequence[Variable]) -> int:
    """The number of elements that an internal slot has for one iteration of the shared dimensions."""
    return max(highest(at_row(index, shared)) for index in accesses(nest, slot)) + 1


def keeps_to_rows(nest: Nest, slot: int, shared: Sequence[Variable]) -> bool:
    """Whether what belongs to one iteration of the shared dimensions lies together, before what the next one has."""
    return row_width(nest, slot, shared) <= (by(accesses(nest, slot)[0], shared[-1]) or 0)


def split_rows(nest: Nest, target: Target) -> RowNest:
    """Cuts a kernel with internal buffers into parts and rows into blocks.

    Raises:
      EmitError: the accesses of an internal buffer share no outer dimension of known extent.
    """
    shared = shared_roots(nest)
    extents = [nest.roots[root].extent for root in shared]
    if not shared or not all(isinstance(extent, int) for extent in extents):
        raise EmitError("the accesses of the kernel's internal buffers share no outer dimension of known extent")
    row, rows = shared[-1], nest.roots[shared[-1]].extent
    assert isinstance(rows, int)
    width = {slot: row_width(nest, slot, shared) for slot in internal_slots(nest)}
    nbytes = sum(size * nest.buffers[slot].dtype.itemsize for slot, size in width.items())
    most = max(1, target.l2_bytes * 3 // 4 // nbytes) if shares_operands(nest, shared, target) else 1
    if all(int(extent) < target.threads for extent in extents[:-1]):
        most = max(1, min(most, rows // target.threads))  # the blocks are what is divided among the threads
    block = block_size(rows, most)
    full, left = divmod(rows, block)
    number = Variable(f"{row.name}.block", 0, full - 1)
    outer = [*zip(shared[:-1], extents[:-1], strict=True), (number, full)]
    parts = tuple(part_of(nest, store, shared, number * block, block) for store in nest.stores)
    last = tuple(part_of(nest, store, shared, full * block, left) for store in nest.stores) if left else ()
    scratch = {slot: size * block for slot, size in width.items()}
    return RowNest(nest, tuple((root, int(extent)) for root, extent in outer), block, parts, scratch, last)


def shares_operands(nest: Nest, shared: Sequence[Variable], target: Target) -> bool:
    """Whether rows read something in common that a block of them reads once.

    That is a matrix, of which a register tile serves several rows, or what does not stay in the fastest cache. Rows
    that do not lie apart from one another are in a block, too, so that they can be lanes.
    """
    row = shared[-1]
    if any(by(s.index, row) == 1 for s in nest.stores if not nest.buffers[s.slot].internal):
        return True
    for node in nest.nodes():
        if node.op is NodeOp.LOAD and row not in node.free and node.free:
            if len(node.free.difference(shared)) > 1:
                return True
            nbytes = node.dtype.itemsize
            for root in node.free:
                nbytes *= highest(nest.roots[root].extent)
            if nbytes > target.l1_bytes // 2:
                return True
    return False


def highest(index: sint) -> int:
    """The greatest value of an index."""
    return index if isinstance(index, int) else index.vmax


def at_row(index: sint, shared: Sequence[Variable]) -> sint:
    """An index of an internal buffer within its row."""
    return index if isinstance(index, int) else index.substitute(dict.fromkeys(shared, 0))


def block_size(rows: int, most: int) -> int:
    """Rows of a block, at most ``most``: all of them, or as many as fill vectors.

    That is a divisor of ``rows`` where one is more than half of what may be, a power of two rather than not. Where
    there is none, it is the greatest power of two, and some rows are left over.
    """
    most = min(most, BLOCK_ROWS)
    if rows <= most:
        return rows
    fitting = [n for n in range(most // 2 + 1, most + 1) if rows % n == 0 and (n % LANES == 0 or n & (n - 1) == 0)]
    powers = [n for n in fitting if n & (n - 1) == 0]
    return max(powers or fitting, default=power_below(most))


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
        return expr if isinstance(expr, int) else expr.substitute(swap)

    def place(slot: int, index: sint) -> sint:
        if slot in internal:
            return at_row(index, shared) if single else at_row(index, shared) * block + within
        return at(index)

    new: dict[Node, Node] = {}
    for node in mine:
        arg = node.arg
        if node.op is NodeOp.LOAD:
            arg = (arg[0], place(arg[0], arg[1]), at(arg[2]))
        elif node.op in (NodeOp.INDEX, NodeOp.SELECT):
            arg = at(arg)
        new[node] = table.make(node.op, node.dtype, tuple(new[s] for s in node.src), arg)
    roots = tuple(v for v in store.roots if v not in shared)
    roots = roots if single else (within, *roots)
    moved = Store(store.slot, place(store.slot, store.index), at(store.valid), new[store.value], roots)
    axes = [Axis(r.var.name, r.var, 1, r.extent, Kind.REDUCE if r.reduce else Kind.LOOP) for r in table.roots.values()]
    return Nest((moved,), nest.buffers, table.roots, tuple(axes))


def with_parts(nest: RowNest, parts: Sequence[Nest], last: Sequence[Nest] = ()) -> RowNest:
    """The kernel with other loops in its parts. What one part reads, no other may write past the caches."""
    read = {n.arg[0] for part in parts for n in part.nodes() if n.op in (NodeOp.LOAD, NodeOp.GATHER)}
    cached, left = (tuple(replace(p, streams=p.streams - read) for p in some) for some in (parts, last))
    return replace(nest, parts=cached, last=left)


def fetching_ahead(nest: RowNest, target: Target) -> RowNest:
    """The kernel with what the next block of rows reads fetched while this one's are walked again."""
    parts = list(nest.parts)
    row, blocks = nest.shared[-1]
    for number, load, distance in fetched_ahead(parts, row, blocks, 1, target):
        action = Prefetch(loads_of(parts[number]).index(load), distance)
        parts[number] = action.apply(parts[number])
    return replace(nest, parts=tuple(parts))
