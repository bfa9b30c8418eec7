"""Blocks of rows: how many rows a kernel with internal buffers does at a time.

A block of several rows reads what they have in common once, and its rows may be vector lanes; a block of one row needs
the least scratch. :mod:`tg_codegen.nest.parts` tells how the parts of a kernel come to have a block's rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tg_dtype import dtypes
from tg_shape import Variable, coefficient, upper

from ..machine.target import Target
from ..nest.kernel import Kernel
from ..nest.nest import Nest
from ..nest.parts import BLOCK_ROWS, in_blocks, internal_slots, row_width, shared_roots
from ..nest.spec import NodeOp
from .actions import ActionError, KernelAction
from .planner import power_below


@dataclass(frozen=True, slots=True)
class RowBlocks(KernelAction):
    """Does ``rows`` rows of the innermost shared loop at a time: one iteration of it is a block of them."""

    rows: int

    def on(self, kernel: Kernel) -> Kernel:
        if not kernel.scratch:
            raise ActionError(f"{self}: the kernel has no internal buffers, of which a block of rows would be kept")
        if not kernel.untouched:
            raise ActionError(f"{self}: comes before any change to the loops")
        most = row_count(kernel.whole)
        if not 1 <= self.rows <= most:
            raise ActionError(f"{self}: the kernel has {most} rows")
        return in_blocks(kernel.whole, self.rows)


def row_count(nest: Nest) -> int:
    """How many rows the innermost shared dimension of a kernel with internal buffers has."""
    return upper(nest.roots[shared_roots(nest)[-1]].extent)


def proposed(kernel: Kernel, target: Target) -> list[RowBlocks]:
    """The action for a kernel with internal buffers: as many rows as fit the second-level cache, if they share.

    More rows are done at a time where that saves more reading of what they share than it costs to keep them farther
    away.
    """
    if not kernel.scratch or not target.keeps_rows:
        return []
    nest = kernel.whole
    shared, rows = shared_roots(nest), row_count(nest)
    widths = [row_width(nest, slot, shared) * nest.buffers[slot].dtype.itemsize for slot in internal_slots(nest)]
    fit = limit = 1
    if shares_operands(nest, shared, target, sum(widths)):
        limit = max(1, target.scratch_bytes // max(widths))
        fit = max(1, min(target.block_bytes // sum(widths), limit))
    if all(upper(nest.roots[root].extent) < target.threads for root in shared[:-1]):
        fit = max(1, min(fit, rows // target.threads))  # the blocks are what is divided among the threads
        limit = min(limit, fit)
    lanes = max(1, target.vector_bytes // dtypes.float32.itemsize)
    blocks = [block_size(rows, most, lanes) for most in range(fit, max(fit, min(limit, BLOCK_ROWS)) + 1)]
    block = min(blocks, key=lambda block: far_bytes(nest, shared, block, target))
    return [RowBlocks(block)] if block != kernel.block else []


def far_bytes(nest: Nest, shared: Sequence[Variable], block: int, target: Target) -> float:
    """Bytes that a row reads and writes beyond the second-level cache, where ``block`` rows are done at a time.

    That is its part of what all rows of the block read, if the cache does not hold it until the next block; and of each
    walk over the scratch what the cache has no room for.
    """
    operands, walked = 0, 0
    internal, row = internal_slots(nest), shared[-1]
    scratch = block * sum(row_width(nest, slot, shared) * nest.buffers[slot].dtype.itemsize for slot in internal)
    for slot in internal:
        walks = sum(s.slot == slot for s in nest.stores)
        walks += sum(n.op is NodeOp.LOAD and n.arg[0] == slot for n in nest.nodes())
        walked += walks * row_width(nest, slot, shared) * nest.buffers[slot].dtype.itemsize
    for node in nest.nodes():
        if node.op is NodeOp.LOAD and row not in node.free:
            extents = (upper(nest.roots[root].extent) for root in node.free.difference(shared))
            operands += prod(extents) * node.dtype.itemsize
    far = operands / block if operands + scratch > target.l2_bytes else 0.0
    return far + walked * max(0.0, 1 - target.l2_bytes / scratch)


def shares_operands(nest: Nest, shared: Sequence[Variable], target: Target, row_bytes: int) -> bool:
    """Whether rows read something in common that a block of them reads once.

    That is a matrix, of which a register tile serves several rows, or what does not stay in the fastest cache. Beside
    what a row has of its own, a smaller table does not matter that each element of the row meets once. Rows that do not
    lie apart from one another are in a block, too, so that they can be lanes.

    Args:
      nest: a kernel with internal buffers.
      shared: its outer dimensions, of which the last one counts rows.
      target: the machine.
      row_bytes: of a row in all internal buffers.
    """
    row = shared[-1]
    if any(coefficient(s.index, row) == 1 for s in nest.stores if not nest.buffers[s.slot].internal):
        return True
    for node in nest.nodes():
        if node.op is NodeOp.LOAD and row not in node.free and node.free:
            own = node.free.difference(shared)
            reduced = any(nest.roots[root].reduce for root in own)
            if reduced and len(own) > 1:
                return True
            nbytes = node.dtype.itemsize * prod(upper(nest.roots[root].extent) for root in node.free)
            if nbytes > (target.l1_beside_bytes if reduced else max(target.l1_beside_bytes, row_bytes)):
                return True
    return False


def block_size(rows: int, most: int, lanes: int) -> int:
    """Rows of a block, at most ``most``: all of them, or as many as fill vectors of ``lanes``, the last half at least.

    That is a divisor of ``rows`` where one is more than half of what may be, a power of two rather than not. Where
    there is none, it is the greatest power of two, and some rows are left over.
    """
    most = min(most, BLOCK_ROWS)
    if rows <= most:
        return rows
    half = max(1, lanes // 2)
    fitting = [n for n in range(most // 2 + 1, most + 1) if rows % n == 0 and (n % half == 0 or n & (n - 1) == 0)]
    powers = [n for n in fitting if n & (n - 1) == 0]
    return max(powers or fitting, default=power_below(most))
