"""Long reductions done in pieces: so many terms of all results, then the next terms, as caches hold what they read.

Sums of a piece are partial results, which scratch keeps from one piece to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tg_shape import Variable, ceildiv, coefficient, even_part, step, upper

from ...nest.nest import Axis, Node, Root
from ...nest.spec import Kind
from ..actions import Outermost, Split, SplitReduction
from ..planner import Planner, power_below
from .panels import largest_piece, overlapped, pack_load, packed_itemsize, panel_bytes, scattered
from .registers import FEW_ROWS, RegisterTile
from .streaming import lines_held
from .thread_loops import longest_first, part_for_each_thread

LEAST_TILES = 4
"""Tiles of rows, at the least, for which a reduction is done in pieces: fewer read too little of a panel again."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """A cut reduction: ``length`` iterations at a time, for ``panels`` tiles of vectors before the next piece."""

    length: int
    panels: int


def pieces_of(planner: Planner, rows: Root, lanes: Root, tile: RegisterTile, body: Sequence[Node]) -> Pieces | None:
    """How to cut a long reduction; None if it is not long.

    It is long if one of these does not stay in the second-level cache until it is read again:

    - the vectors of a tile, which every tile of rows reads;
    - the rows' operand, where rows are contiguous in memory: it is larger than the caches, or its lines along the
      reduction fall on few sets of the cache, or it and a panel together fill more than half of the cache.

    In the second case a piece is done for several panels, so that lines of the rows' operand serve all of them.

    Args:
      planner: its nest has the tile already.
      rows: the dimension of the tile's rows.
      lanes: that of its vectors.
      tile: results that registers hold at a time.
      body: the loads of the reduction.
    """
    nest, target, costs = planner.nest, planner.target, planner.target.cpu
    walked = [r for r in nest.roots.values() if r.reduce]
    count = planner.serial(rows.var)
    if len(planner.reductions) != 1 or planner.outer(walked[0].var).kind is not Kind.REDUCE:
        return None
    if len(walked) > 1:
        return _pieces_of_several(planner, walked, lanes, tile, body)
    extent = planner.outer(walked[0].var).extent
    if not isinstance(extent, int) or not isinstance(count, int) or count < LEAST_TILES:
        return None
    wide = tile.vectors * planner.width(lanes) * max(packed_itemsize(planner, load) for load in body)
    beside = 0
    if not any(scattered(planner, n, lanes) for n in body if lanes.var in n.free):  # not packed: whole lines are read
        wide = -(-wide // target.line_bytes) * target.line_bytes
        beside = tile.rows * max(n.dtype.itemsize for n in body)
    across = [n for n in body if lanes.var not in n.free and coefficient(n.arg[1], rows.var) == 1]
    lines, far, crowded = extent, False, False
    for load in across:
        jump = step(load.arg[1], walked[0].var) * load.dtype.itemsize
        lines = min(lines, lines_held(jump, target))
        nbytes = prod(upper(nest.roots[r].extent) for r in load.free) * load.dtype.itemsize
        far |= nbytes > target.far_bytes
        crowded |= target.l2_bytes < 2 * (nbytes + extent * wide) <= 2 * target.l2_bytes
    if extent * (wide + beside) <= target.beside_bytes and lines == extent and not far and not crowded:
        return None
    panels = min(costs.group_panels, upper(planner.serial(lanes.var)) // target.threads) if across else 1
    panels = max(1, panels)
    length = power_below(max(largest_piece(target) // (wide * panels), costs.short_piece))
    if lines < extent:
        length = min(length, max(costs.short_piece, min(lines, 2 * costs.short_piece)))
    return Pieces(even_piece(extent, length), panels) if length < extent else None


def _pieces_of_several(
    planner: Planner, walked: Sequence[Root], lanes: Root, tile: RegisterTile, body: Sequence[Node]
) -> Pieces | None:
    """How to cut a reduction over several dimensions: along the outermost one, where a panel of all is too large."""
    nest, target = planner.nest, planner.target
    strided = [n for n in body if {lanes.var, walked[0].var} <= n.free and scattered(planner, n, lanes)
               and planner.reuse(n) >= FEW_ROWS]
    steps = planner.outer(walked[0].var)
    if not strided or not isinstance(steps.extent, int):
        return None
    shared = overlapped(nest, strided[0])
    one = panel_bytes(planner, strided[0], walked[1:])
    most = largest_piece(target) if shared else target.panel_bytes
    if one * steps.extent <= most or one * tile.vectors > target.panel_bytes:
        return None
    results = tile.rows * tile.vectors * planner.width(lanes) * prod(upper(a.extent) for a in shared)
    if results * planner.reductions[0].dtype.itemsize > target.partial_bytes:
        return None
    length = max(1, largest_piece(target) // (one * tile.vectors))
    return Pieces(even_piece(steps.extent, length), 1) if length < steps.extent else None


def reduce_in_pieces(
    planner: Planner, rows: Root, lanes: Root, tile: RegisterTile, vectors: Sequence[Node], pieces: Pieces
) -> None:
    """Cuts a reduction in pieces, and packs for each piece what its vectors read scattered over memory.

    Scratch holds the partial results of all tiles of rows, or of a block of them where they are too many.

    Args:
      planner: takes the actions.
      rows: the dimension of the tile's rows.
      lanes: that of its vectors.
      tile: results that registers hold at a time.
      vectors: the loads that have lanes.
      pieces: how to cut the reduction.
    """
    target = planner.target
    steps = planner.outer(next(r.var for r in planner.nest.roots.values() if r.reduce))
    if pieces.length > 1:
        planner.do(Split(steps.name, pieces.length, Kind.REDUCE))
    packed = next((n for n in vectors if steps.root in n.free and scattered(planner, n, lanes)), None)
    axis, across = planner.outer(rows.var), planner.outer(lanes.var)
    one = pieces.panels * tile.rows * tile.vectors * planner.width(lanes) * planner.reductions[0].dtype.itemsize
    near = min(target.beside_bytes, target.partial_bytes)
    together: list[Axis] = []
    if packed is not None:
        together, one = _sharing(planner, packed, {rows.var, lanes.var}, one, near)
    fitting = max(1, (target.partial_bytes if pieces.panels > 1 else near) // one)
    count, threads = upper(axis.extent), target.threads
    needed = blocks = -(-count // fitting)
    undivided = across.kind is not Kind.LOOP or not planner.enough(across)  # no loop for threads yet
    if undivided:
        blocks = max(blocks, threads)
    by_tile = axis.kind is Kind.LOOP and needed > max(1, count // 2)
    if blocks > count // 2:  # too few tiles for all threads to have several
        blocks = needed
    if axis.kind is Kind.LOOP and 1 < blocks <= count // 2:
        planner.do(Split(axis.name, min(fitting, -(-count // blocks)), Kind.LOOP))
    elif undivided and threads > 1 and not by_tile:
        together = part_for_each_thread(planner, together)
    inner = [] if by_tile else _innermost(planner, rows)
    if pieces.panels > 1:
        if upper(across.extent) > pieces.panels:
            planner.do(Split(across.name, pieces.panels, Kind.LOOP))
        inner += _innermost(planner, lanes)
    inner += [a.name for a in together]
    loops = [a for a in planner.nest.axes if a.kind is Kind.LOOP and a.name not in inner]
    around = [a.name for a in longest_first(planner, loops)]
    planner.do_all(Outermost(name) for name in reversed(around))
    kept = planner.keep(SplitReduction(0, around[-1] if around else None))
    if kept and packed is not None:
        pack_load(planner, packed, steps.name)


def _innermost(planner: Planner, root: Root) -> list[str]:
    """The innermost serial loop of an output dimension, if it has one."""
    return [a.name for a in planner.nest.axes if a.root is root.var and a.kind is Kind.LOOP][-1:]


def _sharing(planner: Planner, packed: Node, tiled: set[Variable], one: int, most: int) -> tuple[list[Axis], int]:
    """The loops that read a packed panel again, as far as the partial results of all their iterations stay near.

    Args:
      planner: its nest has the tile.
      packed: the load.
      tiled: the dimensions of the tile, which are no such loops.
      one: bytes of the partial results of one iteration.
      most: bytes of those of all.

    Returns:
      The loops, and the bytes of all partial results.
    """
    loops = overlapped(planner.nest, packed)
    one *= prod(upper(a.extent) for a in loops)
    for other in planner.nest.axes:
        fits = isinstance(other.extent, int) and one * other.extent <= most
        if other.kind is Kind.LOOP and other.root not in packed.free and other.root not in tiled and fits:
            loops.append(other)
            one *= upper(other.extent)
    return loops, one


def even_piece(extent: int, most: int) -> int:
    """The size, at most ``most``, of pieces that have nothing over, or else as little as may be.

    >>> even_piece(4096, 1024), even_piece(1000, 128), even_piece(1009, 512)
    (1024, 125, 505)
    """
    return even_part(extent, most) or upper(ceildiv(extent, ceildiv(extent, most)))
