"""Products of a few rows with a large matrix, which is read once: strip by strip, some of its rows at a time.

Columns that are walked down take a line or two from each row, in a page of its own: the addresses of more rows than
the first-level TLB has entries are looked up again for each tile, and what the machine fetches beside is in vain. So
only as many rows as it holds are walked at a time, along all tiles of a strip, whose partial results are kept in
scratch; and the lines that the tiles after the next need are fetched ahead.
"""

from __future__ import annotations

from tg_shape import Variable, coefficient, step, upper

from ...machine.memory import PAGE_BYTES
from ...machine.target import Target
from ...nest.nest import Nest
from ...nest.spec import Kind, NodeOp
from ..actions import LoopAction, Outermost, Prefetch, Split, SplitReduction, apply, loads_of, reductions_of
from .registers import MANY_ROWS, RegisterTile
from .streaming import lines_held

MOST_TILES = 6
"""Tiles of rows, at the most: of more, the large operand is read so often that it is packed."""
BESIDE = (6, 4, 3, 2)
"""Vectors beside one another that a tile may have."""
LINES = (2, 1)
"""Cache lines of a row that a tile reads, at the least: two, for memory and its prefetchers fetch them in pairs; one
where fewer tiles of rows then read each line again, or where the registers hold no more."""


def strips(nest: Nest, rows: Variable, lanes: Variable, tile: RegisterTile, target: Target) -> list[LoopAction]:
    """Multiplies a few rows with a matrix whose columns have the lanes, a strip of them for each thread.

    Args:
      nest: its lanes are cut already.
      rows: the dimension that reuses the vectors.
      lanes: the dimension of the lanes.
      tile: what would walk down whole columns instead.
      target: the machine.

    Returns:
      actions; none where there are more rows, or several such tiles find the columns near, or the matrix's rows follow
      closely on one another.
    """
    reductions, axis, across = reductions_of(nest), nest.of_root(rows)[0], nest.of_root(lanes)[0]
    if len(reductions) != 1 or len(reductions[0].arg[1]) != 1:
        return []
    node, root = reductions[0], reductions[0].arg[1][0]
    walk = nest.of_root(root)[0]
    count, steps, vectors = axis.extent, walk.extent, across.extent
    if not isinstance(count, int) or not isinstance(steps, int) or not isinstance(vectors, int):
        return []
    if node.free != {rows, lanes} and any(
            upper(a.extent) > 1 for a in nest.axes if a.root in node.free - {rows, lanes}):
        return []
    walked = [n for n in node.toposort() if n.op is NodeOp.LOAD and lanes in n.free]
    if len(walked) != 1 or rows in walked[0].free or nest.buffers[walked[0].arg[0]].internal:
        return []
    load, itemsize = walked[0], walked[0].dtype.itemsize
    width = next((upper(a.extent) for a in nest.axes if a.root is lanes and a.kind is Kind.VECTOR), 1)
    tiles_of = (row_tile(count, -(-lines * target.line_bytes // (width * itemsize)), target) for lines in LINES)
    few = min((tile for tile in tiles_of if tile is not None), key=lambda tile: -(-count // tile.rows), default=None)
    jump = step(load.arg[1], root) * itemsize
    far = upper(nest.buffers[load.arg[0]].size) * itemsize > target.l2_bytes
    if few is None or not far or coefficient(load.arg[1], lanes) != 1 or not isinstance(load.arg[2], int):
        return []
    near = (steps <= lines_held(jump, target)
            and steps * itemsize * (tile.vectors * width + count) <= target.resident_bytes)
    held = target.cpu.near_pages * max(1, PAGE_BYTES // max(jump, 1))
    again = tile.rows < count
    if (again and near) or few.vectors > vectors or jump < target.cpu.scattered_bytes or steps <= held:
        return []
    many, beside = few.rows, few.vectors
    results = -(-count // many) * many * beside * width * node.dtype.itemsize
    most = max(1, min(target.resident_bytes, target.partial_bytes) // results)
    tiles = -(-vectors // beside)
    parts = target.threads * -(-tiles // (target.threads * most))
    ahead = -(-target.cpu.run_ahead_bytes // (held * beside * width * itemsize)) * beside * width
    actions: list[LoopAction] = [
        Split(walk.name, held, Kind.REDUCE), Split(axis.name, many, Kind.UPCAST),
        Split(across.name, beside, Kind.UPCAST),
    ]  # fmt: skip
    if parts < tiles:
        actions.append(Split(across.name, -(-tiles // parts), Kind.LOOP))
        nest = apply(nest, actions)
        actions.append(Outermost(nest.of_root(lanes)[1].name))
    actions += [Outermost(across.name), SplitReduction(0, across.name)]
    if target.cpu.run_ahead_bytes:
        actions.append(Prefetch(loads_of(nest).index(load), ahead))
    return actions


def row_tile(count: int, beside: int, target: Target) -> RegisterTile | None:
    """The tile for the fewest walks over the rows in which scalars serve ``beside`` vectors; None if they are many.

    >>> from tg_codegen.machine.target import Target
    >>> machine = Target("CPU", registers=32)
    >>> [row_tile(count, 2, machine) for count in (13, 17, 99)]
    [RegisterTile(rows=13, vectors=2, unrolled=True), RegisterTile(rows=9, vectors=3, unrolled=True), None]
    """
    for tiles in range(1, MOST_TILES + 1):
        rows = -(-count // tiles)
        vectors = next((v for v in BESIDE if rows * v + v + 1 <= target.registers), 0)
        if 2 <= rows <= MANY_ROWS and vectors >= beside:
            return RegisterTile(rows, vectors)
    return None
