"""Tiles of products on a GPU: what a work-group computes, and what each of its work-items or warps does of it.

A tile costs the time of a multiply-add of one result, as a number without a unit: 1 for the multiply-add itself, and
what reading its operands takes beside it, times what partial tiles compute in vain and what an idle machine loses. The
weights set tiles of one product apart; they are the target's (:class:`~tg_codegen.machine.gpu.GPUCosts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...machine.target import Target

ITEM_SIDES = (4, 8, 16)
"""Work-items of a group along a side, to try: groups of 16 to 256."""
ITEM_RESULTS = (1, 2, 4, 8)
"""Results of a work-item along a side, to try: powers of two, of which a vector access reads whole rows."""
WARP_SIDES = (1, 2, 4)
"""Warps of a group along a side, to try: with four each way a group has 512 work-items of warps of 32."""
WARP_ROWS = (1, 2, 4)
"""Matrix instructions of a warp down its rows, to try."""
WARP_COLUMNS = (1, 2, 4, 8)
"""The same across its columns: an instruction has fewer columns than rows (PTX: 16 by 8), so that more are as wide."""


@dataclass(frozen=True, slots=True)
class GroupTile:
    """A product's tile: of work-items, or of warps, in a group, and of results of each.

    Attributes:
      rows: how many along the rows.
      columns: how many along the columns.
      each: rows of one of them.
      wide: columns of one of them.
    """

    rows: int
    columns: int
    each: int
    wide: int

    @property
    def members(self) -> int:
        """Work-items or warps of a group."""
        return self.rows * self.columns


def item_tile(rows: int, columns: int, others: int, lanes: int, items: int, target: Target) -> GroupTile:
    """The tile of work-items that reads least for what it computes, and still leaves groups for the whole machine.

    Args:
      rows: of the product.
      columns: of the product.
      others: products that are done at once.
      lanes: columns that are neighbours in a vector.
      items: most work-items of a group.
      target: the machine.
    """
    gpu = target.gpu

    def cost(t: GroupTile) -> tuple[float, int]:
        waste, idle = losses(((rows, t.rows * t.each), (columns, t.columns * t.wide)), others, t.members, target.warp,
                             target)  # fmt: skip
        reads = 1 / t.each + 1 / t.wide
        return (1 + gpu.item_read * reads) * waste * idle, t.each * t.wide

    registers = min(target.registers, gpu.register_file // max(items, 1)) - gpu.own_registers
    options = [
        GroupTile(r, c, each, lanes * wide)
        for r in ITEM_SIDES for c in ITEM_SIDES for each in ITEM_RESULTS for wide in ITEM_RESULTS
        if r * c <= items and lanes * wide <= gpu.item_columns
        and each * lanes * wide + each + lanes * wide <= registers
        and (each * r < 2 * rows and c * lanes * wide < 2 * columns)
    ]
    return min(options, key=cost, default=GroupTile(1, min(items, 8), 1, lanes))


def warp_tile(rows: int, columns: int, others: int, m: int, n: int, items: int, target: Target) -> GroupTile:
    """Warps of a group along rows and columns, and matrix instructions of each, as :func:`item_tile` does with items.

    Args:
      rows: of the product.
      columns: of the product.
      others: products that are done at once.
      m: rows of an instruction.
      n: columns of an instruction.
      items: most work-items of a group.
      target: the machine.
    """
    gpu = target.gpu

    def cost(t: GroupTile) -> tuple[float, int]:
        waste, idle = losses(((rows, t.rows * t.each * m), (columns, t.columns * t.wide * n)), others, t.members, 1,
                             target)  # fmt: skip
        reads = 1 / (t.each * m) + 1 / (t.wide * n)
        shared = 1 / (t.rows * t.each * m) + 1 / (t.columns * t.wide * n)
        return (1 + gpu.warp_read * reads + gpu.group_read * shared) * waste * idle, t.each * t.wide

    options = [
        GroupTile(r, c, each, wide)
        for r in WARP_SIDES for c in WARP_SIDES for each in WARP_ROWS for wide in WARP_COLUMNS
        if r * c * target.warp <= items and each * wide <= gpu.warp_results
        and (r == each == 1 or r * each * m < 2 * rows) and (c == wide == 1 or c * wide * n < 2 * columns)
    ]
    return min(options, key=cost)


def losses(
    dimensions: Sequence[tuple[int, int]], others: int, members: int, warp: int, target: Target
) -> tuple[float, float]:
    """Factors for what tiles compute outside of the product, and for the part of the machine that is idle.

    Args:
      dimensions: the extent of each, and what a group has of it.
      others: products that are done at once.
      members: of a group.
      warp: so many of them run together.
      target: the machine.
    """
    gpu, waste, groups = target.gpu, 1.0, others
    for extent, part in dimensions:
        count = -(-extent // part)
        groups *= count
        waste *= count * part / extent
    few, small = max(1.0, gpu.groups / groups), max(1.0, gpu.schedulers * warp / members)
    return waste, few**gpu.idle_loss * small**gpu.idle_loss
